"""What a first user meets: functions of text and time in tables, and sentences of refusals."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
import pytest
from braid import PredicateError, StreamJoin
from braid.answer_check import check_answers
from braid.condition.set_similarity import MEASURES
from braid.errors import EvaluationFailure

A = pa.table(
    {
        "id": [1, 2, 3],
        "k": ["Ab", " c ", "STRAßE"],
        "tags": [["x", "y"], ["y"], ["z"]],
        "ts": pa.array([0, 3_599_000_000, 7_200_000_000], pa.timestamp("us")),
    }
)
B = pa.table(
    {
        "id": [1, 2, 3],
        "k": ["aB", "c", "strasse"],
        "tags": [["x", "y"], ["x"], ["w"]],
        "ts": pa.array([1_000_000, 3_600_000_000, 9_000_000_000], pa.timestamp("us")),
    }
)


@pytest.mark.parametrize(
    ("on", "ids"),
    [
        ("lower(a.k) = lower(b.k)", [(1, 1)]),
        ("upper(a.k) = upper(b.k)", [(1, 1), (3, 3)]),
        ("trim(a.k) = b.k", [(2, 2)]),
        ("date_trunc('hour', a.ts) = date_trunc('HOUR', b.ts)", [(1, 1), (2, 1), (3, 3)]),
        (
            "size(array_intersect(a.tags, b.tags)) * 3 >= size(array_distinct(a.tags)) + "
            "size(array_distinct(b.tags))",
            [(1, 1), (1, 2), (2, 1)],
        ),
    ],
)
def test_common_functions_join_tables(tmp_path: Path, on: str, ids: list[tuple[int, int]]) -> None:
    run = StreamJoin({"a": A, "b": B}, on, windows="unbounded").start(tmp_path / "run", batches=2)
    run.awaitTermination()
    rows = run.results().to_pylist()
    assert sorted((row["a"]["id"], row["b"]["id"]) for row in rows) == ids
    if "ß" not in "".join(A["k"].to_pylist()) or "upper" not in on:
        assert check_answers(tmp_path / "run").is_right


def test_fields_of_structs_join_tables(tmp_path: Path) -> None:
    """A field of a NULL struct is NULL, whatever Arrow has below it."""
    kept = pa.array([{"f": n, "g": {"Word": w}} for n, w in ((1, "x"), (2, "y"), (9, "w"))])
    fields = [kept.field(0), kept.field(1)]
    masked = pa.array([False, False, True])
    structs = pa.StructArray.from_arrays(fields, fields=[*kept.type], mask=masked)
    streams = {
        "a": pa.table({"id": [1, 2, 3], "s": structs}),
        "b": pa.table({"id": [1, 2, 3], "f": [1, 2, 9], "word": ["y", "x", "w"]}),
    }
    for on, ids in (
        ("a.s.f = b.f", [(1, 1), (2, 2)]),
        ("A.S.F = b.f AND a.s.g.word > b.word", [(2, 2)]),
        ("a.s.g.word = b.word OR a.s.f = b.f + 1", [(1, 2), (2, 1)]),
        ("abs(a.s.f - b.f) <= 1 AND s.g.word <> 'x'", [(2, 1), (2, 2)]),
    ):
        folder = tmp_path / on[:3] / str(len(on))
        run = StreamJoin(streams, on, windows="unbounded").start(folder, batches=2)
        run.awaitTermination()
        rows = run.results().to_pylist()
        assert sorted((row["a"]["id"], row["b"]["id"]) for row in rows) == ids, on
        assert check_answers(folder).is_right
        answer = run.why({"a": "s.g.Word = 'y'", "b": "f = 2"})
        assert answer.verdict == ("found" if (2, 2) in ids else "condition"), str(answer)


def test_letters_that_spark_converts_otherwise_fail_with_a_sentence(tmp_path: Path) -> None:
    greek = A.set_column(1, "k", pa.array(["ΟΔΟΣ"] * 3))
    run = StreamJoin({"a": greek, "b": B}, "lower(a.k) = b.k", windows="unbounded")
    with pytest.raises(
        EvaluationFailure, match=r"lower\(\) of this text is not known to mean the same"
    ):
        run.start(tmp_path / "run").awaitTermination()


JACCARD = "size(array_intersect(a.tags, b.tags)) / size(array_union(a.tags, b.tags)) >= 0.5"


@pytest.mark.parametrize(
    ("on", "sentence"),
    [
        (JACCARD, f"{JACCARD!r} in the join condition divides by what may be 0"),
        (JACCARD, "compare without a division: size(array_intersect(a.x, b.x)) * 3 >="),
        (
            "soundex(a.k) = b.k",
            "'SOUNDEX(a.k)' in the join condition is not known to mean the same",
        ),
        ("a.ts.f = b.id", "'a.ts.f' in the join condition is no field of timestamp_ntz"),
        ("window(a.k, '1 hour') = window(b.k, '1 hour')", "WINDOW(a.k, '1 hour') in the join"),
        ("window(a.ts, '1 hour').start = b.ts", "\"window(a.ts, '1 hour').start = b.ts\" in the"),
        ("date_trunc('fortnight', a.ts) = b.ts", "\"DATE_TRUNC('fortnight', a.ts)\" in the join"),
    ],
)
def test_a_refusal_quotes_the_users_own_text(on: str, sentence: str) -> None:
    with pytest.raises(PredicateError) as refused:
        StreamJoin({"a": A, "b": B}, on)
    assert sentence in str(refused.value)
    internal = (*MEASURES, "unix_micros", "timestamp_micros")
    assert not any(re.search(rf"\b{name}\b", str(refused.value), re.I) for name in internal)


def test_a_run_with_other_columns_says_which_it_has(tmp_path: Path) -> None:
    StreamJoin({"a": A, "b": B}, "a.id = b.id").start(tmp_path / "run").awaitTermination()
    wider = {"a": A.append_column("c", pa.array([1, 2, 3])), "b": B}
    columns = "id: int64, k: string, tags: list<item: string>, ts: timestamp[us]"
    for open_run in (
        lambda: StreamJoin(wider, "a.id = b.id").start(tmp_path / "run"),
        lambda: StreamJoin.resume(tmp_path / "run", wider),
    ):
        with pytest.raises(ValueError) as refused:
            open_run()
        assert str(refused.value) == (
            f"{tmp_path / 'run'} holds a run whose stream a has the columns {columns}; it was "
            f"given {columns}, c: int64; a run keeps its columns, so give those, or use a new "
            "folder"
        )
