"""Joins of tables without Spark: the same placements, files and results."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from braid import AdaptiveGrid, Centralized, Shed
from braid.condition.parser import parse_predicate
from braid.core import batch_step
from braid.core.batch_history import PHASE_COLUMNS, PHASES
from braid.core.run_events import BatchCommitted
from braid.errors import EvaluationFailure, PredicateError
from braid.execution import thread_executor
from braid.execution.engine import Engine
from braid.execution.executor_choice import COPIES, recent_timings
from braid.execution.fresh_blocks import FreshBlockBuilder
from braid.execution.host_replicas import ReplicaStore
from braid.execution.thread_executor import ThreadExecutor
from braid.join_run import JoinRun
from braid.papers.baselines.hash_partition import HashPartition
from braid.sources.arrow_replay import ArrowFeed
from braid.storage.run_store import RunStore
from braid.storage.state_files import StateFiles
from braid.stream_join import StreamJoin
from braid.util import row_tables
from oracle import (
    PLACEMENTS,
    compute_expected,
    describe_difference,
    killed_before,
    list_files,
    make_tables,
    result_ids,
)
from scatter import Scatter
from stages import AlternatingExecutor, InProcessStages
from unit.scripted import list_documented_columns

US = pa.timestamp("us", "UTC")
ON = "a.k = b.k AND a.n < b.n + 3 AND a.s <> b.s || 'x' AND (b.flag OR a.f > 0.5D)"


def ended(run: JoinRun) -> JoinRun:
    assert run.awaitTermination()
    return run


class Clock:
    """A clock that advances only in functions that are declared to take time."""

    now = 0.0

    def __call__(self) -> float:
        return self.now

    def slows(self, patch: pytest.MonkeyPatch, owner: Any, name: str, seconds: float) -> None:
        """Make each call of a function take this many seconds."""
        real = getattr(owner, name)

        def slow(*given: Any) -> Any:
            self.now += seconds
            return real(*given)

        patch.setattr(owner, name, slow)


@pytest.mark.parametrize("name", [n for n, p in PLACEMENTS.items() if p.supports_streams(2)])
def test_tables_are_joined_as_streams_are(tmp_path: Path, name: str) -> None:
    streams, windows = make_tables("ab", 200, seed=81, batches=5), {"a": 130, "b": 70}
    spans = {a: f"{w} seconds" for a, w in windows.items()}
    join = StreamJoin(
        streams, ON, PLACEMENTS[name], spans, time="ts", lateness="1 minute", check=True
    )
    run = ended(join.start(tmp_path / "run", batches="batch"))
    assert (
        describe_difference(result_ids(run.results()), compute_expected(streams, ON, windows)) == ""
    )
    assert run.metrics()["results"].sum() == run.results().num_rows


def test_texts_that_differ_a_little_are_found_by_their_lengths(tmp_path: Path) -> None:
    """In characters, not in bytes."""
    draw = np.random.default_rng(5)
    texts = ["".join(draw.choice([*"abé日 '{"], draw.integers(0, 6))) for _ in range(60)]
    rows = pa.table({"id": range(61), "s": [*texts, None]})
    on = "levenshtein(a.s, b.s) <= 2"
    run = ended(StreamJoin({"a": rows, "b": rows}, on, Scatter()).start(tmp_path, batches=2))
    near = [(i, k) for i, s in enumerate(texts) for k, t in enumerate(texts) if distance(s, t) <= 2]
    assert describe_difference(result_ids(run.results()), Counter(near)) == ""
    assert run.metrics()["compared_pairs"].sum() < 0.7 * 60 * 60


def distance(s: str, t: str) -> int:
    """Return the minimum number of characters to insert, delete or replace."""
    row = list(range(len(t) + 1))
    for i, x in enumerate(s, 1):
        last, row[0] = row[0], i
        for k, y in enumerate(t, 1):
            last, row[k] = row[k], min(row[k] + 1, row[k - 1] + 1, last + (x != y))
    return row[-1]


@pytest.mark.parametrize("way", [InProcessStages, AlternatingExecutor])
def test_each_stream_may_have_its_own_event_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: Any
) -> None:
    streams = make_tables("ab", 200, seed=82, batches=5)
    names = [n if n != "ts" else "came at" for n in streams["b"].column_names]
    given = streams | {
        "b": streams["b"].rename_columns(names).to_pandas(types_mapper=pd.ArrowDtype)
    }
    monkeypatch.setattr("braid.arrow_join.make_executor", lambda _: way())
    times = {"b": "came at", "a": "ts"}
    join = StreamJoin(given, ON, AdaptiveGrid(4), "100 s", times, lateness="1 day", check=True)
    run = ended(join.start(tmp_path / "run", batches=6))
    assert (
        describe_difference(
            result_ids(run.results()), compute_expected(streams, ON, {"a": 100, "b": 100})
        )
        == ""
    )
    ended(StreamJoin.resume(tmp_path / "run", given))


@pytest.mark.parametrize("streams", [2, 3])
def test_every_placement_by_the_stages_of_spark_and_by_turns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, streams: int
) -> None:
    """Bytes that travel between tasks equal the objects that threads share."""
    aliases, wrong = "abc"[:streams], {}
    given = make_tables(aliases, 40 if streams == 3 else 90, seed=89, batches=4)
    on = " AND ".join(f"{a}.k = {b}.k" for a, b in pairwise(aliases)) + " AND a.n < b.n + 200"
    want = compute_expected(given, on)
    for name, placement in PLACEMENTS.items():
        if placement.supports_streams(streams):
            for way in (InProcessStages, AlternatingExecutor):
                monkeypatch.setattr("braid.arrow_join.make_executor", lambda _, way=way: way())
                join = StreamJoin(given, on, placement, partitions=2, check=True)
                run = ended(join.start(tmp_path / name / way.__name__, batches="batch"))
                wrong[name, way] = describe_difference(result_ids(run.results()), want)
    assert len(wrong) > 9 and not any(wrong.values()), wrong


POINTS = {
    "results": ("storage.block_files.ResultFileWriter", "close_file", 3),
    "publish": ("storage.published_results.PublishedResults", "publish_batch", 4),
    "tidy": ("storage.run_store.RunStore", "remove_old_files", 4),
}
"""Points at which a run is killed in batch 3, with the batches that are committed then.

