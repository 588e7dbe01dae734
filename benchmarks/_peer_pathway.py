"""The windowed equi-join in Pathway.

Usage: _peer_pathway.py FOLDER WINDOW_MS ROUNDS; peers.py runs it in a virtual environment. It reads
FOLDER/a-named.csv and b-named.csv, writes FOLDER/pathway.csv, and prints the seconds of each round
as JSON.
"""

from __future__ import annotations

import json
import sys
import time

import pathway as pw
from pathway.internals.parse_graph import G


class Row(pw.Schema):  # type: ignore[misc]
    k: int
    t: int
    v: int
    x: float


def run_round(folder: str, window: int) -> float:
    """Return the seconds from reading to the written result file."""
    a, b = (pw.io.csv.read(f"{folder}/{s}-named.csv", schema=Row, mode="static") for s in "ab")
    within = pw.temporal.interval(1 - window, window - 1)
    joined = a.interval_join(b, a.t, b.t, within, a.k == b.k)
    pairs = joined.select(av=pw.left.v, bv=pw.right.v)
    pw.io.csv.write(pairs, f"{folder}/pathway.csv")
    began = time.perf_counter()
    pw.run(monitoring_level=pw.MonitoringLevel.NONE)
    G.clear()
    return time.perf_counter() - began


def main() -> None:
    folder, window, rounds = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    print(json.dumps([run_round(folder, window) for _ in range(rounds)]))


if __name__ == "__main__":
    main()
