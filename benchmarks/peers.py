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
from _common import QUICK, Measure, arguments, leave, scratch, seconds
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


def write(folder: Path, rows: int, batches: int) -> None:
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
                whole = f"COPY (FROM {s} ORDER BY v) TO '{folder}/{s}{end}.csv'"
                db.execute(f"{whole} (HEADER {header})")
            (folder / s).mkdir()
            for n in range(batches):
                part = (
                    f"SELECT k, make_timestamp(t * 1000) AS ts, v, x FROM {s} "
                    f"WHERE v * {batches} // {rows} = {n} ORDER BY v"
                )
                db.execute(f"COPY ({part}) TO '{folder}/{s}/{n:04d}.csv' (HEADER false)")
                os.utime(folder / s / f"{n:04d}.csv", (1e9 + n, 1e9 + n))


def environment(package: str) -> Path:
    """Return the Python of a virtual environment with the package. Raises CalledProcessError."""
    folder = QUICK / "peers" / package
    python = folder / "bin" / "python"
    if not (folder / ".ready").exists():
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*install, package], check=True, capture_output=True)
        (folder / ".ready").touch()
    return python


def peer(name: str, folder: Path, window: int, rounds: int) -> tuple[list[float], Path]:
    """Return the seconds of each round, and the results. Raises CalledProcessError."""
    package, program, results = PEERS[name]
    command = [str(environment(package)), str(HERE / program), str(folder), str(window * 1000)]
    done = subprocess.run(
        [*command, str(rounds)],
        check=True,
        capture_output=True,
        text=True,
        cwd=folder,
        env=os.environ | {"PATHWAY_THREADS": str(os.cpu_count())},
    )
    return json.loads(done.stdout.strip().splitlines()[-1]), folder / results


def braid(spark: SparkSession, folder: Path, window: int, hosts: int, number: int) -> float:
    """Return the seconds of all batches."""
    streams = {
        s: spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).csv(str(folder / s))
        for s in "ab"
    }
    windows = dict.fromkeys("ab", f"{window} seconds")
    join = StreamJoin(streams, "a.k = b.k", HashPartition(hosts), windows, time="ts")
    run = join.start(folder / f"braid {number}", availableNow=True)
    run.awaitTermination()
    return sum(seconds(run))


def differ(ours: Path, theirs: Path) -> int:
    """Return the number of rows that one side has more often than the other."""
    pair = "{}::BIGINT AS av, {}::BIGINT AS bv"
    mine = f"SELECT {pair.format('a.v', 'b.v')} FROM '{ours}/results/*.parquet'"
    other = f"SELECT {pair.format('column0', 'column1')} FROM read_csv('{theirs}', header = false)"
    if theirs.name == "pathway.csv":
        named = f"read_csv('{theirs}', header = true) WHERE diff = 1"
        other = f"SELECT {pair.format('av', 'bv')} FROM {named}"
    with duckdb.connect() as db:
        both = f"(({mine}) EXCEPT ALL ({other})) UNION ALL (({other}) EXCEPT ALL ({mine}))"
        row = db.execute(f"SELECT count(*) FROM ({both})").fetchone()
        assert row is not None
        return int(row[0])


def main() -> None:
    args = arguments(
        __doc__ or "",
        {"rows": 20_000},
        rows=200_000,
        batches=10,
        window=60,
        hosts=2,
        rounds=3,
    )
    with scratch() as folder:
        write(folder, args.rows, args.batches)
        found, notes = {}, []
        for name in PEERS:
            try:
                found[name] = peer(name, folder, args.window, args.rounds)
            except subprocess.CalledProcessError as error:
                lines = (error.stderr or "no message").strip().splitlines()
                last = lines[-1].decode() if isinstance(lines[-1], bytes) else lines[-1]
                notes.append(f"{name} is left out, since it does not run here: {last}")
        spark = session("benchmark")
        ours = [
            braid(spark, folder, args.window, args.hosts, number) for number in range(args.rounds)
        ]
        for name, (_, results) in found.items():
            assert not (wrong := differ(folder / "braid 0", results)), f"{name}: {wrong} differ"
        with duckdb.connect() as db:
            count = db.execute(f"SELECT count(*) FROM '{folder}/braid 0/results/*.parquet'")
            row = count.fetchone()
            assert row is not None
    took = {"Braid": median(ours[1:])}
    took |= {name: median(times[1:]) for name, (times, _) in found.items()}
    rows = [(name, s, 2 * args.rows / s, s / took["Braid"]) for name, s in took.items()]
    table = pd.DataFrame(rows, columns=["engine", "seconds in all", "rows/s", "times Braid"])
    title = f"2 x {args.rows:,} rows of CSV, {args.window} s windows, {row[0]:,} results, equal"
    measures = [Measure(f"peer: {name} / Braid", r) for name, _, _, r in rows[1:]]
    leave(args, {title: table.round(3)}, measures, tuple(notes))


if __name__ == "__main__":
    main()
