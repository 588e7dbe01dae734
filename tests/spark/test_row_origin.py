"""The column that says from which file, row or message of Kafka a tuple came."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from braid import StreamJoin, session, with_origin
from pyspark.sql import SparkSession


def test_results_name_the_files_and_rows_of_streams(spark: SparkSession, tmp_path: Path) -> None:
    for number in range(2):
        frame = spark.range(10 * number, 10 * number + 3, numPartitions=1)
        frame.write.parquet(str(tmp_path / f"in/{number}"))
    spark.range(11, 13).write.csv(str(tmp_path / "csv"))
    stream = spark.readStream.schema("id long").parquet(str(tmp_path / "in/*"))
    lines = with_origin(spark.read.schema("k long").csv(str(tmp_path / "csv")))
    assert lines.schema["origin"].dataType.simpleString() == "struct<file:string>"
    join = StreamJoin({"a": with_origin(stream), "b": lines}, "a.id = b.k")
    run = join.start(tmp_path / "run", availableNow=True)
    run.awaitTermination()
    rows = run.results().select("a.id", "a.origin.*", "b.origin.file").collect()
    assert {(row[0], Path(row[1]).parent.name, row[2]) for row in rows} == {
        (11, "1", 1),
        (12, "1", 2),
    }
    assert all(Path(row[3]).parent.name == "csv" for row in rows)


def test_messages_of_kafka_are_named_and_other_rows_refused(spark: SparkSession) -> None:
    message = "'clicks' AS topic, 3 AS partition, id AS offset, 'x' AS value"
    (row,) = with_origin(spark.range(7, 8).selectExpr(*message.split(", "))).collect()
    assert row["origin"].asDict() == {"topic": "clicks", "partition": 3, "offset": 7}
    with pytest.raises(ValueError, match="neither read from files nor from Kafka"):
        with_origin(spark.range(3))


def test_the_pages_of_spark_are_served_if_asked_for(spark: SparkSession) -> None:
    assert spark.sparkContext.uiWebUrl is None
    with pytest.raises(ValueError, match="running session serves no pages; stop it first"):
        session(ui=True)
    code = "from braid import session; print(session(ui=True, cores=1).sparkContext.uiWebUrl)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("http://")
