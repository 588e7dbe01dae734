"""A hub on Spark whose driver dies before each commit of an operator, or of the hub itself."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest
from braid.hub.hub import HubRun, QueryHub
from hub_cases import query_rows
from hub_kind_runs import make_tables
from oracle import create_frames
from pyspark.sql import SparkSession
from unit.test_hub_kind_runs import ASOF, NEARBY, dying_after, make_query

pytestmark = pytest.mark.spark
ASKED = {
    "latest": ASOF,
    "first": ASOF.replace(">=", "<"),
    "left": make_query("left").sql,
    "semi": make_query("semi").sql,
}


def start_hub(folder: Path, spark: SparkSession | None = None) -> HubRun:
    tables = make_tables(NEARBY)
    streams = tables if spark is None else create_frames(spark, tables)
    return QueryHub(streams, "ts").start(folder, batches="batch", queries=ASKED)


def run_through_deaths(
    folder: Path, spark: SparkSession, survived: Iterable[int]
) -> tuple[HubRun, int]:
    """Run a hub whose drivers die after these numbers of commits. Return it, and the deaths."""
    for deaths, commits in enumerate(survived):
        try:
            with dying_after(commits):
                run = start_hub(folder, spark)
                assert run.awaitTermination()
        except Exception as error:
            assert "killed" in str(error), error
        else:
            return run, deaths
    raise AssertionError("drivers die before a batch is committed")


def test_answers_of_a_hub_on_spark_are_those_of_one_that_never_died(
    spark: SparkSession, tmp_path: Path
) -> None:
    """The numbers are chosen so that operators and the hub are at different batches."""
    whole = start_hub(tmp_path / "whole")
    assert whole.awaitTermination()
    run, deaths = run_through_deaths(tmp_path / "killed", spark, range(12, 60, 6))
    assert deaths > 1
    for name in ASKED:
        rows = query_rows(run, name)
        assert rows == query_rows(whole, name) and rows, name
