"""Measure cost and benefit of load shedding as ratios within one run.

All measures but the last run in this process, without Spark. Tuples of two streams match those of
the other stream some seconds later. Two conditions are checked on every pair of the windows, so the
work grows with the number of pairs. If nothing must be shed, runs with and without shedding
alternate batch by batch. The median of the ratios of two consecutive batches counts: other work on
the machine affects both, and 30 runs of each kind leave an error of 0.01 to 0.02. The same is
measured for an equality, which would show the cost of shedding per tuple. At a quarter of the
pairs, whole runs alternate, and the fastest of all rounds counts for each batch. The burst has five
times the rate for a third of the run; L is twice the median batch before it. Runs are stored
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
from _common import Measure, make_scratch_folder, parse_arguments, read_batch_seconds, write_figures
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
SHARED_MEMORY = Path("/dev/shm")
HAS_ROOM = SHARED_MEMORY.is_dir() and shutil.disk_usage(SHARED_MEMORY).free > 1 << 30
RUNS_FOLDER = str(SHARED_MEMORY) if HAS_ROOM else None
LIMIT = 2.0
"""L of the burst, in median batches before it."""


def make_stream(
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


def run_join(
    streams: dict[str, pa.Table], shed: Shed | None, on: str = ON, callback: Any = None, **more: Any
) -> Any:
    settings: Any = dict(windows=dict.fromkeys("ab", f"{WINDOW} seconds"), time="ts") | more
    join = StreamJoin(streams, on, settings.pop("placement", Centralized()), shed=shed, **settings)
    with tempfile.TemporaryDirectory(dir=RUNS_FOLDER) as folder:
        join_run = join.start(Path(folder) / "run", batches="batch", foreachBatch=callback)
        join_run.awaitTermination()
        return join_run.events(), join_run.results().num_rows


def list_batch_seconds(happened: list[Any], since: int = 0) -> list[float]:
    """Return the seconds of each batch, from one on."""
    return [
        max(e.seconds_by_phase.values())
        for e in happened
        if isinstance(e, BatchCommitted) and e.batch >= since
    ]


def sum_busy_seconds(happened: list[Any], since: int = WINDOW) -> float:
    return sum(list_busy_seconds(happened, since))


def list_busy_seconds(happened: list[Any], since: int) -> list[float]:
    """Return the busy seconds of the hosts in each batch, from one on."""
    return [
        sum(h.seconds for h in e.host_metrics)
        for e in happened
        if isinstance(e, BatchCommitted) and e.batch >= since
    ]


def make_streams(rows: int, factor: Callable[[int], float] = lambda b: 1.0) -> dict[str, pa.Table]:
    return {"a": make_stream(1, rows, 0, factor), "b": make_stream(2, rows, 5, factor)}


def draw_sets(rows: int, items: int, size: int, kappa: float, seed: int) -> pa.Array:
    """Return sets of ``size`` distinct items with Zipf popularity, drawn by Gumbel's trick."""
    draw = np.random.default_rng(seed)
    weights = -kappa * np.log(np.arange(1, items + 1))
    chosen = [
        np.argpartition(-(weights + draw.gumbel(size=items)), size)[:size] for _ in range(rows)
    ]
    return pa.array([c.tolist() for c in chosen], pa.list_(pa.int32()))


def time_work(work: Callable[[], Any], times: int = 5) -> tuple[float, Any]:
    """Return the median seconds of the work, and its result."""
    took, result = [], None
    for _ in range(times):
        began = time.perf_counter()
        result = work()
        took.append(time.perf_counter() - began)
    return float(np.median(took)), result


