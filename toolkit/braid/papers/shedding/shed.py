"""The shedder: how much of a join is processed if not all can be, and what. Source: Gedik 2007."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import sqrt
from typing import Any, Literal, get_args

import numpy as np

from braid.core.facts import Facts
from braid.core.placement import Shedder
from braid.core.plan import Block, Plan, apply_derivations_and_drops
from braid.core.shedding_plan import Item, ResultUtility, SheddingOutcome, SheddingPlan
from braid.papers.shedding.budget import Budget, Floats, fill_budget
from braid.papers.shedding.productivity_profile import (
    ProductivityProfile,
    basic_window_ends,
    basic_window_length,
    locate_basic_window,
)
from braid.papers.shedding.run_events import SheddingPlanned, ShedItem
from braid.util.durations import parse_duration
from braid.util.validation import checks_field_types

Method = Literal["selective", "direction", "time", "partial", "uniform", "drop", "keys"]
METHODS: tuple[Method, ...] = get_args(Method)
FLOOR = 1e-4
"""Minimum share, so that every weight is finite."""
_SMOOTH = 0.5
"""Weight of all earlier batches in measured costs."""


@dataclass(frozen=True, slots=True)
class ShedState:
    """The state of a shedder between batches.

    - ``budget``: the budget in force, if it was adjusted.
    - ``profile``: the learned productivity.
    - ``cost``, ``overhead``: measured seconds for a pair and for a batch.
    - ``fraction``, ``types``, ``keep_shares``: r, the types and the shares of kept tuples of the
      last plan.
    - ``latest``: latest event times by stream.
    - ``received_tuples``: by stream, the tuples of the last batch that had any.
    - ``elapsed_event_time``: event time that passed in the last batch with any, in microseconds.
    """

    budget: Budget | None = None
    profile: ProductivityProfile = field(default_factory=ProductivityProfile)
    cost: float = 0.0
    overhead: float = 0.0
    fraction: float = 1.0
    types: tuple[tuple[int, ...], ...] = ()
    keep_shares: tuple[float, ...] = ()
    latest: tuple[int | None, ...] = ()
    received_tuples: tuple[int, ...] = ()
    elapsed_event_time: int = 0


@dataclass(frozen=True)
class Shed(Shedder):
    """Load shedding of a join.

    One of ``fraction``, ``pairs``, ``seconds`` and ``event_time_speed`` limits how much is
    processed; the other parameters select what.

    Parameters
    ----------
    fraction
        Fraction of all pairs to process, at any cost.
    pairs
        Maximum number of pairs (probing tuple, stored tuple) in a batch.
    seconds
        Maximum duration of a batch. Spark's sources have no backpressure: without a limit, a batch
        takes all that has arrived meanwhile, and longer batches cause longer batches. This limit
        breaks the cycle. A source with its own limit (``maxOffsetsPerTrigger``, say) holds input
        back where no batch's seconds show it; use ``event_time_speed`` for such a source.
    event_time_speed
        Minimum speed of event time relative to the clock. Default: 1 if no limit is given.
    method
        "selective" (the most productive pairs of all directions, ages and types: Algorithm 5),
        "direction" (Algorithm 4, then by age), "time" (by age, Algorithm 3), "partial" (the
        newest first), "uniform" (any). With all of these the state is complete. "drop" discards
        tuples on arrival; "keys" discards all tuples of a value, on every side, for equalities.
    basic_window
        Length of a basic window, as "10 seconds". Default: a twentieth of the window.
    sample
        Minimum share of any pair, as a fraction of r (the paper's gamma). A larger one gives better
        estimates, a smaller one more results. 1 is "uniform".
    utility
        By alias, the worth of a tuple as Spark SQL over that stream's columns. Default: 1.
    combine
        Worth of a result: "max" or "mean" of its members.

    Plans depend only on committed measurements, so a batch that is planned again gets the same
    plan. With ``fraction`` or ``pairs`` a resumed run has exactly the results of an uninterrupted
    one.

    Raises ValueError for settings out of range.
    """

    State = ShedState

    fraction: float | None = None
    pairs: float | None = None
    seconds: float | None = None
    event_time_speed: float | None = None
    method: Method = "selective"
    basic_window: str | None = None
    sample: float = 0.3
    utility: Mapping[str, str] = field(default_factory=dict)
    combine: Literal["max", "mean"] = "max"

    @checks_field_types
    def __post_init__(self) -> None:
        self.processing_budget  # noqa: B018 (it checks)
        if self.method not in METHODS:
            raise ValueError(f"method is {self.method!r}; it must be one of {', '.join(METHODS)}")
        if self.combine not in ("max", "mean"):
            raise ValueError(f"combine is {self.combine!r}; it must be 'max' or 'mean'")
        if isinstance(self.sample, bool) or not 0 < self.sample <= 1:
            raise ValueError(f"sample is {self.sample!r}; it must be greater than 0 and at most 1")
        if self.basic_window is not None:
            parse_duration(self.basic_window, "basic window")

    @property
    def processing_budget(self) -> Budget:
        """The budget as given."""
        return Budget.from_options(self.fraction, self.pairs, self.seconds, self.event_time_speed)

    @property
    def utility_rule(self) -> ResultUtility:
        """The utility of results."""
        return ResultUtility(bool(self.utility), self.method == "keys", self.combine)

    @property
    def basic_window_length(self) -> int | None:
        """b in microseconds; None: a twentieth of the window."""
        return (
            None if self.basic_window is None else parse_duration(self.basic_window, "basic window")
        )

    def initial_state(self, streams: int) -> ShedState:
        """Return a state in which nothing has been learned."""
        return ShedState()

    def with_budget(self, state: ShedState, budget: Budget) -> ShedState:
        """Return the state with another budget in force."""
        return replace(state, budget=budget)

    def merge_boundaries(self, windows_: Sequence[int | None]) -> tuple[tuple[int, ...], ...]:
        """Return, by stream, the ends of its basic windows."""
        return tuple(basic_window_ends(w, self.basic_window_length) for w in windows_)

    def plan_shedding(
        self, facts: Facts, plan: Plan, state: ShedState, last: SheddingOutcome | None
    ) -> tuple[Plan, ShedState]:
        """Return the plan with a harvest; see Shedder."""
        learned = _update_arrivals(_learn_from_harvest(state, last), facts)
        budget = learned.budget or self.processing_budget
        types = learned.profile.common_types()
        work = _Work(
            self, facts, plan, learned.profile, types, learned.keep_shares, learned.received_tuples
        )
        allowance = budget.allowed_seconds(learned.elapsed_event_time)
        volume = work.count_full_join_pairs()
        fits = budget.affordable_pairs(allowance, learned.cost, learned.overhead, work.settled)
        r, enough = budget.choose_fraction(volume, fits, learned.fraction)
        is_whole_tuple = self.method in ("drop", "keys")
        keep = (max(FLOOR, sqrt(r)),) * len(facts.streams) if is_whole_tuple else ()
        shares = work.choose_item_shares(1.0 if is_whole_tuple else r)
        expected = {} if is_whole_tuple or fits is None else work.bound_fresh_rows(fits, r * volume)
        harvest = SheddingPlan(work.basic, shares, types, expected, keep)
        lengths = tuple(
            None if w is None else basic_window_length(w, self.basic_window_length)
            for w in facts.windows
        )
        items = tuple(
            ShedItem(*item, work.volumes[item], work.outputs[item], shares[item])
            for item in sorted(shares)
        )
        how = (self.method, budget.kind, budget.amount, r, allowance, enough)
        effects = (harvest.basic_windows, types, expected, keep)
        event = SheddingPlanned(facts.batch, *how, lengths, items, *effects)
        following = replace(learned, fraction=r, types=types, keep_shares=keep)
        return replace(plan, shedding=harvest, events=(*plan.events, event)), following


def _learn_from_harvest(state: ShedState, last: SheddingOutcome | None) -> ShedState:
    """Return the state with the measurements of the last batch."""
    if last is None:
        return state
    profile = state.profile.update(last, state.types)
    considered = last.considered_pairs
    if last.seconds is None or not considered:
        return replace(state, profile=profile)
    cost = last.probe_seconds / considered
    overhead = max(0.0, last.seconds - last.probe_seconds)
    if state.cost:
        cost = _SMOOTH * state.cost + (1 - _SMOOTH) * cost
        overhead = _SMOOTH * state.overhead + (1 - _SMOOTH) * overhead
    return replace(state, profile=profile, cost=cost, overhead=overhead)


def _update_arrivals(state: ShedState, facts: Facts) -> ShedState:
    """Return the state with the arrivals of the last batch.

    A stream that was silent for a batch is expected to bring what it brought before.
    """
    arrivals = tuple(
        now or before
        for now, before in zip(
            facts.previous_received, state.received_tuples or facts.previous_received, strict=True
        )
    )
    passed = [
        now - before
        for now, before in zip(facts.clocks, state.latest or facts.clocks, strict=True)
        if now is not None and before is not None
    ]
    passing = max(passed, default=0) or state.elapsed_event_time
    return replace(state, received_tuples=arrivals, elapsed_event_time=passing, latest=facts.clocks)


class _Work:
    """The items of a batch's plan.

    ``volumes`` are their pairs, ``outputs`` their o, and ``basic`` has the basic window of each
    block. ``expected`` are the expected rows of fresh blocks.
    """

    def __init__(
        self,
        shed: Shed,
        facts: Facts,
        plan: Plan,
        profile: ProductivityProfile,
        types: tuple[tuple[int, ...], ...],
        keep: tuple[float, ...],
        arrivals: tuple[int, ...],
    ) -> None:
        self.shed, self.profile, self.types, self.keep = shed, profile, types, keep
        live = {b.id: b for b in apply_derivations_and_drops(facts.blocks, plan)}
        fresh = [r.block for r in plan.routes if r.is_fresh]
        parts = _measure_key_fractions(fresh)
        self.expected = _estimate_fresh_rows(facts, fresh, parts, arrivals)
        self.unknown = {id: part for id, part in parts.items() if not self.expected[id]}
        self.met: dict[int, float] = {}
        rows = {id: float(b.rows) for id, b in live.items()} | self.expected
        streams = len(facts.streams)
        limits = facts.windows or (None,) * streams
        latest = facts.clocks or (None,) * streams
        now = [
            max((t for s, t in enumerate(latest) if s != i and t is not None), default=None)
            for i in range(streams)
        ]
        self.basic, length = dict.fromkeys((b.id for b in fresh), 0), shed.basic_window_length
        for b in live.values():
            i = b.stream
            self.basic[b.id] = locate_basic_window(b, facts.batch, limits[i], length, now[i])
        self.volumes: dict[Item, float] = {}
        self.settled = 0.0
        for source, window, met in _iterate_first_hops(plan):
            pairs = rows.get(source.block.id, 0.0) * rows.get(met, 0.0)
            if source.is_fresh:
                self.met[source.block.id] = self.met.get(source.block.id, 0.0) + rows.get(met, 0.0)
                item = (source.block.stream, window, self.basic[met])
                self.volumes[item] = self.volumes.get(item, 0.0) + pairs
            else:
                self.settled += pairs
        self.outputs = profile.matches_per_pair(self.volumes)

    def bound_fresh_rows(self, fits: float, planned: float) -> dict[int, float]:
        """Return the rows of fresh blocks above which shares shrink.

        ``planned`` pairs are planned, and ``fits`` would fit the budget. The bound of a block is
        its expected rows times fits / planned, plus twice the deviation of a Poisson number. For a
        stream without history, it is the number of tuples that alone would make ``fits`` pairs,
        with the tuples that they meet or with as many.
        """
        room = max(1.0, fits / planned) if planned else 1.0
        limits = {id: room * n + 2 * sqrt(room * n) for id, n in self.expected.items() if n}
        for id, part in self.unknown.items():
            limits[id] = max(1.0, part * fits / max(1.0, sqrt(fits), self.met.get(id, 0.0)))
        return limits

    def count_full_join_pairs(self) -> float:
        """Return the pairs of the full join, including those of discarded tuples."""
        kept_share = self.keep[0] ** 2 if self.keep else 1.0
        return sum(self.volumes.values()) / kept_share

    def choose_item_shares(self, r: float) -> dict[Item, tuple[float, ...]]:
        """Return the processed share of every item, by type, for r of all pairs.

        Items for which no tuple is expected get r.
        """
        if r >= 1 or self.shed.method == "uniform":
            alike = {
                k: (min(1.0, r),) * len(self._get_type_frequencies(k))
                for k in {k for k, *_ in self.volumes}
            }
            return {item: alike[item[0]] for item in self.volumes}
        items = sorted(self.volumes, key=lambda item: (item[2], item[:2]))  # the newest first
        typed = [
            (item, z, self.volumes[item] * omega)
            for item in items
            for z, omega in enumerate(self._get_type_frequencies(item[0]))
        ]
        values, volumes = self._estimate_item_values(typed), np.array([v for _, _, v in typed])
        floor = min(r, max(self.shed.sample * r, FLOOR))
        filled = self._fill_item_shares([item for item, _, _ in typed], values, volumes, r, floor)
        shares: dict[Item, tuple[float, ...]] = {}
        for (item, _, volume), share in zip(typed, filled.tolist(), strict=True):
            foreseen = share if volume else r
            shares[item] = (*shares.get(item, ()), foreseen)
        return shares

    def _get_type_frequencies(self, stream: int) -> tuple[float, ...]:
        types = self.types[stream] if self.types else ()
        return self.profile.type_frequencies(stream, types)

    def _estimate_item_values(self, typed: Sequence[tuple[Item, int, float]]) -> Floats:
        if self.shed.method == "partial":
            return np.array([-float(item[2]) for item, _, _ in typed])
        worth = {
            (k, i): self.profile.utility_per_pair(k, i, self.types[k] if self.types else ())
            for k, i, _ in self.volumes
        }
        values = (self.outputs[item] * worth[item[:2]][z] for item, z, _ in typed)
        return np.array([float(f"{v:.12g}") for v in values])  # removes noise between equals

    def _fill_item_shares(
        self, items: Sequence[Item], values: Floats, volumes: Floats, r: float, floor: float
    ) -> Floats:
        if self.shed.method == "selective":
            return fill_budget(values, volumes, r * float(volumes.sum()), floor)
        ways = sorted({item[:2] for item in items})
        masks = [np.array([item[:2] == way for item in items]) for way in ways]
        sizes = np.array([volumes[at].sum() for at in masks])
        part = np.full(len(ways), r)
        if self.shed.method == "direction":
            o = np.array([float(f"{self._compute_mean_output(way):.12g}") for way in ways])
            part = fill_budget(o, sizes, r * float(sizes.sum()), floor)
        shares = np.empty(len(items))
        for at, share, size in zip(masks, part, sizes, strict=True):
            shares[at] = fill_budget(values[at], volumes[at], float(share * size), floor)
        return shares

    def _compute_mean_output(self, way: tuple[int, int]) -> float:
        """Return o_i: the mean over its basic windows (section 5.2)."""
        return float(np.mean([o for item, o in self.outputs.items() if item[:2] == way]))


def _iterate_first_hops(plan: Plan) -> Iterator[tuple[Any, int, int]]:
    """Yield (route, stream of the first hop, block met there) for all first hops of a plan."""
    for route in plan.routes:
        for path in route.paths:
            for met in path[0].probed_blocks():
                yield route, path[0].stream, met


def _measure_key_fractions(fresh: Sequence[Block]) -> dict[int, float]:
    """Return, by fresh block, its fraction of its stream's keys."""
    widths = {
        s: max(b.key_range[1] for b in fresh if b.stream == s) for s in {b.stream for b in fresh}
    }
    return {b.id: (b.key_range[1] - b.key_range[0]) / widths[b.stream] for b in fresh}


def _estimate_fresh_rows(
    facts: Facts, fresh: Sequence[Block], parts: Mapping[int, float], arrivals: Sequence[int]
) -> dict[int, float]:
    """Return the expected rows of fresh blocks.

    These are the rows of the same keys in the last batch, or the block's fraction of
    ``arrivals``, the last arrivals of the stream.
    """
    before = {
        (b.stream, b.key_range): float(b.rows) for b in facts.blocks if b.batch == facts.batch - 1
    }
    return {
        b.id: before.get((b.stream, b.key_range), arrivals[b.stream] * parts[b.id]) for b in fresh
    }
