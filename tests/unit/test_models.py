"""The models of joins themselves, against DuckDB, pandas and cases worked out by hand."""

from __future__ import annotations

import ast
import random
from collections import Counter
from math import inf
from pathlib import Path
from typing import Any

import models
import pandas as pd
import pytest
from braid.core.horizon import close_reach, find_horizons, find_late_limit
from braid.core.stream_clocks import StreamClock, TimeSpread, advance_clock
from duck import connect_duckdb
from hypothesis import given
from hypothesis import strategies as st
from models import clocks
from models.asof import AsOfRules, run_asof
from models.kinds import Answer, JoinRules, Outcome, Tuple, run_join

FULL = ((0, None), (None, 0))
KINDS = ("inner", "left", "right", "full", "semi", "anti")


def test_models_import_nothing_of_what_they_test() -> None:
    for path in Path(models.__path__[0]).glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not {n.split(".")[0] for n in names} & {"braid", "numpy", "pyarrow", "pandas"}


def draw_tuples(draw: random.Random, streams: int, batches: int, rate: int) -> list[Tuple]:
    """Return tuples whose times rise from batch to batch, so that none is late."""
    tuples = []
    for stream in range(streams):
        for id in range(draw.randint(0, rate * batches)):
            batch = draw.randrange(batches)
            key = None if draw.random() < 0.1 else draw.randrange(6)
            time = batch * 10 + draw.randrange(10)
            values = {"k": key, "x": draw.randrange(9)}
            tuples.append(Tuple(stream, id, batch, time, values, key is not None))
    return tuples


def join_by_sql(tuples: list[Tuple], how: str, window: int | None) -> Counter[Any]:
    near = "" if window is None else f" AND abs(a.t - b.t) < {window}"
    ids = "a.id" if how in ("semi", "anti") else "a.id, b.id"
    with connect_duckdb() as db:
        for stream, name in enumerate("ab"):
            rows = [[t.id, t.time, *t.values.values()] for t in tuples if t.stream == stream]
            frame = pd.DataFrame(rows, columns=["id", "t", "k", "x"], dtype="Int64")
            db.register(name, frame)
        sql = f"SELECT {ids} FROM a {how.upper()} JOIN b ON a.k = b.k AND a.x <= b.x{near}"
        return Counter(db.execute(sql).fetchall())


def has_matching_keys(a: Tuple, b: Tuple) -> bool:
    return a.values["k"] == b.values["k"] and a.values["x"] <= b.values["x"]


@pytest.mark.parametrize("how", KINDS)
@pytest.mark.parametrize("window", [None, 1, 15])
def test_the_final_state_is_that_of_sql(how: str, window: int | None) -> None:
    for seed in range(8):
        tuples = draw_tuples(random.Random(seed), 2, 6, 6)
        reach = clocks.reach_of_windows((window, window))
        outcome = run_join(tuples, JoinRules(has_matching_keys, reach, how, (9, 9), ends=(5, 5)))
        found = Counter(ids for _, ids in outcome.results)
        assert found == join_by_sql(tuples, how, window)
        check_answers(tuples, outcome, how)


def check_answers(tuples: list[Tuple], outcome: Outcome, how: Any) -> None:
    """Each preserved tuple has one answer, not before its batch, and matched ones have a pair."""
    preserved = JoinRules(has_matching_keys, FULL, how).preserved
    arrived = {(t.stream, t.id): t.batch for t in tuples if t.stream in preserved}
    assert Counter((a.stream, a.id) for a in outcome.answers) == Counter([*arrived])
    paired = {(s, id) for _, ids in outcome.pairs for s, id in enumerate(ids)}
    for answer in outcome.answers:
        assert answer.batch >= arrived[answer.stream, answer.id]
        assert answer.is_matched == ((answer.stream, answer.id) in paired)


