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
from braid.hub.dialect import QueryError
from braid.hub.ledger import Ledger
from braid.hub.settings import Settings
from braid.papers.reuse.changes import HORIZON, changes
from braid.papers.reuse.deployment import Deployment
from braid.papers.reuse.planner import Planner
from braid.papers.reuse.rest import Item, Looks, again

SHARE = 0.1
"""Looking again takes at most so much of the time that batches take: who has looked for a second
looks again when batches have taken ten.
"""


class Hub(Protocol):
    """What must be known of a hub, and done with it; the desk does."""

    settings: Settings
    ledger: Ledger

    @property
    def deployment(self) -> Deployment:
        """What is deployed."""

    def planner(self) -> Planner:
        """What plans queries now."""

    def now(self) -> int:
        """How far event time has come."""

    def moves(self, new: Deployment) -> Sequence[Event]:
        """What is to be told of operators that go on elsewhere."""

    def switch(self, new: Deployment, happened: Sequence[Event]) -> None:
        """Have this deployed."""


class Resting:
    """What is left to be looked at of a hub, and since when queries have neither come nor gone. In
    one round all is looked at with the same rates, by a planner that goes along with what changes.
    ``share`` of the time of batches is what it may take.
    """

    share = SHARE

    def __init__(self, desk: Hub) -> None:
        self.desk = desk
        self.left, self.changed = deque[Item](), True
        self.since, self.lasted, self.owed = 0, 0.0, 0.0
        self.looks = Looks()
        self.planner: Planner | None = None
        self.down: list[str] = []

    def note(self, old: Deployment, new: Deployment, queries: bool) -> None:
        """Something has changed; ``queries``: because one came or went. A move alone is no reason
        for another round.
        """
        done = changes(old, new)
        self.changed |= bool(done.build or done.drop)
        self.looks.note(old, new)
        if queries:
            self.since, self.planner = self.desk.now(), None

    def look_again(self, batch: float = math.inf) -> None:
        """Look at one more thing again after a ``batch`` (seconds), in rounds until what is
        deployed is at rest, unless the last look has taken more than its share yet. What cannot be
        built from the tuples that have come stays as it is.
        """
        self.since = self.since or self.desk.now()
        self.owed = max(0.0, self.owed - self.share * batch)
        if self.over or self.owed > 0:
            return
        began = clock.perf_counter()
        planner = self._round()
        if self.left:
            self._look(planner, self.left.popleft())
        self.owed = clock.perf_counter() - began

    def _round(self) -> Planner:
        """The planner of this round, or of a next one if all of this has been looked at: of all
        once more if it has gone on for twice as long, else of what has had a change near it.
        """
        desk, next_one = self.desk, not self.left
        if next_one or self.planner is None or self.down != desk.ledger.down:
            self.planner, self.down = desk.planner(), list(desk.ledger.down)
        if next_one:
            if self._longer:
                self.looks = Looks()
            self.lasted = self._lasts() if self._longer else min(self.lasted, self._lasts())
            self.left.extend(self.looks.due(self.planner.model, desk.deployment))
            self.changed = False
        return self.planner

    def _look(self, planner: Planner, item: Item) -> None:
        desk, old = self.desk, self.desk.deployment
        self.looks.at(item)
        new = again(planner, old, item, desk.now(), self._lasts())
        with suppress(QueryError):
            if new is not old:
                desk.switch(new, desk.moves(new))

    @property
    def over(self) -> bool:
        """Whether all has been looked at since something changed, or since it had gone on for half
        as long; one site always is at rest.
        """
        due = self.left or self.changed or self._longer
        return self.desk.settings.network is None or not due

    @property
    def _longer(self) -> bool:
        """Whether it has gone on for twice as long as when all was looked at."""
        return self._lasts() >= 2 * self.lasted

    def _lasts(self) -> float:
        """Seconds for which what is deployed is taken to last: as long as queries have neither come
        nor gone, and an hour at least.
        """
        return max(HORIZON, (self.desk.now() - self.since) / 1e6) if self.since else HORIZON
