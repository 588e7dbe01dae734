"""Expected results, computed without the engine: seeded random streams, joined by DuckDB.

Every stream has a unique column ``id``, so that a result is the tuple of its ids in the order of
the streams, and a multiset of results is a Counter of such tuples.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import sqlglot
from braid.condition.predicate import Predicate
from braid.core.placement import Placement
from braid.core.reserved_columns import WEIGHT
from braid.core.run_events import BatchPlanned
from braid.kernels.block_builder import build_block
from braid.kernels.host_block_rows import BlockRows, PartialMatches
from braid.kernels.probe import BlockJoiner
from braid.storage.run_store import RunStore
from braid.stream_join import JoinRun, StreamJoin
from duck import connect_duckdb
from placement_checks import list_examples
from pyspark.sql import DataFrame, SparkSession

Ids = Counter[tuple[int, ...]]

PLACEMENTS: dict[str, Placement] = {
    name: p
    for name, p in list_examples().items()
    if p.delivery_guarantee == "exactly once" and not p.shares_queries
}
"""Every lossless placement of a StreamJoin, by its repr."""


EPOCH = datetime(2024, 3, 1, tzinfo=UTC)
_WORDS = ("", "a", "b", "ab", "abc", "ba", "é", "Zoë", "日本", "a b")


def make_tables(
    aliases: str, rows: int | Mapping[str, int], seed: int, batches: int = 5
) -> dict[str, pa.Table]:
    """Return random streams in ``batches`` micro-batches, with numbers, text, dates, NULL and NaN.

    All streams have the same columns and ``rows`` rows each. Event time ``ts`` grows from batch to
    batch and is unordered within one.
    """
    sizes = rows if isinstance(rows, Mapping) else dict.fromkeys(aliases, rows)
    return {
        a: make_table(np.random.default_rng([seed, i]), sizes[a], batches)
        for i, a in enumerate(aliases)
    }


def make_table(draw: np.random.Generator, rows: int, batches: int) -> pa.Table:
    batch = np.sort(draw.integers(0, batches, rows))
    seconds = batch * 60 + draw.integers(0, 60, rows)
    real = draw.choice([0.0, -0.0, 0.5, 1.25, 1e9, -1e9, np.nan, *draw.normal(0, 3, 40)], rows)
    return pa.table(
        {
            "id": pa.array(np.arange(rows), pa.int64()),
            "batch": pa.array(batch, pa.int32()),
            "ts": pa.array(
                [EPOCH + timedelta(seconds=int(s)) for s in seconds], pa.timestamp("us", tz="UTC")
            ),
            "k": _draw_nulls(draw, draw.integers(0, 40, rows).tolist(), pa.int32()),
            "n": _draw_nulls(draw, draw.integers(-500, 500, rows).tolist(), pa.int64()),
            "f": _draw_nulls(draw, real.tolist(), pa.float64()),
            "s": _draw_nulls(draw, draw.choice(_WORDS, rows).tolist(), pa.string()),
            "d": _draw_nulls(
                draw,
                [EPOCH.date() + timedelta(days=int(x)) for x in draw.integers(0, 60, rows)],
                pa.date32(),
            ),
            "m": _draw_nulls(
                draw,
                [Decimal(int(x)).scaleb(-2) for x in draw.integers(-3000, 3000, rows)],
                pa.decimal128(10, 2),
            ),
            "flag": _draw_nulls(draw, (draw.random(rows) < 0.5).tolist(), pa.bool_()),
        }
    )


def _draw_nulls(draw: np.random.Generator, values: list[Any], kind: pa.DataType) -> pa.Array:
    """Return the values with one in twelve replaced by NULL."""
    gone = draw.random(len(values)) < 1 / 12
    return pa.array([None if g else v for g, v in zip(gone, values, strict=True)], kind)


def create_frames(spark: SparkSession, streams: Mapping[str, pa.Table]) -> dict[str, DataFrame]:
    return {alias: spark.createDataFrame(rows) for alias, rows in streams.items()}


def compute_expected(
    streams: Mapping[str, pa.Table], on: str, windows: Mapping[str, int] | None = None
) -> Ids:
    """Return the join computed by DuckDB.

    ``windows`` are seconds by alias: T - T_i < W_i for every i, with T the latest event time.
    """
    latest = f"greatest({', '.join(f'epoch_us({a}.ts)' for a in streams)})"
    live = [f"{latest} - epoch_us({a}.ts) < {1_000_000 * w}" for a, w in (windows or {}).items()]
    where = " AND ".join([f"({sqlglot.transpile(on, read='spark', write='duckdb')[0]})", *live])
    with connect_duckdb() as db:
        for alias, rows in streams.items():
            db.register(alias, rows)
        ids = ", ".join(f"{a}.id" for a in streams)
        return Counter(
            db.execute(f"SELECT {ids} FROM {', '.join(streams)} WHERE {where}").fetchall()
        )


def result_ids(rows: pa.Table) -> Ids:
    """Return the results in a table, a struct column a stream, by id."""
    streams = [a for a in rows.column_names if a != WEIGHT]
    columns = [rows[a].combine_chunks().field("id").to_pylist() for a in streams]
    return Counter(zip(*columns, strict=True))


@contextmanager
def killed_before(batch: int) -> Iterator[None]:
    """Make a run fail with "killed" right before the commit of a batch."""
    real = RunStore.commit_batch

    def fail_or_commit(store: RunStore, number: int, *given: Any) -> None:
        if number == batch:
            raise OSError("killed")
        real(store, number, *given)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RunStore, "commit_batch", fail_or_commit)
        yield


def run_with_deaths(
    join: StreamJoin, streams: Mapping[str, pa.Table], folder: Path, batches: int
) -> JoinRun:
    """Return a run of tables, at its end, whose driver has died right before each commit."""
    for batch in range(batches):
        with killed_before(batch), pytest.raises(OSError, match="killed"):
            run = (
                StreamJoin.resume(folder, streams) if batch else join.start(folder, batches="batch")
            )
            run.awaitTermination()
    run = StreamJoin.resume(folder, streams)
    run.awaitTermination()
    return run


def run_with_equal_plans(
    join: StreamJoin, streams: Mapping[str, pa.Table], folder: Path, batches: int
) -> JoinRun:
    """Return a run as `run_with_deaths` does, whose plans are those of a run without a death."""
    whole = join.start(folder / "whole", batches="batch")
    whole.awaitTermination()
    run = run_with_deaths(join, streams, folder / "run", batches)
    planned = [[e for e in r.events() if isinstance(e, BatchPlanned)] for r in (whole, run)]
    assert planned[0] == planned[1], "a restart changed a plan"
    return run


def paused_after_two(start: Callable[[], JoinRun]) -> JoinRun:
    """Start the run, pause it after two committed batches and return it."""
    real = JoinRun._publish_events

    def publish_and_pause(run: JoinRun, happened: list[Any]) -> None:
        real(run, happened)
        if run.status["batch"] == 2:
            run.pause()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(JoinRun, "_publish_events", publish_and_pause)
        run = start()
        wait_until(lambda: run.isPaused and not run._batch_thread, "pause after two batches")
    return run


def committed_ids(run: JoinRun) -> Ids:
    """Return the committed results of a run by id, read by Arrow without a Spark job."""
    reported = Ids()
    for file in run.store.results.result_files():
        reported.update(result_ids(pq.read_table(file, page_checksum_verification=True)))
    return reported


def result_weights(run: JoinRun) -> dict[tuple[int, int], float]:
    """Return the results of a shedding run of streams a and b by id, with their weights."""
    rows = run.results()
    ids = [rows[a]["id"].alias(a) for a in ("a", "b")]
    columns = rows.select(*ids, "weight").toArrow().to_pydict()
    pairs = list(zip(columns["a"], columns["b"], strict=True))
    assert len(set(pairs)) == len(pairs)
    return dict(zip(pairs, columns["weight"], strict=True))


def kernel_join(join: StreamJoin) -> Ids:
    """Return the join of two whole streams by the kernels, without the engine."""
    (whole, where), blocks = join.source.union_streams(join._join, join.streams), []
    rows = whole.toArrow().combine_chunks().to_batches()[0]
    stream = rows.column("__stream").to_numpy()
    for i in range(len(join.streams)):
        batch = where[i].extract_rows(rows, np.flatnonzero(stream == i))
        blocks.append(BlockRows(build_block(batch, join.predicate.stream_orders(i))))
    return kernel_pairs(join.predicate, *blocks)


def kernel_pairs(predicate: Predicate, a: BlockRows, b: BlockRows) -> Ids:
    """Return the pairs that the kernels find in two blocks."""
    joiner, found = BlockJoiner(predicate, (None, None)), Ids()
    for part in joiner.probe_block(
        PartialMatches({0: (a, np.arange(a.batch.num_rows))}),
        b,
        1,
        False,
        SimpleNamespace(compared_pairs=0),
    ):
        found.update(
            zip(
                part.column_values(0, "id").tolist(),
                part.column_values(1, "id").tolist(),
                strict=True,
            )
        )
    return found


def describe_difference(found: Ids, expected: Ids) -> str:
    """Return the difference of some results from the expected ones in a line; empty if there is
    none.
    """
    if dict.__eq__(found, expected):  # a Counter would hash each number separately
        return ""
    lost, extra = expected - found, found - expected
    return (
        f"{lost.total()} of {expected.total()} lost, as {[*lost][:3]}; {extra.total()} too "
        f"many, as {[*extra][:3]}"
    )


def wait_until(condition: Callable[[], Any], what: str, seconds: float = 240) -> Any:
    """Wait until a condition holds and return its value.

    Fails after a deadline with a description of the condition.
    """
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        if time.monotonic() > deadline:
            raise AssertionError(f"after {seconds} s still no {what}")
        time.sleep(0.01)
    return value


def list_files(folder: Path) -> set[str]:
    """Return every file under a folder, so that a test can check that nothing was written."""
    return {str(f.relative_to(folder)) for f in folder.rglob("*")}
