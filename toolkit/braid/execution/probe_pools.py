"""Pool the probes of several routes: partial results of many hosts probe many blocks at once.

The cover rule lets every due pair of blocks meet on exactly one host. So a process need not look at
one host after the other: a pool finds the pairs of all its hosts together, and a table of meetings
says to which host a pair belongs, and which pairs are not due.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from braid.condition.access_paths import AccessPath, IndexCondition, Order, OrderSearch
from braid.core.plan import Hop
from braid.execution.host_replicas import ReplicaStore
from braid.kernels.block_builder import gather_blocks
from braid.kernels.block_orders import stores_ranks
from braid.kernels.host_block_rows import BlockRows, PartialMatches, order_by_segment
from braid.kernels.meetings import Meetings
from braid.kernels.probe import BYTES
from braid.kernels.shedding_sampler import PairSampler

Place = tuple[int, int, int]
"""Position of partial results in the plan: route, path, and next hop, each by number."""
Step = tuple[frozenset[int], int]
"""Streams joined so far, and the next one."""
SMALL = 4096
"""Rows up to which partial results and blocks are pooled: searching each block would cost more than
sorting them together.
"""
_MOST_CELLS = 1 << 22
"""Maximum size of a table of meetings."""


class Arrival(NamedTuple):
    """Partial results at a hop, the hosts of this task that probe with them, and their number."""

    place: Place
    partial: PartialMatches
    hosts: Sequence[int]
    size: int


class _Met(NamedTuple):
    """A block that some arrivals probe on a host. Replicas that are stored together share rows."""

    arrivals: Sequence[int]
    block: int
    host: int
    rows: BlockRows


class _PoolKey(NamedTuple):
    """Meetings with equal keys can be in one pool.

    - ``alone``: numbers of an arrival and of a block that are in no pool with others; -1: no such.
    - ``blocks``: the blocks that the arrivals probe, if a pool of others would try more pairs.
    - ``is_ranked``: whether the blocks store the orders within equal values that the step searches.
    - ``is_drawn``: whether only a sample of the probes meets the block, or each match counts alone.
    - ``since``: event time below which the tuples of a block with pending pairs are answered.
    """

    is_fresh: bool
    is_stored: bool
    alone: tuple[int, int]
    blocks: tuple[int, ...] = ()
    is_ranked: bool = False
    is_drawn: bool = False
    since: int | None = None


@dataclass(frozen=True)
class ProbePool:
    """Partial results and the blocks that they probe at once.

    - ``arrivals``, ``blocks``: what meets, by the numbers in ``meetings``.
    - ``rows``: the rows of all blocks.
    - ``hosts``, ``arrival_numbers``, ``block_numbers``: by meeting.
    - ``probes``: partial results of each arrival.
    - ``sizes``: rows of each block.
    """

    key: _PoolKey
    arrivals: Sequence[Arrival]
    partial: PartialMatches
    blocks: Sequence[int]
    rows: BlockRows
    probes: np.ndarray
    sizes: np.ndarray
    meetings: Meetings
    hosts: np.ndarray
    arrival_numbers: np.ndarray
    block_numbers: np.ndarray

    def count_possible_pairs(self) -> np.ndarray:
        """Return, by meeting, the pairs of a partial result and a row of the block."""
        return np.asarray(self.probes[self.arrival_numbers] * self.sizes[self.block_numbers])


def list_orders_within(path: AccessPath | None) -> list[Order]:
    """Return the orders within equal values that an access path searches in blocks that store them.

    Blocks that store them are in no pool with others, so that the same pairs are compared however
    blocks are pooled.
    """
    if not isinstance(path, OrderSearch) or path.equality is None:
        return []
    return [search.order for search in path.ranges]


def finds_equal_values(path: AccessPath | None) -> bool:
    """Return whether an access path finds pairs by an equality: few pairs that are not due."""
    if isinstance(path, OrderSearch):
        return path.equality is not None
    return isinstance(path, IndexCondition) and path.cost_rank == 0


@dataclass
class PoolBuilder:
    """Builder of the pools of one task attempt.

    - ``sampler``: sampler of a run that sheds load; None: it does not.
    """

    replicas: ReplicaStore
    sampler: PairSampler | None
    _gathers: dict[tuple[int, ...], tuple[BlockRows, Sequence[BlockRows]]] = field(
        default_factory=dict
    )
    """Small blocks that are probed together, by the identities of their rows and ``is_ranked``.

    The rows are kept with them, so that identities stay unique.
    """

    def __post_init__(self) -> None:
        self._keys: dict[tuple[bool, int, tuple[int, ...]], Sequence[_PoolKey]] = {}
        self.batch = self.replicas.batch
        self.fresh = {r.block.id for r in self.batch.routes if r.is_fresh}

    def find_hop(self, place: Place) -> Hop:
        """Return the hop at a place of the plan."""
        route, path, hop = place
        return self.batch.routes[route].paths[path][hop]

    def sheds_load(self, place: Place) -> bool:
        """Return whether load is shed at a hop: only at the first hop of fresh blocks."""
        return self.sampler is not None and not place[2] and self.batch.routes[place[0]].is_fresh

    def make_pools(self, arrivals: Sequence[Arrival], path: AccessPath | None) -> list[ProbePool]:
        """Return the pools of arrivals at one step, whose access path is ``path``.

        Small blocks and few partial results are pooled up to a size. A block is probed alone if
        tuples are sampled for it, or if partial results have weights.
        """
        several: dict[_PoolKey, list[_Met]] = {}
        last, met_together = None, list[_Met]()
        orders, is_equality = list_orders_within(path), finds_equal_values(path)
        for numbers in self._group_alike_arrivals(arrivals):
            first = arrivals[numbers[0]]
            for key, met in self._list_meetings(numbers, first, orders, is_equality):
                if key is not last:
                    last, met_together = key, several.setdefault(key, [])
                met_together.append(met)
        joined: dict[tuple[int, ...], list[PartialMatches]] = {}
        return [
            pool
            for key, met in several.items()
            for few in self._bound_sizes(met)
            for pool in self._build_pools(key, arrivals, few, joined)
        ]

    def _group_alike_arrivals(self, arrivals: Sequence[Arrival]) -> Iterable[Sequence[int]]:
        """Return the numbers of arrivals, those together that meet the same blocks in one pool.

        Fresh blocks can share a path, such as those with parts of the tuples of one join value.
        """
        groups: dict[Any, list[int]] = {}
        for number, arrival in enumerate(arrivals):
            partial, hop = arrival.partial, self.find_hop(arrival.place)
            is_small = arrival.size <= SMALL and partial.weights is None
            is_fresh = self.batch.routes[arrival.place[0]].is_fresh
            is_alike = is_small and is_fresh and self.batch.bitmaps is None and self.sampler is None
            key = (id(hop), *arrival.hosts) if is_alike else (number,)
            groups.setdefault(key, []).append(number)
        return groups.values()

    def _list_meetings(
        self, numbers: Sequence[int], arrival: Arrival, orders: Sequence[Order], is_equality: bool
    ) -> Iterator[tuple[_PoolKey, _Met]]:
        """Yield the blocks that arrivals probe, with the keys of their pools.

        Parameters
        ----------
        numbers, arrival
            Numbers of the arrivals, and the first of them.
        orders
            Orders within equal values that the access path searches.
        is_equality
            Whether the access path finds pairs by an equality.
        """
        place, partial = arrival.place, arrival.partial
        route, probes = self.batch.routes[place[0]], self.find_hop(place).blocks_by_host
        is_separate = partial.weights is not None
        may_sample, is_fresh = self._may_sample(arrival), route.is_fresh
        blocks = () if is_equality else tuple(sorted(b for h in arrival.hosts for b in probes[h]))
        large = numbers[0] if arrival.size > SMALL else -1
        keys = self._find_keys(is_fresh, large, blocks)
        find_rows, fresh, held = self.replicas.replica_rows, self.fresh, self.batch.held
        for host in arrival.hosts:
            for block in probes[host]:
                if (rows := find_rows(block, host)) is None:
                    continue
                is_stored = is_fresh and block not in fresh
                met = _Met(numbers, block, host, rows)
                drawn = may_sample and self._is_sampled(arrival, block)
                since = None if is_fresh else held.get(block)
                if is_separate or drawn or since is not None:
                    alone = numbers[0], block
                    yield _PoolKey(is_fresh, is_stored, alone, (), False, drawn, since), met
                elif rows.row_total > SMALL:
                    yield _PoolKey(is_fresh, is_stored, (large, block)), met
                else:
                    is_ranked = bool(orders) and stores_ranks(rows.segment.schema, orders)
                    yield keys[2 * is_stored + is_ranked], met

    def _find_keys(self, is_fresh: bool, large: int, blocks: tuple[int, ...]) -> Sequence[_PoolKey]:
        """Return the keys of fresh and of stored small blocks, each without and with ranks.

        Equal ones are the same object.
        """
        at = is_fresh, large, blocks
        if at not in self._keys:
            self._keys[at] = [
                _PoolKey(is_fresh, is_stored, (large, -1), blocks, is_ranked)
                for is_stored in (False, True)
                for is_ranked in (False, True)
            ]
        return self._keys[at]

    def _may_sample(self, arrival: Arrival) -> bool:
        """Return whether ``_is_sampled`` may be true for some block."""
        if self.sampler is None or not self.sheds_load(arrival.place):
            return False
        rows, _ = arrival.partial.parts[self.batch.routes[arrival.place[0]].block.stream]
        return self.batch.bitmaps is not None or not self.sampler.takes_all_tuples(rows)

    def _is_sampled(self, arrival: Arrival, block: int) -> bool:
        """Return whether only a sample of the probes meets a block, or each match counts alone."""
        assert self.sampler is not None
        fresh = self.batch.routes[arrival.place[0]].block
        window = self.find_hop(arrival.place).stream
        all_meet = self.sampler.meets_all(arrival.partial, fresh.stream, window, fresh.id, block)
        return self.batch.bitmaps is not None or not all_meet

    def _bound_sizes(self, met: Sequence[_Met]) -> Iterator[Sequence[_Met]]:
        """Yield meetings of one key in groups whose tables and gathered blocks are bounded."""
        arrivals = len({n for each in met for n in each.arrivals})
        distinct = {(each.block, id(each.rows)): each for each in met}
        segments = {id(each.rows.segment): each.rows for each in distinct.values()}
        held = sum(rows.buffer_bytes for rows in segments.values())
        if held <= BYTES and arrivals * len(distinct) <= _MOST_CELLS:
            yield met
        else:
            yield from self._split_meetings(met, arrivals)

    def _split_meetings(self, met: Sequence[_Met], arrivals: int) -> Iterator[list[_Met]]:
        """Yield the same in several groups; all meetings of a block are in one."""
        groups: dict[tuple[int, int], list[_Met]] = {}
        several: list[list[_Met]] = [[]]
        segments: set[int] = set()
        held = cells = 0
        for each in met:
            identity = each.block, id(each.rows)
            if identity not in groups:
                # Fresh blocks share the columns of one batch, and others those of a segment.
                is_known = each.block in self.fresh or id(each.rows.segment) in segments
                more = 0 if is_known else each.rows.buffer_bytes
                if several[-1] and (held + more > BYTES or cells + arrivals > _MOST_CELLS):
                    several.append([])
                    segments.clear()
                    held, cells, more = 0, 0, each.rows.buffer_bytes
                segments.add(id(each.rows.segment))
                held, cells = held + more, cells + arrivals
                groups[identity] = several[-1]
            groups[identity].append(each)
        yield from several

    def _build_pools(
        self,
        key: _PoolKey,
        arrivals: Sequence[Arrival],
        met: Sequence[_Met],
        joined: dict[tuple[int, ...], list[PartialMatches]],
    ) -> Iterator[ProbePool]:
        """Yield the pools of these meetings: several if partial results have too many bytes.

        ``joined``: partial results of several arrivals that were put together before.
        """
        of_arrivals, of_blocks, of_hosts, of_rows = zip(*met, strict=True)
        probing = [*chain.from_iterable(of_arrivals)]
        numbers = tuple(dict.fromkeys(probing))
        if numbers not in joined:
            joined[numbers] = [*_join_arrivals([arrivals[n].partial for n in numbers])]
        here = [arrivals[n] for n in numbers]
        identities = [*zip(of_blocks, map(id, of_rows), strict=True)]
        distinct = dict(zip(identities, of_rows, strict=True))
        named, several = [*distinct], [*distinct.values()]
        order = order_by_segment(several)
        named, several = [named[n] for n in order], [several[n] for n in order]
        rows = self._gather_rows(several, here[0].place, key.is_ranked)
        at = dict(zip(numbers, range(len(numbers)), strict=True))
        block_at = dict(zip(named, range(len(named)), strict=True))
        counts = [*map(len, of_arrivals)]
        left = np.array([*map(at.__getitem__, probing)])
        right = np.repeat([*map(block_at.__getitem__, identities)], counts)
        hosts, blocks = np.repeat(of_hosts, counts), [block for block, _ in named]
        sizes, probes = ([each.row_total for each in several], [arrival.size for arrival in here])
        measures = np.array(probes), np.array(sizes)
        for partial in joined[numbers]:
            some: slice | np.ndarray = slice(None)
            if len(joined[numbers]) > 1 and partial.origins is not None:
                some = np.flatnonzero(np.isin(left, np.unique(partial.origins)))
            chosen = hosts[some], left[some], right[some]
            meetings = Meetings.from_pairs(*chosen[1:], (len(numbers), len(blocks)))
            yield ProbePool(key, here, partial, blocks, rows, *measures, meetings, *chosen)

    def _gather_rows(
        self, several: Sequence[BlockRows], place: Place, is_ranked: bool
    ) -> BlockRows:
        if len(several) == 1:
            return several[0]
        key = is_ranked, *map(id, several)
        if key not in self._gathers:
            spec, stream = self.batch.spec, self.find_hop(place).stream
            # Rows of different blocks are copied together on their way to a third stream.
            goes_on = len(spec.columns) > 2 and not spec.kind.is_inner
            is_numbered = goes_on or stream in spec.kind.preserved
            orders = spec.predicate.stream_orders(stream)
            gathered = gather_blocks(several, orders, is_numbered, is_ranked)
            self._gathers[key] = gathered, several
        return self._gathers[key][0]


def _join_arrivals(several: Sequence[PartialMatches]) -> Iterator[PartialMatches]:
    """Yield the partial results of several arrivals together, each with the number of its own."""
    if len(several) == 1:
        yield several[0]
        return
    sizes = np.array([*map(len, several)])
    for start, stop in PartialMatches.split_by_bytes(several, BYTES):
        origins = np.repeat(np.arange(start, stop), sizes[start:stop])
        yield replace(PartialMatches.concat_all(several[start:stop]), origins=origins)
