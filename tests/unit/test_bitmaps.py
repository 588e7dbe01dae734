"""The queries that a tuple, an intermediate result and a result serve.

It tests the example of chapter 20, brute force, and chapter 19 on the engine.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest
from braid.core.query import MOST, Query, longest_windows
from braid.core.reserved_columns import MARK, TIME
from braid.core.run_events import BatchCommitted
from braid.kernels.host_block_rows import BlockRows, PartialMatches
from braid.kernels.probe import BlockJoiner
from braid.kernels.query_bitmaps import QueryBitmaps
from braid.papers.slices.chain import Chain
from braid.shared.query_changes import add_query
from braid_lab.shared_ring import reference_bitmaps as reference_routing
from hypothesis import given
from hypothesis import strategies as st
from unit.test_sharing import SELECTIONS, Shared

RANKS = {"q1": (6, 2, 4), "q2": (2, 4, 6), "q3": (4, 6, 2)}
BOOK = QueryBitmaps.from_queries(
    [Query(name, windows, (None,) * 3, bit) for bit, (name, windows) in enumerate(RANKS.items())]
)
"""Section 20.1: by window length, queries rank q2, q3, q1 on A, q1, q2, q3 on B, and q3, q1, q2 on
C.
"""
B, C = 1, 2


def rows(times: list[int], marks: list[int] | None = None) -> BlockRows:
    marks = [-1] * len(times) if marks is None else marks
    return BlockRows(
        pa.record_batch(
            [pa.array(times, pa.int64()), pa.array(marks, pa.int64())], names=[TIME, MARK]
        )
    )


def partial(*members: BlockRows | None) -> PartialMatches:
    """Return results of the n-th rows of all members; None is a stream that has not been
    visited.
    """
    return PartialMatches(
        {s: (m, np.arange(m.batch.num_rows)) for s, m in enumerate(members) if m is not None}
    )


def orders(bitmaps: QueryBitmaps) -> list[list[int]]:
    """Return the matrix O of section 20.1: the queries of a slice that the next does not serve, by
    rank and stream.
    """
    gone = [[a & ~b for a, b in zip(masks, masks[1:], strict=False)] for masks in bitmaps.masks]
    return [list(rank) for rank in zip(*gone, strict=True)]


def test_the_book_s_order_of_queries_on_each_stream():
    assert orders(BOOK) == [[0b010, 0b001, 0b100], [0b100, 0b010, 0b001], [0b001, 0b100, 0b010]]


def test_a_result_of_the_second_slice_of_b_and_the_third_of_c_goes_to_q2_alone():
    """T = (111, 110, 010), with the product 010."""
    a, b, c = (10, 10 - 3, 10 - 5)
    members = [int(BOOK.queries_by_age(s, 10 - time)) for s, time in enumerate((a, b, c))]
    assert members == [0b111, 0b110, 0b010]
    assert BOOK.result_bitmaps(partial(rows([a]), rows([b]), rows([c]))).tolist() == [0b010]


def test_a_result_may_have_several_targets_and_an_intermediate_one_that_has_none_is_not_probed():
    assert BOOK.result_bitmaps(partial(rows([10]), rows([9]), rows([9]))).tolist() == [0b111]
    assert BOOK.result_bitmaps(partial(rows([10]), rows([9]), rows([7]))).tolist() == [0b011]
    young, middle, old = (partial(rows([10]), rows([10 - age]), None) for age in (1, 3, 5))
    third = rows([4, 5])
    assert (
        len(BOOK.filter_wanted(young, third, C)) == len(BOOK.filter_wanted(middle, third, C)) == 1
    )
    assert len(BOOK.filter_wanted(old, third, C)) == 0, (
        "B's third slice serves q3 alone, C's third q2 alone"
    )


def test_the_stepped_example_makes_the_probes_that_some_query_wants():
    steps = reference_routing.bitmap_example().steps
    routed = {
        " ".join(map(str, group)): step.table[-1][1:] for step in steps for group in step.results
    }
    assert routed["a1 b2 c3"] == ("111", "110", "010", "010"), "the book's"
    assert sum("left out" in step.text for step in steps) == 2 and len(routed) == 7
    assert all("1" in product for *_, product in routed.values())
    assert [list(row[1:4]) for row in steps[0].table[1:4]] == [
        [format(m, "03b") for m in rank] for rank in orders(BOOK)
    ]


windows = st.integers(1, 12)


@st.composite
def draw_bitmaps(draw: Any, streams: int = 3) -> tuple[tuple[Query, ...], QueryBitmaps]:
    bits = draw(
        st.lists(st.sampled_from((0, 1, 2, 5, MOST - 1)), min_size=1, max_size=5, unique=True)
    )
    queries = tuple(
        Query(f"q{b}", tuple(draw(windows) for _ in range(streams)), (None,) * streams, b)
        for b in bits
    )
    return queries, QueryBitmaps.from_queries(queries)


@st.composite
def partials(draw: Any, visited: tuple[int, ...], most: int = 6) -> PartialMatches:
    size = draw(st.integers(1, most))
    base = draw(st.integers(0, 20))
    parts = {}
    for s in visited:
        held = draw(
            st.lists(
                st.tuples(st.integers(0, 6), st.integers(0, 2**MOST - 1)), min_size=1, max_size=4
            )
        )
        offset = draw(st.integers(0, 10))
        block = rows([base + offset + t for t, _ in held], [m for _, m in held])
        parts[s] = (
            block,
            np.array(draw(st.lists(st.integers(0, len(held) - 1), min_size=size, max_size=size))),
        )
    return PartialMatches(parts)


def serves(q: Query, members: dict[int, tuple[int, int]]) -> bool:
    """Return whether a query includes these members, (time, mark) by stream, by definition."""
    now = max(time for time, _ in members.values())
    return all(
        now - time < q.windows[s] and mark >> q.bitmap_position & 1
        for s, (time, mark) in members.items()
    )


def members(found: PartialMatches, n: int) -> dict[int, tuple[int, int]]:
    return {
        s: (int(found.column_values(s, TIME)[n]), int(found.column_values(s, MARK)[n]))
        for s in found.parts
    }


def brute(queries: tuple[Query, ...], group: dict[int, tuple[int, int]]) -> int:
    return sum(1 << q.bitmap_position for q in queries if serves(q, group))


@given(draw_bitmaps(), partials((0, 1, 2)))
def test_the_product_of_bitmaps_is_who_is_served_by_definition(given_: Any, found: PartialMatches):
    queries, bitmaps = given_
    assert bitmaps.result_bitmaps(found).tolist() == [
        brute(queries, members(found, n)) for n in range(len(found))
    ]


@given(draw_bitmaps(), partials((0, 1, 2)))
def test_looking_at_each_age_gives_the_same_as_at_the_ages_of_a_block(
    given_: Any, found: PartialMatches
):
    _, bitmaps = given_
    now = np.maximum.reduce([found.column_values(s, TIME) for s in found.parts])
    one_by_one = np.full(len(found), -1, np.int64)
    for s in found.parts:
        one_by_one &= found.column_values(s, MARK) & bitmaps.queries_by_age(
            s, now - found.column_values(s, TIME)
        )
    assert bitmaps.result_bitmaps(found).tolist() == one_by_one.tolist()


@given(draw_bitmaps(), st.integers(0, 2), st.integers(0, 14), st.integers(0, 14))
def test_what_is_said_of_a_range_of_ages_holds_for_each_of_them(
    given_: Any, stream: int, a: int, b: int
):
    _, bitmaps = given_
    youngest, oldest = sorted((a, b))
    each = set(np.asarray(bitmaps.queries_by_age(stream, np.arange(youngest, oldest + 1))).tolist())
    said = bitmaps.queries_if_constant(stream, youngest, oldest)
    assert (said is None) == (len(each) > 1) and (said is None or each == {said})


@given(
    draw_bitmaps(),
    partials((0, 1)),
    st.lists(st.tuples(st.integers(0, 30), st.integers(0, 2**MOST - 1)), min_size=1, max_size=4),
)
def test_probes_are_left_out_only_where_no_query_wants_what_they_could_find(
    given_: Any, found: PartialMatches, held: Any
):
    """Lemma 9 for a block uses its youngest tuple.

    Some query, without selections on that tuple, includes every probe that is kept.
    """
    queries, bitmaps = given_
    block = rows([t for t, _ in held], [m for _, m in held])
    groups = [members(found, n) for n in range(len(found))]
    kept = bitmaps.filter_wanted(found, block, C)
    stay = [members(kept, n) for n in range(len(kept))]
    youngest = (max(t for t, _ in held), -1)
    for group in groups:
        could = [brute(queries, {**group, C: (t, m)}) for t, m in held]
        assert group in stay or not any(could), "a probe that some query wants was left out"
    for group in stay:
        assert brute(queries, group), "what is probed with serves a query"
        now = max(t for t, _ in group.values())
        assert any(serves(q, group) and max(0, now - youngest[0]) < q.windows[C] for q in queries)


# The claims of chapter 19, on the engine without Spark.


class Counted(Shared):
    """A shared run that keeps its events."""

    def __init__(
        self,
        folder: Path,
        queries: tuple[Query, ...],
        hosts: int,
        streams: int = 3,
        chain: Chain | None = None,
    ) -> None:
        self.events: list[Any] = []
        super().__init__(str(folder), streams, chain or Chain("memory", hosts=hosts), queries)
        self.engine.publish = self.events.extend

    @property
    def commits(self) -> list[BatchCommitted]:
        return [e for e in self.events if isinstance(e, BatchCommitted)]

    def total(self, name: str) -> int:
        return sum(getattr(e.total_host_metrics, name) for e in self.commits)

    def fed(self, batches: list[Any]) -> Counted:
        for batch in batches:
            self.batch(batch)
        return self


def make_queries(
    *windows: tuple[int, ...], where: tuple[tuple[str | None, ...], ...] = ()
) -> tuple[Query, ...]:
    found: tuple[Query, ...] = ()
    for n, lengths in enumerate(windows):
        found = add_query(
            found, Query(f"q{n}", lengths, where[n] if where else (None,) * len(lengths))
        )
    return found


def some_batches(count: int = 24, streams: int = 3, seed: int = 0, keys: int = 2) -> list[Any]:
    draw = random.Random(seed)
    return [
        [(draw.randrange(streams), draw.randrange(keys), draw.randrange(10), 1) for _ in range(6)]
        for _ in range(count)
    ]


@pytest.fixture(params=(1, 3), ids=("chain", "ring"))
def hosts(request: Any) -> int:
    return int(request.param)


def alone(q: Query) -> tuple[Query, ...]:
    return (replace(q, bitmap_position=0, complete_since=(None,) * len(q.windows)),)


def test_theorem_10_the_state_of_a_ring_is_that_of_the_largest_query(tmp_path: Path, hosts: int):
    queries = make_queries((8, 8, 8), (16, 16, 16), (40, 40, 40))
    shared = Counted(tmp_path / "shared", queries, hosts).fed(some_batches())
    largest = Counted(tmp_path / "largest", alone(queries[-1]), 1).fed(some_batches())
    ours, theirs = ([sum(e.live_tuples) for e in run.commits] for run in (shared, largest))
    assert max(abs(a - b) for a, b in zip(ours, theirs, strict=True)) <= 6, (
        "but for a batch that waits to leave"
    )
    assert sum(ours) == pytest.approx(sum(theirs), rel=0.03) and min(ours[8:]) > 0
    shared.check()


def test_theorem_12_selections_in_the_ring_keep_out_what_no_query_wants(tmp_path: Path, hosts: int):
    where = ((None,) * 3, ("v < 3", None, None), ("v = 9", "v >= 5", None))
    queries = make_queries((24, 24, 24), (80, 80, 80), (160, 160, 160), where=where)
    batches = some_batches(60, keys=20)  # the stored state does not depend on the join
    shared = Counted(tmp_path / "shared", queries, hosts).fed(batches)
    shared.check_state()
    up = Counted(tmp_path / "up", make_queries(*(q.windows for q in queries)), hosts).fed(batches)
    of_use = sum(
        is_wanted(queries, s, t, shared.clock)
        for s, came in enumerate(shared.came)
        for _, t in came
    )
    ours, theirs = sum(shared.commits[-1].live_tuples), sum(up.commits[-1].live_tuples)
    assert of_use <= ours < 1.4 * of_use < theirs, (
        "but for what leaves with its block; pulled up, selections keep nothing out"
    )


def is_wanted(queries: tuple[Query, ...], stream: int, t: tuple[int, ...], now: int) -> bool:
    """Return whether a tuple can still serve a query."""
    return any(
        SELECTIONS[q.selections[stream]](t[2]) and now - t[3] < q.windows[stream] for q in queries
    )


OPPOSITE = ((12, 4, 40), (12, 40, 4))
"""Section 19.2: the queries' windows on B and C rank in opposite order."""


