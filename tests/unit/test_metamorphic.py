"""Runs of random conditions over random tables, transformed in ways with a known effect.

The results must change in a known way or not at all. No oracle is needed.
"""

from __future__ import annotations

import contextlib
import random
from collections import Counter
from collections.abc import Callable
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from braid.stream_join import StreamJoin
from fuzz.cases import Case, Stream, Tree
from fuzz.grammar import list_columns, random_case, random_schemas, random_stream, write_tree
from fuzz.outcomes import Answer, Ids
from fuzz.routes import table_kernels, table_run, within_windows
from fuzz.routes import timed as as_table
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from oracle import PLACEMENTS, killed_before, result_ids

pytestmark = pytest.mark.unit
DRAWN = st.randoms(use_true_random=False)
MINUTE = 60_000_000
FEW = settings(max_examples=12)


def drawn(draw: random.Random, batches: int = 3) -> Case:
    """Return a condition over two streams of up to eight rows with only the columns that it reads.

    Hypothesis shrinks the condition, not the rows.
    """
    return needed(on_all_columns(draw, batches))


def on_all_columns(draw: random.Random, batches: int = 3) -> Case:
    """Return the same over streams with all columns."""
    rows = random.Random(draw.getrandbits(32))
    streams = {
        alias: random_stream(rows, columns, 8, batches)
        for alias, columns in random_schemas(rows).items()
    }
    for _ in range(4):
        case = random_case(draw, streams)
        if case.tree is not None and table_kernels(case).kind == "rows":
            return case
    equal = ["eq", ["col", "a", "k"], ["col", "b", "k"]]
    return Case(streams, write_tree(equal), equal)


def needed(case: Case) -> Case:
    """Return the case without columns that its condition does not read."""
    assert case.tree is not None
    read = list_columns(case.tree)
    streams = {}
    for alias, stream in case.streams.items():
        keep = [(n, name) for n, name in enumerate(stream.columns) if (alias, name) in read]
        columns = {name: stream.columns[name] for _, name in keep}
        rows = [[row[n] for n, _ in keep] for row in stream.rows]
        streams[alias] = replace(stream, columns=columns, rows=rows)
    return replace(case, streams=streams)


def spelt(case: Case, tree: Tree) -> Case:
    return replace(case, tree=tree, on=write_tree(tree))


def with_stream(case: Case, alias: str, stream: Stream) -> Case:
    return replace(case, streams={**case.streams, alias: stream})


def run_case(case: Case, run: Callable[[Case], Answer] = table_run) -> Ids:
    """Return the results of a run, which must succeed."""
    answer = run(case)
    assert answer.kind == "rows", answer.sentence
    return answer.rows


def timed(case: Case) -> Case:
    """Return the rows with their event times stored, so that moving rows does not change them."""
    streams = {a: replace(s, times=s.event_times()) for a, s in case.streams.items()}
    return replace(case, streams=streams)


def renamed(tree: Tree, names: dict[str, str]) -> Tree:
    if tree[0] == "col":
        return ["col", names[tree[1]], tree[2]]
    return [tree[0], *(renamed(o, names) if isinstance(o, list) else o for o in tree[1:])]


@FEW
@given(DRAWN)
def test_other_names_of_streams_change_nothing(draw: random.Random) -> None:
    case = drawn(draw)
    names = {"a": "right_side", "b": "b_1"}
    assert case.tree is not None
    other = spelt(case, renamed(case.tree, names))
    other = replace(other, streams={names[a]: s for a, s in case.streams.items()})
    assert run_case(other) == run_case(case)


@FEW
@given(DRAWN)
def test_swapped_sides_swap_the_results(draw: random.Random) -> None:
    case = drawn(draw)
    other = replace(case, streams=dict(reversed(case.streams.items())))
    assert Counter({key[::-1]: n for key, n in run_case(other).items()}) == run_case(case)


@FEW
@given(DRAWN)
def test_a_condition_and_true_and_its_double_negation_are_the_condition(
    draw: random.Random,
) -> None:
    case = drawn(draw)
    assert case.tree is not None
    truth = run_case(case)
    assert run_case(spelt(case, ["and", case.tree, ["lit", "true"]])) == truth
    assert run_case(spelt(case, ["not", ["not", case.tree]]), table_kernels) == truth


NUMBERS = ("i", "l", "k", "f", "g", "m", "h")


@FEW
@given(DRAWN)
def test_a_comparison_is_the_same_from_either_side_and_as_a_negation(draw: random.Random) -> None:
    """x < y is y > x; if neither is NULL, it is NOT x >= y and NOT y <= x."""
    rows = random.Random(draw.getrandbits(32))
    streams = {
        alias: random_stream(rows, columns, 8, 2) for alias, columns in random_schemas(rows).items()
    }
    case = Case(streams, "true")
    x, y = (["col", alias, draw.choice(NUMBERS)] for alias in ("a", "b"))
    for less, more, not_less, not_more in (("lt", "gt", "ge", "le"), ("le", "ge", "gt", "lt")):
        spellings: list[Tree] = [
            [less, x, y], [more, y, x], ["not", [not_less, x, y]], ["not", [not_more, y, x]],
            ["and", [less, x, y], ["lit", "true"]],
        ]  # fmt: skip
        answers = [table_kernels(spelt(case, tree)) for tree in spellings]
        assert len({a.kind for a in answers}) == 1
        assert all(a.rows == answers[0].rows for a in answers), [x, y]


