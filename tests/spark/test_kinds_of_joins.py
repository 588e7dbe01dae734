"""Joins of every kind of Spark's streams: the rows of the model, on both executors."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from braid.execution import spark_executor
from kind_runs import check_case, check_early_case, draw_case
from oracle import frames
from pyspark.sql import SparkSession


@pytest.mark.parametrize(
    ("seed", "executor", "check"),
    [
        (1114, "spark", check_case),
        (1010, "process", check_case),
        (1003, "spark", check_early_case),
        (1010, "auto", check_early_case),
    ],
)
def test_runs_give_the_rows_of_the_model(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    seed: int,
    executor: str,
    check: Any,
) -> None:
    monkeypatch.setattr(spark_executor, "_SHORT", -1.0)  # small batches in stages, too
    case = replace(draw_case(seed), failing=frozenset())
    streams = frames(spark, case.list_tables())
    check(case, tmp_path / "run", streams=streams, executor=executor)
