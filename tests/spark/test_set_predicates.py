"""Conditions on sets agree with Spark's own join of the same text."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from braid import Centralized, inner_product
from braid.condition.access_paths import CommonElements
from braid.kernels.block_builder import build_block
from braid.kernels.host_block_rows import BlockRows
from braid.stream_join import StreamJoin
from input_splitting import split_input
from oracle import Ids, describe_difference, kernel_join, kernel_pairs
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

pytestmark = pytest.mark.usefixtures("compiled")

CONDITIONS = """
index | size(array_intersect(a.x, b.x)) >= 2
index | 1 < size(array_intersect(a.x, b.x))
index | cardinality(array_intersect(b.x, a.x)) >= 1 AND a.k < b.k
index | size(array_intersect(a.x, b.x)) = 2
index | array_size(array_intersect(a.s, b.s)) > 0
index | size(array_intersect(split(a.t, ' '), split(b.t, ' '))) >= 2
index | size(array_intersect(a.x, b.x)) / nullif(size(array_union(a.x, b.x)), 0) >= 0.4
index | arrays_overlap(a.x, b.x)
index | arrays_overlap(a.s, b.s) AND size(array_intersect(a.x, b.x)) >= 1
index | size(array_intersect(a.x, b.y)) >= 2
index | size(array_intersect(a.x, b.x)) >= 1 AND size(array_except(a.x, b.x)) <= 1
scan | size(array_intersect(a.x, b.x)) >= 0 AND a.k = b.k OR a.k = 3
scan | size(array_except(a.x, b.x)) = 0
scan | size(array_except(b.s, a.s)) = 0
scan | NOT arrays_overlap(a.x, b.x)
scan | size(array_intersect(a.x, b.x)) <= 1
scan | size(array_union(a.x, b.x)) = 3
scan | arrays_overlap(a.x, b.x) OR a.k = b.k
scan | a.k = b.k OR arrays_overlap(a.x, b.x)
scan | a.k = b.k OR size(array_intersect(if(a.k + 1 > 2, a.x, null), b.x)) >= 2
scan | array_sort(array_distinct(a.x)) = array_sort(array_distinct(b.x))
index | size(array_intersect(a.x, b.x)) BETWEEN 1 AND 2 AND a.k <> b.k
link | size(array_intersect(a.x, b.x)) >= 1 AND a.k = b.k
""".strip().splitlines()
CONDITIONS += [
    f"index | {inner_product('a.w', 'b.w')} >= 1.5",
    f"index | {inner_product('b.w', 'a.w')} > 0 AND a.k < b.k",
    f"scan | {inner_product('a.w', 'b.w')} <= 0",
]


def stream(spark: SparkSession, seed: int) -> DataFrame:
    """Return sets with NULL, empty and duplicate elements, and NULL sets."""
    draw, rows = np.random.default_rng(seed), 90

    def sets(values: list[Any]) -> list[Any]:
        found: list[Any] = []
        for _ in range(rows):
            size = int(draw.integers(0, 6))
            found.append(None if draw.random() < 0.08 else draw.choice(values, size).tolist())
        return found

    numbers: list[Any] = [1, 2, 3, 4, 5, 6, None]
    columns = {
        "id": pa.array(range(rows), pa.int64()),
        "x": pa.array(sets(numbers), pa.list_(pa.int32())),
        "y": pa.array(sets(numbers), pa.list_(pa.int64())),
        "s": pa.array(sets(["", "a", "b", "é", None]), pa.list_(pa.string())),
        "t": pa.array([" ".join(draw.choice(list("abcdef"), 3)) for _ in range(rows)]),
        "k": pa.array(draw.integers(0, 6, rows), pa.int32()),
        "w": pa.array(
            [s and [*{i: n - 1.5 for n, i in enumerate(s) if i}.items()] for s in sets(numbers)],
            pa.map_(pa.int32(), pa.float64()),
        ),
    }
    return spark.createDataFrame(pa.table(columns))


NULLS = """
scan | size(array_intersect(a.x, b.x)) <= 1
scan | cardinality(array_except(a.x, b.x)) < 0 AND a.k < b.k
scan | array_size(array_intersect(a.x, b.x)) <= 1
scan | size(array_intersect(a.x, b.x)) / nullif(size(array_union(a.x, b.x)), 0) >= 0.4
scan | array_size(array_intersect(a.x, b.x)) / nullif(array_size(array_union(a.x, b.x)), 0) >= 0.4
scan | size(array_union(a.x, b.x)) = size(a.x)
scan | array_size(a.x) = -1 OR size(b.x) = -1 AND a.k < b.k
scan | a.k = 1 OR size(if(b.k + 1 > 3, b.x, null)) = -1 AND a.k < b.k
""".strip().splitlines()
"""Conditions whose NULL arrays behave differently if their size is -1."""


@pytest.fixture(scope="module")
def given(spark: SparkSession) -> dict[str, DataFrame]:
    return {a: stream(spark, seed).cache() for seed, a in enumerate("ab")}


@pytest.fixture(scope="module")
def truth(given: dict[str, DataFrame]) -> dict[str, Ids]:
    return answers(given, CONDITIONS)


def answers(given: dict[str, DataFrame], lines: list[str]) -> dict[str, Ids]:
    """Return Spark's own answer to all conditions, in one pass over all pairs."""
    texts = [line.split(" | ", 1)[1] for line in lines]
    pairs = given["a"].alias("a").crossJoin(given["b"].alias("b"))
    columns = [F.expr(f"coalesce({on}, false)").alias(str(i)) for i, on in enumerate(texts)]
    rows = pairs.select(F.col("a.id").alias("a"), F.col("b.id").alias("b"), *columns).collect()
    return {on: Counter((r["a"], r["b"]) for r in rows if r[str(i)]) for i, on in enumerate(texts)}


