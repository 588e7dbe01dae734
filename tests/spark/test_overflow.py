"""Sums that overflow their types: Spark's own join is the reference for rows and failures."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from braid import Centralized
from braid.errors import EvaluationFailure, PredicateError
from braid.stream_join import StreamJoin
from oracle import kernel_join, result_ids
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

OVERFLOWS = ("ARITHMETIC_OVERFLOW", "NUMERIC_VALUE_OUT_OF_RANGE")
REFUSALS = ("is not known to mean the same", "cannot be evaluated over two streams at once")
MOST, LEAST, FAR = 2**31 - 1, -(2**31), 2**63 - 1
A = {"id": [0, 1], "n": [5, MOST], "y": [5, 127], "l": [5, FAR], "k": [0, 1]}
B = {"id": [0, 1], "n": [0, LEAST], "y": [0, -128], "l": [0, -FAR - 1], "k": [0, 2]}
SCHEMA = pa.schema(
    {"id": pa.int64(), "n": pa.int32(), "y": pa.int8(), "l": pa.int64(), "k": pa.int32()}
)
CONDITIONS = """
a.n + 1 = b.n + 1
a.n - 1 = b.n + 1
a.k = b.k AND a.n + 1 = b.n + 6
a.k + 1 = b.k + 1 AND a.n + 1 > b.n
a.k = b.k AND a.n + 1 > b.n
a.k = b.k AND a.n - b.n > 4
a.k <> b.k AND a.n - b.n > 4
a.n + b.n >= -1
a.n - b.n > 4
a.l + b.l < 0
a.y - b.y > 0
abs(a.n + b.n) <= 5
abs(b.n + a.k) <= 5
abs(b.n) > a.n
-b.n > a.n
-b.y = a.y
-2147483648 < a.n + b.n
a.n * b.k > 100
a.k = b.k OR a.n * 2 > b.n
a.k = b.k OR a.n * b.n > 100
a.k < 1 AND a.n + 1 = b.n + 6
a.k < 1 AND a.n + 1 > b.n
a.n + 1 > 5 AND a.k = b.k
a.n > b.n + 100000 * 100000
a.n > b.n + -2147483648
a.n BETWEEN b.n - 1 AND b.n + 9
b.n + a.n BETWEEN -1 AND 5
CASE WHEN a.k = b.k THEN true ELSE a.n - b.n > 0 END
""".strip().splitlines()
DIVISIONS = ["a.k = b.k OR b.l % (a.k - 2) = 0", "a.k = b.k OR b.l div (a.k - 2) > 0"]
"""Conditions with divisions, which are refused over tables."""


def test_rows_and_failures_are_those_of_sparks_own_join(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Tables are joined by a run, Spark's frames by the kernels in this process."""
    tables = {s: pa.table(rows, SCHEMA) for s, rows in {"a": A, "b": B}.items()}
    frames = {s: spark.createDataFrame(t).coalesce(1) for s, t in tables.items()}
    differing = []
    for number, on in enumerate([*CONDITIONS, *DIVISIONS]):
        expected = _outcome_of_spark(frames, on)
        ways = {"frames": frames} | ({} if on in DIVISIONS else {"tables": tables})
        for way, streams in ways.items():
            outcome = _outcome(streams, on, tmp_path / str(number))
            if outcome != expected:
                differing.append((on, way, outcome, expected))
    assert not differing, "\n".join(map(str, differing))


@pytest.mark.parametrize("executor", ["process", "spark"])
def test_a_run_of_spark_frames_fails_in_the_same_sentence_and_again(
    spark: SparkSession, tmp_path: Path, executor: str
) -> None:
    frames = {
        s: spark.createDataFrame(pa.table(rows, SCHEMA)) for s, rows in {"a": A, "b": B}.items()
    }
    on = "a.k = b.k OR a.n - b.n > 4"
    join = StreamJoin(frames, on, Centralized(), check=True, executor=executor)
    for _ in range(2):
        run = join.start(tmp_path / "run", batches=1)
        with pytest.raises((EvaluationFailure, RuntimeError, PySparkException)):
            run.awaitTermination()
        sentence = "ARITHMETIC_OVERFLOW in a.n - b.n (int), batch 1, streams a and b"
        assert sentence in str(run.exception()).splitlines()[0]
        run.stop()


def test_without_ansi_one_stream_wraps_around_and_two_fail(
    spark: SparkSession, tmp_path: Path
) -> None:
    """An index cannot represent a sum that wraps around; Spark wraps if it computes a side
    alone.
    """
    tables = {s: pa.table(rows, SCHEMA) for s, rows in {"a": A, "b": B}.items()}
    frames = {s: spark.createDataFrame(t).coalesce(1) for s, t in tables.items()}
    spark.conf.set("spark.sql.ansi.enabled", "false")
    try:
        for on in ("a.n + 1 = b.n", "a.n * 2 = b.n - 2", "abs(b.n) < a.n", "a.n - b.k > 4"):
            expected = _outcome_of_spark(frames, on)
            assert expected != "raises"
            assert _outcome(frames, on, tmp_path / "run") == expected, on
        for on in ("a.n - b.n > 4", "a.n + 1 > b.n", "a.k = b.k OR a.n * b.n > 100"):
            join = StreamJoin(frames, on, Centralized())
            with pytest.raises(EvaluationFailure, match=r"Spark would wrap around.*in a\.n [-+*] "):
                kernel_join(join)
    finally:
        spark.conf.set("spark.sql.ansi.enabled", "true")


