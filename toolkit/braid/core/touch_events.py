"""Events of what a user does to an active run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from logging import INFO
from typing import Any

from braid.core.run_events import Event, EventContext, RunStarted


@dataclass(frozen=True, slots=True)
class SettingChanged(Event):
    """A setting that the user has changed in an active run, from this batch on.

    - ``name``: the setting, such as "epsilon" or "rate of a".
    - ``before``, ``after``: its values, as texts or numbers.
    """

    level = INFO
    retention_key = ("name",)

    batch: int
    name: str
    before: Any
    after: Any

    def describe_decision(self, moment: EventContext) -> str:
        before, after = (f"{v:g}" if isinstance(v, float) else v for v in (self.before, self.after))
        return f"the user sets {self.name} from {before} to {after}"

    def apply_to_start(self, start: RunStarted) -> RunStarted:
        """Return the settings of a run with this one changed."""
        if self.name == "interval":
            return replace(start, interval_seconds=self.after or None)
        if self.name not in start.placement_settings:  # of a generated stream
            return start
        settings = {**start.placement_settings, self.name: self.after}
        return replace(start, placement_settings=settings)


def apply_changes(start: RunStarted, events: Iterable[Event]) -> RunStarted:
    """Return the settings of a run after the changes among ``events``."""
    for event in events:
        if isinstance(event, SettingChanged):
            start = event.apply_to_start(start)
    return start


@dataclass(frozen=True, slots=True)
class HostLost(Event):
    """The loss of a host's state before a batch, and the sources from which it was recovered.

    - ``host``: the host. A replacement with the same number has its replicas again.
    - ``blocks``, ``tuples``, ``size_bytes``: what the host held.
    - ``copied_tuples``: tuples copied from each host that also held them.
    - ``stored_tuples``: tuples read from committed files, as no other host held them.
    """

    level = INFO

    batch: int
    host: int
    blocks: int
    tuples: int
    size_bytes: int
    copied_tuples: Mapping[int, int]
    stored_tuples: int

    def describe_decision(self, moment: EventContext) -> str:
        copied, others = sum(self.copied_tuples.values()), len(self.copied_tuples)
        return (
            f"host {self.host} loses its {self.tuples:,} rows; {copied:,} are copied from {others} "
            f"other host{'' if others == 1 else 's'}, {self.stored_tuples:,} read from storage"
        )