They are between its block files and its result files, between its manifest and its publication, and
before the removal of old files.
"""
KILLED = """
import importlib, os, signal, sys
from braid.stream_join import StreamJoin
from oracle import make_tables
from scatter import Scatter

folder, module, kind, name = sys.argv[1:]
kind = getattr(importlib.import_module(f"braid.{module}"), kind)
real = getattr(kind, name)

def held(self, *given):
    batch = given[0].batch if name == "remove_old_files" else given[0] if given else int(self.name[:6])
    if batch == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return real(self, *given)

setattr(kind, name, held)
join = StreamJoin(make_tables("ab", 200, seed=90, batches=6), "a.k = b.k", Scatter(), check=True)
join.start(folder, batches="batch").awaitTermination()
"""


@pytest.mark.parametrize("point", POINTS)
def test_killed_between_files(tmp_path: Path, point: str) -> None:
    """Leftover files are removed or completed."""
    streams, folder = make_tables("ab", 200, seed=90, batches=6), tmp_path / "run"
    kind, name, committed = POINTS[point]
    module, _, kind = kind.rpartition(".")
    killed = subprocess.run(
        [sys.executable, "-c", KILLED, str(folder), module, kind, name],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        timeout=240,
        check=False,
    )
    assert killed.returncode == -signal.SIGKILL
    store = RunStore(folder)
    assert store.log.committed_batches() == [*range(committed)]
    if point == "results":
        assert [*store.blocks.folder.glob("000003-*")], "block files that no manifest names"
    run = ended(StreamJoin.resume(folder, streams))
    assert (
        describe_difference(result_ids(run.results()), compute_expected(streams, "a.k = b.k")) == ""
    )
    assert store.log.committed_batches() == [*range(6)]
    states = [store.states.read_state(kept) for kept in store.log.commits[-2:]]
    assert list_files(store.blocks.folder) == {
        a.file for state in states for a in state.replica_addresses.values()
    }
    assert {f.name for f in store.log.folder.glob("state-*")} == {
        kept.state.name for kept in store.log.commits[-2:]
    }
    assert list_files(folder / "staging") == set()
    named = {name for kept in store.log.commits for name, _ in kept.results}
    assert {f.name for f in store.published.results.glob("*.parquet")} == named


def test_three_tables_with_partial_results_between_hosts(tmp_path: Path) -> None:
    streams, on = (
        make_tables("abc", 70, seed=82, batches=3),
        "a.k = b.k AND b.k = c.k AND a.n < c.n",
    )
    run = ended(StreamJoin(streams, on, Scatter(), check=True).start(tmp_path / "run", batches=4))
    assert describe_difference(result_ids(run.results()), compute_expected(streams, on)) == ""


@pytest.mark.parametrize("batches", [1, 3, "batch"])
def test_pandas_frames_are_streams(tmp_path: Path, batches: Any) -> None:
    a = pd.DataFrame({"id": [1, 2, 3], "k": [1, 2, 2], "batch": [0, 0, 1]})
    b = pd.DataFrame({"id": [7, 8], "k": [2, 2], "batch": [0, 1], "c": pd.Categorical(["x", "y"])})
    join = StreamJoin({"a": a, "b": b}, "a.k = b.k AND b.c = 'y'", Scatter())
    run = ended(join.start(tmp_path / "run", batches=batches))
    assert result_ids(run.results()) == Counter([(2, 8), (3, 8)])
    assert ("batch" in run.results()["a"].type.fields.__repr__()) == (batches != "batch")


def test_polars_frames_are_streams(tmp_path: Path) -> None:
    """Every kind of column is preserved; Polars has long offsets, categories and enumerations."""
    second, day = timedelta(seconds=1), date(2024, 2, 29)
    a = pl.DataFrame(
        {
            "id": [1, 2, 3],
            "k": pl.Series([1, 2, None], dtype=pl.Int32),
            "ts": [datetime(2024, 3, 1, tzinfo=UTC) + i * second for i in range(3)],
            "text": ["é", None, ""],
            "kind": pl.Series(["x", "y", "x"], dtype=pl.Categorical),
            "fixed": pl.Series(["x", "y", "x"], dtype=pl.Enum(["x", "y"])),
            "day": [day, None, day],
            "money": [Decimal("1.25"), None, Decimal("-3")],
            "real": pl.Series([0.5, None, -0.0], dtype=pl.Float32),
            "raw": [b"\x00", b"", None],
            "flags": [[True], [], None],
            "texts": [["a", None], [], None],
            "pair": [{"x": 1, "y": "a"}, {"x": None, "y": ""}, None],
            "local": pl.Series([datetime(2024, 3, 1)] * 3).cast(pl.Datetime("ns")),
        }
    )
    b = a.with_columns(pl.col("id") + 10)
    on = "a.k = b.k AND a.kind = b.fixed AND a.ts < b.ts + INTERVAL 1 SECOND"
    run = ended(
        StreamJoin({"a": a, "b": b}, on, Scatter(), {"a": "5 seconds"}, time="ts").start(
            tmp_path / "run", batches=2
        )
    )
    assert result_ids(run.results()) == Counter([(1, 11), (2, 12)])
    found = pl.from_arrow(run.results()["a"].combine_chunks()).struct.unnest().sort("id")
    want = a.head(2).with_columns(pl.col("kind", "fixed").cast(pl.String))
    assert found.to_dicts() == want.to_dicts()
    read = pl.read_parquet(tmp_path / "run" / "results" / "*.parquet")
    assert sorted(read["b"].struct.field("id")) == [11, 12]


def test_a_lazy_frame_is_refused(tmp_path: Path) -> None:
    lazy = pl.LazyFrame({"k": [1]})
    with pytest.raises(ValueError, match="stream a is a LazyFrame; it must be .* Polars DataFrame"):
        StreamJoin({"a": lazy, "b": lazy}, "a.k = b.k", Scatter())


@pytest.mark.parametrize("on", ["a.g + b.g > 0.3", "NOT (a.n = b.h)", "a.y + b.y + 100 <> 200"])
def test_two_streams_are_compared_in_the_types_of_spark(tmp_path: Path, on: str) -> None:
    """DuckDB alone compares a float and another number as floats, and adds a tinyint in bytes."""
    a = {"g": pa.array([0.1], pa.float32()), "n": pa.array([16777217], pa.int32())}
    b = {"g": pa.array([0.2], pa.float32()), "h": pa.array([16777216.0], pa.float32())}
    both = {"y": pa.array([60], pa.int8())}
    streams = {"a": pa.table({"id": [1], **both, **a}), "b": pa.table({"id": [2], **both, **b})}
    run = ended(StreamJoin(streams, on, Scatter()).start(tmp_path, batches=1))
    assert result_ids(run.results()) == Counter([(1, 2)])


def pairs(tmp_path: Path, a: Any, b: Any, on: str) -> Counter[tuple[int, ...]]:
    """Return the results of a join of these tables, by id."""
    join = StreamJoin({"a": a, "b": b}, on, Centralized(), check=True)
    return result_ids(ended(join.start(tmp_path / "run", batches=2)).results())


SHOWN = [
    *(datetime(2024, 3, 31, 1, 59, 55) + timedelta(seconds=s) for s in (0, 3, 5, 6, 4000)),
    datetime(1969, 12, 31, 23, 59, 59, 999_999),
    datetime(1970, 1, 1),
]
FIVE = timedelta(seconds=5)


@pytest.mark.parametrize(
    ("on", "holds"),
    [
        ("a.k = b.k AND a.t <= b.t", lambda t, u: t <= u),
        ("a.t = b.t", lambda t, u: t == u),
        ("a.t <=> b.t", lambda t, u: t == u),
        ("a.t < b.t + INTERVAL 5 SECONDS", lambda t, u: t < u + FIVE),
        ("abs(a.t - b.t) <= INTERVAL 5 SECONDS", lambda t, u: abs(t - u) <= FIVE),
        ("INTERVAL 5 SECONDS > b.t - a.t", lambda t, u: u - t < FIVE),
        (
            "a.t BETWEEN b.t - INTERVAL 5 SECONDS AND b.t + INTERVAL 5 SECONDS",
            lambda t, u: abs(t - u) <= FIVE,
        ),
        ("a.k <> b.k OR a.t - b.t > INTERVAL 5 SECONDS", lambda t, u: t - u > FIVE),
        ("a.t - a.s < b.t - b.s", lambda t, u: False),
        ("a.d < b.d", lambda t, u: t.date() < u.date()),
        ("a.d <= b.t", lambda t, u: t.date() <= u.date()),
        ("datediff(a.t, b.t) = 0", lambda t, u: t.date() == u.date()),
        ("unix_date(a.d) = unix_date(b.d)", lambda t, u: t.date() == u.date()),
        ("a.k = b.k AND unix_date(a.d) < 0", lambda t, u: t.year < 1970),
        ("hour(a.t) = hour(b.t)", lambda t, u: t.hour == u.hour),
        ("a.t <= b.z", lambda t, u: t <= u),
        ("a.z = b.t", lambda t, u: t == u),
        ("a.z <= b.t + INTERVAL 5 SECONDS", lambda t, u: t <= u + FIVE),
        ("a.k = b.k AND a.t > timestamp_ntz'2024-01-01 00:00:00'", lambda t, u: t.year == 2024),
    ],
)
def test_times_without_a_zone_are_compared(tmp_path: Path, on: str, holds: Any) -> None:
    """Pandas has times without a zone. They are compared with zoned times in UTC."""
    rows = pd.DataFrame({"id": range(len(SHOWN)), "k": 1, "t": SHOWN, "s": SHOWN})
    rows["z"] = rows["t"].dt.tz_localize("UTC").dt.tz_convert("Europe/Berlin")
    rows["d"] = rows["t"].dt.date
    want = {(i, k): 1 for i, t in enumerate(SHOWN) for k, u in enumerate(SHOWN) if holds(t, u)}
    assert pairs(tmp_path, rows, rows, on) == want


LEAST, MOST = -(2**31), 2**31 - 1
FAR = -(2**63)


@pytest.mark.parametrize(
    ("on", "holds", "a", "b", "found"),
    [
        (
            "a.x - b.x > b.y - a.y",
            lambda a, b: a[0] - b[0] > b[1] - a[1],
            [(1_700_000_100, 1_700_000_200), (1_700_000_000, 1_700_000_050)],
            [(1_700_000_000, 1_700_000_100)],
            True,
        ),
        (
            "a.x - b.x = b.y - a.y",
            lambda a, b: a[0] - b[0] == b[1] - a[1],
            [(MOST, MOST), (MOST, MOST - 3)],
            [(MOST, MOST), (MOST - 1, MOST - 2)],
            True,
        ),
        ("a.x + b.x > -9", lambda a, b: a[0] + b[0] > -9, [(0, 0), (MOST, 0)], [(LEAST, 0)], True),
        (
            "a.far + b.far < 0",
            lambda a, b: a[2] + b[2] < 0,
            [(0, 0, 5), (0, 0, 0)],
            [(0, 0, FAR), (0, 0, -5)],
            True,
        ),
        (
            "5 - a.far = b.far",
            lambda a, b: 5 - a[2] == b[2],
            [(0, 0, 2), (0, 0, FAR + 6)],
            [(0, 0, 3), (0, 0, -FAR - 1)],
            True,
        ),
        (
            "a.far - b.far > b.far - a.far",
            lambda a, b: a[2] - b[2] > b[2] - a[2],
            [(0, 0, -FAR - 1), (0, 0, -FAR - 9)],
            [(0, 0, -FAR - 3)],
            False,
        ),
        (
            "a.x - 1 + a.y - b.x < b.y",
            lambda a, b: a[0] - 1 + a[1] - b[0] < b[1],
            [(MOST, 1), (MOST, 0)],
            [(MOST, 0), (0, MOST)],
            True,
        ),
    ],
)
def test_what_is_moved_across_a_comparison_does_not_overflow(
    tmp_path: Path, on: str, holds: Any, a: Any, b: Any, found: bool
) -> None:
    """Moved terms do not overflow if the original does not. All but sums of BIGINTs are links."""

    def rows(given: list[tuple[int, ...]]) -> pa.Table:
        narrow = {n: pa.array([g[i] for g in given], pa.int32()) for i, n in enumerate("xy")}
        far = [g[2] if len(g) > 2 else 0 for g in given]
        return pa.table({"id": range(len(given)), **narrow, "far": pa.array(far, pa.int64())})

    streams = {"a": rows(a), "b": rows(b)}
    want = {(i, k): 1 for i, x in enumerate(a) for k, y in enumerate(b) if holds(x, y)}
    assert pairs(tmp_path, *streams.values(), on) == want
    assert bool(parse_predicate(on, streams, (None, None)).index_conditions) == found


@pytest.mark.parametrize("on", ["a.x + a.x > b.n", "b.n < -(a.x + a.x)", "a.x + 1 + a.x > b.n"])
def test_what_overflows_as_it_is_written_fails(tmp_path: Path, on: str) -> None:
    """As in Spark: a sum over one stream has the type of its own terms."""
    rows = pa.table({"id": [1], "x": pa.array([MOST], pa.int32()), "n": [5]})
    with pytest.raises(EvaluationFailure, match="ARITHMETIC_OVERFLOW in a.x"):
        pairs(tmp_path, rows, rows, on)


@pytest.mark.parametrize("on", ["5 - a.f >= 2 - b.f", "-a.f >= -b.f"])
def test_nan_is_the_largest_with_either_sign(tmp_path: Path, on: str) -> None:
    rows = pa.table({"id": [0, 1], "f": [float("nan"), 1.0]})
    assert pairs(tmp_path, rows, rows, on) == {(0, 0): 1, (0, 1): 1, (1, 1): 1}


@pytest.mark.parametrize(
    ("on", "holds"),
    [
        ("a.p * a.p > 0.005", lambda a: a["p"] * a["p"] > Decimal("0.005")),
        ("a.p + a.p > a.q", lambda a: a["p"] + a["p"] > a["q"]),
        ("a.n * a.p > 10000000000", lambda a: a["n"] * a["p"] > 10**10),
        ("a.p * 1000000 - a.q < 3", lambda a: a["p"] * 10**6 - a["q"] < 3),
        ("a.v + a.v > 2 * a.v - 0.01", lambda a: True),
        ("-a.v - a.v < 0", lambda a: a["v"] > 0),
    ],
)
@pytest.mark.parametrize("how", ["a.k = b.k AND {}", "a.k <> b.k OR {}"])
def test_decimals_have_the_digits_of_spark(tmp_path: Path, on: str, holds: Any, how: str) -> None:
    """In filters, and in values computed from one stream for pairs."""
    given = [
        {"p": Decimal("0.07"), "q": Decimal("0.1399"), "n": 3, "v": Decimal("-1.00")},
        {
            "p": Decimal("99999999.99"),
            "q": Decimal("999999.9999"),
            "n": 2 * 10**9,
            "v": Decimal("1.00"),
        },
        {
            "p": Decimal("-0.08"),
            "q": Decimal("-0.1600"),
            "n": -1,
            "v": Decimal("9999999999999999.99"),
        },
    ]
    kinds = {"p": (10, 2), "q": (10, 4), "v": (18, 2)}
    columns = {
        n: pa.array([g[n] for g in given], pa.decimal128(*kind)) for n, kind in kinds.items()
    } | {"n": pa.array([g["n"] for g in given], pa.int32())}
    a = pa.table({"id": range(3), "k": [1, 1, 1], **columns})
    b = pa.table({"id": [7], "k": [1]})
    assert pairs(tmp_path, a, b, how.format(on)) == {(i, 7): 1 for i in range(3) if holds(given[i])}


@pytest.mark.parametrize(
    ("on", "found"),
    [
        ("a.p * a.p = b.q", {(0, 5): 1}),
        ("a.p + a.p = 100 * b.q", {(0, 5): 1}),
        ("a.p * 2 - b.p <= b.q - a.p", {(2, 5): 1}),
    ],
)
def test_decimals_of_two_streams_have_the_digits_of_spark(
    tmp_path: Path, on: str, found: Any
) -> None:
    few, more = pa.decimal128(4, 2), pa.decimal128(8, 4)
    prices = [Decimal("0.02"), Decimal("99.99"), Decimal("-0.01")]
    a = pa.table({"id": range(3), "p": pa.array(prices, few)})
    b = pa.table({"id": [5], "p": pa.array([Decimal("0.01")], few)})
    b = b.append_column("q", pa.array([Decimal("0.0004")], more))
    assert pairs(tmp_path, a, b, on) == found
    assert parse_predicate(on, {"a": a, "b": b}, (None, None)).index_conditions


def test_structs_are_compared_and_decimals_of_256_bits_are_taken(tmp_path: Path) -> None:
    rows = pa.table({"id": [0, 1], "pair": [{"x": 1, "y": "a"}, {"x": None, "y": "b"}]})
    rows = rows.append_column("wide", pa.array([Decimal("1.5"), None], pa.decimal256(38, 2)))
    assert pairs(tmp_path, rows, rows, "a.pair = b.pair") == {(0, 0): 1, (1, 1): 1}
    assert pairs(tmp_path / "wide", rows, rows, "a.wide = b.wide") == {(0, 0): 1}
    more = rows.append_column("more", pa.array([None, None], pa.decimal256(39, 2)))
    with pytest.raises(
        ValueError, match=r"column more of stream a is of type decimal256\(39, 2\); .* 38 digits"
    ):
        pairs(tmp_path, more, rows, "a.id = b.id")


def test_a_run_goes_on_where_it_was(tmp_path: Path) -> None:
    streams, on = make_tables("ab", 90, seed=83, batches=6), "a.k = b.k AND a.s = b.s"
    with killed_before(3):
        run = StreamJoin(streams, on, Scatter(), check=True).start(tmp_path, batches="batch")
        with pytest.raises(OSError, match="killed"):
            run.awaitTermination()
    first, batch = run.results_since(0)
    run = ended(StreamJoin.resume(tmp_path, streams))
    rest, end = run.results_since(batch)
    assert (batch, end) == (3, 6)
    assert (
        describe_difference(result_ids(first) + result_ids(rest), compute_expected(streams, on))
        == ""
    )


def test_a_run_of_tables_may_be_stopped(tmp_path: Path) -> None:
    streams = make_tables("ab", 60, seed=84, batches=6)
    run = StreamJoin(streams, "a.k = b.k", Scatter()).start(tmp_path, batches="batch", pace=30)
    run.stop()
    assert not run.isActive
    assert run.status["state"] == "stopped"
    run = ended(StreamJoin.resume(tmp_path, streams))
    assert (
        describe_difference(result_ids(run.results()), compute_expected(streams, "a.k = b.k")) == ""
    )


@pytest.mark.parametrize(
    ("on", "said"),
    [
        ("a.k = b.k AND initcap(a.s) = 'X'", "'INITCAP\\(a.s\\)'.*not known to mean the same"),
        ("a.k = b.k AND a.n / b.n > 1", "divides by what may be 0"),
        ("a.s = b.k", "brings together int and string"),
        ("a.k = b.k AND a.d > '2024-01-01'", "brings together date and string"),
        ("a.k + b.k", "is of type int; it must be boolean"),
        ("xxhash64(a.k) = b.k", "XXHASH64.*not known to mean the same"),
        ("rand() < 0.5 AND a.k = b.k", "not known to mean the same"),
        ("a.x = b.k", "column 'a.x' in the join condition is unknown"),
    ],
)
def test_what_may_mean_another_thing_is_refused(tmp_path: Path, on: str, said: str) -> None:
    with pytest.raises(PredicateError, match=said):
        StreamJoin(make_tables("ab", 5, seed=1), on, Scatter())
    assert list_files(tmp_path) == set()


@pytest.mark.parametrize("threads", [2, 8])
def test_a_batch_is_held_twice_however_many_threads_and_copies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, threads: int
) -> None:
    """As received, and in blocks: hosts and tasks share the same tuples."""
    rows, before, most = 40_000, list[int](), list[int]()

    def counted(work: Callable[..., Any]) -> Any:
        def sampled(*given: Any) -> Any:
            done = work(*given)
            most.append(pa.total_allocated_bytes())
            return done

        return sampled

    def tuples(executor: Any, frame: Any, batch: Any, excluded: Any) -> Any:
        base = pa.total_allocated_bytes()
        found, size = arrived(executor, frame, batch, excluded)
        before.extend((base, size))
        return found, size

    def wide(first: int) -> pa.Table:
        columns = {f"c{i}": np.arange(rows) * 1.5 for i in range(20)}
        return pa.table({"k": np.arange(rows) + first, **columns})

    arrived = thread_executor.ThreadExecutor._collect_tuples
    monkeypatch.setattr(thread_executor, "available_cores", lambda: threads)
    monkeypatch.setattr(thread_executor.ThreadExecutor, "_collect_tuples", tuples)
    for owner, name in ((FreshBlockBuilder, "build_blocks"), (ReplicaStore, "store_fresh")):
        monkeypatch.setattr(owner, name, counted(getattr(owner, name)))
    streams = {"a": wide(0), "b": wide(10**9)}
    run = StreamJoin(streams, "abs(a.k - b.k) <= 0.5", AdaptiveGrid(64)).start(tmp_path, batches=1)
    assert ended(run).metrics(by="batch")["received_tuples"].sum() == 2 * rows
    base, size = before
    assert size > 5 << 20
    assert max(most) - base < 2.2 * size < COPIES * size


def test_small_batches_of_much_work_are_shared_by_threads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first batch shows the amount of work."""
    monkeypatch.setattr(thread_executor, "available_cores", lambda: 2)
    streams = make_tables("ab", 60, seed=86, batches=3)
    for short, tasks in ((1e-9, [1, 2, 2]), (60.0, [1, 1, 1])):
        monkeypatch.setattr(thread_executor, "_SHORT", short)
        join = StreamJoin(streams, "a.n < b.n", Scatter(), check=True)
        run = ended(join.start(tmp_path / str(short), batches="batch"))
        assert [e.task_count for e in run.events() if isinstance(e, BatchCommitted)] == tasks
        assert (
            describe_difference(result_ids(run.results()), compute_expected(streams, "a.n < b.n"))
            == ""
        )


