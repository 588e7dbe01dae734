"""Joins of every kind, in runs: against the tuple-level model, and directed cases."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from braid.answer_check import check_answers
from braid.core.placement import Placement
from braid.core.run_events import BatchCommitted
from braid.papers.baselines.centralized import Centralized
from braid.papers.baselines.hash_partition import HashPartition
from braid.papers.diffusion.semantics_unaware import SemanticsUnaware
from braid.papers.shedding.shed import Shed
from braid.papers.theta.grid import AdaptiveGrid, StaticGrid
from braid.stream_join import StreamJoin
from kept_runs import check_kept
from kind_runs import check_case, draw_case, make_stream_table
from models.kinds import Tuple

SECOND = 1_000_000
KINDS = ("left", "right", "full", "anti", "semi", "semi")


@pytest.mark.parametrize("first", range(0, 12, 4))
def test_runs_give_the_rows_of_the_model_in_the_same_batches(tmp_path: Path, first: int) -> None:
    """Their answers are also recomputed from their folders."""
    for seed in range(first, first + 4):
        check_case(draw_case(seed, KINDS), tmp_path / str(seed))
        report = check_answers(tmp_path / str(seed))
        assert report.is_right, report


@pytest.mark.parametrize("seed", [1002, 1018])
def test_chosen_runs_give_the_rows_of_the_model(tmp_path: Path, seed: int) -> None:
    """Runs with migrations and cuts; ``mutations.kinds`` has the faults that they find."""
    check_case(draw_case(seed), tmp_path / "run")


@pytest.mark.parametrize("seed", range(5000, 5004))
def test_runs_whose_streams_are_idle_and_whose_plans_are_unchecked_give_the_rows_of_the_model(
    tmp_path: Path, seed: int
) -> None:
    """Without checks, pending pairs are followed for the answers alone."""
    case = replace(draw_case(seed), idle=seed % 3 * 15 + 5, checks_plans=False)
    check_case(case, tmp_path / "run")


def test_kept_tuples_of_three_streams_come_alone_unless_in_a_complete_result(
    tmp_path: Path,
) -> None:
    for seed in range(7):
        check_kept(seed, tmp_path / str(seed))


def make_stream(rows: list[tuple[int, int | None, int | None, int]]) -> pa.Table:
    """Return tuples (id, key, second, batch)."""
    ids, keys, seconds, batches = zip(*rows, strict=True) if rows else ((), (), (), ())
    times = [None if s is None else s * SECOND for s in seconds]
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "k": pa.array(keys, pa.int64()),
            "ts": pa.array(times, pa.timestamp("us")),
            "batch": pa.array(batches, pa.int32()),
        }
    )


def run_batches(
    folder: Path, a: list[Any], b: list[Any], placement: Placement | None = None, **arguments: Any
) -> list[tuple[int, Any]]:
    """Return the results of ``a.k = b.k`` as (batch, ids of its structs)."""
    delivered: list[tuple[int, Any]] = []

    def give(results: pa.Table, batch: int) -> None:
        for row in results.to_pylist():
            ids = tuple(None if each is None else each["id"] for each in row.values())
            delivered.append((batch, ids))

    streams = {"a": make_stream(a), "b": make_stream(b)}
    arguments = {"time": "ts", "check": True, **arguments}
    join = StreamJoin(streams, "a.k = b.k", placement or Centralized(), **arguments)
    run = join.start(folder, batches="batch", durability="process", foreachBatch=give)
    run.awaitTermination()
    return delivered


def test_an_unmatched_tuple_comes_in_the_first_batch_after_its_window(tmp_path: Path) -> None:
    a = [(0, 1, 100, 0), (1, 2, 105, 0)]
    b = [(0, 9, 100, 0), (1, 9, 110, 1), (2, 2, 111, 2), (3, 9, 130, 3), (4, 9, 140, 4)]
    rows = run_batches(tmp_path / "r", a, b, how="left", windows="10 seconds")
    assert rows == [(2, (1, 2)), (2, (0, None))] or rows == [(2, (0, None)), (2, (1, 2))]


def test_the_absent_side_is_a_null_struct_and_not_a_struct_of_nulls(tmp_path: Path) -> None:
    streams = {
        "a": pa.table({"k": [1, 2, 3]}),
        "b": pa.table({"k": [1, 4], "x": pa.array([None, None], pa.int32())}),
    }
    join = StreamJoin(streams, "a.k = b.k", Centralized(), how="full", check=True)
    run = join.start(tmp_path / "run", batches=2, durability="process")
    run.awaitTermination()
    results = run.results()
    assert results.schema == pa.schema(
        [(a, pa.struct(list(table.schema))) for a, table in streams.items()]
    )
    rows = sorted(results.to_pylist(), key=repr)
    assert rows == [
        {"a": None, "b": {"k": 4, "x": None}},
        {"a": {"k": 1}, "b": {"k": 1, "x": None}},
        {"a": {"k": 2}, "b": None},
        {"a": {"k": 3}, "b": None},
    ]


def test_an_anti_join_has_the_columns_of_its_first_stream(tmp_path: Path) -> None:
    streams = {"a": pa.table({"k": [1, 2]}), "b": pa.table({"k": [1]})}
    run = StreamJoin(streams, "a.k = b.k", how="left_anti").start(tmp_path / "run", batches=1)
    run.awaitTermination()
    assert run.results().to_pylist() == [{"a": {"k": 2}}]
    assert run.results().schema.names == ["a"]


def test_a_tuple_later_than_lateness_and_window_is_answered(tmp_path: Path) -> None:
    a = [(0, 1, 100, 0), (1, 1, 900, 1), (2, 1, 50, 3), (3, 1, 901, 4)]
    b = [(0, 2, 100, 0), (1, 2, 900, 1), (2, 2, 901, 2), (3, 2, 902, 3), (4, 2, 903, 4)]
    rows = run_batches(tmp_path / "r", a, b, how="left", windows="10 seconds")
    assert (4, (2, None)) in rows and len(rows) == 4


def test_a_semi_join_gives_each_matched_tuple_once_in_the_batch_after_its_first_pair(
    tmp_path: Path,
) -> None:
    a = [(0, 1, 100, 0), (1, 2, 100, 0), (2, 2, 101, 1), (3, 3, 102, 3)]
    b = [(0, 1, 100, 0), (1, 1, 101, 1), (2, 2, 102, 2), (3, 2, 103, 3), (4, 3, 103, 3)]
    rows = run_batches(tmp_path / "r", a, b, how="semi")
    assert sorted(rows) == [(1, (0,)), (3, (1,)), (3, (2,)), (4, (3,))]


def test_rejected_tuples_are_answered_at_once_and_hold_no_state(tmp_path: Path) -> None:
    a = [(0, None, 100, 0), (1, 1, None, 0), (2, 1, 101, 0)]
    b = [(0, 1, 101, 0), (1, 9, 200, 1)]
    rows = run_batches(tmp_path / "r", a, b, how="left", windows="10 seconds")
    assert sorted(rows, key=repr) == [(0, (0, None)), (0, (1, None)), (0, (2, 0))]


def test_equal_tuples_get_an_answer_each(tmp_path: Path) -> None:
    a = [(0, 1, 100, 0)] * 3 + [(0, 1, 100, 1)] * 2
    rows = run_batches(tmp_path / "r", a, [], how="anti")
    assert [ids for _, ids in rows] == [(0,)] * 5


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"shed": Shed(fraction=0.5)}, "how is 'left' with shed, where pairs are left out"),
        ({"placement": SemanticsUnaware(hosts=4)}, "with the placement SemanticsUnaware"),
        ({"how": "outer_space"}, "how is 'outer_space'; it must be one of inner"),
    ],
)
def test_what_cannot_be_answered_is_refused(arguments: dict[str, Any], message: str) -> None:
    streams = {"a": make_stream([(0, 1, 1, 0)]), "b": make_stream([(0, 1, 1, 0)])}
    with pytest.raises(ValueError, match=message):
        StreamJoin(streams, "a.k = b.k", **{"how": "left", "time": "ts", **arguments})


def test_a_run_is_continued_as_the_kind_that_it_is(tmp_path: Path) -> None:
    streams = {"a": make_stream([(0, 1, 1, 0)]), "b": make_stream([(0, 2, 1, 0)])}
    StreamJoin(streams, "a.k = b.k", how="left").start(
        tmp_path / "run", batches="batch"
    ).awaitTermination()
    with pytest.raises(ValueError, match="how"):
        StreamJoin(streams, "a.k = b.k", how="full").start(tmp_path / "run", batches="batch")
    resumed = StreamJoin.resume(tmp_path / "run", streams)
    resumed.awaitTermination()
    assert resumed.results().num_rows == 1


def test_merges_keep_what_matched(tmp_path: Path) -> None:
    """Sixteen batches are merged twice; odd keys matched before."""
    a = [(n, n, n, n // 8) for n in range(128)]
    b = [(n, n, n, n // 8) for n in range(128) if n % 2]
    rows = run_batches(tmp_path / "r", a, b, AdaptiveGrid(hosts=4), how="left")
    alone = sorted(ids[0] for _, ids in rows if ids[1] is None)
    assert alone == list(range(0, 128, 2)) and len(rows) == 128


def test_an_explanation_states_the_kind() -> None:
    streams = {"a": make_stream([(0, 1, 1, 0)]), "b": make_stream([(0, 2, 1, 0)])}
    texts = StreamJoin(streams, "a.k = b.k", Centralized(), how="full").explain()
    about = "pairs and each unmatched tuple once it is final; preserved: a and b"
    assert texts.rows[0] == ("kind", "full", about)
    assert StreamJoin(streams, "a.k = b.k", Centralized()).explain().rows[0][0] == "stream"


@pytest.mark.parametrize("how", ["semi", "anti"])
@pytest.mark.parametrize("placement", [Centralized(), StaticGrid(4), HashPartition(3)], ids=str)
def test_matched_tuples_leave_the_state_of_semi_and_anti_joins(
    tmp_path: Path, how: str, placement: Any
) -> None:
    """Nothing expires; one tuple in ten has no partner."""
    batches, each = 24, 10
    tuples = [
        Tuple(
            stream,
            batch * each + n,
            batch,
            batch * SECOND,
            {"k": -n - stream if n == 9 else n, "n": 0},
        )
        for batch in range(batches)
        for stream in (0, 1)
        for n in range(each)
    ]
    tables = {alias: make_stream_table(tuples, stream) for stream, alias in enumerate("ab")}
    join = StreamJoin(tables, "a.k = b.k", placement, time="ts", how=how, check=True)
    run = join.start(tmp_path / "run", batches="batch", durability="process")
    run.awaitTermination()
    ids = [row["a"]["id"] for row in run.results().to_pylist()]
    alone = {batch * each + 9 for batch in range(batches)}
    every = {*range(batches * each)}
    assert sorted(ids) == sorted(alone if how == "anti" else every - alone)
    held = [e.live_tuples[0] for e in run.events() if isinstance(e, BatchCommitted)]
    assert max(held) < batches * each / 2
    assert run.status["waiting"] == {"a": 0}
