"""Measure cost and benefit of load shedding as ratios within one run.

All measures but the last run in this process, without Spark. Tuples of two streams match those of
the other stream some seconds later. Two conditions are checked on every pair of the windows, so the
work grows with the number of pairs. If nothing must be shed, runs with and without shedding
alternate batch by batch. The median of the ratios of two consecutive batches counts: other work on
the machine affects both, and 30 runs of each kind leave an error of 0.01 to 0.02. The same is
measured for an equality, which would show the cost of shedding per tuple. At a quarter of the
pairs, whole runs alternate, and the fastest of all rounds counts for each batch. The burst has five
times as many tuples for a third of the run; L is twice the median batch before it. Runs are stored
in memory if the machine has a file system there, so that its disk matters little.

The last measure is a batch join of two static frames of sets on Spark, against idiomatic Spark SQL
(explode both, join on the item, group, having). Both must return the same number of results. An
eighth of the rows warms both up. The work of both grows with the square of the rows, but Braid's
batch also has a fixed cost. More rows would increase the ratio, and make only the wait longer.
"""

from __future__ import annotations

import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
from _common import Measure, arguments, leave, scratch, seconds
from braid import Centralized, Shed, StaticGrid, StreamJoin
from braid.core import batch_step
from braid.core.batch_report import BatchReport, BlockSize
from braid.core.batch_work import RunRules
from braid.core.horizon import reach_of_windows
from braid.core.run_events import BatchCommitted
from braid.core.run_state import RunState
from braid.kernels.set_overlap import SetColumn, pairs_sharing
from braid.spark_session import session
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from scipy import sparse

BATCHES, WINDOW = 24, 12
SHARED = Path("/dev/shm")
ROOMY = SHARED.is_dir() and shutil.disk_usage(SHARED).free > 1 << 30
MEMORY = str(SHARED) if ROOMY else None
LIMIT = 2.0
"""L of the burst, in median batches before it."""


def stream(
    seed: int, rows: int, delay: float = 0.0, factor: Callable[[int], float] = lambda b: 1.0
) -> pa.Table:
    """Return tuples that match those of the other stream ``delay`` seconds apart."""
    draw = np.random.default_rng(seed)
    sizes = [int(rows * factor(b)) for b in range(BATCHES)]
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
"""Two conditions on every pair of the windows, so the work grows with the number of pairs."""


def run(
    streams: dict[str, pa.Table], shed: Shed | None, on: str = ON, give: Any = None, **more: Any
) -> Any:
    settings: Any = dict(windows=dict.fromkeys("ab", f"{WINDOW} seconds"), time="ts") | more
    join = StreamJoin(streams, on, settings.pop("placement", Centralized()), shed=shed, **settings)
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        made = join.start(Path(folder) / "run", batches="batch", foreachBatch=give)
        made.awaitTermination()
        return made.events(), made.results().num_rows


def totals(happened: list[Any], since: int = 0) -> list[float]:
    """Return the seconds of each batch, from one on."""
    return [
        max(e.seconds_by_phase.values())
        for e in happened
        if isinstance(e, BatchCommitted) and e.batch >= since
    ]


def busy(happened: list[Any], since: int = WINDOW) -> float:
    return sum(each_busy(happened, since))


def each_busy(happened: list[Any], since: int) -> list[float]:
    """Return the busy seconds of the hosts in each batch, from one on."""
    return [
        sum(h.seconds for h in e.host_metrics)
        for e in happened
        if isinstance(e, BatchCommitted) and e.batch >= since
    ]


def both(rows: int, factor: Callable[[int], float] = lambda b: 1.0) -> dict[str, pa.Table]:
    return {"a": stream(1, rows, 0, factor), "b": stream(2, rows, 5, factor)}


def sets(rows: int, items: int, size: int, kappa: float, seed: int) -> pa.Array:
    """Return sets of ``size`` distinct items with Zipf popularity, drawn by Gumbel's trick."""
    draw = np.random.default_rng(seed)
    weights = -kappa * np.log(np.arange(1, items + 1))
    chosen = [
        np.argpartition(-(weights + draw.gumbel(size=items)), size)[:size] for _ in range(rows)
    ]
    return pa.array([c.tolist() for c in chosen], pa.list_(pa.int32()))


def timed(work: Callable[[], Any], times: int = 5) -> tuple[float, Any]:
    """Return the median seconds of the work, and its result."""
    took, found = [], None
    for _ in range(times):
        began = time.perf_counter()
        found = work()
        took.append(time.perf_counter() - began)
    return float(np.median(took)), found