def measure_kernel(rows: int) -> Iterable[Measure]:
    """Measure the kernel on sets against DuckDB on the same pairs and a plain sparse product."""
    columns = [draw_sets(rows, 100, 5, 0.6, seed) for seed in (0, 1)]
    a, b = map(SetColumn.from_arrow, columns)
    braid_seconds, braid_count = time_work(
        lambda: sum(len(x) for x, _ in pairs_sharing(a, np.arange(rows), b, 3))
    )
    with duckdb.connect(config={"threads": 1}) as db:
        db.register("a", pa.table({"x": columns[0].slice(0, rows // 5)}))
        db.register("b", pa.table({"x": columns[1]}))
        query = "SELECT count(*) FROM a, b WHERE len(list_intersect(a.x, b.x)) >= 3"
        theirs, counted = time_work(lambda: db.execute(query).fetchall()[0][0], 1)
    few = sum(len(x) for x, _ in pairs_sharing(a, np.arange(rows // 5), b, 3))
    assert few == counted and braid_count >= few
    yield Measure("sets kernel: pairs/s / DuckDB's", 5 * theirs / braid_seconds, 30)
    a, b = (SetColumn.from_arrow(draw_sets(rows, 20_000, 15, 1.0, seed)) for seed in (2, 3))
    braid_seconds, braid_count = time_work(
        lambda: sum(len(x) for x, _ in pairs_sharing(a, np.arange(rows), b, 6))
    )
    left_matrix, right_matrix = (
        sparse.csr_matrix(
            (np.ones(len(at), np.int32), (at, code)), (rows, len(b.dictionary)), dtype=np.int32
        )
        for at, code in (a.encode_in(b), (b.rows, b.codes))
    )
    transposed = right_matrix.T.tocsr()

    def multiply_matrices() -> int:
        product = left_matrix @ transposed
        hits = np.flatnonzero(product.data >= 6)
        left = np.searchsorted(product.indptr, hits, "right") - 1
        return len(np.stack([left, product.indices[hits]])[0])

    theirs, counted = time_work(multiply_matrices)
    assert braid_count == counted
    yield Measure("sets kernel: pairs/s / plain sparse product's", theirs / braid_seconds, 3)


def alternate_runs(
    streams: dict[str, pa.Table], ways: Sequence[Shed | None], first: int, on: str
) -> list[np.ndarray]:
    """Return the seconds of each batch for both ways.

    Two runs alternate batch by batch, so that other work on the machine affects both alike.
    """
    turns = [threading.Semaphore(0), threading.Semaphore(0)]
    turns[first].release()

    def run_way(way: int) -> np.ndarray:
        def pass_turn(results: pa.Table, batch: int) -> None:
            turns[1 - way].release()
            if way == first or batch < BATCHES - 1:
                turns[way].acquire()

        turns[way].acquire()
        try:
            return np.array(
                list_batch_seconds(run_join(streams, ways[way], on, pass_turn)[0], WINDOW)
            )
        finally:
            turns[1 - way].release(BATCHES)

    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(run_way, (0, 1)))


def measure_idle(rows: int, rounds: int) -> Iterable[Measure]:
    """Measure shedding without overload."""
    ways = (Shed(seconds=3600), None)
    for name, on, size in (("pairs", ON, rows // 2), ("an equality", "a.k = b.k", 8 * rows)):
        took = [alternate_runs(make_streams(size), ways, n % 2, on) for n in range(6 * rounds)]
        yield Measure(
            f"median batch, {name}: nothing to shed / without shed",
            float(np.median([least / without for least, without in took])),
            1.05,
            most=True,
        )


def measure_quarter(rows: int, rounds: int) -> Iterable[Measure]:
    """Measure processing a quarter of the pairs."""
    ways, streams = (Shed(fraction=0.25, basic_window="1 second"), None), make_streams(rows)
    took: list[list[list[float]]] = [[], []]
    for n in range(2 * rounds):
        for way in (0, 1) if n % 2 else (1, 0):
            took[way].append(list_busy_seconds(run_join(streams, ways[way])[0], WINDOW))
    part, total = np.min(took, axis=1)
    yield Measure(
        "busy seconds, a quarter of the pairs / all",
        float(part.sum() / total.sum()),
        0.35,
        most=True,
    )


def measure_drop(rows: int) -> Iterable[Measure]:
    """Measure results of selective processing against dropping tuples, for equal busy seconds."""
    streams = make_streams(rows)
    for fraction, least in ((0.25, 1.7), (0.1, 2.3)):
        shed_events, shed_results = run_join(
            streams, Shed(fraction=fraction, basic_window="1 second")
        )
        spent, low, high, dropped = sum_busy_seconds(shed_events), fraction / 4, 1.0, 1
        for _ in range(4):  # the fraction at which dropping takes as long
            middle = (low + high) / 2
            drop_events, dropped = run_join(streams, Shed(fraction=middle, method="drop"))
            low, high = (middle, high) if sum_busy_seconds(drop_events) < spent else (low, middle)
        yield Measure(
            f"results in equal busy seconds at {fraction:.0%}: selective / drop",
            shed_results / dropped,
            least,
        )


def measure_burst(rows: int) -> Iterable[Measure]:
    """Measure a burst of five times as many tuples, with and without a time limit."""

    def scale_rows(b: int) -> float:
        return 2.5 if 10 <= b < 18 else 0.5

    streams = make_streams(rows, scale_rows)
    free = list_batch_seconds(run_join(streams, None)[0])
    limit = LIMIT * float(np.median(free[4:10]))
    limited = list_batch_seconds(run_join(streams, Shed(seconds=limit, basic_window="1 second"))[0])
    p90 = [float(np.quantile(each[10:], 0.9)) / limit for each in (limited, free)]
    yield Measure("burst of 5x, Shed(seconds=L): p90 batch / L", p90[0], 1.15, most=True)
    yield Measure("burst of 5x without shed: p90 batch / L", p90[1], 3)


def measure_keys(rows: int) -> Iterable[Measure]:
    """Measure an equality: keys and tuples left out, at a quarter of the tuples of both streams."""
    streams = {"a": make_stream(1, rows), "b": make_stream(2, rows)}
    counts = [
        run_join(streams, Shed(fraction=1 / 16, method=method), "a.k = b.k")[1]
        for method in ("keys", "drop")
    ]
    name = "equality, a quarter of the tuples: results of keys / of drop"
    yield Measure(name, counts[0] / counts[1], 3)


def measure_planning(rows: int) -> Iterable[Measure]:
    """Measure the share of planning the harvest in the seconds of a batch."""
    streams = make_streams(rows)
    happened, _ = run_join(streams, Shed(fraction=0.25), placement=StaticGrid(64))
    batch = float(np.median(list_batch_seconds(happened, WINDOW)))
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
    placement_plan = placement.plan_batch(work.facts, state.placement_state)
    took, _ = time_work(
        lambda: shed.plan_shedding(work.facts, placement_plan, state.shedder_state, None), 20
    )
    yield Measure("planning the harvest / batch, 64 hosts", took / batch, 0.005, most=True)


ITEMS = "size(array_intersect(a.x, b.x)) >= 3"


def run_spark_sql(
    spark: SparkSession, frames: dict[str, DataFrame], folder: Path
) -> tuple[float, int]:
    """Return seconds and results of the join in idiomatic Spark SQL."""
    began = time.perf_counter()
    a, b = (frames[s].select(F.col("id").alias(s), F.explode("x").alias("x")) for s in "ab")
    shared = a.join(b, "x").groupBy("a", "b").count().filter("count >= 3")
    shared.write.parquet(str(folder))
    return time.perf_counter() - began, spark.read.parquet(str(folder)).count()


def run_braid(frames: dict[str, DataFrame], folder: Path) -> tuple[float, int]:
    """Return the seconds of Braid's single batch, and its results."""
    join_run = StreamJoin(frames, ITEMS, Centralized()).start(folder, batches=1)
    join_run.awaitTermination()
    return read_batch_seconds(join_run)[0], join_run.results().count()


def measure_overlap(rows: int, rounds: int) -> Iterable[Measure]:
    """Measure a join of sets with three common elements on Spark."""
    spark = session("benchmark")
    ratios = []
    with make_scratch_folder() as folder:
        for n, size in enumerate([rows // 8] + [rows] * rounds):
            frames = {}
            for seed, name in enumerate("ab"):
                path = str(folder / f"{name}{n}")
                table = pa.table({"id": np.arange(size), "x": draw_sets(size, 100, 5, 0.6, seed)})
                spark.createDataFrame(table).write.parquet(path)
                frames[name] = spark.read.parquet(path)
            spark_seconds, counted = run_spark_sql(spark, frames, folder / f"spark{n}")
            braid_seconds, braid_count = run_braid(frames, folder / f"braid{n}")
            assert braid_count == counted
            ratios.append(spark_seconds / braid_seconds)
    name = "sets on Spark, three in common: explode and join / Braid"
    yield Measure(name, float(np.median(ratios[1:])), 10)


def main() -> None:
    args = parse_arguments(
        __doc__ or "", {"rows": 150, "sets": 400, "rounds": 1}, rows=600, sets=4000, rounds=5
    )
    measures: list[Measure] = []
    for part in (
        partial(measure_kernel, args.sets),
        partial(measure_idle, args.rows, args.rounds),
        partial(measure_quarter, args.rows, args.rounds),
        partial(measure_drop, args.rows),
        partial(measure_burst, args.rows),
        partial(measure_keys, args.rows),
        partial(measure_planning, args.rows),
        partial(measure_overlap, args.sets, min(2, args.rounds)),
    ):
        measures += part()
    table = pd.DataFrame(
        {"measure": [m.name for m in measures], "ratio": [m.value for m in measures]}
    )
    write_figures(args, {"Shedding load": table}, measures)


if __name__ == "__main__":
    main()
