"""Join by conditions of many kinds: pairs compared for each result and row, and time.

Braid joins tables in ten batches, in this process, and writes its results and its state. DuckDB
runs the best statement for the same batches in a loop by hand: new rows with stored ones, in both
directions, with one Parquet file of results for each batch. It keeps its rows in memory and could
not continue after a crash. DuckDB's one join of the whole input is reported, too. All results must
be equal in number and hash.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import NamedTuple

import duckdb
import pandas as pd
import pyarrow as pa
from _common import Measure, arguments, leave, scratch
from _conditions_cases import CASES, Case, make_tables
from braid.stream_join import StreamJoin

HASHES = "SELECT count(*), coalesce(sum(hash(a.id, b.id)::HUGEINT), 0) FROM '{}'"
Tables = dict[str, pa.Table]


class Outcome(NamedTuple):
    """Seconds, the number of results and the sum of their hashes.

    ``compared``: the pairs compared; None: not counted.
    """

    seconds: float
    results: tuple[int, int]
    compared: int | None = None


def read_results(files: Path) -> tuple[int, int]:
    """Return the number of results and the sum of their hashes."""
    with duckdb.connect() as db:
        number, hashes = db.execute(HASHES.format(files)).fetchone() or (0, 0)
    return int(number), int(hashes)


def run_braid(case: Case, tables: Tables, folder: Path) -> Outcome:
    """Run the whole join in batches, from its statement to its end."""
    began = time.perf_counter()
    run = StreamJoin(tables, case.on, windows=None).start(folder, batches="batch")
    run.awaitTermination()
    seconds = time.perf_counter() - began
    compared = int(run.metrics(by="batch")["compared_pairs"].sum())
    return Outcome(seconds, read_results(folder / "results" / "*.parquet"), compared)


def run_loop(case: Case, tables: Tables, folder: Path, batches: int) -> Outcome:
    """Run DuckDB's statement for each batch: new rows of a with all of b, and the reverse."""
    folder.mkdir()
    began = time.perf_counter()
    with duckdb.connect(config={"threads": 2}) as db:
        for alias in "ab":
            db.register(f"whole_{alias}", tables[alias])
            db.execute(f"CREATE TABLE old_{alias} AS FROM whole_{alias} LIMIT 0")
        for number in range(batches):
            for alias in "ab":
                db.execute(
                    f"CREATE OR REPLACE TABLE new_{alias} AS "
                    f"FROM whole_{alias} WHERE batch = {number}"
                )
            db.execute("INSERT INTO old_b FROM new_b")
            found = f"{case.statement('new_a', 'old_b')} UNION ALL "
            found += case.statement("old_a", "new_b")
            db.execute(f"COPY ({found}) TO '{folder}/{number}.parquet'")
            db.execute("INSERT INTO old_a FROM new_a")
    seconds = time.perf_counter() - began
    return Outcome(seconds, read_results(folder / "*.parquet"))


def run_at_once(case: Case, tables: Tables, file: Path) -> Outcome:
    """Run DuckDB's one join of the whole input, as the condition is written."""
    began = time.perf_counter()
    with duckdb.connect(config={"threads": 2}) as db:
        for alias in "ab":
            db.register(f"whole_{alias}", tables[alias])
        joined = f"SELECT a, b FROM whole_a a JOIN whole_b b ON {case.on}"
        db.execute(f"COPY ({joined}) TO '{file}'")
    return Outcome(time.perf_counter() - began, read_results(file))


def measure_case(case: Case, rows: int, batches: int, folder: Path) -> dict[str, object]:
    """Return the line of a case: counts, seconds and their ratios."""
    tables = make_tables(case, rows, batches)
    loop = run_loop(case, tables, folder / "loop", batches)
    ours = run_braid(case, tables, folder / "braid")
    assert ours.results == loop.results, f"{case.name}: {ours.results}, DuckDB {loop.results}"
    once = run_at_once(case, tables, folder / "once.parquet") if rows <= case.most_rows else None
    assert ours.compared is not None
    return {
        "case": case.name,
        "rows a side": rows,
        "results": ours.results[0],
        "compared / (results + rows)": ours.compared / (ours.results[0] + 2 * rows),
        "seconds": ours.seconds,
        "/ loop": ours.seconds / loop.seconds,
        "/ one join": ours.seconds / once.seconds if once else None,
    }


def main() -> None:
    args = arguments(__doc__ or "", {"rows": 10_000}, rows=100_000, batches=10)
    lines = []
    for case in CASES:
        with scratch() as folder:
            lines.append(measure_case(case, args.rows, args.batches, folder))
        print(lines[-1], flush=True)
    table = pd.DataFrame(lines)
    measures = [
        Measure(f"{line['case']}: {name}", float(line[name]), most, aim, most=True)  # type: ignore[arg-type]
        for line in lines
        for name, most, aim in (("compared / (results + rows)", 3, 1.5), ("/ loop", 2, 1))
    ]
    leave(args, {f"{args.batches} batches": table.round(3)}, measures)


if __name__ == "__main__":
    main()
