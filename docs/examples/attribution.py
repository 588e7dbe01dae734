"""Attribution: impressions with their clicks, and impressions that nobody clicked."""

from datetime import datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
from braid import StreamJoin

NOON = datetime(2026, 1, 5, 12)


def make_times(minutes: list[float]) -> pa.Array:
    """Return times after noon."""
    return pa.array([NOON + timedelta(minutes=m) for m in minutes], pa.timestamp("us"))


impressions = pa.table(
    {"ad": [1, 2, 1, 3], "user": list("AABC"), "ts": make_times([0, 5, 10, 200])}
)
clicks = pa.table({"ad": [1, 2, 1], "user": list("ABA"), "ts": make_times([12, 20, 95])})

with TemporaryDirectory() as folder:
    join = StreamJoin(
        {"i": impressions, "c": clicks},
        "i.ad = c.ad AND i.user = c.user AND c.ts BETWEEN i.ts AND i.ts + INTERVAL 30 MINUTES",
        how="left",
        time="ts",
    )
    run = join.start(Path(folder) / "run")
    run.awaitTermination()
    for row in sorted(run.results().to_pylist(), key=lambda row: row["i"]["ts"]):
        click = row["c"]
        print(row["i"]["ad"], row["i"]["user"], "no click" if click is None else click["ts"])
