"""Small batches: ten thousand rows of each stream in a batch, with Spark's tasks and in the way
that Braid chooses by itself; both in turns, some rounds, of which the first warms up.

Below, where a batch of each goes: the parts that the engine measures (``run.metrics``), and what
Spark does around it (``StreamingQueryProgress.durationMs``).
"""

from __future__ import annotations

from pathlib import Path
from statistics import median

import pandas as pd
from _common import Measure, arguments, both, leave, scratch, stream
from braid import HashPartition
from braid.core.seconds import PARTS
from braid.join import JoinRun, StreamJoin
from braid.spark_session import session
from pyspark.sql import SparkSession

WAYS = {"Spark's tasks": "spark", "chosen by Braid": "auto"}
AROUND = {
    "latestOffset": "what is new: lists the files",
    "getBatch": "files of this batch",
    "queryPlanning": "plan",
    "walCommit": "log of offsets",
    "commitOffsets": "log of commits",
    "commitBatch": "commit of the batch",
}
"""What Spark does around a batch, by its name in StreamingQueryProgress.durationMs."""


HANDED = "handing over, manifest"


def run(spark: SparkSession, folder: Path, way: str, window: int, hosts: int, out: str) -> JoinRun:
    join = StreamJoin(
        {s: stream(spark, folder / s) for s in "ab"},
        "a.k = b.k",
        HashPartition(hosts),
        time="ts",
        windows=dict.fromkeys("ab", f"{window} seconds"),
        executor=way,
    )
    running = join.start(folder / out, availableNow=True)
    running.awaitTermination()
    return running


def spent(running: JoinRun) -> pd.DataFrame:
    """A row for each batch but the first, with milliseconds: in all, by part of the engine, what
    else happens while Python has the batch (the manifest's own writing, and handing it over), and
    by what Spark does around it.
    """
    told = [p.durationMs for p in running.query.recentProgress if p.numInputRows > 0]
    parts = 1000 * running.metrics(by="batch")[list(PARTS)]
    rows = []
    for mine, theirs in zip(parts.to_dict("records"), told, strict=True):
        around = {name: theirs.get(name, 0) for name in AROUND}
        handed = {HANDED: max(0, theirs["addBatch"] - sum(mine.values()))}
        whole = theirs["triggerExecution"]
        rest = max(0, whole - theirs["addBatch"] - sum(around.values()))
        rows.append({"in all": whole, **mine, **handed, **around, "Spark: the rest": rest})
    return pd.DataFrame(rows[1:])


def main() -> None:
    args = arguments(
        __doc__ or "",
        {"batches": 6, "rounds": 2},
        rows=200_000,
        batches=20,
        window=60,
        hosts=2,
        rounds=3,
    )
    spark = session("benchmark")
    with scratch() as folder:
        both(spark, folder, args)
        found: dict[str, list[pd.DataFrame]] = {name: [] for name in WAYS}
        for n in range(args.rounds):
            for name, way in WAYS.items():
                done = run(spark, folder, way, args.window, args.hosts, f"{way} {n}")
                found[name].append(spent(done))
    whole = {name: pd.concat(rounds[1:]) for name, rounds in found.items()}
    took = {name: median(frame["in all"]) / 1000 for name, frame in whole.items()}
    first, second = took.values()
    each = args.rows // args.batches
    table = pd.DataFrame({"tasks": took.keys(), "median s/batch": took.values()})
    parts = pd.DataFrame({name: frame.median() for name, frame in whole.items()}).round(1)
    parts = parts.rename(index={k: f"Spark: {k} ({v})" for k, v in AROUND.items()})
    leave(
        args,
        {
            f"{each:,} + {each:,} rows a batch, {args.batches} batches": table.round(3),
            "milliseconds of a batch, medians": parts.reset_index(names="part"),
        },
        [
            Measure(
                f"{each:,} + {each:,} rows a batch: Spark's tasks / Braid", first / second, 1.6, 2.5
            )
        ],
    )


if __name__ == "__main__":
    main()
