"""Three notebooks by task join Spark's DataFrames, with the same answers."""

from __future__ import annotations

from pathlib import Path

import pytest
from braid.arrow_join import ArrowJoinRun
from pyspark.sql import SparkSession

from docs.gallery import run_cells

SMALL = {
    "attribution": {"visits": 800},
    "changing_dimension": {"orders": 300},
    "trades_quotes": {"trades": 200},
}


@pytest.mark.parametrize("name", SMALL)
def test_a_task_is_answered_on_spark(name: str, tmp_path: Path, spark: SparkSession) -> None:
    small = SMALL[name] | {"spark": True, "batches": 1, "folder": str(tmp_path)}
    *_, run, _, sentence = run_cells(name, **small)
    assert not isinstance(run, ArrowJoinRun) and run.health().planned_batches == 1
    assert sentence.endswith("the same as DuckDB finds")
