"""The tree of a condition: parts, how they are reached, and the pairs that a run has counted."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from braid.core.comparison_watch import ManyComparisons, describe_comparisons, watch_comparisons
from braid.core.condition_cost_tree import TreeLine, build_condition_tree, format_condition_tree
from braid.core.run_events import BatchCommitted, RunStarted
from braid.core.step_counts import CheckCounts, ComparisonHistory, StepCounts, sum_step_counts
from braid.health import read_health
from braid.papers.baselines.centralized import Centralized
from braid.papers.theta.grid import StaticGrid
from braid.run_inspector import inspect_run
from braid.stream_join import StreamJoin
from braid_widgets.cockpit.condition_flow import FlowPart
from braid_widgets.cockpit.page import recorded_page
from unit.scripted import list_rows as records

RANDOM = np.random.default_rng(5)
ON = (
    "a.k = b.k AND a.m = b.m AND a.v BETWEEN b.v - 10 AND b.v + 10 "
    "AND concat(a.s, b.s) <> 'x1x1' AND a.v > 3"
)


def rows(n: int) -> pa.Table:
    texts = [f"x{i}" for i in RANDOM.integers(0, 4, n)]
    limits = {"k": 40, "v": 60, "m": 2}
    numbers = {name: RANDOM.integers(0, most, n) for name, most in limits.items()}
    return pa.table({**numbers, "s": texts})


STREAMS = {"a": rows(500), "b": rows(400)}


def counted(run: object) -> list[StepCounts]:
    events = run.events()  # type: ignore[attr-defined]
    commits = [e for e in events if isinstance(e, BatchCommitted)]
    return [*sum_step_counts(step for e in commits for step in e.step_counts)]


@pytest.mark.parametrize("placement", [Centralized(), StaticGrid(hosts=4)], ids=repr)
def test_the_pairs_of_each_part_are_those_of_nested_loops(
    tmp_path: Path, placement: Centralized | StaticGrid
) -> None:
    join = StreamJoin(STREAMS, ON, placement)
    run = join.start(tmp_path, batches=3)
    assert run.awaitTermination()
    both = [
        step._replace(joined_streams=(0,), stream=1, rows=0, seconds=0.0) for step in counted(run)
    ]
    (total,) = sum_step_counts(both)
    a, b = (STREAMS[s].to_pylist() for s in "ab")
    equal = [(x, y) for x in a for y in b if x["k"] == y["k"] and x["v"] > 3]
    equal = [(x, y) for x, y in equal if x["m"] == y["m"]]
    near = [(x, y) for x, y in equal if abs(x["v"] - y["v"]) <= 10]
    found = [(x, y) for x, y in near if x["s"] + y["s"] != "x1x1"]
    assert total.access == "equality and range" and total.index_parts == (0, 1, 2)
    assert len(near) <= total.candidate_pairs <= len(equal) and total.matches == len(found)
    assert [(c.parts, c.reached, c.pairs_in, c.pairs_out) for c in total.checks] == [
        ((0,), "check", len(near), len(near)),
        ((1,), "check", len(near), len(near)),
        ((3,), "residual", len(near), len(found)),
    ]
    hosts = [e for e in run.events() if isinstance(e, BatchCommitted)]
    assert total.candidate_pairs == sum(e.total_host_metrics.compared_pairs for e in hosts)
    assert total.matches == sum(e.results for e in hosts) == len(run.results())
    frames = recorded_page(run.events())["frames"]
    shown = [FlowPart(*part) for f in frames for part in records(f["flow"]["parts"])]
    assert sum(p.rows_out for p in shown if p.step) == total.candidate_pairs
    last = [p for p in shown if p.reached == "residual"]
    assert sum(p.rows_out for p in last) == len(found) and sum(p.rows_in for p in last) == len(near)
    assert {p.text for p in last} == {"CONCAT(a.s, b.s) <> 'x1x1'"}
    assert {p.step for p in shown} == {"a ⋈ b", "b ⋈ a", ""}


@pytest.mark.parametrize("on", ["a.k = b.k", "a.k = b.k AND a.v < b.v AND a.m <= b.m"])
def test_an_index_of_several_parts_has_the_pairs_of_all_of_them(tmp_path: Path, on: str) -> None:
    """The window is one of them. No part is credited with the pairs that others admit too."""
    streams = {s: STREAMS[s].append_column("t", pa.array(range(len(STREAMS[s])))) for s in "ab"}
    at = {
        s: t.set_column(t.num_columns - 1, "t", cast_to_event_times(t["t"]))
        for s, t in streams.items()
    }
    run = StreamJoin(at, on, Centralized(), "20 seconds", "t").start(tmp_path, batches=4)
    assert run.awaitTermination()
    (step,) = sum_step_counts(s._replace(joined_streams=(0,), stream=1) for s in counted(run))
    parts = on.split(" AND ")
    title, index, *below = build_condition_tree("ab", parts, [step])
    assert [line.text for line in below] == [*parts, "window"] and not any(
        map(has_any_counts, below)
    )
    compared, matches = (f"{n:,}" for n in (step.candidate_pairs, run.results().num_rows))
    assert (title.candidates, title.out) == (index.candidates, index.out) == (compared, matches)
    frames = recorded_page(run.events())["frames"]
    shown = [FlowPart(*part) for f in frames for part in records(f["flow"]["parts"])]
    assert {p.text for p in shown if p.step} == {f"{on} AND the window"}
    assert {p.text for p in shown if not p.step} <= {"all of the index"}
    lost = sum(p.rows_in - p.rows_out for p in shown if not p.step)
    assert lost == step.candidate_pairs - run.results().num_rows


def has_any_counts(line: TreeLine) -> bool:
    return any((line.rows, line.candidates, line.out, line.seconds))


def cast_to_event_times(seconds: pa.ChunkedArray) -> pa.ChunkedArray:
    return seconds.cast(pa.timestamp("s")).cast(pa.timestamp("us"))


def test_a_join_of_three_streams_counts_each_hop(tmp_path: Path) -> None:
    streams = {**STREAMS, "c": rows(50)}
    run = StreamJoin(streams, "a.k = b.k AND b.k = c.k", Centralized()).start(tmp_path, batches=2)
    assert run.awaitTermination()
    last = Counter({True: 0, False: 0})
    for step in counted(run):
        last[len(step.streams) == 3] += step.matches
    assert last[True] == len(run.results()) and last[False] > 0


def test_inspect_and_explain_show_the_same_parts(tmp_path: Path) -> None:
    join = StreamJoin(STREAMS, ON, Centralized())
    assert [(line.text, line.reached) for line in join.explain().tree] == [
        ("a.v > 3", "filter"),
        ("a ⋈ b", ""),
        ("index", "equality and range"),
        ("a.k = b.k", ""),
        ("a.m = b.m", ""),
        ("a.v BETWEEN b.v - 10 AND b.v + 10", ""),
        ("a.k = b.k", "check"),
        ("a.m = b.m", "check"),
        ("CONCAT(a.s, b.s) <> 'x1x1'", "residual"),
    ]
    run = join.start(tmp_path, batches=2)
    assert run.awaitTermination()
    (start,) = [e for e in run.events() if isinstance(e, RunStarted)]
    assert start.condition_parts[0] == "a.k = b.k" and len(start.condition_parts) == 5
    for text in (inspect_run(tmp_path), inspect_run(tmp_path, batch=1)):
        assert "rows in  candidates" in text and "│ ├ a.k = b.k" in text
    tree = run.explain().tree
    assert [line.text for line in tree] == [line.text for line in join.explain().tree]
    (total,) = sum_step_counts(s._replace(joined_streams=(0,), stream=1) for s in counted(run))
    assert tree[1].out == f"{total.matches:,}" and tree[1].seconds != "estimated"


def test_steps_are_shown_in_the_order_in_which_streams_are_joined(tmp_path: Path) -> None:
    streams = {alias: rows(60) for alias in "abc"}
    join = StreamJoin(streams, "a.k = b.k AND b.k = c.k", Centralized())
    run = join.start(tmp_path, batches=2)
    assert run.awaitTermination()
    for explanation in (join.explain(), run.explain()):
        joined = [len(line.text.split(" ⋈ ")[0]) for line in explanation.tree if not line.depth]
        assert joined == sorted(joined) and len(joined) > 1


def step(pairs: int, matches: int) -> StepCounts:
    checks = (CheckCounts((1,), "residual", pairs, matches),)
    return StepCounts((0,), 1, "all pairs", (), 10, pairs, matches, 0.5, checks)


def test_a_tree_has_headings_if_it_has_counts() -> None:
    lines = build_condition_tree(("a", "b"), ("a.v > 3", "f(a, b)"), [step(2_000, 7)])
    assert format_condition_tree(lines) == [
        "                        rows in  candidates    out  seconds",
        "a.v > 3      filter",
        "a ⋈ b                        10       2,000      7     0.50",
        "├ all pairs  all pairs                       2,000",
        "└ f(a, b)    residual                 2,000      7     0.00",
    ]
    assert build_condition_tree(("a", "b"), (), []) == format_condition_tree([]) == []


def test_many_pairs_for_a_match_are_reported_once_and_at_each_tenfold() -> None:
    history, levels = ComparisonHistory(), []
    for batch, (pairs, matches) in enumerate(
        [(900_000, 9), (200_000, 0), (10**7, 0), (10, 9), (10**9, 0)]
    ):
        history, reports = watch_comparisons(history, batch, [step(pairs, matches)], ("", "f"))
        levels += [report.batch for report in reports]
    assert levels == [1, 2, 4]
    for batch in range(10):
        history, reports = watch_comparisons(history, batch, [step(10, 10)], ())
    assert sum(each.candidate_pairs for each in history.recent) == 100


def test_a_run_that_compares_all_pairs_says_so_in_its_health(tmp_path: Path) -> None:
    streams = {s: pa.table({"k": RANDOM.integers(1, 4096, 1100)}) for s in "ab"}
    run = StreamJoin(streams, "(a.k & b.k) = 4095", Centralized()).start(tmp_path, batches=2)
    assert run.awaitTermination()
    (report,) = [e for e in run.events() if isinstance(e, ManyComparisons)]
    assert report.sentence.endswith("pairs for a match in (a.k & b.k) = 4095 (all pairs)")
    assert report.sentence in str(read_health(tmp_path))
    assert describe_comparisons([[step(10, 10)]], ()) == ""


def test_several_equalities_and_an_or_name_their_parts() -> None:
    def reached(on: str) -> list[tuple[str, str]]:
        tree = StreamJoin(STREAMS, on, Centralized()).explain().tree
        return [(line.text, line.reached) for line in tree[1:]]

    assert reached("a.k = b.k AND a.v = b.v") == [
        ("index", "equality"),
        ("a.k = b.k", ""),
        ("a.v = b.v", ""),
        ("a.k = b.k", "check"),
        ("a.v = b.v", "check"),
    ]
    assert reached("a.k = b.k OR a.v = b.v") == [("a.k = b.k OR a.v = b.v", "any branch")]


@pytest.mark.parametrize(
    ("on", "share"),
    [
        ("a.k = b.k", 1 / 40),
        ("a.v <= b.v", 0.5),
        ("a.k = b.k AND concat(a.s, b.s) <> 'x1x1'", 1 / 40),
        ("concat(a.s, b.s) = 'x1x1'", 1.0),
    ],
)
def test_the_share_of_compared_pairs_is_estimated_from_samples(on: str, share: float) -> None:
    streams = {"a": rows(9_000), "b": rows(3_000)}
    lines = str(StreamJoin(streams, on).explain()).splitlines()
    (total,) = (line.split() for line in lines if line.endswith("estimated"))
    compared = int(total[4].replace(",", "")) / (9_000 * 3_000)
    assert share / 1.3 < compared < share * 1.3


def count_and_estimate_pairs(seed: int, rows: int, keys: int) -> tuple[int, str]:
    """Return how many pairs have equal keys, and what an explanation estimates."""
    random = np.random.default_rng(seed)
    columns = {s: random.integers(0, keys, rows) for s in "ab"}
    a, b = (np.bincount(column, minlength=keys) for column in columns.values())
    streams = {s: pa.table({"k": column}) for s, column in columns.items()}
    return int(a @ b), str(StreamJoin(streams, "a.k = b.k", Centralized()).explain())


def test_the_interval_of_an_estimate_holds_for_most_samples() -> None:
    held = 0
    for seed in range(30):
        matches, text = count_and_estimate_pairs(seed, 6_000, 200)
        ends = re.search(r"500 of b: ([\d,]+) to ([\d,]+) matches for 95 % of samples", text)
        assert ends is not None
        low, high = (int(end.replace(",", "")) for end in ends.groups())
        held += low <= matches <= high
        assert high - low < 0.3 * matches
    assert 26 <= held <= 30


def test_too_few_sampled_pairs_estimate_nothing_and_all_pairs_are_counted() -> None:
    matches, text = count_and_estimate_pairs(1, 6_000, 200_000)
    assert 0 < matches < 6_000 and re.search(
        r"\d match(es)? among the tuples sampled, 500 of a and 500 of b: too few to estimate", text
    )
    last = [line for line in text.splitlines() if "⋈" in line][-1]
    assert last.split() == ["a", "⋈", "b", "6,000", "too", "few", "too", "few", "estimated"]
    matches, text = count_and_estimate_pairs(1, 50, 200)
    assert f"{matches} matches among the tuples sampled, 50 of a and 50 of b, which are all" in text


def test_a_sample_without_tuples_or_with_a_failing_expression_gives_no_estimate() -> None:
    none = StreamJoin(STREAMS, "a.k = b.k AND a.v > 99", Centralized())
    assert "estimated" not in str(none.explain()) and "├" not in str(none.explain())
    bits = {s: pa.table({"k": pa.array([2**31 - 1] * 9, pa.int32())}) for s in "ab"}
    fails = StreamJoin(bits, "a.k + a.k = b.k", Centralized())
    assert "estimated" not in str(fails.explain())


def test_a_common_equality_is_not_named_after_the_band_beside_it() -> None:
    lines = str(StreamJoin(STREAMS, ON).explain()).splitlines()
    named = [line.split("index: ")[1] for line in lines if "index: " in line]
    band = "a.v BETWEEN b.v - 10 AND b.v + 10"
    assert named == ["equality: a.k = b.k AND a.m = b.m", f"band: {band}"]


def test_branches_are_drawn_and_long_parts_are_shortened() -> None:
    parts = (
        "a.k = b.k",
        "a.t BETWEEN b.t AND b.t + INTERVAL 12 HOURS AND a.text LIKE b.text_of_it",
    )
    checks = (CheckCounts((1,), "residual", 9, 3),)
    step = StepCounts((0,), 1, "equality", (0, 1), checks=checks)
    lines = build_condition_tree(("a", "b"), parts, [step], counted=False)
    assert [line[:20].rstrip() for line in format_condition_tree(lines)] == [
        "a ⋈ b",
        "├ index",
        "│ ├ a.k = b.k",
        "│ └ a.t BETWEEN b.t",
        "└ a.t BETWEEN b.t AN",
    ]
    assert {len(line) for line in format_condition_tree(lines)} <= {*range(86)}