def test_kept_streams_of_three_are_those_of_a_left_join_of_the_rest() -> None:
    def is_match(a: Tuple, b: Tuple, c: Tuple) -> bool:
        return a.values["k"] == b.values["k"] == c.values["k"] and a.values["x"] < c.values["x"]

    for seed in range(4):
        tuples = draw_tuples(random.Random(seed), 3, 4, 3)
        reach = clocks.reach_of_windows((None,) * 3)
        outcome = run_join(tuples, JoinRules(is_match, reach, (0, 2)))
        check_answers(tuples, outcome, (0, 2))
        sides = [[t for t in tuples if t.stream == s and t.meets] for s in range(3)]
        pairs = [(a, b, c) for a in sides[0] for b in sides[1] for c in sides[2]]
        complete = {tuple(t.id for t in p) for p in pairs if is_match(*p)}
        assert {ids for _, ids in outcome.pairs} == complete
        alone = [ids for _, ids in outcome.results if None in ids]
        assert len(alone) == sum(not a.is_matched for a in outcome.answers)
        assert all(ids[1] is None and (ids[0] is None) != (ids[2] is None) for ids in alone)


def always(a: Tuple, b: Tuple) -> bool:
    return True


def make_tuples(*given: tuple[str, int, int | None]) -> list[Tuple]:
    """Return tuples of a and b from stream, batch and time; ids count from 0."""
    return [Tuple("ab".index(s), id, b, t, {}) for id, (s, b, t) in enumerate(given)]


def test_an_unmatched_tuple_comes_in_the_first_batch_after_its_window_has_passed() -> None:
    """a waits until b - 2 - 9 is past 100: b reaches 110 in batch 2, 112 in batch 3."""
    times = [("b", 0, 80), ("a", 1, 100), ("b", 2, 111), ("b", 3, 112), ("b", 4, 113)]
    rules = JoinRules(lambda a, b: False, ((0, 9), (9, 0)), "left", (0, 2), closes=False)
    assert run_join(make_tuples(*times), rules).answers == [Answer(4, 0, 1, False)]


def test_a_tuple_later_than_lateness_and_window_is_answered_in_the_next_batch() -> None:
    times = [
        ("a", 0, 100),
        ("b", 0, 100),
        ("a", 1, 200),
        ("b", 1, 200),
        ("a", 2, 50),
        ("b", 3, 201),
    ]
    rules = JoinRules(lambda a, b: False, ((0, 9), (9, 0)), "left", closes=False)
    outcome = run_join(make_tuples(*times), rules)
    assert Answer(3, 0, 4, False) in outcome.answers
    assert [(i.reason, i.id, i.behind) for i in outcome.irregular] == [("late", 4, 150)]


def test_what_can_match_nothing_is_answered_in_its_own_batch() -> None:
    tuples = [Tuple(0, 0, 1, 5, {}, False), Tuple(0, 1, 1, None, {}), Tuple(1, 0, 0, 5, {})]
    outcome = run_join(tuples, JoinRules(always, ((0, 9), (9, 0)), "left", closes=False))
    assert outcome.answers == [Answer(1, 0, 0, False), Answer(1, 0, 1, False)]
    assert [(i.reason, i.id) for i in outcome.irregular] == [("untimed", 1)]
    assert not outcome.pairs and outcome.waiting == [0, 0]


def test_a_partner_that_was_forgotten_does_not_match() -> None:
    times = [("a", 0, 0), ("b", 0, 50), ("b", 1, 60), ("b", 2, 1)]
    rules = JoinRules(always, ((0, 9), (9, 0)), "left")
    outcome = run_join(make_tuples(*times), rules)
    assert outcome.answers == [Answer(1, 0, 0, False)] and not outcome.pairs


def test_semi_gives_a_matched_tuple_one_batch_after_its_first_pair() -> None:
    times = [("a", 0, 1), ("b", 1, 1), ("b", 2, 1)]
    outcome = run_join(make_tuples(*times), JoinRules(always, FULL, "semi"))
    assert outcome.results == [(2, (0,))] and outcome.waiting == [1, 1, 0]
    outcome = run_join(make_tuples(*times[:2]), JoinRules(always, FULL, "semi"))
    assert outcome.results == [(2, (0,))]


def test_an_end_answers_what_waits_for_it_and_a_stop_does_not() -> None:
    times = [("a", 0, 1), ("b", 1, 1), ("a", 2, 2)]
    never = JoinRules(lambda a, b: False, FULL, "left", closes=False)
    assert not run_join(make_tuples(*times), never).answers
    ended = JoinRules(lambda a, b: False, FULL, "left", ends=(None, 1), closes=False)
    assert run_join(make_tuples(*times), ended).answers == [Answer(2, 0, 0, False)]
    closed = JoinRules(lambda a, b: False, FULL, "left")
    assert run_join(make_tuples(*times), closed).answers == [Answer(3, 0, n, False) for n in (0, 2)]


