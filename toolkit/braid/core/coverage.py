"""Check the cover rule on every plan: each combination of due blocks is met exactly once.

A placement that declares "at most once" may omit combinations. Even then no combination is met
twice, and none that is not due; the omitted ones are recorded.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, combinations
from math import prod

import numpy as np

from braid.core.key_boxes import KeyBoxes
from braid.core.plan import (
    Block,
    Coverage,
    Keying,
    Keys,
    Path,
    Plan,
    Route,
    apply_derivations_and_drops,
    value_range,
)
from braid.core.plan_checks import (
    check_derivations,
    check_harvest,
    check_presence,
    index_blocks_by_host,
)
from braid.errors import CoverageError


def may_join(
    a: Block,
    b: Block,
    keying: Keying,
    keys_per_value: int = 1,
    boxes: KeyBoxes | None = None,
) -> bool:
    """Return whether the routing keys of two streams' blocks allow their tuples to join.

    ``keys_per_value``: number of routing keys of a join value. Keys made from several values are
    compared as ``boxes``.
    """
    if boxes is not None:
        return boxes.may_join((a.stream, a.key_range), (b.stream, b.key_range))
    if keying != "join":
        return True
    (low, high), (start, end) = (
        value_range(a.key_range, keys_per_value),
        value_range(b.key_range, keys_per_value),
    )
    return low < end and start < high


class _StreamBlocks:
    """Blocks of one stream, and which of them a block of another stream must meet.

    ``keys_per_value``, ``boxes``: as in ``may_join``.
    """

    def __init__(
        self,
        blocks: Sequence[Block],
        keying: Keying,
        keys_per_value: int,
        boxes: KeyBoxes | None,
    ) -> None:
        self.stream_keys: dict[tuple[int, Keys], list[int]] = {}
        for b in blocks if boxes is not None else ():
            self.stream_keys.setdefault((b.stream, b.key_range), []).append(b.id)
        self.boxes = boxes
        self.is_ranged, self.keys_per_value = keying == "join", keys_per_value
        self.numbers = {b.id for b in blocks}
        self.ids = np.array([b.id for b in blocks], np.int64)
        ranges = np.array([b.key_range for b in blocks], np.int64).reshape(-1, 2)
        self.low, self.high = ranges[:, 0] // keys_per_value, -(-ranges[:, 1] // keys_per_value)

    def find_joinable(self, f: Block) -> set[int]:
        """Return the ids of the blocks that may join, as a new set."""
        if self.boxes is not None:
            keys = f.stream, f.key_range
            may = self.boxes.may_join
            each = (ids for other, ids in self.stream_keys.items() if may(keys, other))
            return set(chain.from_iterable(each))
        if not self.is_ranged:
            return set(self.numbers)
        low, high = value_range(f.key_range, self.keys_per_value)
        return {*self.ids[(self.low < high) & (low < self.high)].tolist()}


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

    def count_tuple_combinations(self, rows: Mapping[int, int]) -> int:
        """Return the number of omitted combinations of tuples, one of each stream.

        ``rows`` has the rows by block id; a missing block has none.
        """
        combinations = _count_combinations(self.due_blocks, rows) - sum(
            _count_combinations(box, rows) for box in self.covered_boxes
        )
        return rows.get(self.block, 0) * combinations


def _count_combinations(box: Mapping[int, frozenset[int]], rows: Mapping[int, int]) -> int:
    """Return the number of combinations of the blocks' tuples."""
    return prod(sum(rows.get(b, 0) for b in ids) for ids in box.values())


class _CombinationCounter:
    """Counts the combinations of due blocks, one of each stream.

    If routing keys are boxes, those count whose blocks may all join each other. Boxes that overlap
    in pairs have a point in common, so a combination that counts may have results.
    """

    def __init__(self, blocks: Mapping[int, Block], boxes: KeyBoxes | None) -> None:
        self.blocks, self.boxes = blocks, boxes

    def count_due(self, box: Mapping[int, Collection[int]]) -> int:
        """Return the number of combinations of these blocks, by stream, that are due."""
        if self.boxes is None:
            return prod(map(len, box.values()))
        groups = [Counter((s, self.blocks[b].key_range) for b in ids) for s, ids in box.items()]
        return self._count_alike(self.boxes, groups, ())

    def _count_alike(
        self,
        boxes: KeyBoxes,
        groups: Sequence[Mapping[tuple[int, Keys], int]],
        chosen: tuple[tuple[int, Keys], ...],
    ) -> int:
        """Return the same for blocks grouped by stream and keys, beside those chosen before."""
        if not groups:
            return 1
        return sum(
            n * self._count_alike(boxes, groups[1:], (*chosen, keys))
            for keys, n in groups[0].items()
            if all(boxes.may_join(keys, other) for other in chosen)
        )


