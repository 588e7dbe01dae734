"""Join by conditions of many kinds: pairs compared for each result and row, and time.

Braid joins tables in ten batches, in this process, and writes its results and its state. DuckDB
runs the best statement for the same batches in a loop by hand: new rows with stored ones, in both
directions, with one Parquet file of results for each batch. It keeps its rows in memory and could
not continue after a crash. Both run in turns after a warm-up, and the best round of each counts.
DuckDB's one join of the whole input, as the condition is written, is reported. All results must be
equal in number and hash. Seconds are left out if the machine was busy before the start.

The held tuples are those of a join within one and two minutes of event time, without windows, in
batches of ten seconds: the most after any batch.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
from _common import Measure, make_scratch_folder, parse_arguments, write_figures
from _conditions_cases import CASES, FLIGHTS, Case, make_flights, make_tables
from braid.core.run_events import BatchCommitted
from braid.kernels.merge_sort_tree import MergeSortTree
from braid.kernels.zone_tree import ZoneTree
from braid.stream_join import StreamJoin

Tables = dict[str, pa.Table]
SECONDS_COLUMNS = ["s", "DuckDB loop s", "DuckDB at once s"]
"""Columns of seconds."""
_BATCH_SECONDS = 10
"""Event time of a batch of the join that counts held tuples."""
_LOOKED_AT = [0]
"""Nodes of trees that all searches have looked at."""


class Outcome(NamedTuple):
    """Seconds, the number of results and the sum of their hashes.

    - ``compared``: compared pairs; only of Braid.
    - ``looked_at``: nodes of trees that searches looked at; only of Braid.
    """

    seconds: float
    results: tuple[int, int]
    compared: int = 0
    looked_at: int = 0


def count_nodes(tree: type[ZoneTree] | type[MergeSortTree]) -> None:
    """Add the nodes that searches of these trees look at to ``_LOOKED_AT``."""
    search: Callable[..., Iterator[Any]] = tree.find_pairs

    def find_pairs(self: Any, *given: Any) -> Iterator[Any]:
        before = self.looked_at
        yield from search(self, *given)
        _LOOKED_AT[0] += self.looked_at - before

    tree.find_pairs = find_pairs  # type: ignore[method-assign, assignment]


def read_results(files: Path, a: str, b: str) -> tuple[int, int]:
    """Return the number of results and the sum of their hashes."""
    hashes = f"SELECT count(*), coalesce(sum(hash({a}.id, {b}.id)::HUGEINT), 0) FROM '{files}'"
    with duckdb.connect() as db:
        number, total = db.execute(hashes).fetchone() or (0, 0)
    return int(number), int(total)


def run_braid(on: str, tables: Tables, folder: Path) -> Outcome:
    """Run the whole join in batches, from its statement to its end."""
    before, began = _LOOKED_AT[0], time.perf_counter()
    run = StreamJoin(tables, on).start(folder, batches="batch")
    run.awaitTermination()
    seconds = time.perf_counter() - began
    compared = int(run.metrics(by="batch")["compared_pairs"].sum())
    results = read_results(folder / "results" / "*.parquet", *tables)
    shutil.rmtree(folder)
    return Outcome(seconds, results, compared, _LOOKED_AT[0] - before)


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
            query = f"{case.format_statement('new_a', 'old_b')} UNION ALL "
            query += case.format_statement("old_a", "new_b")
            db.execute(f"COPY ({query}) TO '{folder}/{number}.parquet'")
            db.execute("INSERT INTO old_a FROM new_a")
    seconds = time.perf_counter() - began
    results = read_results(folder / "*.parquet", "a", "b")
    shutil.rmtree(folder)
    return Outcome(seconds, results)


def run_whole_join(on: str, tables: Tables, file: Path) -> Outcome:
    """Run DuckDB's one join of the whole input, as the condition is written."""
    a, b = tables
    began = time.perf_counter()
    with duckdb.connect(config={"threads": 2}) as db:
        for alias in tables:
            db.register(f"whole_{alias}", tables[alias])
        joined = f"SELECT {a}, {b} FROM whole_{a} {a} JOIN whole_{b} {b} ON {on}"
        db.execute(f"COPY ({joined}) TO '{file}'")
    return Outcome(time.perf_counter() - began, read_results(file, a, b))


def measure_case(case: Case, rows: int, batches: int, rounds: int, folder: Path) -> dict[str, Any]:
    """Return the line of a case: counts, seconds and their ratios."""
    tables = make_tables(case, rows, batches)
    turns = [
        (
            run_braid(case.on, tables, folder / "braid"),
            run_loop(case, tables, folder / "loop", batches),
        )
        for _ in range(rounds)
    ]
    braid, loop = (min(each, key=lambda o: o.seconds) for each in zip(*turns, strict=True))
    once = None
    if rows <= case.most_rows:
        once = run_whole_join(case.on, tables, folder / "once.parquet")
    answers = {o.results for turn in turns for o in turn} | ({once.results} if once else set())
    assert len(answers) == 1, f"results of {case.name} differ: {answers}"
    least = braid.results[0] + 2 * rows
    return {
        "condition": case.name,
        "rows a side": rows,
        "results": braid.results[0],
        "compared / (results + rows)": braid.compared / least,
        "looked at / (results + rows)": braid.looked_at / least,
        "compared / row": braid.compared / rows,
        "s": braid.seconds,
        "DuckDB loop s": loop.seconds,
        "DuckDB at once s": once.seconds if once else None,
    }


