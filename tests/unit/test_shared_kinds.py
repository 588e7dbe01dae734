"""Queries of every kind share a join, come and go, and are answered as if each ran alone."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from braid.core.answer_state import make_mark_key, split_mark_key
from braid.core.join_kinds import parse_kind
from braid.core.query import Query, unite_kinds
from braid.papers.slices.chain import Chain
from shared_kind_runs import HOWS, SharedKinds, run_random_queries

pytestmark = pytest.mark.unit
NONE = (None, None)


@pytest.mark.parametrize("seed", [*range(12), 327])  # 327: no query preserves a any more
def test_random_queries_are_answered_as_the_model_does(seed: int, tmp_path: Path) -> None:
    assert not [*run_random_queries(seed, tmp_path / "run")]


def make_query(name: str, how: str, windows: tuple[int, int], bit: int = 0) -> Query:
    return Query(name, windows, NONE, bit, NONE, parse_kind(how, ["a", "b"]))


def run_two_windows(folder: Path, **changes: Any) -> SharedKinds:
    """Run queries of a short and of a long window over two tuples that are 5 apart."""
    queries = tuple(
        make_query(f"{how} {w}", how, (w, w), bit)
        for bit, (how, w) in enumerate((how, w) for how in HOWS for w in (4, 12))
    )
    run = SharedKinds(str(folder), changes.get("chain", Chain()), queries)
    run.batch([(0, 1, 0, 1)])  # tuple 0 of a, with key 1
    run.batch([(1, 1, 0, 5), (1, 2, 0, 1)])  # tuples 1 and 2 of b
    run.batch([(0, 9, 0, 30), (1, 9, 0, 1)])  # tuples 3 and 4, which meet
    return run


@pytest.mark.parametrize("chain", [Chain(), Chain("memory", hosts=3)])
def test_a_tuple_is_matched_for_one_query_and_unmatched_for_another(
    chain: Chain, tmp_path: Path
) -> None:
    run = run_two_windows(tmp_path / "run", chain=chain)
    run.close()
    found = {q.name: run.list_rows(q, first, end) for ((q, first, end, _),) in run.served.values()}
    met, pair = (3, 4), (0, 1)
    assert found["left 4"] == Counter([met, (0, None)])
    assert found["left 12"] == Counter([met, pair])
    assert found["right 4"] == Counter([met, (None, 1), (None, 2)])
    assert found["full 12"] == Counter([met, pair, (None, 2)])
    assert found["semi 4"] == Counter([(3, None)])
    assert found["semi 12"] == Counter([(3, None), (0, None)])
    assert found["anti 4"] == Counter([(0, None)])
    assert found["anti 12"] == Counter()
    assert found["inner 4"] == Counter([met])


def test_a_row_without_partner_comes_when_it_is_final_for_its_query(tmp_path: Path) -> None:
    """The short window of a has passed with the second batch, so the third one answers."""
    run = run_two_windows(tmp_path / "run")
    short, long = (run.served[f"left {w}"][0][0] for w in (4, 12))
    assert [run.list_rows(short, n, n + 1)[0, None] for n in run.numbers] == [0, 0, 1]
    run.batch([(0, 8, 0, 1)])
    assert run.list_rows(long, 0, None)[0, None] == 0
    assert run.list_rows(short, 0, None)[0, None] == 1


def test_each_query_counts_the_tuples_that_wait_for_it(tmp_path: Path) -> None:
    """The second batch made tuple 0 final for the short window. The new query selects v >= 5."""
    run = run_two_windows(tmp_path / "run")
    assert run.count_waiting()["left 4"] == {"a": 1}
    assert run.count_waiting()["full 12"] == {"a": 2, "b": 3}
    assert run.count_waiting()["semi 12"] == run.count_waiting()["anti 12"] == {"a": 2}
    assert run.count_waiting()["right 4"] == {"b": 3} and "inner 4" not in run.count_waiting()
    run.remove("left 4")
    run.add("late", (4, 12), (None, "v >= 5"), parse_kind("full", ["a", "b"]))
    assert run.count_waiting()["late"] == {"a": 2, "b": 0}  # what is stored
    run.batch([(0, 3, 0, 1), (1, 3, 2, 0), (1, 3, 7, 0)])  # tuple 0 is answered
    assert run.count_waiting()["late"] == {"a": 2, "b": 1}
    run.close()
    assert not any(any(counts.values()) for counts in run.count_waiting().values())


def test_a_query_that_comes_later_answers_the_tuples_that_come_from_then_on(
    tmp_path: Path,
) -> None:
    first = make_query("first", "left", (12, 12))
    run = SharedKinds(str(tmp_path / "run"), Chain(), (first,))
    run.batch([(0, 1, 0, 1), (0, 2, 0, 1)])
    run.add("second", (12, 12), NONE, parse_kind("left", ["a", "b"]))
    run.restart()
    run.batch([(0, 3, 0, 1), (1, 2, 0, 1)])
    run.close()
    second = run.served["second"][0][0]
    assert run.list_rows(first, 0, None) == Counter([(0, None), (1, 3), (2, None)])
    assert run.list_rows(second, run.served["second"][0][1], None) == Counter([(1, 3), (2, None)])
    assert not [*run.find_faults()]


def test_queries_of_kinds_preserve_what_any_of_them_does() -> None:
    left, semi, full = (make_query(how, how, (4, 4)) for how in ("left", "semi", "full"))
    assert unite_kinds([make_query("inner", "inner", (4, 4))]).is_inner
    assert unite_kinds([left, semi]).preserved == (0,)
    assert unite_kinds([semi, full]).preserved == (0, 1)
    assert unite_kinds([semi]).writes_matched and not unite_kinds([left]).writes_matched


def test_a_bitmap_belongs_to_a_birth_and_a_query() -> None:
    assert make_mark_key(7, None) == 7 and split_mark_key(7, False) == (7, None)
    assert {split_mark_key(make_mark_key(7, bit), True) for bit in (0, 62)} == {(7, 0), (7, 62)}
