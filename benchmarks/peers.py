"""Compare with streaming engines from PyPI that support interval joins: Pathway and Flink SQL.

Each is installed once into a virtual environment below runs/bench/peers; an engine that cannot be
installed is left out with a message. The rows are CSV, which all engines read natively. Braid reads
a file per batch and keeps durable state. The others read one file per stream, because they
guarantee no order among files. Flink streams it with a checkpoint every second; Pathway reads it at
once and stores nothing. The results must be equal row by row. Every engine runs some rounds in one
process; the median counts, without the first.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from statistics import median

import duckdb
import pandas as pd
from _common import (
    QUICK_FIGURES,
    Measure,
    make_scratch_folder,
    parse_arguments,
    read_batch_seconds,
    write_figures,
)
from braid import HashPartition
from braid.spark_session import session
from braid.stream_join import StreamJoin
from pyspark.sql import SparkSession

HERE = Path(__file__).parent
SCHEMA = "k BIGINT, ts TIMESTAMP, v BIGINT, x DOUBLE"
PEERS = {
    "Pathway": ("pathway", "_peer_pathway.py", "pathway.csv"),
    "Flink SQL": ("apache-flink", "_peer_flink.py", "flink/**"),
}
"""Package, program and result path of each engine, by name."""


def write_inputs(folder: Path, rows: int, batches: int) -> None:
    """Write two streams as CSV.

    Braid gets a file per batch with timestamps, the others one file each with milliseconds.
    """
    with duckdb.connect() as db:
        db.execute("SET TimeZone = 'UTC'")
        for seed, s in enumerate("ab"):
            db.execute(
                f"CREATE TABLE {s} AS SELECT hash({seed}, i) % {rows * 3 // 10} AS k, "
                f"i * 600000 // {rows} AS t, i AS v, (hash(i) % 1000) / 1000 AS x "
                f"FROM range({rows}) AS r(i)"
            )
            for end, header in (("", "false"), ("-named", "true")):
                statement = f"COPY (FROM {s} ORDER BY v) TO '{folder}/{s}{end}.csv'"
                db.execute(f"{statement} (HEADER {header})")
            (folder / s).mkdir()
            for n in range(batches):
                part = (
                    f"SELECT k, make_timestamp(t * 1000) AS ts, v, x FROM {s} "
                    f"WHERE v * {batches} // {rows} = {n} ORDER BY v"
                )
                db.execute(f"COPY ({part}) TO '{folder}/{s}/{n:04d}.csv' (HEADER false)")
                os.utime(folder / s / f"{n:04d}.csv", (1e9 + n, 1e9 + n))


def prepare_environment(package: str) -> Path:
    """Return the Python of a virtual environment with the package. Raises CalledProcessError."""
    folder = QUICK_FIGURES / "peers" / package
    python = folder / "bin" / "python"
    if not (folder / ".ready").exists():
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*install, package], check=True, capture_output=True)
        (folder / ".ready").touch()
    return python


def run_peer(name: str, folder: Path, window: int, rounds: int) -> tuple[list[float], Path]:
    """Return the seconds of each round, and the results. Raises CalledProcessError."""
    package, program, results = PEERS[name]
    command = [
        str(prepare_environment(package)),
        str(HERE / program),
        str(folder),
        str(window * 1000),
    ]
    done = subprocess.run(
        [*command, str(rounds)],
        check=True,
        capture_output=True,
        text=True,
        cwd=folder,
        env=os.environ | {"PATHWAY_THREADS": str(os.cpu_count())},
    )
    return json.loads(done.stdout.strip().splitlines()[-1]), folder / results


def run_braid(spark: SparkSession, folder: Path, window: int, hosts: int, number: int) -> float:
    """Return the seconds of all batches."""
    streams = {
        s: spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).csv(str(folder / s))
        for s in "ab"
    }
    windows = dict.fromkeys("ab", f"{window} seconds")
    join = StreamJoin(streams, "a.k = b.k", HashPartition(hosts), windows, time="ts")
    run = join.start(folder / f"braid {number}", availableNow=True)
    run.awaitTermination()
    return sum(read_batch_seconds(run))


def count_differences(braid_folder: Path, peer_folder: Path) -> int:
    """Return the number of rows that one side has more often than the other."""
    pair = "{}::BIGINT AS av, {}::BIGINT AS bv"
    braid_query = f"SELECT {pair.format('a.v', 'b.v')} FROM '{braid_folder}/results/*.parquet'"
    peer_query = (
        f"SELECT {pair.format('column0', 'column1')} FROM read_csv('{peer_folder}', header = false)"
    )
    if peer_folder.name == "pathway.csv":
        named = f"read_csv('{peer_folder}', header = true) WHERE diff = 1"
        peer_query = f"SELECT {pair.format('av', 'bv')} FROM {named}"
    with duckdb.connect() as db:
        missing = f"({braid_query}) EXCEPT ALL ({peer_query})"
        difference = f"({missing}) UNION ALL (({peer_query}) EXCEPT ALL ({braid_query}))"
        row = db.execute(f"SELECT count(*) FROM ({difference})").fetchone()
        assert row is not None
        return int(row[0])


def main() -> None:
    args = parse_arguments(
        __doc__ or "",
        {"rows": 20_000},
        rows=200_000,
        batches=10,
        window=60,
        hosts=2,
        rounds=3,
    )
    with make_scratch_folder() as folder:
        write_inputs(folder, args.rows, args.batches)
        peer_runs, notes = {}, []
        for name in PEERS:
            try:
                peer_runs[name] = run_peer(name, folder, args.window, args.rounds)
            except subprocess.CalledProcessError as error:
                lines = (error.stderr or "no message").strip().splitlines()
                last = lines[-1].decode() if isinstance(lines[-1], bytes) else lines[-1]
                notes.append(f"{name} is left out, since it does not run here: {last}")
        spark = session("benchmark")
        braid_seconds = [
            run_braid(spark, folder, args.window, args.hosts, number)
            for number in range(args.rounds)
        ]
        for name, (_, results) in peer_runs.items():
            assert not (wrong := count_differences(folder / "braid 0", results)), (
                f"{name}: {wrong} differ"
            )
        with duckdb.connect() as db:
            count = db.execute(f"SELECT count(*) FROM '{folder}/braid 0/results/*.parquet'")
            row = count.fetchone()
            assert row is not None
    took = {"Braid": median(braid_seconds[1:])}
    took |= {name: median(times[1:]) for name, (times, _) in peer_runs.items()}
    rows = [(name, s, 2 * args.rows / s, s / took["Braid"]) for name, s in took.items()]
    table = pd.DataFrame(rows, columns=["engine", "seconds in all", "rows/s", "times Braid"])
    title = f"2 x {args.rows:,} rows of CSV, {args.window} s windows, {row[0]:,} results, equal"
    measures = [Measure(f"peer: {name} / Braid", r) for name, _, _, r in rows[1:]]
    write_figures(args, {title: table.round(3)}, measures, tuple(notes))


if __name__ == "__main__":
    main()
