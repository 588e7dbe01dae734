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
from _common import (
    Measure,
    make_scratch_folder,
    parse_arguments,
    read_stream,
    write_figures,
    write_two_streams,
)
from braid import HashPartition
from braid.core.batch_history import PHASE_COLUMNS, PHASES
from braid.join_run import JoinRun
from braid.spark_session import session
from braid.stream_join import StreamJoin
from pyspark.sql import SparkSession

HERE = Path(__file__).parent
PREVIOUS_COMMIT = "2448d9c"
"""The last commit whose engine ran streams as Spark tasks by default."""
EXECUTORS = {"Spark's tasks": "spark", "chosen by Braid": "auto"}
SPARK_WORK = {
    "latestOffset": "what is new: lists the files",
    "getBatch": "files of this batch",
    "queryPlanning": "plan",
    "walCommit": "log of offsets",
    "commitOffsets": "log of commits",
    "commitBatch": "commit of the batch",
}
"""Spark's work around a batch, by its name in StreamingQueryProgress.durationMs."""


SecondsByName = dict[str, float]
"""Seconds of a batch by name."""
HAND_OVER = "handing over, manifest"


def run_join(
    spark: SparkSession, folder: Path, way: str, window: int, hosts: int, out: str
) -> JoinRun:
    join = StreamJoin(
        {s: read_stream(spark, folder / s) for s in "ab"},
        "a.k = b.k",
        HashPartition(hosts),
        time="ts",
        windows=dict.fromkeys("ab", f"{window} seconds"),
        executor=way,
    )
    running = join.start(folder / out, availableNow=True)
    running.awaitTermination()
    return running


def extract_previous_engine(folder: Path) -> Path | None:
    """Return the packages of the previous engine, if the history has them."""
    if not (git := shutil.which("git")):
        return None
    archive = subprocess.run(
        [git, "archive", PREVIOUS_COMMIT, "toolkit"], cwd=HERE.parent, capture_output=True
    )
    if archive.returncode:
        return None
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as files:
        files.extractall(folder)
    return folder / "toolkit"


def measure_engines(folder: Path, args: argparse.Namespace) -> SecondsByName:
    """Return the median seconds of a batch by engine.

    The engines run in turns and must produce the same number of results. Empty if the history lacks
    the previous engine.
    """
    if not (old := extract_previous_engine(folder / "before")):
        return {}
    packages = {"engine before": old, "engine today": HERE.parent / "toolkit"}
    settings = [args.window, args.hosts]
    batch_seconds: dict[str, list[float]] = {name: [] for name in packages}
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
                answer = json.loads(engine.stdout.readline())
                counts.add(answer["results"])
                batch_seconds[name] += answer["seconds"][1:] if number else []
    assert len(counts) == 1, f"engines find other results: {counts}"
    return {name: median(seconds) for name, seconds in batch_seconds.items()}


PHASES_BY_COLUMN = {column: phase for phase, column in PHASE_COLUMNS.items()}


def split_batch_time(running: JoinRun) -> pd.DataFrame:
    """Return a row of milliseconds for each batch but the first.

    It has the total, the phases of the engine, other work while Python has the batch (writing the
    manifest, and handing it over), and Spark's work around it.
    """
    durations = [p.durationMs for p in running.spark_query.recentProgress if p.numInputRows > 0]
    parts = 1000 * running.metrics(by="batch").rename(columns=PHASES_BY_COLUMN)[list(PHASES)]
    rows = []
    for phases, theirs in zip(parts.to_dict("records"), durations, strict=True):
        around = {name: theirs.get(name, 0) for name in SPARK_WORK}
        handed = {HAND_OVER: max(0, theirs["addBatch"] - sum(phases.values()))}
        total = theirs["triggerExecution"]
        rest = max(0, total - theirs["addBatch"] - sum(around.values()))
        rows.append({"in all": total, **phases, **handed, **around, "Spark: the rest": rest})
    return pd.DataFrame(rows[1:])


def measure_executors(
    spark: SparkSession, folder: Path, args: argparse.Namespace
) -> dict[str, pd.DataFrame]:
    """Return the phases of each batch by executor, without the first round."""
    frames: dict[str, list[pd.DataFrame]] = {name: [] for name in EXECUTORS}
    for n in range(args.rounds):
        for name, way in EXECUTORS.items():
            done = run_join(spark, folder, way, args.window, args.hosts, f"{way} {n}")
            frames[name].append(split_batch_time(done))
    return {name: pd.concat(rounds[1:]) for name, rounds in frames.items()}


def main() -> None:
    args = parse_arguments(
        __doc__ or "",
        {"batches": 6, "rounds": 2},
        rows=200_000,
        batches=20,
        window=60,
        hosts=2,
        rounds=3,
    )
    spark = session("benchmark")
    with make_scratch_folder() as folder:
        write_two_streams(spark, folder, args)
        engines, phases = measure_engines(folder, args), measure_executors(spark, folder, args)
    took = {name: median(frame["in all"]) / 1000 for name, frame in phases.items()}
    each = args.rows // args.batches
    batches = f"{each:,} + {each:,} rows a batch"
    table = pd.DataFrame({"tasks": took.keys(), "median s/batch": took.values()})
    parts = pd.DataFrame({name: frame.median() for name, frame in phases.items()}).round(1)
    parts = parts.rename(index={k: f"Spark: {k} ({v})" for k, v in SPARK_WORK.items()})
    measures = [compare_seconds(f"{batches}: Spark's tasks / Braid", took, None, None)]
    if engines:
        measures.insert(
            0, compare_seconds(f"{batches}: the engine before / today", engines, 1.6, 2.5)
        )
        table = pd.concat([pd.DataFrame(engines.items(), columns=table.columns), table])
    write_figures(
        args,
        {
            f"{batches}, {args.batches} batches": table.round(3),
            "milliseconds of a batch, medians": parts.reset_index(names="part"),
        },
        measures,
        ()
        if engines
        else (f"Git's history lacks {PREVIOUS_COMMIT}, so the engine before did not run.",),
    )


def compare_seconds(
    name: str, took: SecondsByName, required: float | None, aim: float | None
) -> Measure:
    first, second = took.values()
    return Measure(name, first / second, required, aim)


if __name__ == "__main__":
    main()