def test_theorem_13_intermediate_results_are_not_probed_where_no_query_wants_them(
    tmp_path: Path, hosts: int
):
    queries = make_queries(*OPPOSITE)
    shared = Counted(tmp_path / "shared", queries, hosts).fed(some_batches())
    one = alone(Query("both", longest_windows(queries), (None,) * 3))
    largest = Counted(tmp_path / "largest", one, hosts).fed(some_batches())
    shared.check()
    assert shared.total("compared_pairs") < largest.total("compared_pairs"), (
        "a B[4, 40) is not compared with C[4, 40)"
    )
    assert shared.total("results") < largest.total("results")


def test_theorem_13_every_intermediate_result_serves_a_query_and_is_made_once(
    tmp_path: Path, hosts: int
):
    where = ((None,) * 3, ("v < 3", None, None), (None, "v >= 5", None), ("v = 9", None, "v < 3"))
    queries = make_queries((6, 6, 6), (20, 12, 20), (12, 20, 40), (40, 40, 20), where=where)
    found: Counter[frozenset[tuple[int, int]]] = Counter()
    idle: list[Any] = []

    def probe_all(joiner: BlockJoiner, *meets: Any) -> Any:
        for which, made in real(joiner, *meets):
            for n in range(len(made)):
                found[frozenset((s, int(made.column_values(s, "id")[n])) for s in made.parts)] += 1
                idle.extend([] if brute(queries, members(made, n)) else [members(made, n)])
            yield which, made

    real = BlockJoiner.probe_blocks
    with mock.patch.object(BlockJoiner, "probe_blocks", probe_all):
        run = Counted(tmp_path / "run", queries, hosts).fed(some_batches())
    run.check()
    assert not idle, "an intermediate result serves no query"
    whole = [n for group, n in found.items() if len(group) == 3]
    assert len(whole) < len(found) and set(whole) == {1}, (
        "results are made once, from intermediate ones"
    )