@dataclass
class CoverageChecker:
    """A checker of the cover rule for the plans of a run, in order.

    - ``pending_pairs``: deferred pairs (fresh block, other block) that are not settled. A run is
      complete only if it is empty.
    - ``keys_per_value``: number of routing keys of one join value.
    - ``boxes``: the meaning of routing keys that are made from several values. A combination is
      then due if all its blocks may join each other.
    """

    streams: int
    keying: Keying = "tuple"
    pending_pairs: set[tuple[int, int]] = field(default_factory=set)
    coverage: Coverage = "exactly once"
    uncovered: tuple[UncoveredCombinations, ...] = ()
    """Combinations that the last plan omits. Always empty if coverage is "exactly once"."""
    keys_per_value: int = 1
    boxes: KeyBoxes | None = None

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
        by = (self.keying, self.keys_per_value, self.boxes)
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
        there = index_blocks_by_host(existing.values())
        count = _CombinationCounter(existing, self.boxes)
        for route in plan.routes:
            check_presence(route, there, self.streams)
            if route.is_fresh:
                self._check_fresh(route, older, newer, count)
            else:
                self._settle_deferred(route)
        if plan.shedding is not None:
            check_harvest(plan, plan.shedding, existing)

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
        self,
        route: Route,
        older: Sequence[_StreamBlocks],
        newer: Sequence[_StreamBlocks],
        count: _CombinationCounter,
    ) -> None:
        f = route.block
        due: dict[int, set[int]] = {}
        for s in range(self.streams):
            if s != f.stream:
                due[s] = older[s].find_joinable(f)
                due[s] |= newer[s].find_joinable(f) if s < f.stream else set()
        if route.deferred_blocks:
            self._record_deferred(route, due)
        boxes = _find_path_boxes(f, route.paths, due, count)
        left = UncoveredCombinations(f.id, {s: frozenset(ids) for s, ids in due.items()}, boxes)
        wanted = count.count_due(left.due_blocks)
        if not (missing := wanted - sum(map(count.count_due, boxes))):
            return
        if self.coverage == "exactly once":
            raise _make_missing_error(left, wanted, missing)
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
    f: Block,
    paths: tuple[Path, ...],
    due: Mapping[int, set[int]],
    count: _CombinationCounter,
) -> tuple[dict[int, frozenset[int]], ...]:
    """Return the box of each path: the blocks that its hops probe, by stream.

    Raises CoverageError unless the boxes are disjoint and within the product of the due blocks.
    """
    boxes = []
    for path in paths:
        box = {hop.stream: frozenset(hop.probed_blocks()) for hop in path}
        probed = {hop.stream: sum(map(len, hop.blocks_by_host.values())) for hop in path}
        if twice := [stream for stream in box if len(box[stream]) < probed[stream]]:
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
    if both := _find_shared_blocks(boxes, due, count):
        raise CoverageError(
            f"block {f.id} meets blocks {both} on two paths", f.id, *chain.from_iterable(both)
        )
    return tuple(boxes)


def _find_shared_blocks(
    boxes: Sequence[Mapping[int, frozenset[int]]], due: Iterable[int], count: _CombinationCounter
) -> list[list[int]]:
    """Return, by stream, the blocks that two overlapping boxes share; empty if all are disjoint.

    Boxes that share only combinations that are not due count as disjoint.
    """
    for s in due:  # usually one stream separates all boxes
        if len(frozenset[int]().union(*(box[s] for box in boxes))) == sum(len(b[s]) for b in boxes):
            return []
    for a, b in combinations(boxes, 2):
        if not any(a[s].isdisjoint(b[s]) for s in due):
            shared = {s: a[s] & b[s] for s in due}
            if count.count_due(shared):
                return [*map(sorted, shared.values())]
    return []


def _make_missing_error(left: UncoveredCombinations, wanted: int, missing: int) -> CoverageError:
    never = {
        s: sorted(ids - frozenset().union(*(box[s] for box in left.covered_boxes)))
        for s, ids in left.due_blocks.items()
    }
    return CoverageError(
        f"block {left.block} meets {wanted - missing} of {wanted} due "
        f"combinations; blocks never met, by stream: {never}",
        left.block,
        *chain.from_iterable(never.values()),
    )
