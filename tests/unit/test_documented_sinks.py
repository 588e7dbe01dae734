"""The sinks of the documentation: exactly once, wherever the function or its process ends."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from runpy import run_path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from braid import StreamJoin
from braid.papers.baselines.centralized import Centralized

ROOT = Path(__file__).parents[2]
SINKS = run_path(str(ROOT / "docs/examples/sinks.py"))
ROWS = 30


def make_streams() -> dict[str, pa.Table]:
    """Return orders and payments in six batches."""
    batch = [n // 5 for n in range(ROWS)]
    orders = {"id": [*range(ROWS)], "batch": batch}
    payments = {"order_id": [n // 2 for n in range(ROWS)], "amount": [*range(ROWS)], "batch": batch}
    return {"o": pa.table(orders), "p": pa.table(payments)}


EXPECTED = Counter((n // 2, n) for n in range(ROWS))


def run_join(path: Path, sink: Callable[[pa.Table, int], None]) -> None:
    """Run the join to its end, or resume it."""
    join = StreamJoin(make_streams(), "o.id = p.order_id", Centralized())
    join.start(path, batches="batch", foreachBatch=sink, durability="process").awaitTermination()


def read_sqlite(path: Path) -> Counter[Any]:
    with sqlite3.connect(path) as connection:
        return Counter(connection.execute("SELECT * FROM paid").fetchall())


def read_duckdb(path: Path) -> Counter[Any]:
    with duckdb.connect(str(path)) as connection:
        return Counter(connection.execute("SELECT * FROM paid").fetchall())


@pytest.mark.parametrize(
    ("name", "read"), [("into_sqlite", read_sqlite), ("into_duckdb", read_duckdb)]
)
@pytest.mark.parametrize("is_after", [False, True])
def test_a_sink_that_fails_before_or_after_its_commit_has_each_row_once(
    tmp_path: Path, name: str, read: Callable[[Path], Counter[Any]], is_after: bool
) -> None:
    write, failing = partial(SINKS[name], path=str(tmp_path / "db")), {1, 3, 4}

    def fail_once(results: pa.Table, batch: int) -> None:
        is_first = batch in failing
        failing.discard(batch)
        if is_first and not is_after:
            raise RuntimeError(f"batch {batch} is not taken")
        write(results, batch)
        if is_first:
            raise RuntimeError(f"batch {batch} is taken, but nobody knows")

    for batch in (1, 3, 4):
        with pytest.raises(RuntimeError, match=f"batch {batch} is"):
            run_join(tmp_path / "run", fail_once)
    run_join(tmp_path / "run", fail_once)
    assert read(tmp_path / "db") == EXPECTED


def test_a_sink_fails_inside_its_transaction_without_a_trace(tmp_path: Path) -> None:
    """Rows of another shape are refused after the number was written: both are rolled back."""
    for name, read in (("into_sqlite", read_sqlite), ("into_duckdb", read_duckdb)):
        path, rows = tmp_path / name, pa.table({"o": [{"id": 1}], "p": [{"amount": 2}]})
        SINKS[name](rows, 0, str(path))
        with pytest.raises(Exception, match="amount"):
            SINKS[name](pa.table({"o": [{"id": 1}], "p": [{"total": 2}]}), 1, str(path))
        SINKS[name](rows, 1, str(path))
        assert read(path) == Counter({(1, 2): 2})


def test_a_process_that_is_killed_in_its_sink_is_resumed_with_each_row_once(tmp_path: Path) -> None:
    killed = subprocess.run(
        [sys.executable, str(Path(__file__)), str(tmp_path)], env=os.environ, capture_output=True
    )
    assert killed.returncode == 9, killed.stderr.decode()
    assert sum(read_sqlite(tmp_path / "db").values()) < ROWS
    run_join(tmp_path / "run", partial(SINKS["into_sqlite"], path=str(tmp_path / "db")))
    assert read_sqlite(tmp_path / "db") == EXPECTED


def _run_and_die(folder: Path) -> None:
    """End this process after the commit of batch 2 in the database."""

    def die(results: pa.Table, batch: int) -> None:
        SINKS["into_sqlite"](results, batch, str(folder / "db"))
        if batch == 2:
            os._exit(9)

    run_join(folder / "run", die)


if __name__ == "__main__":
    _run_and_die(Path(sys.argv[1]))
