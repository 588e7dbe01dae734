"""As-of queries share a join with others, come and go, and are answered as if each ran alone."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from braid.core.join_kinds import parse_kind
from braid.core.match_rules import MatchRule
from braid.core.query import Query
from braid.papers.slices.chain import Chain
from shared_kind_runs import SharedKinds

pytestmark = pytest.mark.unit
NONE = (None, None)
CHAINS = [Chain(), Chain("memory", hosts=3)]


def make_query(name: str, rule: MatchRule, how: str = "left", bit: int = 0) -> Query:
    windows = tuple(w or 0 for w in rule.limit_windows(NONE))
    return Query(name, windows, NONE, bit, NONE, parse_kind(how, ["a", "b"]), rule)


def make_rule(match: Any, tolerance: int, **named: Any) -> MatchRule:
    return MatchRule(match, tolerance=tolerance, ties=("id",), **named)


def merge_sorted(run: SharedKinds, rule: MatchRule) -> Counter[tuple[int | None, ...]]:
    """Return the rows of a left as-of join of all tuples, from pandas."""
    left, right = (
        pd.DataFrame([row for _, row in came], columns=["id", "k", "v", "ts"])
        .sort_values(["ts", "id"], kind="stable")
        .astype({"id": "Int64"})
        for came in run.came
    )
    directions = {"latest": "backward", "first": "forward", "nearest": "nearest"}
    merged = pd.merge_asof(
        left,
        right,
        on="ts",
        by="k",
        tolerance=int(rule.tolerance or 0),
        allow_exact_matches=not rule.is_strict,
        direction=directions[rule.match],  # type: ignore[arg-type]
    )
    pairs = zip(merged["id_x"], merged["id_y"], strict=True)
    return Counter((int(a), None if pd.isna(b) else int(b)) for a, b in pairs)


@pytest.mark.parametrize("chain", CHAINS)
def test_as_of_queries_agree_with_pandas_beside_queries_of_pairs(
    chain: Chain, tmp_path: Path
) -> None:
    """No two tuples of b have the same key and time."""
    rules = [
        make_rule("latest", 9),
        make_rule("latest", 30, is_strict=True),
        make_rule("first", 6),
    ]
    pairs = Query("pairs", (5, 12), NONE, 3, NONE)
    queries = (*(make_query(f"q{n}", rule, bit=n) for n, rule in enumerate(rules)), pairs)
    run = SharedKinds(str(tmp_path / "run"), chain, queries)
    for n in range(36):
        run.batch([(n % 2, n * n % 3, n, 1), ((n + 1) % 2, n * 7 % 5 % 3, n, n % 4)])
        if n == 18:
            run.restart()
    run.close()
    for query, rule in zip(queries, rules, strict=False):
        assert run.list_rows(query, 0, None) == merge_sorted(run, rule), rule
    assert not [*run.find_faults()]


def test_partners_stay_for_tuples_that_wait_when_a_query_goes(tmp_path: Path) -> None:
    """The change comes after the clock has passed tuple 1, and before the batch that releases it."""
    first = make_query("first", make_rule("first", 20))
    pairs = Query("pairs", (4, 4), NONE, 1, NONE)
    run = SharedKinds(str(tmp_path / "run"), Chain(), (first, pairs))
    run.batch([(1, 0, 0, 1), (0, 0, 0, 0)])
    run.batch([(1, 1, 0, 60), (0, 1, 0, 0)])
    run.remove("pairs")
    run.add("more", (4, 4), NONE)
    run.batch([(0, 2, 0, 1)])
    assert run.list_rows(first, 0, None) == Counter([(1, 0)])


@pytest.mark.parametrize("chain", CHAINS)
def test_partners_stay_for_tuples_that_wait_for_a_stream_behind(
    chain: Chain, tmp_path: Path
) -> None:
    latest = make_query("latest", make_rule("latest", 5))
    run = SharedKinds(str(tmp_path / "run"), chain, (latest, Query("pairs", (4, 4), NONE, 1, NONE)))
    run.batch([(1, 0, 0, 1), (0, 0, 0, 1)])
    for _ in range(4):
        run.batch([(0, 1, 0, 60)])
    run.batch([(1, 2, 0, 1)])
    run.batch([(1, 2, 0, 1)])
    assert run.list_rows(latest, 0, None)[1, 0] == 1


def test_a_late_tuple_of_the_batch_before_a_change_is_answered(tmp_path: Path) -> None:
    latest = make_query("latest", make_rule("latest", 50))
    run = SharedKinds(str(tmp_path / "run"), Chain(), (latest,))
    run.batch([(0, 0, 0, 100), (1, 0, 0, 0)])
    run.batch([(0, 1, 0, 0)])
    run.batch([(0, 0, 0, -70), (1, 0, 0, 90)])  # tuple 3 comes late
    run.add("more", (4, 4), NONE)
    run.change(run.engine.state.queries)
    run.close()
    assert sorted(left for left, _ in run.list_rows(latest, 0, None)) == [0, 2, 3]


def test_a_query_that_comes_later_answers_the_tuples_that_come_from_then_on(
    tmp_path: Path,
) -> None:
    first = make_query("first", make_rule("latest", 12))
    run = SharedKinds(str(tmp_path / "run"), Chain(), (first,))
    run.batch([(0, 1, 0, 1), (1, 2, 0, 1)])
    rule = make_rule("latest", 12)
    run.add("second", (1, 13), NONE, parse_kind("inner", ["a", "b"]), rule)
    run.restart()
    run.batch([(0, 2, 0, 1), (0, 3, 0, 1), (1, 3, 0, 1)])
    run.close()
    second, begun = run.served["second"][0][:2]
    assert run.list_rows(first, 0, None) == Counter([(0, None), (2, 1), (3, None)])
    assert run.list_rows(second, begun, None) == Counter([(2, 1)])


def test_a_new_query_answers_no_tuple_whose_partners_may_be_missing(tmp_path: Path) -> None:
    """No query selected v < 3 of b, so that tuple 2 of a may have had partners; tuple 3 has not."""
    rule = make_rule("latest", 12)
    first = replace(make_query("first", rule), selections=(None, "v >= 5"))
    run = SharedKinds(str(tmp_path / "run"), Chain(), (first,))
    run.batch([(0, 1, 0, 1), (1, 2, 9, 1)])
    run.add("second", (1, 13), (None, "v < 3"), parse_kind("left", ["a", "b"]), rule)
    run.batch([(0, 2, 0, 1), (0, 3, 0, 20), (1, 3, 0, 1)])
    assert run.count_waiting()["second"] == {"a": 1}
    run.close()
    second, begun = run.served["second"][0][:2]
    assert run.list_rows(second, begun, None) == Counter([(3, None)])


def test_partners_are_selected_by_the_query(tmp_path: Path) -> None:
    few = make_query("few", make_rule("latest", 12))
    few = replace(few, selections=("v < 3", "v >= 5"))
    pairs = Query("pairs", (12, 12), NONE, 1, NONE)
    run = SharedKinds(str(tmp_path / "run"), Chain(), (few, pairs))
    run.batch([(1, 0, 9, 1), (1, 0, 4, 1), (0, 0, 2, 1), (0, 0, 4, 1)])
    run.batch([(0, 0, 1, 1)])
    run.close()
    assert run.list_rows(few, 0, None) == Counter([(2, 0), (4, 0)])


def test_a_query_says_how_long_partners_are_held() -> None:
    def parse(match: Any, windows: Any = None, tolerance: int | None = None) -> tuple[int, ...]:
        return Query.parse("q", "ab", windows, match=MatchRule(match, tolerance=tolerance)).windows

    assert parse("latest", tolerance=5) == (1, 6)
    assert parse("first", tolerance=5) == (6, 1)
    assert parse("nearest", tolerance=5) == (6, 6)
    assert parse("nearest", {"a": "4 us", "b": "9 us"}, 5) == (4, 6)
    assert parse("latest", "4 us") == (1, 4)
    with pytest.raises(ValueError, match="match='first' without tolerance and windows, and a"):
        parse("first")
    with pytest.raises(ValueError, match="with how='semi'; it must be 'inner' or 'left'"):
        Query.parse("q", "ab", "1 s", how="semi", match=MatchRule("latest"))