def test_every_result_and_every_mark_of_the_state_serves_a_query(tmp_path: Path, hosts: int):
    """Theorem 11: no result is found that the router would discard."""
    queries = make_queries(
        (6, 12, 20),
        (20, 6, 12),
        (12, 20, 6),
        where=(("v < 3", None, None), (None, "v = 9", None), (None,) * 3),
    )
    run = Counted(tmp_path / "run", queries, hosts).fed(some_batches())
    run.check()
    reached = set().union(*(run.read_results(q, 0, None) for q in queries))
    assert run.total("results") == len(reached) > 0


def test_which_host_holds_a_slice_does_not_change_what_is_compared(tmp_path: Path):
    """Section 18.2: deployment is orthogonal to the logical plan."""
    queries = make_queries(
        (6, 12, 20),
        (20, 6, 12),
        (12, 20, 6),
        where=(("v < 3", None, None), (None, "v = 9", None), (None,) * 3),
    )
    runs = [
        Counted(tmp_path / str(hosts), queries, hosts).fed(some_batches()) for hosts in (1, 2, 5)
    ]
    for metric in ("compared_pairs", "results"):
        assert len({run.total(metric) for run in runs}) == 1


def test_a_rare_selection_on_one_stream_does_not_keep_the_state_of_another(tmp_path: Path):
    queries = make_queries((20, 20), where=(("v = 9", None),))
    draw = random.Random(0)
    batches = [
        [(s, draw.randrange(2), 9 if s == 0 and n == 0 else draw.randrange(9), 1) for s in (0, 1)]
        for n in range(60)
    ]
    run = Counted(tmp_path / "run", queries, 1, streams=2).fed(batches)
    of_use = sum(
        is_wanted(queries, s, t, run.clock) for s, came in enumerate(run.came) for _, t in came
    )
    assert sum(run.commits[-1].live_tuples) <= 2 * of_use
