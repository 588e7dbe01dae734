"""Invalid input is refused in one sentence with the value found and the values accepted.

Nothing is started or written before. No Spark.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from datetime import timedelta
from math import inf, nan
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from braid import AdaptiveGrid, Aligned, Centralized, HashPartition, Ring, SharedJoin, StaticGrid
from braid.core.query import Query
from braid.papers.shedding.shed import Shed
from braid.stream_join import StreamJoin
from braid_lab.launches.launching import make_placement, make_workload
from oracle import EPOCH, list_files

ROWS = pa.table(
    {
        "id": range(20),
        "x": pa.array([i % 5 for i in range(20)], pa.int32()),
        "s": [str(i) for i in range(20)],
        "ts": pa.array([EPOCH] * 20, pa.timestamp("us", tz="UTC")),
    }
)
STREAMS = {"a": ROWS, "b": ROWS}
ON = "a.x = b.x"
LONG = [f"a.x = b.x + {n}" for n in range(1500)]
DEEP = "is too deep, with"
TEXT = "it must be Spark SQL text such as 'a.x = b.x'"
MADE = "it must be 'auto', or one that has been made, as AdaptiveGrid(hosts=16)"
SPAN = "it must be a positive span such as '60 seconds' or '1 hour 30 minutes'"
ALIASES = "it must name each, as {'a': frame_a, 'b': frame_b}"
FRAME = "it must be a Spark DataFrame, a pandas or Polars DataFrame, or an Arrow table"
HOSTS = "it must be a whole number, 1 or more"

JOINS: dict[str, list[tuple[Any, str]]] = {
    "streams": [
        (None, ALIASES),
        (3, ALIASES),
        ("ab", ALIASES),
        ([ROWS, ROWS], f"streams is a list; {ALIASES}"),
        ((ROWS,), ALIASES),
        (ROWS, ALIASES),
        ({}, "a join needs two or more streams; got 0: none"),
        ({"a": ROWS}, "a join needs two or more streams; got 1: a"),
        ({1: ROWS, 2: ROWS}, "the alias 1 is not accepted"),
        ({None: ROWS, "b": ROWS}, "the alias None is not accepted"),
        ({"": ROWS, "b": ROWS}, "the alias '' is not accepted"),
        ({"a b": ROWS, "b": ROWS}, "an alias is a letter, then letters, digits or _"),
        *(
            ({word: ROWS, "b": ROWS}, f"{word}.x means something else in Spark SQL")
            for word in ("null", "true", "FALSE", "current_date", "and", "from")
        ),
        ({"a": ROWS, "A": ROWS}, "must differ by more than upper and lower case"),
        ({"a": None, "b": ROWS}, f"stream a is None; {FRAME}"),
        ({"a": [1], "b": ROWS}, f"stream a is [1]; {FRAME}"),
        ({"a": ROWS, "b": {"x": [1]}}, f"stream b is a dict; {FRAME}"),
        ({"a": ROWS, "b": pa.Table}, f"stream b is the class Table; {FRAME}"),
        ({"a": ROWS, "b": ROWS.rename_columns(["x", "X", "s", "ts"])}, "columns ['x'] of stream b"),
        ({"a": ROWS, "b": ROWS.rename_columns(["i`d", "x", "s", "ts"])}, "columns ['i`d'] of stre"),
    ],
    "on": [
        (None, TEXT),
        (3, TEXT),
        (True, TEXT),
        (b"a.x = b.x", TEXT),
        ([ON], TEXT),
        (" ", TEXT),
        ("a.x = ", "is not valid Spark SQL: Something is missing. Line 1, Col: 5."),
        ("a.x = b.x)", "is not valid Spark SQL"),
        (
            "a.x = b.x; DROP TABLE x",
            "holds 2 statements; it must be one condition over alias.column",
        ),
        ("DROP TABLE x", "is none; it must be one condition over alias.column"),
        ("*", "is none; it must be one condition over alias.column"),
        ("a.x = (SELECT 1)", "holds a query"),
        ("a.nope = b.x", "column 'a.nope' in the join condition is unknown; a has: id, x, s, ts"),
        ("a.x + b.x", "is of type int; it must be boolean"),
        ("(" * 400 + ON + ")" * 400, DEEP),
        (" OR ".join(LONG), f"{DEEP} 28,886 letters; write a long list as IN (...)"),
        (" AND ".join([ON] * 1500), DEEP),
        ("NOT " * 1000 + ON, DEEP),
        (ON + " + 1" * 900, DEEP),
        ("CASE " * 300 + ON, DEEP),
    ],
    "placement": [
        (None, MADE),
        (AdaptiveGrid, f"placement is the class AdaptiveGrid; {MADE}"),
        ("AdaptiveGrid", f"placement is 'AdaptiveGrid'; {MADE}"),
        (3, MADE),
        (print, MADE),
    ],
    "windows": [
        (5, "windows is 5; it must be a span such as '10 minutes' for all streams, or spans"),
        (True, "windows is True; it must be a span"),
        (["5 s", "5 s"], "windows is ['5 s', '5 s']; it must be a span"),
        ("soon", f"the window of a is 'soon'; {SPAN}"),
        ("", SPAN),
        ({"c": "5 s"}, "windows are given for ['c']; the streams are a, b"),
        ({3: "5 s"}, "windows are given for [3]; the streams are a, b"),
        ({"a": None}, f"the window of a is None; {SPAN}"),
        ({"a": 5}, SPAN),
        ({"a": True}, SPAN),
        ({"a": nan}, SPAN),
        ({"a": "5 years"}, SPAN),
        ({"a": "-5 s"}, SPAN),
        ({"a": timedelta(0)}, SPAN),
        ({"a": timedelta.max}, "of at most 10,000 years"),
        ({"a": "99999999999999999999 days"}, "of at most 10,000 years"),
        ({"a": "9" * 5000 + " s"}, SPAN),
    ],
    "time": [
        (
            3,
            "time is 3; it must be the event-time column of all streams, or name one for each of a",
        ),
        (["ts", "ts"], "time is ['ts', 'ts']; it must be the event-time column of all streams"),
        (
            {"a": "ts"},
            "windows are given but only stream a has event time; name that of another with time=",
        ),
        ({"a": "ts", "b": "ts", "c": "ts"}, "or name one for each of a, b"),
        (
            {"a": "ts", "b": "nope"},
            "stream b has no event-time column 'nope'; it has: id, x, s, ts",
        ),
        ({"a": "ts", "b": 3}, "stream b has no event-time column 3"),
        ({"a": "ts", "b": "x"}, "the event-time column b.x is of type int"),
        ("", "stream a has no event-time column ''"),
        ("nope", "stream a has no event-time column 'nope'"),
        ("x", "the event-time column a.x is of type int; it must be a timestamp or a date"),
        (None, "windows are given but no event-time column: name it with time="),
    ],
    "lateness": [(v, SPAN) for v in (3, -1, True, "never", "1e5 s", inf, timedelta(-1))],
    "partitions": [
        (0, "partitions is 0; it must be a whole number, 1 or more"),
        (-1, "1 or more"),
        (True, "partitions is True; it must be a whole number"),
        ("2", "partitions is '2'; it must be a whole number"),
        (1.5, "whole number"),
        (nan, "whole number"),
        ([2], "whole number"),
        (10**6, "1 or more and at most 10,000"),
    ],
    "seed": [(v, "seed is") for v in ("x", 1.5, None, -1, True, 2**70)],
    "check": [(v, "it must be True or False") for v in ("yes", None, 1, 2.0)],
    "executor": [
        (v, "it must be one of auto, process, spark") for v in (None, 3, "Spark", ["process"], True)
    ],
    "shed": [(v, "it must be a Shed, as in Shed(seconds=1)") for v in (3, "x", Shed, {"a": 1})],
    "driver_memory": [(v, "tables, which are in memory") for v in ("lots", -1, "1 GB")],
}
STARTS: dict[str, list[tuple[Any, str]]] = {
    "batches": [
        (0, "batches is 0; it must be a whole number, 1 or more, or the name of a column"),
        (-1, "batches is -1"),
        (1.5, "batches is 1.5; it must be a whole number"),
        (True, "batches is True; it must be a whole number"),
        ([3], "batches is [3]; it must be a whole number"),
        (nan, "batches is nan"),
        (inf, "batches is inf"),
        (20_000, "batches is 20000, but the static streams have 40 rows; it must be at most 1,000"),
        (10**6, "batches is 1000000; it must be a whole number, 1 or more and at most 100,000"),
        ("", "stream a has no column '' that numbers its micro-batches"),
        ("nope", "stream a has no column 'nope' that numbers its micro-batches"),
        ("s", "the column a.s is of type string; to number micro-batches it must be an integer"),
    ],
    "pace": [
        (v, "it must be a number of seconds, 0 or more and at most 86,400")
        for v in (-1, inf, nan, None, "1", True, 1e300)
    ],
    "processingTime": [("1 second", "a run of tables has no trigger; got processingTime")],
    "soon": [(True, "a run of tables has no trigger; got soon")],
}
PLACEMENTS: list[tuple[Callable[[], Any], str]] = [
    *((lambda v=v: AdaptiveGrid(v), HOSTS) for v in (0, -3, 1.5, True, "4", None, nan)),
    (lambda: HashPartition(10**9), f"hosts is 1000000000; {HOSTS} and at most 100,000"),
    (
        lambda: AdaptiveGrid(2, max_tuples_per_host=9, max_hosts=2 * 4**14),
        "at most 100,000 and 16,777,216",
    ),
    (lambda: AdaptiveGrid(4, epsilon="x"), "epsilon is 'x'; it must be a number"),
    (lambda: AdaptiveGrid(4, epsilon=nan), "epsilon is nan"),
    (lambda: AdaptiveGrid(4, warmup_tuples=1.5), "warmup_tuples is 1.5; it must be a whole number"),
    (
        lambda: AdaptiveGrid(4, tuple_sizes="ab"),
        "sizes is 'ab'; it must be of type tuple[float, float]",
    ),
    (lambda: StaticGrid(4, n="2", m=2), "n is '2'; it must be a whole number or None"),
    (lambda: Aligned(4, adaptive="no"), "adaptive is 'no'; it must be True or False"),
    (lambda: Ring(4, form=3), "form is 3; it must be one of basic, interleaved, dynamic"),
    (lambda: make_placement("nope", 4), "no placement is named 'nope'; there are: AdaptiveGrid"),
    (lambda: make_placement("Ring", 4, form=3), "a setting of Ring is not accepted"),
    (lambda: make_placement("HashPartition", 10**9), "at most 100,000"),
]
SHARED: dict[str, list[tuple[Any, str]]] = {
    "streams": [(None, ALIASES), (STREAMS, "stream a is a table, but a shared join takes Spark")],
    "time": [(None, "a shared join has no event-time column")],
    "chain": [
        ("best", "chain is 'best'; it must be one of auto, memory, cpu, or ages as ['10 minutes']"),
        (None, "chain is None; it must be one of"),
        (5, "chain is 5; it must be one of"),
        (["soon"], "the end of a slice is 'soon'; it must be a positive span"),
    ],
    "hosts": [(0, HOSTS), ("2", HOSTS), (10**9, "at most 100,000")],
    "overhead": [
        (-1, "0 or more"),
        (nan, "0 or more"),
        ("x", "slice_overhead is 'x'; it must be a num"),
    ],
}
SHEDS: list[tuple[dict[str, Any], str]] = [
    (dict(seconds="1"), "seconds is '1'; it must be a number greater than 0"),
    (dict(fraction=True), "fraction is True; it must be greater than 0 and at most 1"),
    (dict(seconds=1, sample="x"), "sample is 'x'; it must be a number"),
    (dict(seconds=1, utility=3), "utility is 3; it must be of type Mapping[str, str]"),
    (dict(seconds=1, method=["x"]), "method is ['x']; it must be"),
    (dict(seconds=1, basic_window=3), "basic window is 3; it must be a positive span"),
]
QUERIES: list[tuple[Callable[[], Any], str]] = [
    (lambda: Query.parse("", ("a", "b"), "1 s"), "a query is named ''; a name must be text"),
    (lambda: Query.parse(None, ("a", "b"), "1 s"), "a query is named None; a name must be text"),
    (lambda: Query.parse("q", ("a", "b"), None), "the window of 'q' on a is None; it must be"),
    (lambda: Query.parse("q", ("a", "b"), {"a": "1 s"}), "it needs one for each of a, b"),
    (lambda: Query.parse("q", ("a", "b"), "1 s", "a.x > 3"), "it must be a condition by alias"),
    (lambda: Query.parse("q", ("a", "b"), "1 s", {"c": "c.x > 3"}), "the streams are a, b"),
]
WORKLOADS: list[tuple[Any, dict[str, Any], str]] = [
    (3, {}, "no workload is named 3; there are: eq5"),
    ("eq5", {"scale": "big"}, "scale is 'big'; it must be a number"),
    ("eq5", {"scale": nan}, "scale is nan; the TPC-H scale factor must be greater than 0"),
    ("eq5", {"scale": 1000.0}, "greater than 0 and at most 100"),
    ("eq5", {"skew": None}, "skew is None; it must be a number"),
    ("eq5", {"batches": 1.5}, "batches is 1.5; it must be a whole number"),
    ("arrivals", {"rates": 5}, "rates is 5; it must be of type"),
    (
        "arrivals",
        {"rates": (inf, 1.0)},
        "rates are (inf, 1.0); a rate is 0 or more tuples per second",
    ),
    ("arrivals", {"sigma": "x"}, "sigma is 'x'; it must be a number"),
]


def cases(table: dict[str, list[tuple[Any, str]]]) -> list[Any]:
    return [
        pytest.param(name, value, said, id=f"{name}-{n}")
        for name, tried in table.items()
        for n, (value, said) in enumerate(tried)
    ]


def refused(call: Callable[[], Any], said: str) -> None:
    with pytest.raises(ValueError, match=re.escape(said)) as refusal:
        call()
    text = str(refusal.value)
    assert "\n" not in text and len(text) < 600, "one sentence"


@pytest.mark.parametrize(("name", "value", "said"), cases(JOINS))
def test_of_a_join(name: str, value: Any, said: str) -> None:
    given = {"windows": {"a": "5 s"}} if name == "time" else {"time": "ts"}
    wanted = {"streams": STREAMS, "on": ON, "placement": Centralized()} | given | {name: value}
    refused(lambda: StreamJoin(**wanted), said)


@pytest.mark.parametrize("word", ["OR", "AND"])
def test_long_lists_are_no_deep_ones(word: str) -> None:
    StreamJoin(STREAMS, f" {word} ".join([ON] * 500), Centralized())


@pytest.mark.parametrize(("name", "value", "said"), cases(STARTS))
def test_of_a_start(name: str, value: Any, said: str, tmp_path: Path) -> None:
    join = StreamJoin(STREAMS, ON, Centralized())
    refused(lambda: join.start(tmp_path / "run", **{name: value}), said)
    assert list_files(tmp_path) == set() and not (tmp_path / "run").exists()


@pytest.mark.parametrize(("call", "said"), PLACEMENTS)
def test_of_a_placement(call: Callable[[], Any], said: str) -> None:
    refused(lambda: StreamJoin(STREAMS, ON, call()), said)


@pytest.mark.parametrize(("name", "value", "said"), cases(SHARED))
def test_of_a_shared_join(name: str, value: Any, said: str) -> None:
    refused(
        lambda: SharedJoin(**{"streams": STREAMS, "on": ON, "time": "ts"} | {name: value}), said
    )


@pytest.mark.parametrize(("settings", "said"), SHEDS)
def test_of_shedding(settings: dict[str, Any], said: str) -> None:
    refused(lambda: Shed(**settings), said)


@pytest.mark.parametrize(("call", "said"), QUERIES)
def test_of_a_query(call: Callable[[], Any], said: str) -> None:
    refused(call, said)


@pytest.mark.parametrize(("name", "settings", "said"), WORKLOADS)
def test_of_a_workload(name: Any, settings: dict[str, Any], said: str) -> None:
    refused(lambda: make_workload(None, name, **settings), said)  # type: ignore[arg-type]


def odd_paths(folder: Path) -> list[tuple[Any, str]]:
    (folder / "file").write_text("mine")
    (folder / "dangling").symlink_to(folder / "nowhere" / "x")
    return [
        (None, "the run's folder is None; it must be a path, as text or a Path"),
        (3, "it must be a path, as text or a Path"),
        (True, "it must be a path, as text or a Path"),
        (b"/tmp/x", "it must be a path, as text or a Path"),
        (["a"], "it must be a path, as text or a Path"),
        ("", "it must be a path that names a folder"),
        ("x\0y", "it must be a path that names a folder"),
        (folder / "file", "file is no folder; give a new folder, or one of a run"),
        (folder / "file" / "run", "file is no folder"),
        (folder / "dangling", "dangling is no folder"),
        (folder / ("x" * 5000), "which the file system refuses: File name too long"),
        ("/proc/nope/x", "the run's folder"),
    ]


def test_of_a_path(tmp_path: Path) -> None:
    join = StreamJoin(STREAMS, ON, Centralized())
    for path, said in odd_paths(tmp_path):
        refused(lambda path=path: join.start(path), said)
        if path != "/proc/nope/x":
            refused(lambda path=path: StreamJoin.resume(path, STREAMS), said)
    assert list_files(tmp_path) == {"dangling", "file"}


@pytest.mark.parametrize("name", ["[ab]{c}", "a*?", "back\\slash", "new\nline", "pct%20 #", "ü 名"])
def test_odd_names_of_folders_are_taken(tmp_path: Path, name: str) -> None:
    run = StreamJoin(STREAMS, ON, Centralized()).start(tmp_path / name, batches=2)
    assert run.awaitTermination() and run.results().num_rows == 80


@pytest.mark.parametrize(
    "windows", ["5 minutes", timedelta(minutes=5), "5 min", "INTERVAL 5 MINUTES"]
)
def test_one_window_is_that_of_all_streams(windows: Any) -> None:
    assert (
        StreamJoin(STREAMS, ON, Centralized(), windows, time="ts").config.window_limits
        == (3 * 10**8,) * 2
    )


def test_what_is_nearly_a_number_is_taken() -> None:
    join = StreamJoin(STREAMS, ON, StaticGrid(4), partitions=np.int64(2), seed=2**63 - 1)
    assert join.partitions == 2


def test_a_run_that_waits_for_a_day_is_stopped_before_it_is_over(tmp_path: Path) -> None:
    run = StreamJoin(STREAMS, ON, Centralized()).start(tmp_path, batches=3, pace=86_400)
    stopping = threading.Thread(target=run.stop, daemon=True)
    stopping.start()
    stopping.join(240)
    assert not stopping.is_alive() and run.status["state"] == "stopped"