# Many draws are refused, or fail as they do in Spark; none of these says anything here.
@settings(max_examples=12, suppress_health_check=[HealthCheck.filter_too_much])
@given(DRAWN)
def test_a_condition_is_its_three_parts_by_what_another_says(draw: random.Random) -> None:
    """Ternary logic partitioning: another condition is true, false, or unknown."""
    case = on_all_columns(draw)
    other = random_case(draw, case.streams)
    c, p = case.tree, other.tree
    assume(p is not None)
    parts: list[Tree] = [["and", c, q] for q in (p, ["not", p], ["is_null", p])]
    answers = [table_kernels(spelt(case, part)) for part in parts]
    assume(all(a.kind == "rows" for a in answers))
    assert sum((a.rows for a in answers), Counter()) == run_case(case, table_kernels)


@FEW
@given(DRAWN)
def test_batches_that_are_cut_otherwise_change_nothing(draw: random.Random) -> None:
    case = drawn(draw)
    other = case
    for alias, stream in case.streams.items():
        batches = sorted(draw.randrange(5) for _ in stream.rows)
        other = with_stream(other, alias, replace(stream, batches=batches))
    assert run_case(other) == run_case(case)


@FEW
@given(DRAWN)
def test_rows_in_another_order_within_a_batch_change_nothing(draw: random.Random) -> None:
    case = timed(replace(drawn(draw), windows={"a": 2 * MINUTE, "b": MINUTE}))
    stream = case.streams["b"]
    order = sorted(range(len(stream.rows)), key=lambda n: (stream.batches[n], draw.random()))
    assert stream.times is not None
    moved = replace(
        stream,
        rows=[stream.rows[n] for n in order],
        batches=[stream.batches[n] for n in order],
        times=[stream.times[n] for n in order],
    )
    rows = run_case(with_stream(case, "b", moved))
    assert Counter({(a, order[b]): n for (a, b), n in rows.items()}) == run_case(case)


@FEW
@given(DRAWN)
def test_another_column_changes_nothing(draw: random.Random) -> None:
    case = drawn(draw)
    stream = case.streams["a"]
    wider = replace(
        stream,
        columns={"another": "string", **stream.columns, "last": "array<int>"},
        rows=[[draw.choice(("x", None)), *row, [1, None]] for row in stream.rows],
    )
    assert run_case(with_stream(case, "a", wider)) == run_case(case)


@FEW
@given(DRAWN)
def test_another_placement_changes_nothing(draw: random.Random) -> None:
    case = replace(drawn(draw), windows={"a": MINUTE + 5})
    names = [n for n, p in PLACEMENTS.items() if p.routing_key_source == "tuple" and _takes_two(p)]
    assert run_case(replace(case, placement=draw.choice(names))) == run_case(case)


def _takes_two(placement: Any) -> bool:
    try:
        placement.initial_state(2)
    except ValueError:
        return False
    return True


@FEW
@given(DRAWN, st.integers(-(10**15), 10**15))
def test_event_times_that_are_all_shifted_change_nothing(draw: random.Random, by: int) -> None:
    case = timed(replace(drawn(draw), windows={"a": MINUTE, "b": MINUTE}))
    streams = {
        a: replace(s, times=[t + by for t in s.times or ()]) for a, s in case.streams.items()
    }
    assert run_case(replace(case, streams=streams)) == run_case(case)


@FEW
@given(DRAWN)
def test_rows_that_are_doubled_on_one_side_double_the_results(draw: random.Random) -> None:
    case = drawn(draw)
    stream = case.streams["a"]
    count = len(stream.rows)
    twice = replace(stream, rows=stream.rows * 2, batches=stream.batches * 2)
    rows: Ids = Counter()
    for (a, b), n in run_case(with_stream(case, "a", twice)).items():
        rows[a % count, b] += n
    assert rows == Counter({key: 2 * n for key, n in run_case(case).items()})


@FEW
@given(DRAWN)
def test_a_shorter_window_finds_what_its_filter_leaves_of_a_longer_one(
    draw: random.Random,
) -> None:
    case = drawn(draw)
    longer = replace(case, windows={"a": 3 * MINUTE, "b": 2 * MINUTE})
    shorter = replace(case, windows={"a": draw.choice((1, 3, MINUTE, 2 * MINUTE)), "b": MINUTE})
    assert run_case(shorter) == within_windows(shorter, run_case(longer))


@FEW
@given(DRAWN)
def test_a_run_that_is_killed_and_resumed_finds_the_same(draw: random.Random) -> None:
    case = replace(drawn(draw, batches=4), windows={"b": MINUTE})
    assert run_case(case, resumed) == run_case(case)


def resumed(case: Case) -> Answer:
    """Return the results of a run that fails before its second commit and is resumed."""
    tables = {a: as_table(case, a) for a in case.streams}
    windows = {a: f"{w} microseconds" for a, w in case.windows.items()}
    join = StreamJoin(tables, case.on, PLACEMENTS[case.placement], windows, "ts")
    with TemporaryDirectory() as folder:
        with killed_before(1), contextlib.suppress(OSError):
            join.start(f"{folder}/run", batches="batch").awaitTermination()
        run = StreamJoin.resume(f"{folder}/run", tables)
        run.awaitTermination()
        return Answer("rows", result_ids(run.results()))