@pytest.mark.parametrize("line", CONDITIONS)
def test_sets_agree_with_spark(
    given: dict[str, DataFrame], truth: dict[str, Ids], line: str
) -> None:
    kind, on = line.split(" | ", 1)
    join = StreamJoin(given, on, Centralized())
    assert truth[on], "a condition that nothing fulfills shows nothing"
    assert describe_difference(kernel_join(join), truth[on]) == ""
    index = join.predicate.next_step(frozenset({0}), 1).access_path
    found = "index" if isinstance(index, CommonElements) else "link" if index else "scan"
    assert found == kind


@pytest.fixture(scope="module")
def tables(given: dict[str, DataFrame]) -> dict[str, pa.Table]:
    return {a: frame.toArrow() for a, frame in given.items()}


@pytest.mark.parametrize(
    "line", [c for c in CONDITIONS if not any(x in c for x in ("split(", "sort(", " / ", "if("))]
)
def test_tables_are_joined_on_sets_without_spark(
    tables: dict[str, pa.Table], truth: dict[str, Ids], line: str, tmp_path: Path
) -> None:
    on = line.split(" | ", 1)[1]
    join = StreamJoin(tables, on, Centralized())
    join._join.make_replay(1).write_input(tmp_path)
    copied = split_input(tmp_path)
    feed, *_ = join.source.union_streams(join._join, {a: t.schema for a, t in tables.items()})
    parts = [p for _, (p,) in sorted(feed.read_batch(copied, 0).items())]
    a, b = (
        BlockRows(build_block(part, join.predicate.stream_orders(i)))
        for i, part in enumerate(parts)
    )
    assert describe_difference(kernel_pairs(join.predicate, a, b), truth[on]) == ""


def test_without_ansi_the_size_of_null_is_what_spark_says(
    given: dict[str, DataFrame], spark: SparkSession
) -> None:
    ansi = spark.conf.get("spark.sql.ansi.enabled")
    try:
        with_ansi = answers(given, NULLS)
        spark.conf.set("spark.sql.ansi.enabled", "false")
        truth = answers(given, NULLS)
        for line in NULLS:
            kind, on = line.split(" | ", 1)
            join = StreamJoin(given, on, Centralized())
            assert describe_difference(kernel_join(join), truth[on]) == "", on
            index = join.predicate.next_step(frozenset({0}), 1).access_path
            assert isinstance(index, CommonElements) == (kind == "index"), on
    finally:
        spark.conf.set("spark.sql.ansi.enabled", ansi)
    reported = [line.split(" | ", 1)[1] for line in NULLS]
    assert sum(truth[on] != with_ansi[on] for on in reported) >= 4


@pytest.mark.parametrize(
    ("on", "sentence"),
    [
        (
            "size(array_intersect(a.s, transform(b.x, e -> cast(e AS float)))) >= 1",
            "Spark refuses|compares",
        ),
        (
            "arrays_overlap(transform(a.x, e -> cast(e AS double)), transform(b.x, e -> cast(e AS double)))",
            "elements of type double with double; both must be integers",
        ),
    ],
)
def test_elements_that_are_not_compared_exactly_are_refused(
    given: dict[str, DataFrame], on: str, sentence: str
) -> None:
    with pytest.raises(ValueError, match=sentence):
        StreamJoin(given, on, Centralized())
