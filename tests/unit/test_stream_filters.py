"""Rows for which where= is not true do not exist for the join."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from braid.answer_check import check_answers
from braid.errors import EvaluationFailure, PredicateError
from braid.stream_join import StreamJoin

A = pa.table({"k": [1, 2, 3, None, 5], "x": [10, 20, None, 40, 50], "s": ["p", "q", "r", "s", "t"]})
B = pa.table({"k": [1, 2, 3, 5], "y": [1, 1, 1, 0]})
STREAMS = {"a": A, "b": B}


def list_rows(join: StreamJoin, folder: Path) -> list[Any]:
    """Return the results of a run as pairs of keys; None: absent."""
    run = join.start(folder, batches=2, durability="process")
    assert run.awaitTermination()
    rows = run.results().to_pylist()
    pairs = [(r["a"] and r["a"]["s"], r["b"] and r["b"]["k"]) for r in rows]
    return sorted(pairs, key=repr)


def test_filtered_rows_are_not_answered_and_those_that_cannot_match_are(tmp_path: Path) -> None:
    where = {"a": "a.x >= 20 AND s <> 't'", "b": "y = 1"}
    left = StreamJoin(STREAMS, "a.k = b.k", how="left", where=where)
    assert list_rows(left, tmp_path / "1") == [("q", 2), ("s", None)]
    inner = StreamJoin(STREAMS, "a.k = b.k", where={"b": "y = 1"})
    assert list_rows(inner, tmp_path / "2") == [("p", 1), ("q", 2), ("r", 3)]
    on = StreamJoin(STREAMS, "a.k = b.k AND a.x >= 20", how="left")
    rows = list_rows(on, tmp_path / "3")
    assert rows == [("p", None), ("q", 2), ("r", None), ("s", None), ("t", 5)]
    assert ("where", "a", "a.x >= 20 AND s <> 't'") in left.explain().rows


def test_a_filter_is_a_setting_of_the_run(tmp_path: Path) -> None:
    where = {"a": "a.x >= 20"}
    list_rows(StreamJoin(STREAMS, "a.k = b.k", where=where), tmp_path / "run")
    resumed = StreamJoin.resume(tmp_path / "run", STREAMS)
    assert resumed.awaitTermination() and resumed.config.where == where
    report = check_answers(tmp_path / "run")
    assert (report.results, report.missing, report.wrong) == (2, 0, 0)
    with pytest.raises(ValueError, match="holds a run of another query: where is {'a': 'a.x >= 20"):
        StreamJoin(STREAMS, "a.k = b.k").start(tmp_path / "run", batches=2)


@pytest.mark.parametrize(
    ("where", "kind", "says"),
    [
        ("a.x > 1", ValueError, r"where is 'a.x > 1'; it must be Spark SQL by alias, as {'a': 'a."),
        ({"a": 3}, ValueError, "where is a dict; it must be Spark SQL by alias"),
        ({"c": "x > 1"}, ValueError, r"where is given for \['c'\]; the streams are a, b"),
        ({"a": "x"}, PredicateError, "where of a 'x' is of type bigint; it must be boolean"),
        ({"a": "b.y = 1"}, PredicateError, "alias 'b' in where of a is unknown; streams and colum"),
        ({"a": "nope = 1"}, PredicateError, "nope"),
        ({"a": "x >"}, PredicateError, "where of a 'x >' is not valid Spark SQL"),
        ({"a": "x + 9223372036854775807 > 1"}, EvaluationFailure, "where of a"),
    ],
)
def test_a_filter_that_cannot_be_is_refused(where: Any, kind: type[Exception], says: str) -> None:
    with pytest.raises(kind, match=says):
        StreamJoin(STREAMS, "a.k = b.k", where=where)