@pytest.mark.parametrize("way", [ThreadExecutor, InProcessStages])
def test_what_came_is_told_before_a_shedder_drops_any(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: Any
) -> None:
    monkeypatch.setattr("braid.arrow_join.make_executor", lambda _: way())
    rows = pa.table({"id": range(4000), "k": np.arange(4000) % 50})
    ways = {"all": None, "few": Shed(fraction=0.04, method="drop")}
    reported = {}
    for name, shed in ways.items():
        join = StreamJoin({"a": rows, "b": rows}, "a.k = b.k", Centralized(), shed=shed)
        run = ended(join.start(tmp_path / name, batches=1))
        (reported[name],) = (e for e in run.events() if isinstance(e, BatchCommitted))
    assert sum(reported["few"].received_bytes) < 0.5 * sum(reported["all"].received_bytes)
    # shedding needs two more columns
    assert reported["few"].source_bytes >= reported["all"].source_bytes > 4000 * 2 * 16
    assert recent_timings([reported["few"]])[0].bytes == reported["few"].source_bytes


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The clock of batch times."""
    clock = Clock()
    monkeypatch.setattr(time, "perf_counter", clock)
    monkeypatch.setattr("braid.engine_run.Engine", partial(Engine, clock=clock))
    return clock


def test_what_a_commit_took_is_told_with_the_next_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clock: Clock
) -> None:
    clock.slows(monkeypatch, RunStore, "remove_old_files", 0.5)
    streams = make_tables("ab", 60, seed=87, batches=3)
    run = ended(StreamJoin(streams, "a.k = b.k", Scatter()).start(tmp_path, batches="batch"))
    spent = run.metrics(by="batch")
    assert list(spent["previous_commit_seconds"]) == [0, 0.5, 0.5]
    assert (spent[[*PHASE_COLUMNS.values()]] == 0).all(axis=None)


def test_block_files_that_are_gone_are_let_go(tmp_path: Path) -> None:
    """During the run, and at its end."""
    streams, held = make_tables("ab", 200, seed=88, batches=8), list[set[str]]()
    join = StreamJoin(
        streams, "a.k = b.k", Scatter(), {"a": "40 seconds", "b": "40 seconds"}, time="ts"
    )
    with pytest.MonkeyPatch.context() as patch:
        real = RunStore.remove_old_files

        def tidy(store: RunStore, *given: Any) -> None:
            real(store, *given)
            gc.collect()
            held.append(
                mapped(store.blocks.folder) - {str(f) for f in store.blocks.folder.iterdir()}
            )

        patch.setattr(RunStore, "remove_old_files", tidy)
        run = ended(join.start(tmp_path / "run", batches="batch"))
    del run
    gc.collect()
    assert held == [set()] * len(held) and len(held) >= 8
    assert mapped(tmp_path) == set()


def mapped(folder: Path) -> set[str]:
    """Return the files of a folder that this process has mapped, deleted or not."""
    lines = Path("/proc/self/maps").read_text().splitlines()
    names = {line.split(maxsplit=5)[5] for line in lines if str(folder) in line}
    return {name.removesuffix(" (deleted)") for name in names}


def test_what_needs_spark_is_refused(tmp_path: Path) -> None:
    streams = make_tables("ab", 5, seed=1)
    with pytest.raises(ValueError, match="driver_memory is '1 GB', but the streams are tables"):
        StreamJoin(streams, "a.k = b.k", Scatter(), driver_memory="1 GB")
    with pytest.raises(ValueError, match="executor is 'spark', but the streams are tables"):
        StreamJoin(streams, "a.k = b.k", Scatter(), executor="spark")
    with pytest.raises(ValueError, match=r"stream b is \[1\]; it must be a Spark DataFrame"):
        StreamJoin({**streams, "b": [1]}, "a.k = b.k", Scatter())
    run = ended(StreamJoin(streams, "a.k = b.k", Scatter()).start(tmp_path / "run", batches=1))
    with pytest.raises(ValueError, match="a run of tables has no streaming DataFrame"):
        run.results_stream()
    with pytest.raises(ValueError, match="executor is 'spark'; a run of tables has 'process' only"):
        run.set_executor("spark")


def test_pyspark_is_not_imported(tmp_path: Path) -> None:
    program = f"""