def kernel(rows: int) -> Iterable[Measure]:
    """Measure the kernel on sets against DuckDB on the same pairs and a plain sparse product."""
    columns = [sets(rows, 100, 5, 0.6, seed) for seed in (0, 1)]
    a, b = map(SetColumn.from_arrow, columns)
    ours, found = timed(lambda: sum(len(x) for x, _ in pairs_sharing(a, np.arange(rows), b, 3)))
    with duckdb.connect(config={"threads": 1}) as db:
        db.register("a", pa.table({"x": columns[0].slice(0, rows // 5)}))
        db.register("b", pa.table({"x": columns[1]}))
        query = "SELECT count(*) FROM a, b WHERE len(list_intersect(a.x, b.x)) >= 3"
        theirs, counted = timed(lambda: db.execute(query).fetchall()[0][0], 1)
    few = sum(len(x) for x, _ in pairs_sharing(a, np.arange(rows // 5), b, 3))
    assert few == counted and found >= few
    yield Measure("sets kernel: pairs/s / DuckDB's", 5 * theirs / ours, 30)
    a, b = (SetColumn.from_arrow(sets(rows, 20_000, 15, 1.0, seed)) for seed in (2, 3))
    ours, found = timed(lambda: sum(len(x) for x, _ in pairs_sharing(a, np.arange(rows), b, 6)))
    mine, other = (
        sparse.csr_matrix(
            (np.ones(len(at), np.int32), (at, code)), (rows, len(b.dictionary)), dtype=np.int32
        )
        for at, code in (a.encode_in(b), (b.rows, b.codes))
    )
    turned = other.T.tocsr()

    def plain() -> int:
        product = mine @ turned
        hits = np.flatnonzero(product.data >= 6)
        left = np.searchsorted(product.indptr, hits, "right") - 1
        return len(np.stack([left, product.indices[hits]])[0])

    theirs, counted = timed(plain)
    assert found == counted
    yield Measure("sets kernel: pairs/s / plain sparse product's", theirs / ours, 3)


def in_turns(
    streams: dict[str, pa.Table], ways: Sequence[Shed | None], first: int, on: str
) -> list[np.ndarray]:
    """Return the seconds of each batch for both ways.

    Two runs alternate batch by batch, so that other work on the machine affects both alike.
    """
    turns = [threading.Semaphore(0), threading.Semaphore(0)]
    turns[first].release()

    def took(way: int) -> np.ndarray:
        def given(results: pa.Table, batch: int) -> None:
            turns[1 - way].release()
            if way == first or batch < BATCHES - 1:
                turns[way].acquire()

        turns[way].acquire()
        try:
            return np.array(totals(run(streams, ways[way], on, given)[0], WINDOW))
        finally:
            turns[1 - way].release(BATCHES)

    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(took, (0, 1)))


def idle(rows: int, rounds: int) -> Iterable[Measure]:
    """Measure shedding without overload."""
    ways = (Shed(seconds=3600), None)
    for name, on, size in (("pairs", ON, rows // 2), ("an equality", "a.k = b.k", 8 * rows)):
        took = [in_turns(both(size), ways, n % 2, on) for n in range(6 * rounds)]
        yield Measure(
            f"median batch, {name}: nothing to shed / without shed",
            float(np.median([least / without for least, without in took])),
            1.05,
            most=True,
        )


def quarter(rows: int, rounds: int) -> Iterable[Measure]:
    """Measure processing a quarter of the pairs."""
    ways, streams = (Shed(fraction=0.25, basic_window="1 second"), None), both(rows)
    took: list[list[list[float]]] = [[], []]
    for n in range(2 * rounds):
        for way in (0, 1) if n % 2 else (1, 0):
            took[way].append(each_busy(run(streams, ways[way])[0], WINDOW))
    part, whole = np.min(took, axis=1)
    yield Measure(
        "busy seconds, a quarter of the pairs / all",
        float(part.sum() / whole.sum()),
        0.35,
        most=True,
    )


def drop(rows: int) -> Iterable[Measure]:
    """Measure results of selective processing against dropping tuples, for equal busy seconds."""
    streams = both(rows)
    for fraction, least in ((0.25, 1.7), (0.1, 2.3)):
        mine, found = run(streams, Shed(fraction=fraction, basic_window="1 second"))
        spent, low, high, dropped = busy(mine), fraction / 4, 1.0, 1
        for _ in range(4):  # the fraction at which dropping takes as long
            middle = (low + high) / 2
            theirs, dropped = run(streams, Shed(fraction=middle, method="drop"))
            low, high = (middle, high) if busy(theirs) < spent else (low, middle)
        yield Measure(
            f"results in equal busy seconds at {fraction:.0%}: selective / drop",
            found / dropped,
            least,
        )


def burst(rows: int) -> Iterable[Measure]:
    """Measure a burst of five times as many tuples, with and without a time limit."""

    def factor(b: int) -> float:
        return 2.5 if 10 <= b < 18 else 0.5

    streams = both(rows, factor)
    free = totals(run(streams, None)[0])
    limit = LIMIT * float(np.median(free[4:10]))
    kept = totals(run(streams, Shed(seconds=limit, basic_window="1 second"))[0])
    p90 = [float(np.quantile(each[10:], 0.9)) / limit for each in (kept, free)]
    yield Measure("burst of 5x, Shed(seconds=L): p90 batch / L", p90[0], 1.15, most=True)
    yield Measure("burst of 5x without shed: p90 batch / L", p90[1], 3)


def keys(rows: int) -> Iterable[Measure]:
    """Measure an equality: keys and tuples left out, at a quarter of the tuples of both streams."""
    streams = {"a": stream(1, rows), "b": stream(2, rows)}
    found = [
        run(streams, Shed(fraction=1 / 16, method=method), "a.k = b.k")[1]
        for method in ("keys", "drop")
    ]
    name = "equality, a quarter of the tuples: results of keys / of drop"
    yield Measure(name, found[0] / found[1], 3)


def plan(rows: int) -> Iterable[Measure]:
    """Measure the share of planning the harvest in the seconds of a batch."""
    streams = both(rows)
    happened, _ = run(streams, Shed(fraction=0.25), placement=StaticGrid(64))
    batch = float(np.median(totals(happened, WINDOW)))
    placement, shed = StaticGrid(64), Shed(fraction=0.25)
    window = WINDOW * 10**6
    rules = RunRules(
        placement,
        ("a", "b"),
        reach_of_windows((window, window)),
        checks_coverage=False,
        shedder=shed,
    )
    state = RunState.initial(2, placement.initial_state(2), (), shed.initial_state(2))
    for b in range(WINDOW + 4):
        work = batch_step.plan_batch(rules, state)
        sizes = {
            r.block.id: BlockSize(rows // 8, 1, (b * 10**6, b * 10**6 + 999_999))
            for r in work.plan.routes
        }
        sizes |= {
            d.block.id: BlockSize(d.block.rows, 1, d.block.event_time_range or (0, 0))
            for d in work.combined_plan.derivations
        }
        state, _ = batch_step.commit_batch(rules, state, work, BatchReport(sizes))
    work = batch_step.plan_batch(rules, state)
    own = placement.plan_batch(work.facts, state.placement_state)
    took, _ = timed(lambda: shed.plan_shedding(work.facts, own, state.shedder_state, None), 20)
    yield Measure("planning the harvest / batch, 64 hosts", took / batch, 0.005, most=True)


ITEMS = "size(array_intersect(a.x, b.x)) >= 3"


def spark_user(
    spark: SparkSession, frames: dict[str, DataFrame], folder: Path
) -> tuple[float, int]:
    """Return seconds and results of the join in idiomatic Spark SQL."""
    began = time.perf_counter()
    a, b = (frames[s].select(F.col("id").alias(s), F.explode("x").alias("x")) for s in "ab")
    shared = a.join(b, "x").groupBy("a", "b").count().filter("count >= 3")
    shared.write.parquet(str(folder))
    return time.perf_counter() - began, spark.read.parquet(str(folder)).count()


def braid(frames: dict[str, DataFrame], folder: Path) -> tuple[float, int]:
    """Return the seconds of Braid's single batch, and its results."""
    made = StreamJoin(frames, ITEMS, Centralized()).start(folder, batches=1)
    made.awaitTermination()
    return seconds(made)[0], made.results().count()


def overlap(rows: int, rounds: int) -> Iterable[Measure]:
    """Measure a join of sets with three common elements on Spark."""
    spark = session("benchmark")
    ratios = []
    with scratch() as folder:
        for n, size in enumerate([rows // 8] + [rows] * rounds):
            frames = {}
            for seed, name in enumerate("ab"):
                path = str(folder / f"{name}{n}")
                table = pa.table({"id": np.arange(size), "x": sets(size, 100, 5, 0.6, seed)})
                spark.createDataFrame(table).write.parquet(path)
                frames[name] = spark.read.parquet(path)
            theirs, counted = spark_user(spark, frames, folder / f"spark{n}")
            ours, found = braid(frames, folder / f"braid{n}")
            assert found == counted
            ratios.append(theirs / ours)
    name = "sets on Spark, three in common: explode and join / Braid"
    yield Measure(name, float(np.median(ratios[1:])), 10)


def main() -> None:
    args = arguments(
        __doc__ or "", {"rows": 150, "sets": 400, "rounds": 1}, rows=600, sets=4000, rounds=5
    )
    measures: list[Measure] = []
    for part in (
        partial(kernel, args.sets),
        partial(idle, args.rows, args.rounds),
        partial(quarter, args.rows, args.rounds),
        partial(drop, args.rows),
        partial(burst, args.rows),
        partial(keys, args.rows),
        partial(plan, args.rows),
        partial(overlap, args.sets, min(2, args.rounds)),
    ):
        measures += part()
    table = pd.DataFrame(
        {"measure": [m.name for m in measures], "ratio": [m.value for m in measures]}
    )
    leave(args, {"Shedding load": table}, measures)


if __name__ == "__main__":
    main()
