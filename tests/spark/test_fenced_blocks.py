"""Blocks of Python in the documentation that need Spark."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from braid import QueryHub, SharedJoin, StreamJoin
from fenced_blocks import DOCS, FENCE, find_blocks, make_streams, run_blocks
from pyspark.sql import SparkSession

BLOCKS = find_blocks(is_for_spark=True)
README = DOCS.parent / "README.md"


@pytest.mark.parametrize("page", BLOCKS)
def test_blocks_of_a_page_run_on_spark(page: str, spark: SparkSession) -> None:
    frames = {name: spark.createDataFrame(table) for name, table in make_streams().items()}
    run_blocks(BLOCKS[page], {"SharedJoin": SharedJoin, **frames})


def test_blocks_of_the_readme_run(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hubs and joins that shed are paced, so that they have not ended when they are changed."""
    monkeypatch.chdir(tmp_path)
    text = README.read_text("utf-8").replace('parquet("data/', f'parquet("{tmp_path}/data/')
    blocks = [block for kind, block in FENCE.findall(text) if kind == "python"]
    streams = make_streams()
    for name, table in (("orders", streams["orders"]), ("paid", streams["payments"])):
        (tmp_path / "data" / name).mkdir(parents=True)
        times = table["ts"].cast(pa.timestamp("us", "UTC"))
        whole = {name: table[name].cast("int32", safe=False) for name in ("total", "amount")}
        columns = {"id": table["id"], "order_id": table["order_id"], **whole, "ts": times}
        pq.write_table(pa.table(columns), tmp_path / "data" / name / "0.parquet")
    frames = {name: spark.createDataFrame(table) for name, table in streams.items()}
    assert len(blocks) == 4
    run_blocks(blocks[:2], frames)
    for kind in (QueryHub, StreamJoin):
        start = kind.start
        paced = lambda join, path, start=start: start(join, path, pace=3600)  # noqa: E731
        monkeypatch.setattr(kind, "start", paced)
    run_blocks(blocks[2:], frames)
