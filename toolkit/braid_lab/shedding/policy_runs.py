"""Runs of the real shedding policy on the tuples of a workload of sets, counted without an engine.

The policy plans and learns as on Spark: basic windows of blocks, a sample of every pair (gamma),
the floor of shares, weights that fade, draws by tuple and block. Only the join is simpler: which
tuples match is found once for all methods. ``experiments`` has the same figures by the true
densities, which is what learning for free would give.

Source: Gedik 2007, section 6.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise, product
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from braid.core import batch_step
from braid.core.batch_report import BatchReport, BlockSize, HostMetrics
from braid.core.batch_work import BatchWork, RunRules
from braid.core.horizon import reach_of_windows
from braid.core.run_state import RunState
from braid.core.shedding_plan import ItemYield, SheddingOutcome, SheddingPlan
from braid.papers.baselines.centralized import Centralized
from braid.papers.shedding.productivity_profile import EARLIER_WEIGHT
from braid.papers.shedding.run_events import SheddingPlanned, ShedItem
from braid.papers.shedding.shed import Shed

from braid_lab.workloads.set_streams import SetStreams

Floats = npt.NDArray[np.float64]
Indexes = npt.NDArray[np.int64]
Pairs = tuple[Indexes, Indexes]
"""Matches of two batches: the positions of the tuples of the first and of the second one."""


class _Arrived(NamedTuple):
    """The tuples of one stream in one batch: times in microseconds, and sets.

    Sets are rows of 0 and 1; if each has one item, a column of items.
    """

    times: Indexes
    sets: npt.NDArray[np.float32]


@dataclass(frozen=True)
class SetTuples:
    """The tuples of a workload by batch, and which of them match; both found once.

    ``windows`` are those of n and m, in seconds; 0: the stream has no window, so that its tuples
    only probe.
    """

    sets: SetStreams
    windows: tuple[float, float]
    _matches: dict[tuple[int, int, int], Pairs] = field(default_factory=dict)

    @cached_property
    def batches(self) -> tuple[tuple[_Arrived, ...], tuple[_Arrived, ...]]:
        """By stream, the tuples of each batch."""
        n, m = (tuple(self._list_batches(t)) for t in self.sets.make_tables().values())
        return n, m

    def _list_batches(self, table: Any) -> Iterator[_Arrived]:
        times = table["ts"].to_numpy().astype("datetime64[us]").astype(np.int64)
        items = table["items"].to_pylist()
        if self._has_single_items:
            matrix = np.array(items, np.float32)
        else:
            matrix = np.zeros((len(items), self.sets.items + 1), np.float32)
            sizes = list(map(len, items))
            matrix[np.repeat(np.arange(len(items)), sizes), np.concatenate(items)] = 1
        count = self.sets.make_arrivals.micro_batch_count
        edges = np.searchsorted(table["batch"].to_numpy(), np.arange(count + 1))
        for low, high in pairwise(edges.tolist()):
            yield _Arrived(times[low:high], matrix[low:high])

    @property
    def _has_single_items(self) -> bool:
        return self.sets.size == self.sets.theta == 1 and not self.sets.deviation

    @property
    def window_micros(self) -> tuple[int, int]:
        """The windows in microseconds, at least 1."""
        n, m = (max(1, round(w * 1e6)) for w in self.windows)
        return n, m

    def find_matches(self, stream: int, batch: int, other_batch: int) -> Pairs:
        """Return the matches of a batch of a stream with one of the other stream."""
        key = (0, batch, other_batch) if stream == 0 else (0, other_batch, batch)
        if key not in self._matches:
            self._matches[key] = self._compute_matches(*key[1:])
        n, m = self._matches[key]
        return (n, m) if stream == 0 else (m, n)

    def _compute_matches(self, n_batch: int, m_batch: int) -> Pairs:
        n, m = self.batches[0][n_batch], self.batches[1][m_batch]
        if self._has_single_items:
            same = n.sets == m.sets.T
        else:
            same = n.sets @ m.sets.T >= self.sets.theta - 0.5
        i, j = np.divmod(np.flatnonzero(same), max(1, len(m.times)))
        later = m.times[j] - n.times[i]
        w_n, w_m = self.window_micros
        near = (later < w_n) & (-later < w_m)
        return i[near], j[near]

    def count_all(self) -> Indexes:
        """Return the results of the full join by batch of the later tuple's arrival."""
        counts = np.zeros(len(self.batches[0]), np.int64)
        reach = [round(w / self.sets.step) + 1 for w in self.windows]
        for batch, stream in product(range(len(counts)), (0, 1)):
            since = max(0, batch - reach[1 - stream])
            for other in range(since, batch + stream):
                counts[batch] += len(self.find_matches(stream, batch, other)[0])
        return counts


