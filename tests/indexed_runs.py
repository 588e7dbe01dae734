"""Runs of tables by a condition, with the pairs they compare, and the same join by nested loops."""

from __future__ import annotations

import random
from collections import Counter
from math import inf, nan
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
from braid.core.run_events import BatchCommitted
from braid.stream_join import StreamJoin
from oracle import result_ids

Ids = Counter[tuple[int, ...]]


def make_table(draw: random.Random, rows: int, spread: int = 6) -> pa.Table:
    def make_column(values: list[Any], kind: pa.DataType) -> pa.Array:
        return pa.array([draw.choice([None, *values]) for _ in range(rows)], kind)

    numbers = [*range(spread)]
    floats = [nan, -0.0, 0.0, 1.5, 2.0, inf]
    return pa.table(
        {
            "id": pa.array(range(rows)),
            "k": make_column(numbers, pa.int64()),
            "v": make_column(numbers, pa.int32()),
            "w": make_column(numbers, pa.int32()),
            "f": make_column(floats, pa.float64()),
            "s": make_column(["", "a", "ab", "b", "ä"], pa.string()),
            "t": make_column([n * 1_000_000 for n in numbers], pa.timestamp("us")),
        }
    )


def run_indexed(folder: Path, on: str, *streams: pa.Table, **more: Any) -> tuple[Ids, int]:
    """Return the results and the number of pairs compared."""
    names = dict(zip("abc", streams, strict=False))
    done = StreamJoin(names, on, check=True, **more).start(str(folder / "run"), batches=4)
    done.awaitTermination()
    events = [e for e in done.events() if isinstance(e, BatchCommitted)]
    compared = sum(e.total_host_metrics.compared_pairs for e in events)
    return result_ids(done.results()), int(compared)


def nested_loops(on: str, *streams: pa.Table) -> Ids:
    """Return DuckDB's answer, in which <=> has another name."""
    names = dict(zip("abc", streams, strict=False))
    with duckdb.connect() as db:
        for alias, rows in names.items():
            db.register(f"t_{alias}", rows)
        tables = ", ".join(f"t_{alias} AS {alias}" for alias in names)
        ids = ", ".join(f"{alias}.id" for alias in names)
        text = on.replace("<=>", "IS NOT DISTINCT FROM")
        return Counter(db.sql(f"SELECT {ids} FROM {tables} WHERE {text}").fetchall())