import sys
import pandas as pd
from braid import Centralized, StreamJoin
a, b = (pd.DataFrame({{"k": [1, 2, 2]}}) for _ in "ab")
join = StreamJoin({{"a": a, "b": b}}, "a.k = b.k", Centralized())
run = join.start({str(tmp_path / "run")!r})
run.awaitTermination()
assert run.results().num_rows == 5
assert "process" in str(join.explain()) and "static, replayed" in str(join.explain())
assert not [m for m in sys.modules if m.startswith(("pyspark", "py4j"))]
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_a_run_shows_itself_and_escapes_names(tmp_path: Path) -> None:
    a = pd.DataFrame({"id": [1, 2, 3], "k": [1, 2, 2]})
    join = StreamJoin({"a": a, "b": a}, "a.k = b.k", Scatter())
    run = ended(join.start(tmp_path / "<script>", batches=2))
    assert repr(run).startswith("ArrowJoinRun(a ⋈ b: ") and "batch 2 of 2, 6 tuples" in repr(run)
    page = run._repr_html_().replace(' style="text-align: left"', "")
    assert page.startswith("<b>ArrowJoinRun in ") and "<td>batches</td><td>2</td>" in page
    assert "<script>" not in page and "&lt;script&gt;" in page


def test_the_state_of_tables_is_counted_from_their_event_times_and_windows() -> None:
    rows = pa.table({"id": range(101), "ts": pa.array([k * 10**6 for k in range(101)], US)})
    join = StreamJoin({"a": rows, "b": rows}, "a.id = b.id", Scatter(), {"a": "25 seconds"}, "ts")
    a, b = (how for kind, _, how in join.explain().rows if kind == "held")
    assert a.startswith("25 rows, ") and b.startswith("101 rows, ")
    assert ("executor", "process") in [row[:2] for row in join.explain().rows]


