"""Trades with the quotes that were valid: an as-of join of two tables."""

from datetime import datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
from braid import StreamJoin

NOON = datetime(2026, 1, 5, 12)


def make_times(seconds: list[float]) -> pa.Array:
    """Return times after noon."""
    return pa.array([NOON + timedelta(seconds=s) for s in seconds], pa.timestamp("us"))


trades = pa.table(
    {"sym": ["AB", "CD", "AB"], "size": [100, 20, 70], "ts": make_times([1.0, 2.5, 9.0])}
)
quotes = pa.table(
    {
        "sym": ["AB", "AB", "CD", "AB"],
        "bid": [9.9, 10.1, 50.0, 10.2],
        "ts": make_times([0.2, 0.8, 2.5, 3.0]),
    }
)

with TemporaryDirectory() as folder:
    join = StreamJoin(
        {"t": trades, "q": quotes},
        "t.sym = q.sym",
        match="latest",
        tolerance="5 seconds",
        time="ts",
    )
    run = join.start(Path(folder) / "run")
    run.awaitTermination()
    for row in sorted(run.results().to_pylist(), key=lambda row: row["t"]["ts"]):
        print(row["t"]["sym"], row["t"]["size"], row["q"]["bid"])
