"""A stream join written by hand: a loop of DuckDB statements with durable files, for ``hosts``.

Each batch joins the new rows with each other and with the stored ones, and writes the results and
the new rows as Parquet files. A file that names the batch commits it. All of them are forced to
disk, as Braid's are. Like Braid in the same program, it runs on one thread.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

_PAIRS = (("new_a", "b"), ("a", "new_b"), ("new_a", "new_b"))
"""The joins of a batch: new rows with stored rows, and new rows with each other."""


class LoopCost(NamedTuple):
    """CPU seconds of a loop, seconds of its batches, and its number of results."""

    cpu: float
    seconds: list[float]
    results: int


def join_by_hand(tables: Mapping[str, pa.Table], folder: Path) -> LoopCost:
    """Join the tables a and b on k, batch by batch, with full history."""
    batches = 1 + pc.max(tables["a"]["batch"]).as_py()
    split = {
        alias: [table.filter(pc.equal(table["batch"], n)) for n in range(batches)]
        for alias, table in tables.items()
    }
    seconds, results = [], 0
    with duckdb.connect(config={"threads": 1}) as database:
        for alias, table in tables.items():
            database.register("rows", table.slice(0, 0))
            database.execute(f"CREATE TABLE {alias} AS SELECT * FROM rows")
        began = time.process_time()
        for number in range(batches):
            start = time.perf_counter()
            for alias, parts in split.items():
                database.register(f"new_{alias}", parts[number])
            results += _join_batch(database, folder, number)
            seconds.append(time.perf_counter() - start)
        return LoopCost(time.process_time() - began, seconds, results)


def _join_batch(database: duckdb.DuckDBPyConnection, folder: Path, number: int) -> int:
    """Join, store and commit one batch. Return its number of results."""
    united = " UNION ALL ".join(
        f"SELECT a, b FROM {left} a JOIN {right} b ON a.k = b.k" for left, right in _PAIRS
    )
    files = {"results": united, **{alias: f"FROM new_{alias}" for alias in "ab"}}
    paths, rows = [], 0
    for name, query in files.items():
        path = folder / f"{name}-{number:06d}.parquet"
        copied = database.execute(f"COPY ({query}) TO '{path}' (FORMAT parquet)").fetchone()
        rows = copied[0] if name == "results" and copied else rows
        paths.append(path)
    for alias in "ab":
        database.execute(f"INSERT INTO {alias} FROM new_{alias}")
    for path in paths:
        _force_to_disk(path)
    commit = folder / "commit.json"
    pending = commit.with_suffix(".tmp")
    pending.write_text(json.dumps({"batch": number, "results": rows}))
    _force_to_disk(pending)
    pending.replace(commit)
    _force_to_disk(folder)
    return int(rows)


def _force_to_disk(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
