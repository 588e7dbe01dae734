"""The windowed equi-join in Flink SQL.

Usage: _peer_flink.py FOLDER WINDOW_MS ROUNDS; peers.py runs it in a virtual environment. It reads
FOLDER/a.csv and FOLDER/b.csv, writes files under FOLDER/flink, and prints the seconds of each round
as JSON.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import time

from pyflink.table import EnvironmentSettings, TableEnvironment

COLUMNS = "k BIGINT, t BIGINT, v BIGINT, x DOUBLE"
EVENT_TIME = "rt AS TO_TIMESTAMP_LTZ(t, 3), WATERMARK FOR rt AS rt"


def format_connector(path: str) -> str:
    return f"WITH ('connector' = 'filesystem', 'path' = 'file://{path}', 'format' = 'csv')"


def run_round(tables: TableEnvironment, folder: str, window: int) -> float:
    """Return the seconds from reading to written result files."""
    shutil.rmtree(f"{folder}/flink", ignore_errors=True)
    within = f"INTERVAL '{window // 1000}' SECOND"
    began = time.perf_counter()
    tables.execute_sql(
        f"INSERT INTO found SELECT a.v, b.v FROM a JOIN b ON a.k = b.k "
        f"AND a.rt > b.rt - {within} AND a.rt < b.rt + {within}"
    ).wait()
    return time.perf_counter() - began


def main() -> None:
    folder, window, rounds = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    tables = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    tables.get_config().set("parallelism.default", str(os.cpu_count()))
    tables.get_config().set("execution.checkpointing.interval", "1 s")
    for s in "ab":
        tables.execute_sql(
            f"CREATE TABLE {s} ({COLUMNS}, {EVENT_TIME}) {format_connector(f'{folder}/{s}.csv')}"
        )
    tables.execute_sql(
        f"CREATE TABLE found (av BIGINT, bv BIGINT) {format_connector(f'{folder}/flink')}"
    )
    print(json.dumps([run_round(tables, folder, window) for _ in range(rounds)]))


if __name__ == "__main__":
    main()
