"""Routing keys as boxes, and the cover rule for them, against brute force."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise, product
from math import prod

import pytest
from braid.core.coverage import CoverageChecker
from braid.core.key_boxes import KeyBoxes, prime_factors
from braid.core.plan import Block, Hop, Plan, Route
from braid.errors import CoverageError
from hypothesis import given
from hypothesis import strategies as st

CHAIN, CYCLE, STAR = ((0,), (0, 1), (1,)), ((0, 1), (0, 2), (1, 2)), ((0, 1), (0,), (1,), ())
FINEST = 4


@st.composite
def spaces(draw: st.DrawFn) -> KeyBoxes:
    """Return the keys of a chain, a cycle or a star, with two layouts."""
    dimensions = draw(st.sampled_from([CHAIN, CYCLE, STAR]))
    shares = st.tuples(
        *[st.sampled_from([1, 2, 4])] * (1 + max(map(max, filter(None, dimensions))))
    )
    return KeyBoxes(FINEST, dimensions, (draw(shares), draw(shares)), draw(st.integers(0, 1)))


def numbers_by_key(boxes: KeyBoxes, stream: int, layout: int) -> dict[int, tuple[int, ...]]:
    """Return the numbers in the dimensions of a stream by routing key."""
    boxes = KeyBoxes(boxes.finest, boxes.dimensions, boxes.layouts, layout)
    weights = boxes.digit_weights(stream)
    found = {}
    for digits in product(range(FINEST), repeat=len(weights)):
        number = sum(n * weight for n, weight in zip(digits, weights, strict=True))
        found[int(boxes.routing_keys(number, stream))] = digits
    return found


@given(spaces(), st.integers(0, 2))
def test_keys_number_the_cells_one_after_the_other(boxes: KeyBoxes, stream: int) -> None:
    numbers = numbers_by_key(boxes, stream, boxes.current)
    assert len({*numbers.values()}) == len(numbers) == FINEST ** len(boxes.dimensions[stream])
    shares = boxes.select_cell_shares(stream, boxes.shares)
    cells = [*product(*map(range, shares))]
    ranges = [boxes.find_cell_keys(stream, cell) for cell in cells]
    bounds = [boxes.first_key, *(end for _, end in ranges)]
    assert ranges == [*pairwise(bounds)] and bounds[-1] == boxes.first_key + boxes.size
    for cell, (low, high) in zip(cells, ranges, strict=True):
        width = [FINEST // p for p in shares]
        box = tuple((c * w, (c + 1) * w) for c, w in zip(cell, width, strict=True))
        assert boxes.find_box(stream, (low, high)) == box
        inside = {digits for key, digits in numbers.items() if low <= key < high}
        assert inside == {*product(*(range(*each) for each in box))}


@given(spaces(), st.integers(0, 2), st.data())
def test_the_pieces_of_some_keys_are_these_keys_and_each_is_in_one_cell(
    boxes: KeyBoxes, stream: int, data: st.DataObject
) -> None:
    layout = data.draw(st.integers(0, 1))
    numbers = numbers_by_key(boxes, stream, layout)
    keys = [*sorted(numbers), layout * (boxes.size + 1) + boxes.size]
    low, high = sorted(
        data.draw(st.lists(st.sampled_from(keys), min_size=2, max_size=2, unique=True))
    )
    pieces = [*boxes.split_key_range(stream, (low, high))]
    assert [p.key_range for p in pieces] == [*pairwise([low, *(p.key_range[1] for p in pieces)])]
    assert pieces[-1].key_range[1] == high
    assert all(a.cell != b.cell for a, b in pairwise(pieces)), "a cut for nothing"
    shares = boxes.select_cell_shares(stream, boxes.shares)
    for (start, end), cell in pieces:
        for key, digits in numbers.items():
            if start <= key < end:
                parts = tuple(n * p // FINEST for n, p in zip(digits, shares, strict=True))
                assert parts == cell


def test_half_a_cell_has_few_ranges_of_keys() -> None:
    old = KeyBoxes(64, CHAIN, ((8, 8), (16, 4), (4, 16)), 0)
    cell = old.find_cell_keys(1, (3, 5))
    halves = [len([*KeyBoxes(64, CHAIN, old.layouts, n).split_key_range(1, cell)]) for n in (1, 2)]
    assert halves == [2, 4]


def test_ranges_of_two_layouts_never_touch() -> None:
    spaces = [KeyBoxes(4, CHAIN, ((4, 1), (2, 2)), n) for n in range(2)]
    assert spaces[0].first_key + spaces[0].size < spaces[1].first_key


@pytest.mark.parametrize(("number", "factors"), [(1, ()), (2, (2,)), (12, (2, 2, 3)), (97, (97,))])
def test_prime_factors(number: int, factors: tuple[int, ...]) -> None:
    assert prime_factors(number) == factors


class SmallPlan:
    """Blocks of both layouts, some of them fresh, and a route with drawn paths.

    The route covers its due combinations; then one of its paths may be spoiled.
    """

    def __init__(self, draw: random.Random) -> None:
        self.draw = draw
        dimensions = draw.choice([CHAIN, CYCLE, STAR])
        self.streams = len(dimensions)
        count = 1 + max(max(each, default=0) for each in dimensions)
        layouts = tuple(tuple(draw.choice([1, 2, 4]) for _ in range(count)) for _ in range(2))
        self.boxes = KeyBoxes(FINEST, dimensions, layouts, 1)
        self.keys = [
            [numbers_by_key(self.boxes, s, layout) for layout in range(2)]
            for s in range(self.streams)
        ]
        self.blocks = [
            self._make_block(n, s)
            for n, s in enumerate(s for s in range(self.streams) for _ in range(draw.randint(1, 3)))
        ]
        stream = draw.randrange(self.streams)
        self.fresh = self._make_block(99, stream)

    def _make_block(self, id: int, stream: int) -> Block:
        layout = self.draw.randrange(2)
        numbers = self.keys[stream][layout]
        keys = [*sorted(numbers), layout * (self.boxes.size + 1) + self.boxes.size]
        low, high = sorted(self.draw.sample(range(len(keys)), 2))
        return Block(id, stream, (keys[low], keys[high]), 0, (0,))

    def find_box(self, block: Block) -> dict[int, set[int]]:
        """Return the numbers of a block by dimension, between the least and the greatest."""
        dimensions = self.boxes.dimensions[block.stream]
        low, high = block.key_range
        inside = [
            digits
            for layout in self.keys[block.stream]
            for key, digits in layout.items()
            if low <= key < high
        ]
        each = zip(*inside, strict=True)
        return {d: {*range(min(n), max(n) + 1)} for d, n in zip(dimensions, each, strict=True)}

    def is_due(self, combination: tuple[Block, ...]) -> bool:
        """Return whether some tuples, one of each block, may have equal values in all dimensions."""
        boxes = [self.find_box(b) for b in (self.fresh, *combination)]
        dimensions = {d for box in boxes for d in box}
        return all(set.intersection(*(b[d] for b in boxes if d in b)) for d in dimensions)

    def others(self) -> list[list[Block]]:
        """Return the blocks of the other streams."""
        streams = [s for s in range(self.streams) if s != self.fresh.stream]
        return [[b for b in self.blocks if b.stream == s] for s in streams]

    def make_paths(self) -> list[tuple[frozenset[int], ...]]:
        """Return products of blocks that may join the fresh one: each combination in one of them.

        They split at a drawn stream, and leave out some that are not due.
        """
        near = [[b for b in each if self.is_due_pair(b)] for each in self.others()]
        at = self.draw.randrange(len(near))
        pieces = [[b for b in near[at] if b.id % 2 == n] for n in range(2)]
        paths = []
        for piece in pieces:
            rest = [
                each
                if n == at or self.draw.random() < 0.5
                else [b for b in each if any(self._may_meet(b, c) for c in piece)]
                for n, each in enumerate(near)
            ]
            rest[at] = piece
            if all(rest):
                paths.append(tuple(frozenset(b.id for b in each) for each in rest))
        return paths

    def is_due_pair(self, b: Block) -> bool:
        return self._may_meet(self.fresh, b)

    def _may_meet(self, a: Block, b: Block) -> bool:
        one, other = self.find_box(a), self.find_box(b)
        return all(one[d] & other[d] for d in one.keys() & other.keys())

    def spoil(self, paths: list[tuple[frozenset[int], ...]]) -> None:
        """Leave out a block of a path, or meet a path again."""
        if paths and self.draw.random() < 0.7:
            at = self.draw.randrange(len(paths))
            if self.draw.random() < 0.5:
                paths.append(paths[at])
                return
            s = self.draw.randrange(len(paths[at]))
            path = list(paths[at])
            path[s] = path[s] - {min(path[s])}
            paths[at] = tuple(path)

    def make_route(self, paths: list[tuple[frozenset[int], ...]]) -> Route:
        streams = [s for s in range(self.streams) if s != self.fresh.stream]
        return Route(
            self.fresh,
            tuple(
                tuple(Hop(s, {0: tuple(sorted(ids))}) for s, ids in zip(streams, path, strict=True))
                for path in paths
                if all(path)
            ),
        )

    def count_meetings(self, route: Route) -> Iterator[int]:
        """Yield how often each due combination is met."""
        met = Counter(
            combination
            for path in route.paths
            for combination in product(*(hop.blocks_by_host[0] for hop in path))
        )
        for combination in product(*self.others()):
            if self.is_due(combination):
                yield met[tuple(b.id for b in combination)]


def test_the_cover_rule_is_what_brute_force_finds() -> None:
    draw, verdicts = random.Random(5), Counter()
    for _ in range(300):
        plan = SmallPlan(draw)
        paths = plan.make_paths()
        plan.spoil(paths)
        route = plan.make_route(paths)
        exact = {*plan.count_meetings(route)} <= {1}
        # Blocks of streams with larger numbers are live, so that all others are due.
        checker = CoverageChecker(plan.streams, "equalities", boxes=plan.boxes)
        try:
            checker.check_plan(plan.blocks, Plan((route,)))
            assert exact, (plan.boxes, plan.blocks, route)
        except CoverageError as error:
            assert not exact, (plan.boxes, plan.blocks, route, error)
        verdicts[exact] += 1
    assert min(verdicts.values()) > 50, verdicts


def test_blocks_that_overlap_in_pairs_have_a_point_in_common() -> None:
    """So a combination is due if all its pairs are."""
    draw, seen = random.Random(3), Counter()
    for _ in range(200):
        plan = SmallPlan(draw)
        for combination in product(*plan.others()):
            all_blocks = (plan.fresh, *combination)
            ranges = [(b.stream, b.key_range) for b in all_blocks]
            in_pairs = all(
                plan.boxes.may_join(a, b) for n, a in enumerate(ranges) for b in ranges[:n]
            )
            assert in_pairs == plan.is_due(combination)
            seen[in_pairs] += 1
    assert min(seen.values()) > 100 and prod(seen.values())