NINES = {"p": "9" * 38, "q": f"{'9' * 28}.{'9' * 10}", "r": f"{'9' * 16}.99", "s": f"{'9' * 7}.99"}
DECIMALS = pa.schema(
    {
        **{"id": pa.int64(), "k": pa.int32(), "p": pa.decimal128(38, 0)},
        **{"q": pa.decimal128(38, 10), "r": pa.decimal128(18, 2), "s": pa.decimal128(9, 2)},
    }
)
DECIMAL_CONDITIONS = """
a.p + b.p > 0
a.p - b.p < 5
a.p + 1 = b.p + 1
a.p - 1 = b.p - 1
a.p + 1 > b.p
-a.p = b.p
abs(a.p) = b.p
abs(a.p - b.p) < 5
a.p * 2 > b.p
a.p * a.p > b.p
a.k = b.k OR a.p * b.p > 0
a.k <> b.k AND a.p + 1 > 0
a.q + b.q > 0
a.q * a.q > b.q
a.q * b.q > 1
a.q - a.p < b.q
a.r + b.r > 0
a.r - b.r <= 5
a.r + 1 = b.r + 1
a.r * 2 = b.r * 2
a.r * b.r > 100
a.r * a.r = b.r * b.r
a.r * a.r * a.r > b.r
abs(a.r - b.r) < 1
abs(a.r + b.r) <= 5
a.r BETWEEN b.r - 1 AND b.r + 1
a.s * b.s > 100
a.s * a.s * a.s * a.s > b.s
a.s + b.s + a.s BETWEEN -5 AND 5
a.s + a.k = b.s + b.k
cast(a.p AS decimal(20, 0)) = b.r
cast(a.r AS decimal(5, 2)) = b.s
cast(a.k AS decimal(3, 2)) = b.s
CASE WHEN a.k = b.k THEN true ELSE a.p - b.p > 0 END
""".strip().splitlines()


def _decimals(*sizes: str) -> pa.Table:
    """Return rows with the largest, the least, or small numbers, in all types."""
    parts = {"most": "{}", "least": "-{}", "small": None}
    rows = []
    for number, size in enumerate(sizes):
        texts = {n: parts[size].format(nines) if parts[size] else "1" for n, nines in NINES.items()}
        rows.append({"id": number, "k": number, **{n: Decimal(t) for n, t in texts.items()}})
    return pa.Table.from_pylist(rows, DECIMALS)


@pytest.mark.parametrize("sizes", [("most", "small"), ("least", "small"), ("small", "small")])
def test_rows_and_failures_of_decimals_are_those_of_sparks_own_join(
    spark: SparkSession, tmp_path: Path, sizes: tuple[str, str]
) -> None:
    """A sum or a product of 38 digits may overflow, as in Spark.

    A condition without an equivalent evaluation is refused.
    """
    tables = {"a": _decimals(*sizes), "b": _decimals("most", "least", "small")}
    frames = {s: spark.createDataFrame(t).coalesce(1) for s, t in tables.items()}
    differing, counts = [], Counter[tuple[str, str]]()
    for number, on in enumerate(DECIMAL_CONDITIONS):
        expected = _outcome_of_spark(frames, on)
        for way, streams in {"frames": frames, "tables": tables}.items():
            outcome = _outcome(streams, on, tmp_path / str(number))
            counts[way, outcome if isinstance(outcome, str) else "rows"] += 1
            if outcome not in ("refused", expected):
                differing.append((on, way, outcome, expected))
    assert not differing, "\n".join(map(str, differing))
    assert counts["frames", "rows"] > 9 and counts["tables", "rows"] > 9, counts
    assert sizes[0] == "small" or counts["frames", "raises"] > 3, counts


def _outcome_of_spark(frames: dict[str, DataFrame], on: str) -> Counter[Any] | str:
    a, b = (frame.alias(alias) for alias, frame in frames.items())
    try:
        rows = a.join(b, F.expr(on)).select("a.id", "b.id").collect()
    except PySparkException as error:
        assert any(word in str(error) for word in OVERFLOWS), error
        return "raises"
    return Counter((row[0], row[1]) for row in rows)


def _outcome(streams: Any, on: str, folder: Path) -> Counter[Any] | str:
    try:
        join = StreamJoin(streams, on, Centralized(), check=True)
        if isinstance(streams["a"], DataFrame):
            return Counter(kernel_join(join))
        run = join.start(folder, batches=2)
        run.awaitTermination()
        return Counter(result_ids(run.results()))
    except (EvaluationFailure, PredicateError, PySparkException) as error:
        if any(word in str(error) for word in OVERFLOWS):
            return "raises"
        assert any(word in str(error) for word in REFUSALS), error
        return "refused"