def measure_flights(batches: int, rounds: int, folder: Path) -> dict[str, Any]:
    """Return the line of flights with weather."""
    tables = make_flights(batches)
    runs = [run_braid(FLIGHTS, tables, folder / "braid") for _ in range(rounds)]
    braid = min(runs, key=lambda o: o.seconds)
    once = run_whole_join(FLIGHTS, tables, folder / "once.parquet")
    assert {o.results for o in runs} == {once.results}, "results of flights differ"
    return {
        "flights": tables["f"].num_rows,
        "weather": tables["w"].num_rows,
        "results": braid.results[0],
        "compared / results": braid.compared / braid.results[0],
        "s": braid.seconds,
        "DuckDB at once s": once.seconds,
    }


def measure_held(hours: int, folder: Path) -> dict[str, Any]:
    """Return the line of a join that bounds time by one and two minutes, one row a second."""
    number = np.arange(hours * 3600)
    times = pa.array(((number + 1) * 1_000_000).astype("datetime64[us]"))
    rows = pa.table({"id": number, "ts": times, "batch": number // _BATCH_SECONDS})
    on = "b.ts BETWEEN a.ts - INTERVAL 2 MINUTES AND a.ts + INTERVAL 1 MINUTE"
    run = StreamJoin({"a": rows, "b": rows}, on, time="ts").start(folder, batches="batch")
    run.awaitTermination()
    commits = [event for event in run.events() if isinstance(event, BatchCommitted)]
    needed = 3 * 60 + 2 * _BATCH_SECONDS
    return {
        "hours of event time": hours,
        "batches": len(commits),
        "held rows": max(sum(event.live_tuples) for event in commits),
        "bound + a batch, rows": needed,
    }


def make_measures(lines: list[dict[str, Any]], main_rows: int, is_quiet: bool) -> Iterator[Measure]:
    """Yield the measures: each of the condition that does worst.

    - ``main_rows``: rows at which times are compared, and from which the growth is measured.
    """
    table = pd.DataFrame(lines).set_index(["rows a side", "condition"])
    for rows, part in table.groupby(level=0):
        if rows <= main_rows:
            worst = part["compared / (results + rows)"].max()
            yield Measure(
                f"conditions: compared / (results + rows), {rows:,} rows", worst, 3, 1.5, most=True
            )
        if rows >= main_rows:
            worst = part["looked at / (results + rows)"].max()
            yield Measure(
                f"conditions: looked at / (results + rows), {rows:,} rows", worst, 16, 8, most=True
            )
        if rows > main_rows:
            growth = (part.loc[rows] / table.loc[main_rows])["compared / row"].max()
            yield Measure(
                f"conditions: growth of compared / row to {rows:,} rows", growth, 1.3, most=True
            )
        if rows == main_rows and is_quiet:
            ratios = (part["s"] / part["DuckDB loop s"]).loc[rows]
            is_band = ratios.index.str.startswith("equality and band")
            yield Measure(
                "equality and band: s / DuckDB loop", ratios[is_band].max(), 3, 1, most=True
            )
            yield Measure(
                "other conditions: s / DuckDB loop", ratios[~is_band].max(), 2, 1, most=True
            )


def main() -> None:
    args = parse_arguments(
        __doc__ or "",
        {"rows": 10_000, "large": 20_000, "rounds": 1, "hours": 1},
        hours=10,
        rows=100_000,
        large=1_000_000,
        batches=10,
        rounds=3,
    )
    for tree in (ZoneTree, MergeSortTree):
        count_nodes(tree)
    is_quiet = os.getloadavg()[0] < (os.cpu_count() or 1)
    lines = []
    with make_scratch_folder() as folder:
        run_braid(CASES[0].on, make_tables(CASES[0], 1000, args.batches), folder / "braid")
        for case in CASES:
            for rows in (args.rows // 10, args.rows, args.large):
                rounds = args.rounds if rows <= args.rows else 1
                lines.append(measure_case(case, rows, args.batches, rounds, folder))
                print(lines[-1], flush=True)
        flights = measure_flights(args.batches, args.rounds, folder)
        held = measure_held(args.hours, folder / "held")
    pairs, share = flights["compared / results"], held["held rows"] / held["bound + a batch, rows"]
    measures = [
        *make_measures(lines, args.rows, is_quiet),
        Measure("flights with weather: compared / results", pairs, 2, most=True),
        Measure("held rows / (bound + a batch)", share, 1.3, most=True),
    ]
    if is_quiet:
        measures.append(Measure("flights with weather: seconds", flights["s"], 2, most=True))
    tables = {
        f"{args.batches} batches": pd.DataFrame(lines),
        "flights with the weather of 3 hours before": pd.DataFrame([flights]),
        "held tuples": pd.DataFrame([held]),
    }
    busy = "The machine was busy before the start, so seconds are left out."
    if not is_quiet:
        tables = {
            title: table.drop(columns=SECONDS_COLUMNS, errors="ignore")
            for title, table in tables.items()
        }
    shown = {title: table.round(3) for title, table in tables.items()}
    write_figures(args, shown, measures, () if is_quiet else (busy,))


if __name__ == "__main__":
    main()