def test_a_silent_stream_is_waited_for_unless_idle_bounds_it() -> None:
    times = [("a", 0, 0), ("a", 0, 0), ("b", 0, 0), ("b", 1, 100), ("a", 2, 90), ("b", 3, 101)]
    three = ((0, 9, 9), (9, 0, 9), (9, 9, 0))

    def find_batches(idle: int | None) -> list[int]:
        rules = JoinRules(lambda *pair: False, three, (0,), idle=idle, closes=False)
        return [a.batch for a in run_join(make_tuples(*times), rules).answers]

    assert find_batches(None) == []
    assert find_batches(20) == [2, 2]


def test_a_clock_is_moved_by_eight_tuples_far_ahead_and_by_no_fewer() -> None:
    clock = clocks.Clock(10)
    assert clock.take_batch([3, 1, 2, 900]) == [900] and clock.time == 3
    assert clock.take_batch([12, 500]) == [500] and clock.time == 12
    assert clock.take_batch([500] * 5) == [500] * 5 and clock.waiting == [900, 500, *[500] * 5]
    assert clock.take_batch([505]) == [] and clock.time == 505 and clock.waiting == [900]


@given(
    st.lists(st.lists(st.integers(0, 60), max_size=12), max_size=5),
    st.one_of(st.none(), st.integers(0, 20)),
)
def test_the_clock_of_the_model_is_that_of_the_engine(
    batches: list[list[int]], ahead: int | None
) -> None:
    model, clock = clocks.Clock(ahead), StreamClock()
    for times in batches:
        early, ranked = model.take_batch(times), sorted(times)
        spread = TimeSpread(tuple(ranked[-8:]), tuple(ranked), tuple(ranked))
        blocks = [(len(times), ranked[-1], spread)] if times else []
        advance = advance_clock(clock, blocks, ahead)
        clock = advance.clock
        assert (model.time, tuple(sorted(model.waiting))) == clock and len(early) == advance.early


BOUND = st.one_of(st.none(), st.integers(0, 9))


@given(
    st.lists(st.one_of(st.none(), st.just(inf), st.integers(0, 50)), min_size=3, max_size=3),
    st.lists(st.integers(0, 4), min_size=3, max_size=3),
    st.lists(st.lists(BOUND, min_size=3, max_size=3), min_size=3, max_size=3),
)
def test_the_horizons_of_the_model_are_those_of_the_engine(
    times: list[Any], lateness: list[int], bounds: list[list[int | None]]
) -> None:
    reach = close_reach(
        tuple(tuple(0 if i == j else c for j, c in enumerate(row)) for i, row in enumerate(bounds))
    )
    assert reach is not None
    known = [None if t == inf else t for t in times]
    expected = find_horizons(known, lateness, reach, [t == inf for t in times])
    horizons = clocks.find_horizons(times, lateness, reach)
    assert tuple(horizons) == expected
    for stream in range(3):
        limit = clocks.find_late_limit(stream, horizons, reach)
        assert limit == find_late_limit(stream, expected, reach)


DIRECTIONS = {"latest": "backward", "first": "forward", "nearest": "nearest"}


@pytest.mark.parametrize("match", DIRECTIONS)
@pytest.mark.parametrize("tolerance", [None, 0, 3, 15])
@pytest.mark.parametrize("strict", [False, True])
def test_as_of_answers_are_those_of_merge_asof(
    match: str, tolerance: int | None, strict: bool
) -> None:
    for seed in range(6):
        tuples = [t for t in draw_tuples(random.Random(seed), 2, 6, 6) if t.meets]
        rules = AsOfRules(
            match,
            lambda left, right: left.values["k"] == right.values["k"],
            key=lambda each: each.values["k"],
            tolerance=tolerance,
            is_strict=strict,
            lateness=(9, 9),
        )
        answers = run_asof(tuples, rules)
        times = {(t.stream, t.id): t.time for t in tuples}
        found = {
            a.left: None if a.right is None else abs(times[0, a.left] - times[1, a.right])
            for a in answers
        }
        assert len(answers) == len(found)
        assert found == find_distances(tuples, DIRECTIONS[match], tolerance, strict)