def test_a_run_routed_by_another_duckdb_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    streams = make_tables("ab", 20, seed=84, batches=2)
    ended(StreamJoin(streams, "a.k = b.k", Scatter()).start(tmp_path / "run", batches=2))
    monkeypatch.setattr("duckdb.__version__", "0.0.1")
    with pytest.raises(ValueError, match=r"routed by DuckDB \d.*routed by DuckDB 0\.0\.1"):
        StreamJoin(streams, "a.k = b.k", Scatter()).start(tmp_path / "run", batches=2)


def test_the_seconds_of_a_batch_are_split_by_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clock: Clock
) -> None:
    """A slow function shows in its own phase, and the phases add up to the batch."""
    slow: dict[str, tuple[Any, str]] = {
        "source": (ArrowFeed, "read_batch"),
        "planning": (batch_step, "plan_batch"),
        "transfer": (thread_executor, "exchange_partials"),
        "kernels": (ReplicaStore, "derive_blocks"),
        "commit": (StateFiles, "write_state"),
    }
    for part, (owner, name) in slow.items():
        with monkeypatch.context() as patch:
            clock.slows(patch, owner, name, 0.25)
            join = StreamJoin(make_tables("ab", 40, seed=83), "a.k = b.k", Scatter(), partitions=2)
            run = ended(join.start(tmp_path / part, batches=2, durability="process"))
        spent, column = run.metrics(by="batch"), PHASE_COLUMNS[part]
        phases = [PHASE_COLUMNS[p] for p in PHASES]
        assert list(spent["batch"]) == [0, 1] and (spent[column] >= 0.25).all()
        assert (spent[column] == spent["total_seconds"]).all()
        assert (spent[phases].drop(columns=column) == 0).all(axis=None), part


