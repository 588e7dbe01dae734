"""Background re-optimization of a hub on a network.

Between batches, it reviews one query or operator at a time within a share of the batch time.
"""

from __future__ import annotations

import math
import time as clock
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from typing import Protocol

from braid.core.run_events import Event
from braid.errors import QueryError
from braid.hub.hub_settings import HubSettings
from braid.hub.hub_state import HubState
from braid.papers.reuse.deployment import Deployment
from braid.papers.reuse.deployment_changes import HORIZON, diff_deployments
from braid.papers.reuse.planner import Planner
from braid.papers.reuse.reoptimization import Item, ReviewQueue, review_item

SHARE = 0.1
"""Largest share of the batch time for reviews.

After a review of one second, the next comes when batches have taken ten.
"""


class ReoptimizableHub(Protocol):
    """Interface of a hub to its reoptimizer, implemented by ``QueryRegistry``."""

    settings: HubSettings
    ledger: HubState

    @property
    def current_deployment(self) -> Deployment:
        """Deployed operators and queries."""

    def make_planner(self) -> Planner:
        """Return a planner for the current state."""

    def latest_event_time(self) -> int:
        """Return the latest event time of all clocks, in microseconds."""

    def migration_events(self, new: Deployment) -> Sequence[Event]:
        """Return events for the operators that a new deployment moves."""

    def switch_deployment(self, new: Deployment, happened: Sequence[Event]) -> None:
        """Switch to a deployment."""


class Reoptimizer:
    """Queue of reviews, with the event time at which the set of queries last changed.

    One round reviews everything with the same rates, by a planner that follows the changes made.
    ``share``: largest share of the batch time.
    """

    share = SHARE

    def __init__(self, registry: ReoptimizableHub) -> None:
        self.registry = registry
        self.left, self.changed = deque[Item](), True
        self.since, self.lasted, self.time_debt = 0, 0.0, 0.0
        self.looks = ReviewQueue()
        self.planner: Planner | None = None
        self.down: list[str] = []

    def note_change(self, old: Deployment, new: Deployment, queries: bool) -> None:
        """Record a change. A move alone does not cause another round.

        ``queries``: whether a query was added or removed.
        """
        done = diff_deployments(old, new)
        self.changed |= bool(done.build or done.drop)
        self.looks.note_change(old, new)
        if queries:
            self.since, self.planner = self.registry.latest_event_time(), None

    def review_next(self, batch: float = math.inf) -> None:
        """Review one more item after a batch that took ``batch`` seconds.

        Rounds continue until the deployment is settled. Nothing is reviewed while earlier reviews
        exceed their share of the time. If a new plan cannot be built from the tuples received, the
        deployment stays.
        """
        self.since = self.since or self.registry.latest_event_time()
        self.time_debt = max(0.0, self.time_debt - self.share * batch)
        if self.is_settled or self.time_debt > 0:
            return
        began = clock.perf_counter()
        planner = self._planner_for_round()
        if self.left:
            self._review_item(planner, self.left.popleft())
        self.time_debt = clock.perf_counter() - began

    def _planner_for_round(self) -> Planner:
        """Return the planner of this round, or of the next one if everything is reviewed.

        The next round covers all items if the deployment has lasted twice as long, else those near
        a change.
        """
        registry, next_one = self.registry, not self.left
        if next_one or self.planner is None or self.down != registry.ledger.failed_nodes:
            self.planner, self.down = registry.make_planner(), list(registry.ledger.failed_nodes)
        if next_one:
            if self._has_doubled:
                self.looks = ReviewQueue()
            self.lasted = (
                self._expected_lifetime_seconds()
                if self._has_doubled
                else min(self.lasted, self._expected_lifetime_seconds())
            )
            self.left.extend(self.looks.due_items(self.planner.model, registry.current_deployment))
            self.changed = False
        return self.planner

    def _review_item(self, planner: Planner, item: Item) -> None:
        registry, old = self.registry, self.registry.current_deployment
        self.looks.mark_reviewed(item)
        new = review_item(
            planner, old, item, registry.latest_event_time(), self._expected_lifetime_seconds()
        )
        with suppress(QueryError):
            if new is not old:
                registry.switch_deployment(new, registry.migration_events(new))

    @property
    def is_settled(self) -> bool:
        """Whether everything has been reviewed since the last change.

        After a full review, the next one is due when the deployment has lasted twice as long. One
        site is always settled.
        """
        due = self.left or self.changed or self._has_doubled
        return self.registry.settings.network is None or not due

    @property
    def _has_doubled(self) -> bool:
        """Whether the deployment has lasted twice as long as at the last full review."""
        return self._expected_lifetime_seconds() >= 2 * self.lasted

    def _expected_lifetime_seconds(self) -> float:
        """Return the seconds that the deployment is expected to last.

        That is the time since queries last changed, and at least an hour.
        """
        return (
            max(HORIZON, (self.registry.latest_event_time() - self.since) / 1e6)
            if self.since
            else HORIZON
        )
