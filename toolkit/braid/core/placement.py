"""What every placement policy offers."""

from __future__ import annotations

from typing import Any, Protocol

from braid.core.facts import Facts
from braid.core.plan import Keying, Plan


class Placement(Protocol):
    """A placement policy: frozen settings and two pure functions.

    ``hosts`` is J, the number of logical hosts at the start; ``keys`` the size of the routing-key
    space; ``keying`` what the routing key hashes. Four more attributes are optional: ``max_hosts``,
    the most hosts that it may ever use; ``owes(state)``, whether batches without tuples must follow
    because results are owed; ``slices(state)``, by stream the ages (microseconds, rising) across
    which upkeep must not merge blocks; ``complete = False`` for a baseline that loses results,
    whose plans are not held against the cover rule.
    """

    @property
    def hosts(self) -> int: ...

    @property
    def keying(self) -> Keying: ...

    @property
    def keys(self) -> int: ...

    def start(self, streams: int) -> Any:
        """The first state. Raises ValueError when the placement cannot serve that many streams."""
        ...

    def plan(self, facts: Facts, state: Any) -> Plan: ...


class WholeBatches:
    """For placements that never split what a stream brings in a micro-batch: there is one routing
    key.
    """

    @property
    def keying(self) -> Keying:
        return "tuple"

    @property
    def keys(self) -> int:
        return 1