def test_metrics_are_by_host_or_by_batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    join = StreamJoin(make_tables("ab", 40, seed=84), "a.k = b.k", Scatter(pieces=3))
    run = ended(join.start(tmp_path / "run", batches=2))
    hosts, batches = run.metrics(), run.metrics(by="batch")
    assert list_documented_columns(run.metrics) == [{*hosts.columns}, {*batches.columns}]
    assert list(batches["results"]) == list(hosts.groupby("batch")["results"].sum())
    assert batches["received_tuples"].sum() == run.status["tuples"] > 0
    with pytest.raises(ValueError, match="metrics are by 'query'; it must be one of host, batch"):
        run.metrics(by="query")
    monkeypatch.setattr(row_tables, "has_pandas", lambda: False)
    assert run.metrics().to_pylist() == hosts.to_dict("records")
    assert run.metrics(by="batch").to_pylist() == batches.to_dict("records")
    assert row_tables.make_row_table([], ["batch"]).column_names == ["batch"]
    made = row_tables.make_row_table([{"a": 1}, {"b": "x"}]).to_pylist()
    assert made == [{"a": 1, "b": None}, {"a": None, "b": "x"}]


@pytest.mark.parametrize("rows", [3, 10_001])
def test_columns_that_nothing_asks_for_need_not_be_what_duckdb_takes(tmp_path, rows):
    """DuckDB refuses a map with equal keys. The behavior must not depend on the number of rows."""
    odd = pa.array([[(1, 2), (1, 3)]] * rows, pa.map_(pa.int32(), pa.int32()))
    a = pa.table({"k": np.arange(rows), "m": odd})
    b = pa.table({"k": np.arange(rows) * 2, "n": np.arange(rows)})
    run = StreamJoin({"a": a, "b": b}, "a.k = b.k", HashPartition(2)).start(
        tmp_path / "run", batches=1
    )
    run.awaitTermination()
    found = run.results()
    assert found.num_rows == len(range(0, rows, 2))
    assert found["a"].combine_chunks().field("m")[0].as_py() == [(1, 2), (1, 3)]


@pytest.mark.parametrize("how", ["inner", "full"])
def test_tables_without_rows_can_be_resumed(tmp_path: Path, how: str) -> None:
    """Batches are numbered by a column that has no number."""
    types = [("id", pa.int64()), ("batch", pa.int32()), ("ts", pa.timestamp("us"))]
    nothing = {alias: pa.schema(types).empty_table() for alias in "ab"}
    join = StreamJoin(nothing, "a.id = b.id", Centralized(), time="ts", how=how)
    for run in (
        lambda: join.start(tmp_path / "run", batches="batch"),
        lambda: join.start(tmp_path / "run", batches="batch"),
        lambda: StreamJoin.resume(tmp_path / "run", nothing),
    ):
        ended = run()
        assert ended.awaitTermination() and ended.results().num_rows == 0
