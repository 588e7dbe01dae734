"""ATR, aligned tuple routing.

One stream is the master. Its segments are disjoint, and each goes to one host. The other streams,
the slaves, are sent to every host whose segment they can join with. So each combination meets on
one host and nothing hops. Time is counted in batches.

Source: Gu, Yu and Wang, "Adaptive Load Diffusion for Multiway Windowed Stream Joins", ICDE 2007,
section 3.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

from braid.core.cluster_model import check_cluster, check_weights
from braid.core.facts import Facts
from braid.core.placement import Placement, check_hosts
from braid.core.plan import Plan
from braid.core.plan_builder import PlanBuilder
from braid.papers.common.load_balance import GU_PRICES, Cluster, LoadBalance, Prices, Weights
from braid.papers.common.window_batches import EventTimeRate
from braid.papers.diffusion.alignment import Alignment, MasterTenure, Segment
from braid.papers.diffusion.run_events import MasterSwitched, SegmentLengthTuned
from braid.papers.diffusion.segment_length import LengthSearch, atr_overhead

GAIN = 0.2
"""The master changes if that lowers the overhead by more than this fraction."""
MEMORY = 20
"""Number of batches in the moving mean of arrival rates."""
ROUNDS = 4
"""Maximum number of segments for each host that are planned ahead.

