"""How a hub on a network comes to rest: after each batch it looks at one thing again."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from typing import Protocol

from braid.core.events import Event
from braid.hub.dialect import QueryError
from braid.hub.settings import Settings
from braid.papers.reuse.changes import HORIZON, Changes
from braid.papers.reuse.deployment import Deployment
from braid.papers.reuse.planner import Planner
from braid.papers.reuse.rest import Item, again, items


class Hub(Protocol):
    """What must be known of a hub, and done with it; the desk does."""

    settings: Settings

    @property
    def deployment(self) -> Deployment:
        """What is deployed."""

    def planner(self) -> Planner:
        """What plans queries now."""

    def now(self) -> int:
        """The latest event time that has come."""

    def moves(self, new: Deployment) -> Sequence[Event]:
        """What is to be told of operators that go on elsewhere."""

    def switch(self, new: Deployment, happened: Sequence[Event]) -> None:
        """Have this deployed."""


class Resting:
    """What is left to be looked at of a hub, and since when queries have neither come nor gone."""

    def __init__(self, desk: Hub) -> None:
        self.desk = desk
        self.left, self.changed = deque[Item](), True
        self.since, self.lasted = 0, 0.0

    def note(self, done: Changes, queries: bool) -> None:
        """Something has changed; ``queries``: because one came or went. A move alone is no reason
        to look at all again.
        """
        self.changed |= bool(done.build or done.drop)
        self.since = self.desk.now() if queries else self.since

    def look_again(self) -> None:
        """Look at one more thing again, in rounds until what is deployed is at rest. What cannot be
        built from the tuples that have come stays as it is.
        """
        desk, self.since = self.desk, self.since or self.desk.now()
        if self.over:
            return
        planner, old = desk.planner(), desk.deployment
        if not self.left:
            self.left.extend(items(planner.model, old))
            self.changed, self.lasted = False, self._lasts()
        if self.left:
            new = again(planner, old, self.left.popleft(), desk.now(), self._lasts())
            with suppress(QueryError):
                if new is not old:
                    desk.switch(new, desk.moves(new))

    @property
    def over(self) -> bool:
        """Whether all has been looked at since something changed, or since it had gone on for half
        as long; one site always is at rest.
        """
        longer = self._lasts() >= 2 * self.lasted
        return self.desk.settings.network is None or not (self.left or self.changed or longer)

    def _lasts(self) -> float:
        """Seconds for which what is deployed is taken to last: as long as queries have neither come
        nor gone, and an hour at least.
        """
        return max(HORIZON, (self.desk.now() - self.since) / 1e6) if self.since else HORIZON