def find_distances(
    tuples: list[Tuple], direction: str, tolerance: int | None, strict: bool
) -> dict[int, int | None]:
    left, right = (
        pd.DataFrame(
            [(t.id, t.time, t.time, t.values["k"]) for t in tuples if t.stream == stream],
            columns=["id", "t", at, "k"],
        )
        .astype("int64")
        .sort_values("t")
        for stream, at in enumerate(("left_t", "right_t"))
    )
    merged = pd.merge_asof(
        left,
        right.drop(columns="id"),
        on="t",
        by="k",
        direction=direction,
        tolerance=tolerance,
        allow_exact_matches=not strict,
    )
    far = (merged["left_t"] - merged["right_t"]).abs()
    return {id: None if pd.isna(d) else int(d) for id, d in zip(merged["id"], far, strict=True)}


def make_asof(*given: tuple[str, int, int, int]) -> list[Tuple]:
    """Return tuples of a and b from stream, batch, time and a value for ties; ids count from 0."""
    return [Tuple("ab".index(s), id, b, t, {"x": x}) for id, (s, b, t, x) in enumerate(given)]


def test_the_latest_partner_waits_for_the_watermark_and_for_no_more() -> None:
    """The right stream is at 11 after batch 2, so that one at 10 may still come until then."""
    tuples = make_asof(
        ("b", 0, 8, 0), ("a", 0, 10, 0), ("b", 1, 10, 0), ("b", 2, 11, 0), ("b", 3, 12, 0)
    )
    assert run_asof(tuples, AsOfRules("latest")) == [(3, 1, 2)]
    assert run_asof(tuples, AsOfRules("latest", is_strict=True)) == [(3, 1, 0)]
    assert run_asof(tuples, AsOfRules("latest", ends=(None, 1))) == [(2, 1, 2)]


def test_the_later_side_is_nearer_then_ties_decide() -> None:
    tuples = make_asof(
        ("a", 0, 10, 0), ("b", 0, 8, 9), ("b", 0, 12, 1), ("b", 0, 12, 2), ("b", 1, 20, 0)
    )
    rules = AsOfRules("nearest", ties=lambda right: right.values["x"], tolerance=5)
    assert run_asof(tuples, rules) == [(2, 0, 3)]
    assert run_asof(tuples, AsOfRules("first", ties=rules.ties, tolerance=1)) == [(1, 0, None)]
    assert run_asof(tuples, AsOfRules("first", tolerance=1, keeps_left=False)) == []


def test_a_dominated_partner_is_forgotten_unless_equal_times_are_left_out() -> None:
    """The left stream is expected from 10 on: 5 is dominated by 10, but not where 10 is no partner."""
    times = [("a", 0, 10, 0), ("b", 0, 5, 0), ("b", 0, 10, 0), ("b", 1, 9, 0), ("a", 2, 10, 0)]
    late = make_asof(*times, ("b", 3, 99, 0), ("a", 4, 99, 0))
    for strict, partner in ((False, 2), (True, 3)):
        answers = run_asof(late, AsOfRules("latest", is_strict=strict))
        assert [a.right for a in answers if a.left == 4] == [partner]


@pytest.mark.parametrize("match", DIRECTIONS)
@pytest.mark.parametrize("tolerance", [None, 4])
def test_forgetting_changes_no_answer_of_a_tuple_that_is_not_late(
    match: str, tolerance: int | None
) -> None:
    for seed in range(10):
        draw = random.Random(seed)
        tuples = [t for t in draw_tuples(draw, 2, 8, 5) if t.meets]
        by_key = {
            "condition": lambda a, b: a.values["k"] == b.values["k"],
            "key": lambda t: t.values["k"],
        }
        rules = AsOfRules(
            match, tolerance=tolerance, lateness=(9, 9), ties=lambda t: t.id, **by_key
        )
        everything = AsOfRules(
            match, tolerance=tolerance, lateness=(10**6, 9), ties=lambda t: t.id, **by_key
        )
        assert run_asof(tuples, rules) == run_asof(tuples, everything)
