"""Blocks of Python in the documentation that need Spark."""

from __future__ import annotations

import pytest
from braid import SharedJoin
from fenced_blocks import find_blocks, make_streams, run_blocks
from pyspark.sql import SparkSession

BLOCKS = find_blocks(is_for_spark=True)


@pytest.mark.parametrize("page", BLOCKS)
def test_blocks_of_a_page_run_on_spark(page: str, spark: SparkSession) -> None:
    frames = {name: spark.createDataFrame(table) for name, table in make_streams().items()}
    run_blocks(BLOCKS[page], {"SharedJoin": SharedJoin, **frames})
