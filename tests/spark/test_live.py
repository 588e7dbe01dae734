"""Launches from notebooks can be prepared in advance."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from braid.core.run_events import RunEnded
from braid.sources.spark_batches import STOP_LOGGERS, SparkBatches
from braid_lab.launches import live_runs
from pyspark.sql import SparkSession


@pytest.mark.usefixtures("spark")
def test_what_launches_need_is_made_ready_by_a_small_join(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs, launched = [], live_runs._launch_in_new_folder

    def launch_and_note(*given: Any) -> Any:
        runs.append(launched(*given))
        return runs[-1]

    monkeypatch.setattr(live_runs, "_launch_in_new_folder", launch_and_note)
    monkeypatch.setattr(live_runs, "new_run_folder", lambda name: tmp_path / name)
    live_runs.warm_up(SimpleNamespace(can_launch=lambda: False))  # a run was launched meanwhile
    (run,) = runs
    end = run.events()[-1]
    assert isinstance(end, RunEnded) and end.outcome == "completed"
    assert SparkSession.getActiveSession() is not None and [*tmp_path.iterdir()] == [
        tmp_path / "warm"
    ]


def test_a_stopped_run_prints_no_error(spark: SparkSession, tmp_path: Path) -> None:
    """The JVM's output is not this process's, so the levels of its loggers are read instead."""
    levels = list[list[str]]()
    log4j: Any = cast(Any, spark.sparkContext)._jvm.org.apache.logging.log4j

    def note_levels() -> None:
        loggers = map(log4j.LogManager.getLogger, STOP_LOGGERS)
        levels.append([logger.getLevel().toString() for logger in loggers])

    first, second = (SparkBatches(spark.range(1), tmp_path, {}, True) for _ in "ab")
    for driver in (first, second):
        driver.handle = cast(Any, SimpleNamespace(awaitTermination=note_levels))
    note_levels()
    for call in (first.expect_stop, second.expect_stop, first.wait, second.wait):
        call()
    assert levels[1:] == [["OFF", "OFF"]] * 2, "until both have ended"
    first.expect_stop()  # just after its last batch
    note_levels()
    assert levels[0] == levels[3] != levels[1]
