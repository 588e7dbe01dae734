"""Constant settings of a running hub."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from braid.core.stream_clocks import LAST_TIME, advance_idle_clocks
from braid.papers.reuse.hub_events import HubStarted
from braid.papers.reuse.network import ONE_SITE, Network
from braid.papers.reuse.planner import Reuse
from braid.papers.reuse.result_rates import Rates


@dataclass(frozen=True)
class HubSettings:
    """Settings of a hub.

    - ``time``: event-time column of all streams.
    - ``lateness``: maximum delay by stream, in microseconds.
    - ``ahead``, ``history``: microseconds; see QueryHub.
    - ``network``: None: one site.
    - ``idle``: microseconds; see QueryHub.
    """

    time: str
    lateness: Mapping[str, int]
    ahead: int
    reuse: Reuse
    history: int
    network: Network | None
    stream_nodes: dict[str, str]
    rates: Rates | None
    idle: int | None = None

    def describe_start(self, streams: Sequence[str], pace: float) -> HubStarted:
        """Return the first event of a hub, with ``pace`` seconds from batch to batch."""
        network = (self.network or ONE_SITE).to_dict()
        places = self.stream_nodes, self.history, pace or None
        return HubStarted(tuple(streams), self.time, self.reuse, network, *places)

    def advance_clocks(
        self, clocks: Mapping[str, int | None], ended: Collection[str]
    ) -> dict[str, int | None]:
        """Return the clocks of all streams, each at least the greatest of them less ``idle``.

        Nothing waits for streams that have ended: they have the greatest clock.
        """
        given = [clocks.get(stream) for stream in self.lateness]
        greatest = max((t for t in given if t is not None), default=None)
        advanced = advance_idle_clocks(given, self.idle)
        return {
            stream: greatest if stream in ended else time
            for stream, time in zip(self.lateness, advanced, strict=True)
        }

    def find_passed_times(
        self, clocks: Mapping[str, int | None], ended: Collection[str]
    ) -> dict[str, int | None]:
        """Return, by stream, the event time before which only late tuples come.

        It is the clock of the stream, or that of another one if the stream is idle, less its
        lateness. Microseconds; None: the stream has not begun; ``LAST_TIME``: it has ended.
        """
        return {
            s: LAST_TIME if s in ended else None if t is None else t - self.lateness[s]
            for s, t in self.advance_clocks(clocks, ended).items()
        }
