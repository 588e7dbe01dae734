"""Measure small batches: ten thousand rows of each stream per batch.

It compares the previous engine, which ran streams as Spark tasks, with the current one. Then it
compares the current engine on Spark tasks with the executor that it chooses by itself. Each pair
runs in turns for some rounds; the first warms up.

The previous engine is that of an earlier commit, taken from git's history; both run in separate
processes. Without the history that measure is left out. A second table shows where a batch of the
current engine spends its time: the phases measured by the engine (``run.metrics``), and Spark's
work around it (``StreamingQueryProgress.durationMs``).
"""

from __future__ import annotations

import argparse
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
from contextlib import ExitStack
from pathlib import Path
from statistics import median

import pandas as pd
from _common import Measure, arguments, both, leave, scratch, stream
from braid import HashPartition
from braid.core.batch_history import PHASE_COLUMNS, PHASES
from braid.spark_session import session
from braid.stream_join import JoinRun, StreamJoin
from pyspark.sql import SparkSession

HERE = Path(__file__).parent
BEFORE = "2448d9c"
"""The last commit whose engine ran streams as Spark tasks by default."""
WAYS = {"Spark's tasks": "spark", "chosen by Braid": "auto"}
AROUND = {
    "latestOffset": "what is new: lists the files",
    "getBatch": "files of this batch",
    "queryPlanning": "plan",
    "walCommit": "log of offsets",
    "commitOffsets": "log of commits",
    "commitBatch": "commit of the batch",
}
"""Spark's work around a batch, by its name in StreamingQueryProgress.durationMs."""


Median = dict[str, float]
"""Seconds of a batch by name."""
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


def before(folder: Path) -> Path | None:
    """Return the packages of the previous engine, if the history has them."""
    if not (git := shutil.which("git")):
        return None
    told = subprocess.run([git, "archive", BEFORE, "toolkit"], cwd=HERE.parent, capture_output=True)
    if told.returncode:
        return None
    with tarfile.open(fileobj=io.BytesIO(told.stdout)) as files:
        files.extractall(folder)
    return folder / "toolkit"


def by_engine(folder: Path, args: argparse.Namespace) -> Median:
    """Return the median seconds of a batch by engine.

    The engines run in turns and must produce the same number of results. Empty if the history lacks
    the previous engine.
    """
    if not (old := before(folder / "before")):
        return {}
    packages = {"engine before": old, "engine today": HERE.parent / "toolkit"}
    settings = [args.window, args.hosts]
    found: dict[str, list[float]] = {name: [] for name in packages}
    counts = set()
    with ExitStack() as stack:
        engines = {
            name: stack.enter_context(
                subprocess.Popen(
                    [sys.executable, HERE / "_small_engine.py", folder, name, *map(str, settings)],
                    env=os.environ | {"PYTHONPATH": str(package)},
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                )
            )
            for name, package in packages.items()
        }
        for number in range(args.rounds):
            for name, engine in engines.items():
                assert engine.stdin and engine.stdout
                print(file=engine.stdin, flush=True)
                told = json.loads(engine.stdout.readline())
                counts.add(told["results"])
                found[name] += told["seconds"][1:] if number else []
    assert len(counts) == 1, f"engines find other results: {counts}"
    return {name: median(seconds) for name, seconds in found.items()}


PHASES_BY_COLUMN = {column: phase for phase, column in PHASE_COLUMNS.items()}


def spent(running: JoinRun) -> pd.DataFrame:
    """Return a row of milliseconds for each batch but the first.

    It has the total, the phases of the engine, other work while Python has the batch (writing the
    manifest, and handing it over), and Spark's work around it.
    """
    told = [p.durationMs for p in running.spark_query.recentProgress if p.numInputRows > 0]
    parts = 1000 * running.metrics(by="batch").rename(columns=PHASES_BY_COLUMN)[list(PHASES)]
    rows = []
    for mine, theirs in zip(parts.to_dict("records"), told, strict=True):
        around = {name: theirs.get(name, 0) for name in AROUND}
        handed = {HANDED: max(0, theirs["addBatch"] - sum(mine.values()))}
        whole = theirs["triggerExecution"]
        rest = max(0, whole - theirs["addBatch"] - sum(around.values()))
        rows.append({"in all": whole, **mine, **handed, **around, "Spark: the rest": rest})
    return pd.DataFrame(rows[1:])


def by_way(spark: SparkSession, folder: Path, args: argparse.Namespace) -> dict[str, pd.DataFrame]:
    """Return the phases of each batch by executor, without the first round."""
    found: dict[str, list[pd.DataFrame]] = {name: [] for name in WAYS}
    for n in range(args.rounds):
        for name, way in WAYS.items():
            done = run(spark, folder, way, args.window, args.hosts, f"{way} {n}")
            found[name].append(spent(done))
    return {name: pd.concat(rounds[1:]) for name, rounds in found.items()}


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
        engines, whole = by_engine(folder, args), by_way(spark, folder, args)
    took = {name: median(frame["in all"]) / 1000 for name, frame in whole.items()}
    each = args.rows // args.batches
    batches = f"{each:,} + {each:,} rows a batch"
    table = pd.DataFrame({"tasks": took.keys(), "median s/batch": took.values()})
    parts = pd.DataFrame({name: frame.median() for name, frame in whole.items()}).round(1)
    parts = parts.rename(index={k: f"Spark: {k} ({v})" for k, v in AROUND.items()})
    measures = [ratio(f"{batches}: Spark's tasks / Braid", took, None, None)]
    if engines:
        measures.insert(0, ratio(f"{batches}: the engine before / today", engines, 1.6, 2.5))
        table = pd.concat([pd.DataFrame(engines.items(), columns=table.columns), table])
    leave(
        args,
        {
            f"{batches}, {args.batches} batches": table.round(3),
            "milliseconds of a batch, medians": parts.reset_index(names="part"),
        },
        measures,
        () if engines else (f"Git's history lacks {BEFORE}, so the engine before did not run.",),
    )


def ratio(name: str, took: Median, required: float | None, aim: float | None) -> Measure:
    first, second = took.values()
    return Measure(name, first / second, required, aim)


if __name__ == "__main__":
    main()
