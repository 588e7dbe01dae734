"""Expected work of a plan's paths, from counts, rates and selectivities.

These are expectations, not measurements. Intermediate results multiply along a path. A pair of
tuples matches only if both are within their windows. ``Selects`` has two readings of the
selectivities that apply at a hop.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from math import prod
from typing import Literal

import numpy as np
import numpy.typing as npt

from braid.core.facts import AgedMatches, Visit
from braid.core.plan import Block, Path, Route
from braid.core.shedding_plan import Item, ItemYield, SheddingOutcome, SheddingPlan

Span = tuple[int, int]
Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
ByAge = Floats
"""Three rows with an entry for each age of blocks: the age, their tuples, and the tuples within the
windows.
"""
_AGES = 64
"""Upper bound of ages: AGES parts of a window, or doublings of the number of batches."""
Selects = Literal["pair", "hop"]
"""Selectivities that apply to an intermediate result at a hop: those of the next stream with every
stream visited ("pair"), or with the last one only, as in Gu 2007, Eq. 3 ("hop").
"""


def window_fraction(new: Span, old: Span, window: int | None) -> float:
    """Return the fraction of pairs (t, u) with t - u < W.

    t is uniform in ``new``, u in ``old``.
    """
    return (
        1.0
        if window is None
        else _compute_window_fraction(
            new[1] + 1 - new[0], old[1] + 1 - old[0], new[0] - old[0], window
        )
    )


@lru_cache(maxsize=1 << 16)
def _compute_window_fraction(new: int, old: int, lag: int, window: int) -> float:
    """Return the same for spans of these lengths; ``new`` begins ``lag`` after ``old``.

    Many pairs of blocks share these arguments, so the result is cached.
    """

    def half_square(x: int) -> float:
        return max(x, 0) ** 2 / 2

    edge = window - lag
    near = (
        half_square(edge + old)
        - half_square(edge - new + old)
        - half_square(edge)
        + half_square(edge - new)
    )
    return near / (new * old)


@dataclass
class ExpectedSampling:
    """The expected number of probing tuples if load is shed, in the mean of all draws.

    Matches are assumed equally likely at every age.
    """

    harvest: SheddingPlan

    def burst_guard(self, f: Block) -> float:
        """Return the factor of the burst guard for the shares of a fresh block."""
        expected = self.harvest.expected_tuples.get(f.id, 0.0)
        return min(1.0, expected / f.rows) if expected else 1.0

    def pair_share(self, f: Block, b: Block) -> float:
        """Return the share of a fresh block's tuples that probes another block."""
        by_type = self.harvest.shares.get(self.shed_item(f, b))
        return self.burst_guard(f) * by_type[0] if by_type is not None else 1.0

    def shed_item(self, f: Block, b: Block) -> Item:
        """Return the item that counts the probes between two blocks."""
        return f.stream, b.stream, self.harvest.basic_windows.get(b.id, -1)

    def shedding_outcome(
        self, journeys: PathCounts, routes: Iterable[Route], sigma: np.ndarray
    ) -> SheddingOutcome:
        """Return the expected outcome if every host does all its work."""
        sums_by_item: dict[Item, list[float]] = {}
        estimated = 0.0
        for route in (r for r in routes if r.is_fresh and r.block.id in journeys.blocks):
            f = journeys.blocks[route.block.id]
            met = _Met(f, journeys.blocks, journeys.windows, {})
            ids = {
                b for path in route.paths for b in path[0].probed_blocks()
            } & journeys.blocks.keys()
            for b in (journeys.blocks[id] for id in sorted(ids)):
                share, pairs = self.pair_share(f, b), float(f.rows * b.rows)
                matched = (
                    f.rows * met.count_tuples_in_windows(b.id) * float(sigma[f.stream, b.stream])
                )
                sums = sums_by_item.setdefault(self.shed_item(f, b), [0.0, 0.0, 0.0])
                sums[0] += share * pairs
                sums[1] += share * matched
                sums[2] += (1 - share) * pairs
                estimated += matched
        yields = (
            ItemYield(*item, (sums[0],), (sums[1],), (sums[1],), sums[2])
            for item, sums in sorted(sums_by_item.items())
        )
        return SheddingOutcome(tuple(yields), (), estimated, None, estimated_utility=estimated)


@dataclass
class HopColumns:
    """Hop number k of all paths of a plan, as columns with an entry for each path and host.

    - ``path``, ``host``: index of the path, and the host.
    - ``visit``: index of the visited blocks in ``PathCounts.met``.
    - ``rows``: tuples there that are probed.
    - ``departures``: tuples there that are skipped by load shedding.
    - ``matching``: expected matches of one probing tuple.
    - ``stays_on_host``: entry of the previous hop on the same path and host; -1: none.
    - ``continues``: by entry of the previous hop, the number of other hosts that receive its
      results.
    """

    path: Ints
    host: Ints
    visit: Ints
    rows: Floats
    departures: Floats
    matching: Floats
    stays_on_host: Ints
    continues: Ints