A slave that lives longer goes to every host.
"""


@dataclass(frozen=True, slots=True)
class AlignedState:
    """The state of ATR between batches.

    - ``search``: the search for the segment length.
    - ``tenure``: the current master; None: before the first batch.
    - ``segments``: segments that have live blocks or are planned.
    - ``rates``: mean arrival rates, in tuples per batch.
    - ``next_id``: the next block id to expect.
    """

    search: LengthSearch
    tenure: MasterTenure | None = None
    segments: tuple[Segment, ...] = ()
    rates: tuple[float, ...] | None = None
    next_id: int = 0


@dataclass(frozen=True)
class Aligned(Placement):
    """ATR: segments of a master stream are spread over the hosts; the others align with them.

    Parameters
    ----------
    hosts
        J, the number of logical hosts.
    segment_batches
        T, the length of a master segment, in batches. With ``adaptive``, the search for the best
        length starts here.
    adaptive
        Switch the master and tune the length. False is the paper's ATR-unoptimized.
    master
        Index of the first master stream. Default: the one that Eq. 2 favors at equal rates.
    step_batches
        Delta T, by which the search changes the length, in batches.
    sample_batches
        Number of batches for which each length is measured, once all live segments have it. The
        measure is the work done, in compared pairs, for the load (Eq. 1) of the busiest host.
    host_capacities
        Memory (MB), MIPS and bandwidth (Mbit/s) of every host. Default: equal hosts.
    load_weights
        omega_1 to omega_3 of Eq. 1: CPU, memory, bandwidth.
    cost_parameters
        Prices of CPU time: milliseconds to transfer a tuple and to probe, microseconds to compare
        a pair.

    Hosts of segments are chosen W_max ahead, by the rate of event time so far, so that a slave
    tuple goes to all its hosts when it arrives. If that was not far enough, blocks are copied when
    the segment begins.

    Supports any condition and two streams or more. A slave without a window goes to every host. A
    master without a window is correct too, but all hosts end up with all slaves, its segment length
    is not tuned, and it is never replaced: its old tuples would have to be joined where they are
    forever, so the transition would not end.

    Raises ValueError for settings out of range and for a master that is none of the streams.
    """

    State = AlignedState
    label = "ATR (aligned tuple routing)"

    hosts: int
    segment_batches: int = 1
    adaptive: bool = True
    master: int | None = None
    step_batches: int = 1
    sample_batches: int = 20
    host_capacities: Cluster = ()
    load_weights: Weights = (1 / 3, 1 / 3, 1 / 3)
    cost_parameters: Prices = GU_PRICES

    def __post_init__(self) -> None:
        check_hosts(self.hosts)
        for name in ("segment_batches", "step_batches", "sample_batches"):
            if (
                isinstance(value := getattr(self, name), bool)
                or not isinstance(value, int)
                or value < 1
            ):
                raise ValueError(
                    f"{name} is {value!r}; it must be a whole number of batches, 1 or more"
                )
        check_cluster(self.host_capacities, self.hosts)
        check_weights(self.load_weights)

    @classmethod
    def example_instances(cls) -> tuple[Self, ...]:
        return (cls(5, segment_batches=2, sample_batches=3),)

    def initial_state(self, streams: int) -> AlignedState:
        if streams < 2:
            raise ValueError(f"Aligned joins two streams or more; got {streams}")
        if self.master is not None and self.master not in range(streams):
            raise ValueError(
                f"master is {self.master}; it must be the index of a stream, from 0 to "
                f"{streams - 1}"
            )
        return AlignedState(LengthSearch.start_at(self.segment_batches))

    def plan_batch(self, facts: Facts, state: AlignedState) -> Plan:
        return _Planner(self, facts, state).plan_batch()


class _Planner:
    """The planning of one batch: elect, tune, choose hosts ahead, and align the blocks."""

    def __init__(self, settings: Aligned, facts: Facts, state: AlignedState) -> None:
        self.settings, self.facts, self.batch = settings, facts, facts.batch
        self.streams = range(len(facts.streams))
        self.pace = EventTimeRate.from_facts(facts)
        self.rates = _compute_mean_rates(state.rates, facts)
        self.search, self.segments = state.search, list(state.segments)
        self.tenure = state.tenure or MasterTenure(self._choose_first_master())
        self.committed = state.next_id
        self.events: list[Any] = []

    def plan_batch(self) -> Plan:
        if not any(
            b.batch < self.tenure.since_batch
            and b.stream in (self.tenure.master, self.tenure.previous_master)
            for b in self.facts.blocks
        ):
            self.tenure = replace(self.tenure, previous_master=None)
        if (
            self.settings.adaptive
            and self.settings.hosts > 1
            and self.tenure.previous_master is None
        ):
            self._elect_master()
            self._tune_segment_length()
        self._drop_dead_segments()
        reach = self._choose_hosts_ahead()  # may add segments
        hosts = self.settings.hosts
        aligned = Alignment(self.facts, hosts, self.tenure, self.segments, reach, self.committed)
        draft = PlanBuilder(self.facts)
        aligned.migrate_blocks(draft)
        routes, events = aligned.fresh_routes(self.rates), (*self.events, *aligned.segment_events())
        next_id = self.facts.next_id + len(routes)
        segments = tuple(aligned.segments)
        state = AlignedState(self.search, self.tenure, segments, self.rates, next_id)
        return draft.make_plan(routes, state, events)

    def _choose_first_master(self) -> int:
        """Return the stream that Eq. 2 favors at equal rates: the one with the shortest window."""
        if self.settings.master is not None:
            return self.settings.master
        return min(
            self.streams, key=lambda s: (self.pace.windows[s] is None, self.pace.windows[s] or 0)
        )

    @cached_property
    def load_balance(self) -> LoadBalance:
        """The load of the hosts, from the segments that have begun."""
        begun = sum(s.start < self.batch for s in self.segments)
        settings = self.settings
        return LoadBalance(
            settings.hosts,
            settings.host_capacities,
            self.facts,
            settings.load_weights,
            self.pace.seconds_per_batch,
            begun,
            settings.cost_parameters,
        )

    def _elect_master(self) -> None:
        """Apply master stream switching.

        When a segment has ended, the stream with the least overhead becomes the master.
        """
        master, windows = self.tenure.master, self.pace.windows_in_batches()
        windowed = [s for s in self.streams if windows[s] is not None]
        ended = [s for s in self.segments if s.start < self.batch <= s.end_batch][-1:]
        if (
            not ended
            or ended[0].end_batch > self.batch
            or self.pace.microseconds_per_batch is None
            or master not in windowed
        ):
            return
        cost = {
            s: atr_overhead(self.rates, windows, s, self.search.length, self.settings.hosts)
            for s in windowed
        }
        best = min(windowed, key=lambda s: cost[s])
        if cost[best] < (1 - GAIN) * cost[master]:
            self.tenure = MasterTenure(best, self.batch, master, ended[0].host)
            self.search = LengthSearch.start_at(self.search.length)
            self.events.append(
                MasterSwitched(self.batch, master, best, ended[0].host, (cost[master], cost[best]))
            )

    def _tune_segment_length(self) -> None:
        """Apply segment length adaptation.

        A sample counts only while all live segments have the length under test and were placed from
        loads with full windows.
        """
        begun = [s for s in self.segments if s.start < self.batch]
        done, length = self._measure_work_done(), self.search.length
        windows = self.pace.windows_in_batches()
        full = self.tenure.since_batch + max((w for w in windows if w is not None), default=0)
        if (
            windows[self.tenure.master] is None
            or not done
            or self.batch <= full
            or any(s.length != length or s.planned_in <= full for s in begun)
        ):
            return
        self.search = self.search.add_sample(float(self.load_balance.loads.max()), done)
        if self.search.batches == self.settings.sample_batches:
            cost = self.search.max_host_load / self.search.completed_work
            self.search = self.search.next_length(self.settings.step_batches)
            if self.search.length != length:
                self.events.append(SegmentLengthTuned(self.batch, length, self.search.length, cost))

    def _measure_work_done(self) -> float:
        """Return the tuples of the last batch times the compared fraction of its pairs.

        A pair consists of a new and a live tuple.
        """
        new, live = self.facts.previous_received, [0] * len(self.streams)
        for b in self.facts.blocks:
            live[b.stream] += b.rows
        offered = sum(n * (sum(live) - live[s]) for s, n in enumerate(new))
        return (
            sum(new) * sum(usage.compared_pairs for usage in self.facts.host_usage) / offered
            if offered
            else 0.0
        )

    def _drop_dead_segments(self) -> None:
        """Drop segments that have ended and have no live block."""
        batches = {
            b.batch
            for b in self.facts.blocks
            if b.stream in (self.tenure.master, self.tenure.previous_master)
        }
        self.segments = [
            s
            for s in self.segments
            if s.end_batch >= self.batch or not batches.isdisjoint(range(s.start, s.end_batch))
        ]

    def _choose_hosts_ahead(self) -> list[int | None]:
        """Choose hosts until every slave tuple of this batch knows all segments that it may meet.

        Return, by stream, for how many batches a tuple is met; None: it goes to every host.
        """
        most = ROUNDS * self.settings.hosts * self.search.length
        reach = [self.pace.reachable_batches(s) for s in self.streams]
        reach = [None if r is None or r > most else r for r in reach]
        furthest = max(
            (r for s, r in enumerate(reach) if r is not None and s != self.tenure.master),
            default=0,
        )
        chosen = Counter(s.host for s in self.segments if s.start >= self.batch)
        end, last = (
            (self.segments[-1].end_batch, self.segments[-1].host)
            if self.segments
            else (self.batch, -1)
        )
        while end <= self.batch + furthest:
            last = self.load_balance.least_loaded_host(chosen, last)
            self.segments.append(Segment(end, self.search.length, last, self.batch))
            end += self.search.length
            chosen[last] += 1
        return reach


def _compute_mean_rates(rates: tuple[float, ...] | None, facts: Facts) -> tuple[float, ...]:
    """Return the mean arrival rates r_i in tuples per batch; recent batches weigh most."""
    weight = 1 / min(max(facts.batch, 1), MEMORY)
    return tuple(
        r + weight * (n - r)
        for r, n in zip(rates or facts.previous_received, facts.previous_received, strict=True)
    )