PRINTED_PERIOD = 5.0
"""T_r and T_c of the paper, in seconds."""


def list_settings(tuples: SetTuples, shed: Shed) -> dict[str, Any]:
    """Return what runs by name, as settings of claims have it."""
    sets, basic = tuples.sets, shed.basic_window_length
    return {
        "gamma": shed.sample,
        "basic": None if basic is None else basic / 1e6,
        "capacity": None if shed.pairs is None else shed.pairs / sets.step,
        "step": sets.step,
        "faded": EARLIER_WEIGHT,
        "printed": PRINTED_PERIOD,
        "rates": sets.every_rate,
        "window": max(tuples.windows),
        "shift": sets.shift,
        "cycle": sets.cycle_seconds / sets.window,
        "theta": sets.theta,
        "seconds": sets.seconds,
    }


class PolicyBatch(NamedTuple):
    """One batch of a run: r, pairs considered, results found, their utility, shares of directions.

    ``directions`` are the processed shares of the pairs of tuples of n, and of tuples of m;
    ``admitted`` are the arrived tuples that were not dropped, ``items`` what was planned.
    """

    fraction: float
    pairs: float
    results: float
    utility: float
    directions: tuple[float, float]
    admitted: int
    items: tuple[ShedItem, ...]


@dataclass
class PolicyRun:
    """A run of a shedder on tuples.

    - ``worth``: the values of types and their frequencies, the same for both streams; None: one
      type of value 1.
    - ``is_typed``: whether the policy sees the types.
    - ``seed``: of draws and types.
    """

    tuples: SetTuples
    shed: Shed
    worth: tuple[Sequence[float], Sequence[float]] | None = None
    is_typed: bool = True
    seed: int = 0

    def __post_init__(self) -> None:
        self._draw = np.random.default_rng([self.seed, 31])
        self._contents: dict[int, tuple[int, ...]] = {}
        self._admitted: dict[tuple[int, int], npt.NDArray[np.bool_]] = {}
        self._codes = [[self._draw_types(a) for a in side] for side in self.tuples.batches]

    def _draw_types(self, arrived: _Arrived) -> Indexes:
        """Return the code of each tuple's type, 10 ln V."""
        if self.worth is None:
            return np.zeros(len(arrived.times), np.int64)
        values, frequencies = map(np.asarray, self.worth)
        kinds = self._draw.choice(len(values), len(arrived.times), p=frequencies)
        return np.asarray(np.rint(10 * np.log(values[kinds])), np.int64)

    def run_batches(self) -> list[PolicyBatch]:
        """Return the batches of the run, in order."""
        reach = reach_of_windows(self.tuples.window_micros)
        rules = RunRules(Centralized(), ("n", "m"), reach, shedder=self.shed)
        state = RunState.initial(2, None, (), self.shed.initial_state(2))
        done = []
        for number in range(len(self.tuples.batches[0])):
            work = batch_step.plan_batch(rules, state)
            report = self._report_batch(work, number)
            state, events = batch_step.commit_batch(rules, state, work, report)
            planned = next(e for e in events if isinstance(e, SheddingPlanned))
            admitted = sum(int(self._admitted[stream, number].sum()) for stream in (0, 1))
            done.append(_summarize_batch(planned, report, admitted))
        return done

    def _report_batch(self, work: BatchWork, number: int) -> BatchReport:
        """Return what the batch found, from real matches and drawn tuples."""
        harvest = work.plan.shedding
        assert harvest is not None
        sizes = {
            d.block.id: BlockSize(d.block.rows, d.block.rows, d.block.event_time_range or (0, 0))
            for d in work.combined_plan.derivations
        }
        for d in work.combined_plan.derivations:
            parts = (self._contents[id] for id in d.source_blocks)
            self._contents[d.block.id] = tuple(b for part in parts for b in part)
        for route in work.plan.routes:
            if route.is_fresh:
                self._admit(route.block.id, route.block.stream, number, harvest, sizes)
        yields: dict[tuple[int, int, int], list[ItemYield]] = {}
        for route in work.plan.routes:
            for met in route.paths[0][0].probed_blocks() if route.paths else ():
                one = self._probe(route.block.id, route.block.stream, met, number, harvest)
                yields.setdefault(one.item_key, []).append(one)
        summed = tuple(ItemYield.sum_yields(yields[item]) for item in sorted(yields))
        types = tuple(self._count_types(stream, number) for stream in (0, 1))
        outcome = SheddingOutcome(summed, types if self.worth and self.is_typed else ())
        results = round(sum(sum(y.matches) for y in summed))
        return BatchReport(sizes, hosts={0: HostMetrics(results=results)}, shedding=outcome)

    def _admit(
        self,
        id: int,
        stream: int,
        number: int,
        harvest: SheddingPlan,
        sizes: dict[int, BlockSize],
    ) -> None:
        """Note a fresh block; a share of its tuples is dropped first, if the plan says so."""
        times = self.tuples.batches[stream][number].times
        share = harvest.keep_shares[stream] if harvest.keep_shares else 1.0
        admitted = self._draw.random(len(times)) < share
        self._admitted[stream, number], self._contents[id] = admitted, (number,)
        if admitted.any():
            rows = int(admitted.sum())
            sizes[id] = BlockSize(
                rows, rows, (int(times[admitted].min()), int(times[admitted].max()))
            )

    def _probe(
        self, id: int, stream: int, met: int, number: int, harvest: SheddingPlan
    ) -> ItemYield:
        """Return the yield of a fresh block and one that it meets."""
        item = (stream, 1 - stream, harvest.basic_windows[met])
        admitted, codes = self._admitted[stream, number], self._codes[stream][number]
        shares = np.array(harvest.shares[item]) * self._guard(id, int(admitted.sum()), harvest)
        kinds = self._index_types(codes, harvest.types[stream] if harvest.types else ())
        chosen = admitted & (self._draw.random(len(admitted)) < shares[kinds])
        rows, matches, value = 0, np.zeros(len(admitted)), np.zeros(len(admitted))
        for batch in self._contents[met]:
            stored = self._admitted[1 - stream, batch]
            i, j = self.tuples.find_matches(stream, number, batch)
            i, j = i[stored[j]], j[stored[j]]
            rows += int(stored.sum())
            matches += np.bincount(i, minlength=len(admitted))
            worth = np.maximum(codes[i], self._codes[1 - stream][batch][j])
            value += np.bincount(i, np.exp(worth / 10), len(admitted))

        def by_type(amounts: Floats) -> tuple[float, ...]:
            sums = np.bincount(kinds, np.where(chosen, amounts, 0.0), len(shares))
            return tuple(sums.tolist())

        left = float(rows * (admitted & ~chosen).sum())
        pairs = by_type(np.full(len(admitted), float(rows)))
        return ItemYield(*item, pairs, by_type(matches), by_type(value), left)

    @staticmethod
    def _guard(id: int, rows: int, harvest: SheddingPlan) -> float:
        expected = harvest.expected_tuples.get(id, 0.0)
        return min(1.0, expected / max(1, rows)) if expected else 1.0

    @staticmethod
    def _index_types(codes: Indexes, types: tuple[int, ...]) -> Indexes:
        if len(types) < 2:
            return np.zeros(len(codes), np.int64)
        return np.minimum(np.searchsorted(np.array(types), codes), len(types) - 1)

    def _count_types(self, stream: int, number: int) -> dict[int, int]:
        codes, counts = np.unique(self._codes[stream][number], return_counts=True)
        return dict(zip(codes.tolist(), counts.tolist(), strict=True))


def _summarize_batch(planned: SheddingPlanned, report: BatchReport, admitted: int) -> PolicyBatch:
    outcome = report.shedding
    assert outcome is not None
    sides = []
    for stream in (0, 1):
        of = [y for y in outcome.yields if y.stream == stream]
        done = sum(sum(y.considered_pairs) for y in of)
        every = done + sum(y.skipped_pairs for y in of)
        sides.append(done / every if every else 1.0)
    matches = sum(sum(y.matches) for y in outcome.yields)
    value = sum(sum(y.value) for y in outcome.yields)
    pairs = outcome.considered_pairs
    ways = (sides[0], sides[1])
    return PolicyBatch(planned.fraction, pairs, matches, value, ways, admitted, planned.items)