class PathCounts:
    """The paths of a plan as counts, hop by hop.

    ``rows`` has the tuples that start on each path.
    """

    def __init__(
        self,
        routes: Iterable[Route],
        blocks: Mapping[int, Block],
        sigma: np.ndarray,
        windows: Sequence[int | None],
        ages: Mapping[int, int],
        selects: Selects = "pair",
        drawn: ExpectedSampling | None = None,
    ) -> None:
        """Count the paths of some routes.

        Parameters
        ----------
        blocks
            Blocks with rows, with known event times.
        sigma
            m x m matrix of the streams' pairwise selectivities.
        windows
            By stream, microseconds; None: full history.
        ages
            By block id, as in Facts.
        drawn
            Sampling of fresh tuples; None: no load is shed.
        """
        self.selects, self.blocks, self.windows, self.drawn = selects, blocks, windows, drawn
        self.sigma, self.rows = sigma, list[int]()
        self.met: list[tuple[int, float, ByAge]] = []
        """By visit of a host: index of the step, selectivity, and tuples by age."""
        self.visits: dict[Visit, int] = {}
        """Index of each step (streams joined so far, next stream)."""
        self._columns: list[tuple[list[float], ...]] = []
        self._orders: dict[tuple[int, ...], list[tuple[int, float]]] = {}
        mets: dict[tuple[Span | None, int | None, tuple[int, float] | None], _Met] = {}
        for route in routes:
            if f := blocks.get(route.block.id):
                thin = drawn if route.is_fresh else None
                guard = None if thin is None else (f.stream, thin.burst_guard(f))
                key = (f.event_time_range, windows[f.stream], guard)
                met = mets.get(key)
                if met is None:
                    met = mets[key] = _Met(f, blocks, windows, ages, thin)
                for path in route.paths:
                    self._add_path(f, path, met)
        self.steps = [_make_hop_columns(columns) for columns in self._columns]

    def _add_path(self, f: Block, path: Path, met: _Met) -> None:
        before: dict[int, int] = {}
        ways = self._list_hop_visits((f.stream, *(hop.stream for hop in path)))
        for k, (hop, (visit, factor)) in enumerate(zip(path, ways, strict=True)):
            if k == len(self._columns):
                self._columns.append(tuple([] for _ in range(8)))
            paths, hosts, visits, rows, left, matching, same, onward = self._columns[k]
            onward += [len(hop.blocks_by_host) - (h in hop.blocks_by_host) for h in before]
            here: dict[int, int] = {}
            for h, ids in hop.blocks_by_host.items():
                by_age, there, near, shed = met.count_met_tuples(ids, first=not k)
                same.append(before.get(h, -1))
                here[h] = len(hosts)
                hosts.append(h)
                rows.append(there)
                left.append(shed)
                matching.append(near * factor)
                visits.append(len(self.met))
                self.met.append((visit, factor, by_age))
            before = here
            paths += [len(self.rows)] * len(hop.blocks_by_host)
        self.rows.append(f.rows)

    def _list_hop_visits(self, streams: tuple[int, ...]) -> list[tuple[int, float]]:
        """Return, by hop of a path, the index of the step and the selectivity.

        The path visits the streams in this order.
        """
        visits = self._orders.get(streams)
        if visits is None:
            visits = self._orders[streams] = []
            for k, stream in enumerate(streams[1:], 1):
                visited = tuple(sorted(streams[:k]))
                visit = self.visits.setdefault((visited, stream), len(self.visits))
                held = visited if self.selects == "pair" else streams[k - 1 : k]
                visits.append((visit, prod(float(self.sigma[v, stream]) for v in held)))
        return visits


def _make_hop_columns(columns: tuple[list[float], ...]) -> HopColumns:
    path, host, visit, rows, left, matching, same, onward = columns
    return HopColumns(
        _to_int_array(path),
        _to_int_array(host),
        _to_int_array(visit),
        np.array(rows, dtype=float),
        np.array(left, dtype=float),
        np.array(matching, dtype=float),
        _to_int_array(same),
        _to_int_array(onward),
    )


def _sum_by_index(index: Ints, weights: Floats, count: int) -> Floats:
    """Return the sum of the weights of each index below ``count``."""
    return np.asarray(np.bincount(index, weights, count), dtype=np.float64)


def _to_int_array(numbers: Sequence[float]) -> Ints:
    return np.array(numbers, dtype=np.int64)


