"""Make the run folder that later versions must resume: a left join, stopped halfway.

``python tests/stored_formats/make_folder.py`` writes VERSION.tar.gz beside this file, once for each
release; it is never made again.
"""

from __future__ import annotations

import sys
import tarfile
import tempfile
from itertools import product
from pathlib import Path
from typing import Any

import braid
import pyarrow as pa
from braid import AdaptiveGrid, JoinRun, StreamJoin
from braid.util.clock_and_threads import Environment, replace_environment

MINUTE = 60_000_000
WINDOW = 10
LAST = 3
"""The batch, counted from 0, after which the run is stopped."""

Pair = tuple[int, int | None]


class _NoMachine(Environment):
    """This machine, without its name."""

    def find_host_name(self) -> str:
        return "host"


def make_tables() -> dict[str, pa.Table]:
    """Return two streams of eight batches, a minute apart from tuple to tuple."""
    return {alias: _make_table(alias, step) for alias, step in (("o", 3), ("p", 5))}


def _make_table(alias: str, step: int) -> pa.Table:
    ids = range(80)
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "k": [None if i % 19 == 7 else i * step % 4 for i in ids],
            "amount": [i * step % 11 / 2 for i in ids],
            "note": [f"{alias} {i % 6}" for i in ids],
            "ts": pa.array([i * MINUTE for i in ids], pa.timestamp("us")),
            "batch": [i // 10 for i in ids],
        }
    )


def find_pairs() -> list[Pair]:
    """Return the ids of the results, by brute force; None beside a tuple without a partner."""
    o, p = (table.to_pylist() for table in make_tables().values())
    pairs: list[Pair] = [
        (a["id"], b["id"])
        for a, b in product(o, p)
        if a["k"] is not None and a["k"] == b["k"] and a["amount"] > b["amount"]
        if abs(a["ts"] - b["ts"]).total_seconds() < WINDOW * 60
    ]
    paired = {left for left, _ in pairs}
    return sorted(pairs + [(a["id"], None) for a in o if a["id"] not in paired], key=repr)


def write_folder(folder: Path) -> None:
    """Run the join as far as LAST."""
    runs: list[JoinRun] = []

    def stop_run(results: Any, batch: int) -> None:
        if batch == LAST:
            runs[0].stop()

    on, windows = "o.k = p.k AND o.amount > p.amount", f"{WINDOW} minutes"
    join = StreamJoin(make_tables(), on, AdaptiveGrid(hosts=3), windows, "ts", how="left")
    runs.append(join.start(folder, batches="batch", pace=0.2, foreachBatch=stop_run))
    runs[0].awaitTermination()


def make_archive(target: Path) -> None:
    """Write a folder as an archive that names no machine and no user."""

    def forget_owner(entry: tarfile.TarInfo) -> tarfile.TarInfo:
        entry.uid = entry.gid = 0
        entry.uname = entry.gname = ""
        return entry

    with tempfile.TemporaryDirectory() as folder, replace_environment(_NoMachine()):
        write_folder(Path(folder) / "run")
        with tarfile.open(target, "w:gz") as archive:
            archive.add(Path(folder) / "run", "run", filter=forget_owner)


if __name__ == "__main__":
    target = Path(__file__).with_name(f"{braid.__version__}.tar.gz")
    if target.exists():
        sys.exit(f"{target.name} is there; a folder of a released version is not made again")
    make_archive(target)
