"""Runs on Spark by indexes of ORs, texts and circles, against Spark's own join."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random

import pytest
from braid.stream_join import StreamJoin
from indexed_runs import make_table
from oracle import create_frames, describe_difference, result_ids
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from scatter import Scatter


@pytest.mark.parametrize(
    ("on", "executor"),
    [
        ("a.k = b.k OR (a.s = b.s AND abs(a.v - b.w) <= 1) OR a.f <=> b.f AND a.w > 4", "spark"),
        ("levenshtein(a.s, b.s) <= 1 AND power(a.v - b.v, 2) + power(a.w - b.w, 2) <= 2", "spark"),
        (
            "a.w = b.w AND (a.k IN (b.k, b.v) OR a.t BETWEEN b.t AND b.t + INTERVAL 1 SECOND)",
            "process",
        ),
    ],
)
def test_a_run_by_indexes_equals_sparks_join(
    spark: SparkSession, tmp_path: Path, on: str, executor: str
) -> None:
    streams = create_frames(spark, {a: make_table(Random(a), 40) for a in "ab"})
    join = StreamJoin(streams, on, Scatter(), partitions=2, check=True, executor=executor)
    run = join.start(str(tmp_path / "run"), batches=2)
    assert run.awaitTermination()
    joined = streams["a"].alias("a").join(streams["b"].alias("b"), F.expr(on))
    truth = Counter(map(tuple, joined.select("a.id", "b.id").collect()))
    assert describe_difference(result_ids(run.results().toArrow()), truth) == ""
    assert truth and join.predicate.next_step(frozenset({0}), 1).access_path is not None