class _Met:
    """The tuples that a block probes in lists of blocks.

    It is shared by blocks of the same span and window; with load shedding, also of the same stream.
    """

    def __init__(
        self,
        f: Block,
        blocks: Mapping[int, Block],
        windows: Sequence[int | None],
        ages: Mapping[int, int],
        drawn: ExpectedSampling | None = None,
    ) -> None:
        self.fresh, self.blocks, self.windows, self.ages = f, blocks, windows, ages
        self.drawn = drawn
        self.measured: dict[int, tuple[int, int, float]] = {}
        self.lists: dict[tuple[int, ...], tuple[ByAge, float, float, float]] = {}

    def count_met_tuples(
        self, ids: tuple[int, ...], first: bool
    ) -> tuple[ByAge, float, float, float]:
        """Return the numbers of tuples of these blocks that are probed.

        They are given by age, in total, within the windows, and skipped by load shedding.
        """
        if first and self.drawn is not None:
            return self._count_listed_blocks(ids, self.drawn)
        counts = self.lists.get(ids)  # hashed once, because hashing a long tuple is slow
        if counts is None:
            counts = self.lists[ids] = self._count_listed_blocks(ids, None)
        return counts

    def _count_listed_blocks(
        self, ids: tuple[int, ...], drawn: ExpectedSampling | None
    ) -> tuple[ByAge, float, float, float]:
        there, close = dict[int, float](), dict[int, float]()
        left, share = 0.0, 1.0
        measured, blocks = self.measured, self.blocks
        for id in ids:  # the hot loop of the model
            if id not in blocks:
                continue
            age, rows, near = measured.get(id) or self._measure_block(blocks[id])
            if drawn is not None:
                share = drawn.pair_share(self.fresh, blocks[id])
                left += (1 - share) * rows
            there[age] = there.get(age, 0.0) + share * rows
            close[age] = close.get(age, 0.0) + share * near
        every, nearby = there.values(), close.values()
        return np.array([[*there], [*every], [*nearby]], float), sum(every), sum(nearby), left

    def count_tuples_in_windows(self, id: int) -> float:
        """Return the number of a block's tuples within the windows of a fresh block's tuple."""
        return (self.measured.get(id) or self._measure_block(self.blocks[id]))[2]

    def _measure_block(self, b: Block) -> tuple[int, int, float]:
        """Return a block's age, its tuples, and how many of them are within the windows."""
        f = self.fresh
        assert f.event_time_range is not None and b.event_time_range is not None
        share = (
            window_fraction(f.event_time_range, b.event_time_range, self.windows[b.stream])
            + window_fraction(b.event_time_range, f.event_time_range, self.windows[f.stream])
            - 1
        )
        measured = self.measured[b.id] = self.ages.get(b.id, 0), b.rows, b.rows * share
        return measured


@dataclass
class ExpectedWork:
    """The expected work of hosts in one batch.

    - ``share``: by host, the fraction of its probes that it completes.
    - ``stages``: by hop and host, (received_partials, sent_partials, probes, compared_pairs), as in
      HostUsage.
    - ``results``: by host.
    - ``shed``: by host, pairs skipped by load shedding.
    """

    path_counts: PathCounts
    share: Floats
    stages: Floats = field(init=False)
    results: Floats = field(init=False)
    shed: Floats = field(init=False)
    harvested: SheddingOutcome | None = None

    def __post_init__(self) -> None:
        steps, hosts = self.path_counts.steps, len(self.share)
        self.stages, self.results = np.zeros((max(len(steps), 1), 4, hosts)), np.zeros(hosts)
        self.shed = np.zeros(hosts)
        self._entering: list[Floats] = []
        entering, matches = np.array(self.path_counts.rows, dtype=float), np.array([])
        for k, step in enumerate(steps):
            if k:
                entering = self._send_intermediate_results(k, matches)
            n = entering[step.path] * self.share[step.host]
            matches, pairs = n * step.matching, n * step.rows
            self.stages[k, 2] = _sum_by_index(step.host, n, hosts)
            self.stages[k, 3] = _sum_by_index(step.host, pairs, hosts)
            self.shed += _sum_by_index(step.host, n * step.departures, hosts)
            self._entering.append(n)
        if steps:
            self.results = _sum_by_index(steps[-1].host, matches, hosts)

    @cached_property
    def match_counts(self) -> AgedMatches:
        """The compared pairs and those that match, by step and age."""
        met, steps = self.path_counts.met, list(self.path_counts.visits)
        if not met:
            return {}
        arriving = np.zeros(len(met))
        for step, n in zip(self.path_counts.steps, self._entering, strict=True):
            arriving[step.visit] = n
        visit, factor, by_age = zip(*met, strict=True)
        times = [each.shape[1] for each in by_age]
        n, factors = np.repeat(arriving, times), np.repeat(factor, times)
        ages, rows, near = np.concatenate(by_age, axis=1)
        at = np.repeat(visit, times) * _AGES + ages.astype(np.int64)
        pairs = _sum_by_index(at, n * rows, len(steps) * _AGES)
        matched = _sum_by_index(at, n * near * factors, len(steps) * _AGES)
        return {
            (steps[a // _AGES], a % _AGES): (float(pairs[a]), float(matched[a]))
            for a in dict.fromkeys(at.tolist())
        }

    def _send_intermediate_results(self, k: int, matches: Floats) -> Floats:
        """Return, by path, the matches of one hop, which go to all hosts of the next.

        A match that stays on its host is not counted as sent.
        """
        before, step = self.path_counts.steps[k - 1 : k + 1]
        entering = _sum_by_index(before.path, matches, len(self.path_counts.rows))
        here = np.append(matches, 0.0)[step.stays_on_host]
        self.stages[k, 0] = _sum_by_index(step.host, entering[step.path] - here, len(self.share))
        self.stages[k - 1, 1] = _sum_by_index(
            before.host, matches * step.continues, len(self.share)
        )
        return entering
