"""Check the cover rule on every plan: each combination of due blocks is met exactly once.

A placement that declares "at most once" may omit combinations. Even then no combination is met
twice, and none that is not due; the omitted ones are recorded.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, combinations
from math import prod

import numpy as np

from braid.core.plan import (
    Block,
    Coverage,
    Hop,
    Keying,
    Path,
    Plan,
    Route,
    apply_derivations_and_drops,
    value_range,
)
from braid.core.shedding_plan import SheddingPlan
from braid.errors import CoverageError

_NONE: frozenset[int] = frozenset()


def may_join(a: Block, b: Block, keying: Keying, first: int = 0, keys_per_value: int = 1) -> bool:
    """Return whether the routing keys of two streams' blocks allow their tuples to join.

    Keys below ``first`` are not comparable; such blocks may join. ``keys_per_value``: of a
    join value.
    """
    if keying != "join" or min(a.key_range[0], b.key_range[0]) < first:
        return True
    (low, high), (start, end) = (
        value_range(a.key_range, keys_per_value),
        value_range(b.key_range, keys_per_value),
    )
    return low < end and start < high


class _StreamBlocks:
    """Blocks of one stream, and which of them a block of another stream must meet.

    ``first``, ``keys_per_value``: as in ``may_join``.
    """

    def __init__(
        self, blocks: Sequence[Block], keying: Keying, first: int, keys_per_value: int
    ) -> None:
        self.is_ranged, self.first, self.keys_per_value = keying == "join", first, keys_per_value
        self.numbers = {b.id for b in blocks}
        self.ids = np.array([b.id for b in blocks], np.int64)
        ranges = np.array([b.key_range for b in blocks], np.int64).reshape(-1, 2)
        self.is_older = ranges[:, 0] < first
        self.low, self.high = ranges[:, 0] // keys_per_value, -(-ranges[:, 1] // keys_per_value)

    def find_joinable(self, f: Block) -> set[int]:
        """Return the ids of the blocks that may join, as a new set."""
        if not self.is_ranged or f.key_range[0] < self.first:
            return set(self.numbers)
        low, high = value_range(f.key_range, self.keys_per_value)
        return {*self.ids[(self.low < high) & (low < self.high) | self.is_older].tolist()}


@dataclass(frozen=True, slots=True)
class UncoveredCombinations:
    """Combinations that a plan omits for a fresh block.

    - ``block``: the fresh block.
    - ``due_blocks``: due blocks by stream.
    - ``covered_boxes``: the plan meets the product of each box.
    """

    block: int
    due_blocks: Mapping[int, frozenset[int]]
    covered_boxes: tuple[Mapping[int, frozenset[int]], ...]

    @property
    def count_block_combinations(self) -> int:
        """The number of omitted combinations of blocks, one of each other stream."""
        return _count_combinations(self.due_blocks) - sum(
            _count_combinations(box) for box in self.covered_boxes
        )

    def count_tuple_combinations(self, rows: Mapping[int, int]) -> int:
        """Return the number of omitted combinations of tuples, one of each stream.

        ``rows`` has the rows by block id; a missing block has none.
        """
        combinations = _count_combinations(self.due_blocks, rows) - sum(
            _count_combinations(box, rows) for box in self.covered_boxes
        )
        return rows.get(self.block, 0) * combinations


def _count_combinations(
    box: Mapping[int, frozenset[int]], rows: Mapping[int, int] | None = None
) -> int:
    """Return the number of combinations of blocks; with ``rows``, of their tuples."""
    return prod(
        len(ids) if rows is None else sum(rows.get(b, 0) for b in ids) for ids in box.values()
    )


@dataclass
class CoverageChecker:
    """A checker of the cover rule for the plans of a run, in order.

    - ``pending_pairs``: deferred pairs (fresh block, other block) that are not settled. A run is
      complete only if it is empty.
    - ``first``: blocks with keys below it must meet all blocks.
    - ``keys_per_value``: number of routing keys of one join value.
    """

    streams: int
    keying: Keying = "tuple"
    pending_pairs: set[tuple[int, int]] = field(default_factory=set)
    coverage: Coverage = "exactly once"
    uncovered: tuple[UncoveredCombinations, ...] = ()
    """Combinations that the last plan omits. Always empty if coverage is "exactly once"."""
    first: int = 0
    keys_per_value: int = 1

    def check_plan(self, blocks: Iterable[Block], plan: Plan) -> None:
        """Raise CoverageError unless the plan for these live blocks obeys the cover rule."""
        blocks, self.uncovered = tuple(blocks), ()
        check_derivations(blocks, plan)
        live = {b.id: b for b in apply_derivations_and_drops(blocks, plan)}
        self._check_replaced(blocks, live)
        fresh = {r.block.id: r.block for r in plan.routes if r.is_fresh}
        streams: list[list[Block]] = [[] for _ in range(self.streams)]
        for b in live.values():
            streams[b.stream].append(b)
        by = (self.keying, self.first, self.keys_per_value)
        older = [_StreamBlocks(each, *by) for each in streams]
        newer = [
            _StreamBlocks([b for b in fresh.values() if b.stream == s], *by)
            for s in range(self.streams)
        ]
        if clash := fresh.keys() & live.keys():
            raise CoverageError(
                f"fresh blocks {sorted(clash)} carry ids that are in use", *sorted(clash)
            )
        existing = live | fresh
        there = _index_blocks_by_host(existing.values())
        for route in plan.routes:
            _check_presence(route, there, self.streams)
            if route.is_fresh:
                self._check_fresh(route, older, newer)
            else:
                self._settle_deferred(route)
        if plan.shedding is not None:
            _check_harvest(plan, plan.shedding, existing)

    def _check_replaced(self, blocks: tuple[Block, ...], live: Mapping[int, Block]) -> None:
        gone = {b.id for b in blocks} - live.keys()
        if not gone or gone.isdisjoint(chain.from_iterable(self.pending_pairs)):
            return
        pair = next(pair for pair in self.pending_pairs if gone.intersection(pair))
        raise CoverageError(
            f"pair {pair} is pending, but block {min(gone.intersection(pair))} is dropped or "
            "replaced",
            *pair,
        )

    def _check_fresh(
        self, route: Route, older: Sequence[_StreamBlocks], newer: Sequence[_StreamBlocks]
    ) -> None:
        f = route.block
        due: dict[int, set[int]] = {}
        for s in range(self.streams):
            if s != f.stream:
                due[s] = older[s].find_joinable(f)
                due[s] |= newer[s].find_joinable(f) if s < f.stream else set()
        if route.deferred_blocks:
            self._record_deferred(route, due)
        boxes = _find_path_boxes(f, route.paths, due)
        left = UncoveredCombinations(f.id, {s: frozenset(ids) for s, ids in due.items()}, boxes)
        if not left.count_block_combinations:
            return
        if self.coverage == "exactly once":
            raise _make_missing_error(left)
        self.uncovered += (left,)

    def _record_deferred(self, route: Route, due: dict[int, set[int]]) -> None:
        if self.streams != 2:
            raise CoverageError(
                f"block {route.block.id} defers blocks, which only joins of two streams may",
                route.block.id,
            )
        (others,) = due.values()
        if wrong := sorted(set(route.deferred_blocks) - others):
            raise CoverageError(
                f"block {route.block.id} defers {wrong}, which are not due", route.block.id, *wrong
            )
        others.difference_update(route.deferred_blocks)
        self.pending_pairs |= {(route.block.id, b) for b in route.deferred_blocks}

    def _settle_deferred(self, route: Route) -> None:
        b = route.block.id
        for path in route.paths:
            for other in path[0].probed_blocks():
                pair = (other, b) if (other, b) in self.pending_pairs else (b, other)
                if pair not in self.pending_pairs:
                    raise CoverageError(
                        f"block {b} settles block {other}, but the pair is not pending", b, other
                    )
                self.pending_pairs.remove(pair)


def _find_path_boxes(
    f: Block, paths: tuple[Path, ...], due: Mapping[int, set[int]]
) -> tuple[dict[int, frozenset[int]], ...]:
    """Return the box of each path: the blocks that its hops probe, by stream.

    Raises CoverageError unless the boxes are disjoint and within the product of the due blocks.
    """
    boxes = []
    for path in paths:
        box = {hop.stream: frozenset(hop.probed_blocks()) for hop in path}
        if twice := [
            hop.stream for hop in path if len(box[hop.stream]) < _count_probed_blocks(hop)
        ]:
            raise CoverageError(
                f"block {f.id} meets a block of stream {twice[0]} on two hosts of one hop", f.id
            )
        if any(not ids <= due[s] for s, ids in box.items()):
            extra = [b for s, ids in box.items() for b in ids - due[s]]
            raise CoverageError(
                f"block {f.id} meets blocks {sorted(extra)}, which are not due",
                f.id,
                *sorted(extra),
            )
        boxes.append(box)
    if both := _find_shared_blocks(boxes, due):
        raise CoverageError(
            f"block {f.id} meets blocks {both} on two paths", f.id, *chain.from_iterable(both)
        )
    return tuple(boxes)


def _find_shared_blocks(
    boxes: Sequence[Mapping[int, frozenset[int]]], due: Iterable[int]
) -> list[list[int]]:
    """Return, by stream, the blocks that two overlapping boxes share; empty if all are disjoint."""
    for s in due:  # usually one stream separates all boxes
        if len(frozenset[int]().union(*(box[s] for box in boxes))) == sum(len(b[s]) for b in boxes):
            return []
    for a, b in combinations(boxes, 2):
        if not any(a[s].isdisjoint(b[s]) for s in due):
            return [sorted(a[s] & b[s]) for s in due]
    return []


def _count_probed_blocks(hop: Hop) -> int:
    return sum(map(len, hop.blocks_by_host.values()))


def _make_missing_error(left: UncoveredCombinations) -> CoverageError:
    wanted = _count_combinations(left.due_blocks)
    never = {
        s: sorted(ids - frozenset().union(*(box[s] for box in left.covered_boxes)))
        for s, ids in left.due_blocks.items()
    }
    return CoverageError(
        f"block {left.block} meets {wanted - left.count_block_combinations} of {wanted} due "
        f"combinations; blocks never met, by stream: {never}",
        left.block,
        *chain.from_iterable(never.values()),
    )


def check_key_partition(plan: Plan, streams: int, keys: int, first: int = 0) -> None:
    """Raise CoverageError unless the fresh blocks of every stream partition the keys [first, keys).

    Each tuple is then in exactly one block.
    """
    for s in range(streams):
        ranges = sorted(
            r.block.key_range for r in plan.routes if r.is_fresh and r.block.stream == s
        )
        ends = [first, *(end for _, end in ranges)]
        if [start for start, _ in ranges] != ends[:-1] or ends[-1] != keys:
            raise CoverageError(
                f"the fresh blocks of stream {s} hold routing keys {ranges}; together they must "
                f"hold [{first}, {keys}) once"
            )


def _check_harvest(plan: Plan, harvest: SheddingPlan, known: Mapping[int, Block]) -> None:
    """Raise CoverageError unless every probing tuple has a share in (0, 1]."""
    if unknown := sorted(harvest.basic_windows.keys() - known.keys()):
        raise CoverageError(
            f"the shedding plan puts blocks {unknown} in basic windows; they are not there",
            *unknown,
        )
    for item, shares in harvest.shares.items():
        if len(shares) != harvest.type_count(item[0]) or not all(
            0 < share <= 1 for share in shares
        ):
            raise CoverageError(
                f"the shedding plan has shares {shares} for item {item}; it must have "
                f"{harvest.type_count(item[0])}, each greater than 0 and at most 1"
            )
    if not all(0 < share <= 1 for share in harvest.keep_shares):
        raise CoverageError(
            f"the shedding plan admits shares {harvest.keep_shares} of the streams; each must be "
            "greater than 0 and at most 1"
        )
    for route in (r for r in plan.routes if r.is_fresh):
        for path in route.paths:
            for b in path[0].probed_blocks():
                item = (route.block.stream, path[0].stream, harvest.basic_windows.get(b, -1))
                if item not in harvest.shares:
                    raise CoverageError(
                        f"block {route.block.id} is to meet block {b}, but the shedding plan "
                        f"has no share for item {item}",
                        route.block.id,
                        b,
                    )


def _index_blocks_by_host(blocks: Iterable[Block]) -> dict[tuple[int, int], set[int]]:
    """Return the blocks by stream and host."""
    alike: dict[tuple[int, tuple[int, ...]], list[int]] = {}
    for b in blocks:
        alike.setdefault((b.stream, b.hosts), []).append(b.id)
    there: dict[tuple[int, int], set[int]] = {}
    for (stream, hosts), ids in alike.items():
        for h in hosts:
            there.setdefault((stream, h), set()).update(ids)
    return there


def _check_presence(route: Route, there: Mapping[tuple[int, int], set[int]], streams: int) -> None:
    f = route.block
    for path in route.paths:
        if sorted(hop.stream for hop in path) != [s for s in range(streams) if s != f.stream]:
            raise CoverageError(
                f"a path of block {f.id} visits streams {[h.stream for h in path]} of {streams}",
                f.id,
            )
        if not route.is_fresh and not set(path[0].blocks_by_host) <= set(f.hosts):
            raise CoverageError(
                f"block {f.id} is stored on {f.hosts} but probes from "
                f"{sorted(path[0].blocks_by_host)}",
                f.id,
            )
        for hop in path:
            for host, ids in hop.blocks_by_host.items():
                if not there.get((hop.stream, host), _NONE).issuperset(ids):
                    b = next(b for b in ids if b not in there.get((hop.stream, host), _NONE))
                    raise CoverageError(
                        f"block {f.id} probes block {b} of stream {hop.stream} on host {host}: "
                        "not there",
                        f.id,
                        b,
                    )


def check_derivations(blocks: tuple[Block, ...], plan: Plan) -> None:
    """Raise CoverageError unless the sources of every derivation are where it reads them."""
    committed = {b.id: b for b in blocks}
    present = dict(committed)
    for d in plan.derivations:
        for dst, src in d.source_hosts.items():
            where = present if src == dst else committed
            for s in d.source_blocks:
                if s not in where or src not in where[s].hosts:
                    raise CoverageError(
                        f"block {d.block.id} on host {dst} reads block {s} of host {src}: not "
                        "there",
                        d.block.id,
                        s,
                    )
        unchanged = set(present[d.block.id].hosts) if d.source_blocks == (d.block.id,) else set()
        if set(d.block.hosts) != unchanged | set(d.source_hosts):
            raise CoverageError(
                f"block {d.block.id} is said to be on {d.block.hosts} but made on "
                f"{sorted(d.source_hosts)}",
                d.block.id,
                *d.source_blocks,
            )
        present[d.block.id] = d.block
