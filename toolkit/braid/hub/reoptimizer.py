"""How a hub on a network comes to rest: between batches it looks at one thing after another again,
and takes no more than a share of their time for it.
"""

from __future__ import annotations

import math
import time as clock
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from typing import Protocol

from braid.core.events import Event
from braid.hub.hub_settings import HubSettings
from braid.hub.hub_state import HubState
from braid.hub.query_dialect import QueryError
from braid.papers.reuse.deployment import Deployment
from braid.papers.reuse.deployment_changes import HORIZON, diff_deployments
from braid.papers.reuse.planner import Planner
from braid.papers.reuse.reoptimization import Item, ReviewQueue, review_item

SHARE = 0.1
"""Looking again takes at most so much of the time that batches take: who has looked for a second
looks again when batches have taken ten.
"""


class ReoptimizableHub(Protocol):
    """What must be known of a hub, and done with it; the desk does."""

    settings: HubSettings
    ledger: HubState

    @property
    def current_deployment(self) -> Deployment:
        """What is deployed."""

    def make_planner(self) -> Planner:
        """What plans queries now."""

    def latest_event_time(self) -> int:
        """How far event time has come."""

    def migration_events(self, new: Deployment) -> Sequence[Event]:
        """What is to be told of operators that go on elsewhere."""

    def switch_deployment(self, new: Deployment, happened: Sequence[Event]) -> None:
        """Have this deployed."""


class Reoptimizer:
    """What is left to be looked at of a hub, and since when queries have neither come nor gone. In
    one round all is looked at with the same rates, by a planner that goes along with what changes.
    ``share`` of the time of batches is what it may take.
    """

    share = SHARE

    def __init__(self, desk: ReoptimizableHub) -> None:
        self.desk = desk
        self.left, self.changed = deque[Item](), True
        self.since, self.lasted, self.owed = 0, 0.0, 0.0
        self.looks = ReviewQueue()
        self.planner: Planner | None = None
        self.down: list[str] = []

    def note_change(self, old: Deployment, new: Deployment, queries: bool) -> None:
        """Something has changed; ``queries``: because one came or went. A move alone is no reason
        for another round.
        """
        done = diff_deployments(old, new)
        self.changed |= bool(done.build or done.drop)
        self.looks.note_change(old, new)
        if queries:
            self.since, self.planner = self.desk.latest_event_time(), None

    def review_next(self, batch: float = math.inf) -> None:
        """Look at one more thing again after a ``batch`` (seconds), in rounds until what is
        deployed is at rest, unless the last look has taken more than its share yet. What cannot be
        built from the tuples that have come stays as it is.
        """
        self.since = self.since or self.desk.latest_event_time()
        self.owed = max(0.0, self.owed - self.share * batch)
        if self.is_settled or self.owed > 0:
            return
        began = clock.perf_counter()
        planner = self._planner_for_round()
        if self.left:
            self._review_item(planner, self.left.popleft())
        self.owed = clock.perf_counter() - began

    def _planner_for_round(self) -> Planner:
        """The planner of this round, or of a next one if all of this has been looked at: of all
        once more if it has gone on for twice as long, else of what has had a change near it.
        """
        desk, next_one = self.desk, not self.left
        if next_one or self.planner is None or self.down != desk.ledger.failed_nodes:
            self.planner, self.down = desk.make_planner(), list(desk.ledger.failed_nodes)
        if next_one:
            if self._has_doubled:
                self.looks = ReviewQueue()
            self.lasted = (
                self._expected_lifetime_seconds()
                if self._has_doubled
                else min(self.lasted, self._expected_lifetime_seconds())
            )
            self.left.extend(self.looks.due_items(self.planner.model, desk.current_deployment))
            self.changed = False
        return self.planner

    def _review_item(self, planner: Planner, item: Item) -> None:
        desk, old = self.desk, self.desk.current_deployment
        self.looks.mark_reviewed(item)
        new = review_item(
            planner, old, item, desk.latest_event_time(), self._expected_lifetime_seconds()
        )
        with suppress(QueryError):
            if new is not old:
                desk.switch_deployment(new, desk.migration_events(new))

    @property
    def is_settled(self) -> bool:
        """Whether all has been looked at since something changed, or since it had gone on for half
        as long; one site always is at rest.
        """
        due = self.left or self.changed or self._has_doubled
        return self.desk.settings.network is None or not due

    @property
    def _has_doubled(self) -> bool:
        """Whether it has gone on for twice as long as when all was looked at."""
        return self._expected_lifetime_seconds() >= 2 * self.lasted

    def _expected_lifetime_seconds(self) -> float:
        """Seconds for which what is deployed is taken to last: as long as queries have neither come
        nor gone, and an hour at least.
        """
        return (
            max(HORIZON, (self.desk.latest_event_time() - self.since) / 1e6)
            if self.since
            else HORIZON
        )
