"""What shedding load costs and brings: ratios of one run, in this process, without Spark.

    .venv/bin/python benchmarks/shedding.py [kernel idle quarter drop burst keys plan]

Prints each ratio beside the least or most that it should be. Speeds depend on the machine, ratios
hardly do.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
from braid import Centralized, Shed, StaticGrid, StreamJoin
from braid.core import step
from braid.core.events import BatchCommitted
from braid.core.report import Outcome, Size
from braid.core.state import State
from braid.core.step import Rules
from braid.local.sets import Sets, sharing

BATCHES, ROWS, WINDOW = 24, 600, 12


def stream(
    seed: int, delay: float = 0.0, factor: Callable[[int], float] = lambda b: 1.0
) -> pa.Table:
    """Tuples that match those of the other stream that come ``delay`` seconds apart."""
    draw = np.random.default_rng(seed)
    sizes = [int(ROWS * factor(b)) for b in range(BATCHES)]
    batch = np.repeat(np.arange(BATCHES), sizes)
    at = batch + draw.random(len(batch))
    near = np.floor((at - delay) * 100) * 50 + draw.integers(0, 50, len(at))
    return pa.table(
        {
            "id": np.arange(len(at)),
            "batch": batch.astype(np.int32),
            "ts": pa.array((at * 1e6).astype(np.int64), pa.timestamp("us", tz="UTC")),
            "v": near.astype(np.int64),
            "w": draw.integers(0, 1000, len(at)),
            "k": draw.integers(0, 4000, len(at)),
        }
    )


ON = "(a.v - b.v) * (a.v - b.v) < 160000 AND (a.w + b.w) % 50 < 2"
"""Two conditions on every pair of the windows: work that grows with pairs."""


def run(streams: dict[str, pa.Table], shed: Shed | None, on: str = ON, **more: Any) -> Any:
    settings: Any = dict(windows=dict.fromkeys("ab", f"{WINDOW} seconds"), time="ts") | more
    join = StreamJoin(streams, on, settings.pop("placement", Centralized()), shed=shed, **settings)
    with tempfile.TemporaryDirectory() as folder:
        made = join.start(Path(folder) / "run", batches="batch")
        made.awaitTermination()
        return made.events(), made.results().num_rows


def totals(happened: list[Any], since: int = 0) -> list[float]:
    """Seconds of each batch, from one on."""
    return [
        max(e.seconds.values())
        for e in happened
        if isinstance(e, BatchCommitted) and e.batch >= since
    ]


def busy(happened: list[Any], since: int = WINDOW) -> float:
    return sum(
        h.seconds
        for e in happened
        if isinstance(e, BatchCommitted) and e.batch >= since
        for h in e.hosts
    )


def kernel() -> None:
    """The kernel on sets beside DuckDB on the same pairs."""
    draw = np.random.default_rng(0)
    weights = np.arange(1, 101.0) ** -0.6
    sets = [
        [
            draw.choice(100, 5, replace=False, p=weights / weights.sum()).tolist()
            for _ in range(2000)
        ]
        for _ in range(2)
    ]
    columns = [pa.array(s, pa.list_(pa.int32())) for s in sets]
    a, b = map(Sets.of, columns)
    began = time.perf_counter()
    found = sum(len(x) for _ in range(5) for x, _ in sharing(a, np.arange(2000), b, 3)) // 5
    ours = (time.perf_counter() - began) / 5
    with duckdb.connect(config={"threads": 1}) as db:
        db.register("a", pa.table({"x": columns[0].slice(0, 400)}))
        db.register("b", pa.table({"x": columns[1]}))
        began = time.perf_counter()
        query = "SELECT count(*) FROM a, b WHERE len(list_intersect(a.x, b.x)) >= 3"
        counted = db.execute(query).fetchall()[0][0]
        theirs = 5 * (time.perf_counter() - began)
    few = sum(len(x) for x, _ in sharing(a, np.arange(400), b, 3))
    assert few == counted and found >= few
    told("sets kernel / DuckDB, same pairs", theirs / ours, ">= 30")
    print(f"  {4e6 / ours / 1e6:.0f} million pairs/s")


def idle() -> None:
    """Not overloaded: shedding that has nothing to shed."""
    streams = {"a": stream(1), "b": stream(2, 5)}
    ratios = []
    for _ in range(3):
        with_shed, _ = run(streams, Shed(seconds=3600))
        without, _ = run(streams, None)
        ratios.append(np.median(totals(with_shed, WINDOW)) / np.median(totals(without, WINDOW)))
    told("median batch, nothing to shed / without shed", float(np.median(ratios)), "<= 1.05")


def quarter() -> None:
    """A quarter of the pairs."""
    streams = {"a": stream(1), "b": stream(2, 5)}
    part, found = run(streams, Shed(fraction=0.25, basic="1 second"))
    whole, all_ = run(streams, None)
    told("busy seconds at fraction 0.25 / full join", busy(part) / busy(whole), "<= 0.35")
    print(f"  {found / all_:.0%} of the results for a quarter of the pairs")


def drop() -> None:
    """Results of selective processing and of dropping, for as many busy seconds."""
    streams = {"a": stream(1), "b": stream(2, 5)}
    for fraction, least in ((0.25, 1.7), (0.1, 2.3)):
        mine, found = run(streams, Shed(fraction=fraction, basic="1 second"))
        spent, low, high = busy(mine), fraction / 4, 1.0
        for _ in range(4):  # the fraction at which dropping takes as long
            middle = (low + high) / 2
            theirs, dropped = run(streams, Shed(fraction=middle, method="drop"))
            low, high = (middle, high) if busy(theirs) < spent else (low, middle)
        told(
            f"results, selective / drop, same busy seconds, {fraction:.0%}",
            found / dropped,
            f">= {least}",
        )


def burst() -> None:
    """Five times as many tuples for a while, with and without a bound on seconds."""

    def factor(b: int) -> float:
        return 1.5 if 10 <= b < 17 else 0.3

    streams = {"a": stream(1, 0, factor), "b": stream(2, 5, factor)}
    free, _ = run(streams, None)
    limit = float(np.quantile(totals(free, 10), 0.9)) / 4
    kept, _ = run(streams, Shed(seconds=limit, basic="1 second"))
    told(
        "burst: p90 batch / L with Shed(seconds=L)",
        float(np.quantile(totals(kept, 10), 0.9)) / limit,
        "<= 1.15",
    )
    told("burst: p90 batch / L without", float(np.quantile(totals(free, 10), 0.9)) / limit, ">= 3")


def keys() -> None:
    """An equality: keys and tuples left out, a quarter of the tuples of both streams."""
    streams = {"a": stream(1), "b": stream(2)}
    found = {}
    for method in ("keys", "drop"):
        shed = Shed(fraction=1 / 16, method=method)
        found[method] = run(streams, shed, "a.k = b.k")[1]
    told(
        "equality: results of keys / drop at a quarter of the tuples",
        found["keys"] / found["drop"],
        ">= 3",
    )


def plan() -> None:
    """What planning the harvest adds, of the seconds of a batch."""
    streams = {"a": stream(1), "b": stream(2, 5)}
    happened, _ = run(streams, Shed(fraction=0.25), placement=StaticGrid(64))
    batch = float(np.median(totals(happened, WINDOW)))
    placement, shed = StaticGrid(64), Shed(fraction=0.25)
    window = WINDOW * 10**6
    rules = Rules(placement, ("a", "b"), (window, window), check=False, shedder=shed)
    state = State.first(2, placement.start(2), (), shed.start(2))
    for b in range(WINDOW + 4):
        work = step.plan(rules, state)
        sizes = {
            r.block.id: Size(ROWS // 8, 1, (b * 10**6, b * 10**6 + 999_999))
            for r in work.plan.routes
        }
        sizes |= {
            d.block.id: Size(d.block.rows, 1, d.block.span or (0, 0))
            for d in work.whole.derivations
        }
        state, _ = step.commit(rules, state, work, Outcome(sizes))
    work = step.plan(rules, state)
    began = time.perf_counter()
    for _ in range(20):
        shed.plan(work.facts, placement.plan(work.facts, state.policy), state.shedding, None)
    both = time.perf_counter() - began
    began = time.perf_counter()
    for _ in range(20):
        placement.plan(work.facts, state.policy)
    alone = time.perf_counter() - began
    told("planning the harvest / batch, 64 hosts", (both - alone) / 20 / batch, "<= 0.005")


def told(what: str, ratio: float, wanted: str) -> None:
    print(f"{what}: {ratio:.3g} (wanted {wanted})", flush=True)


ALL = {f.__name__: f for f in (kernel, idle, quarter, drop, burst, keys, plan)}

if __name__ == "__main__":
    for name in [a for a in sys.argv[1:] if a != "--quick"] or ALL:  # it is small as it is
        ALL[name]()
