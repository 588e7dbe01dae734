"""Streams and queries for the tests of hubs, and their answers from DuckDB."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import sqlglot
from braid.condition.sql_types import SqlType
from braid.hub.arrow_backend import ArrowStreamReader
from braid.hub.hub_batches import answer_rest, run_batch
from braid.hub.hub_settings import HubSettings
from braid.hub.hub_state import HubState, RegisteredQuery
from braid.hub.query_answers import answer_query
from braid.hub.query_parser import parse_stream_query
from braid.hub.query_registry import QueryRegistry
from braid.papers.reuse.network import Network, Node
from braid.papers.reuse.planner import Reuse
from braid.papers.reuse.result_rates import Rates
from braid.sources.arrow_replay import ArrowReplay
from braid.storage.hub_files import read_hub_state
from braid.storage.run_store import RunStore
from braid.storage.static_input_copy import InputSnapshot
from braid.util.durations import UNITS
from duck import connect_duckdb
from input_splitting import split_input

if TYPE_CHECKING:
    from braid.hub.hub_run import HubRun
    from pyspark.sql import DataFrame, SparkSession

SECOND = 1_000_000
BATCHES = 6
TYPES = {
    "flights": {
        "id": "int",
        "num": "int",
        "terminal": "string",
        "carrier": "string",
        "ts": "timestamp",
    },
    "checkins": {
        "id": "int",
        "flight": "int",
        "status": "string",
        "seats": "int",
        "ts": "timestamp",
    },
    "baggage": {"id": "int", "flight": "int", "area": "int", "ts": "timestamp"},
}
SCHEMAS = {s: {c: SqlType(t) for c, t in columns.items()} for s, columns in TYPES.items()}

NODES = ("F", "C", "B", "N1", "N2", "N3", "N4", "S1", "S2")
NETWORK = Network(
    tuple(Node(n, "source" if n in "FCB" else "sink" if n[0] == "S" else "node") for n in NODES),
    (
        ("F", "N1", 2.0), ("C", "N1", 1.0), ("C", "N2", 2.0), ("F", "N2", 2.0), ("B", "N3", 1.0),
        ("N1", "N2", 3.0), ("N2", "N3", 4.0), ("N3", "N4", 2.0), ("N4", "N1", 6.0), ("B", "N4", 5.0),
        ("N3", "S1", 1.0), ("N4", "S1", 3.0), ("N2", "S2", 1.0), ("N1", "S2", 4.0), ("F", "N4", 7.0),
        ("C", "N4", 7.0),
    ),
)  # fmt: skip
AT = {"flights": "F", "checkins": "C", "baggage": "B"}


def make_hub_tables(seed: int) -> dict[str, pa.Table]:
    """Return tuples whose event time advances by a minute per batch."""
    rng = random.Random(seed)

    def make_table(stream: str, count: int) -> pa.Table:
        rows = []
        for id in range(count):
            at = int(rng.random() * BATCHES * 60 * SECOND)
            row: dict[str, Any] = {"id": id, "ts": at, "batch": at // (60 * SECOND)}
            row |= {
                c: rng.choice([None, *range(8)]) for c in ("num", "flight") if c in TYPES[stream]
            }
            row |= {c: rng.randrange(4) for c in ("seats", "area") if c in TYPES[stream]}
            row |= {
                c: rng.choice("ABC")
                for c in ("terminal", "carrier", "status")
                if c in TYPES[stream]
            }
            rows.append(row)
        kinds = {"int": pa.int32(), "string": pa.string(), "timestamp": pa.timestamp("us", "UTC")}
        schema = pa.schema(
            [(c, kinds[t]) for c, t in TYPES[stream].items()] + [("batch", pa.int32())]
        )
        return pa.Table.from_pylist(rows, schema)

    return {
        "flights": make_table("flights", 120),
        "checkins": make_table("checkins", 160),
        "baggage": make_table("baggage", 90),
    }


def expect_rows(
    data: Mapping[str, pa.Table],
    sql: str,
    first: int = 0,
    end: int = BATCHES,
    complete: Mapping[str, int | None] | None = None,
    since: int | None = None,
    until: int | None = None,
) -> Counter[tuple[Any, ...]]:
    """Return DuckDB's answer to one query.

    It has the matches whose last member arrived in these batches, and whose members are not older
    than ``complete``. For a query with a SLIDE it has the matches at its ticks.
    """
    query = parse_stream_query(sql, SCHEMAS, "ts")
    db = connect_duckdb()
    for name, rows in data.items():
        db.register(name, rows)
    aliases = query.aliases
    latest = "greatest(" + ", ".join(f"epoch_us({a}.ts)" for a in aliases) + ")"
    came = "greatest(" + ", ".join(f"{a}.batch" for a in aliases) + ")"
    where = [sqlglot.transpile(query.where or "TRUE", "spark", "duckdb")[0]]
    where += [
        f"{latest} - epoch_us({a}.ts) < {query.windows_by_stream[s]}" for a, s in aliases.items()
    ]
    where += [f"{came} < {end}"] + ([] if query.slide else [f"{came} >= {first}"])
    where += [
        f"epoch_us({a}.ts) >= {t}"
        for a, s in aliases.items()
        if (t := (complete or {}).get(s)) is not None
    ]
    source = ", ".join(f"{s} AS {a}" for a, s in aliases.items())
    select = ", ".join(sqlglot.transpile(s, "spark", "duckdb")[0] for s in query.select)
    if query.slide is None:
        return Counter(
            db.sql(f"SELECT {select} FROM {source} WHERE {' AND '.join(where)}").fetchall()
        )
    ticks = f"(SELECT unnest(range({BATCHES * 60 * SECOND} // {query.slide} + 40)) * {query.slide} AS at) t"
    where += [f"{latest} <= t.at"]
    where += [f"t.at - epoch_us({a}.ts) < {query.windows_by_stream[s]}" for a, s in aliases.items()]
    where += [] if since is None else [f"t.at > {since}"]
    where += ["FALSE" if until is None else f"t.at < {until}"]
    having = "" if query.having is None else _in_duckdb(query.having)
    if query.aggregates and not query.groups:
        return _at_every_tick(db, query, ticks, f"SELECT {select} FROM {source}", where, having)
    groups = (
        ""
        if not query.aggregates
        else "GROUP BY t.at" + "".join(f", {g}".replace("`", '"') for g in query.groups)
    )
    return Counter(
        db.sql(
            f"SELECT t.at, {select} FROM {source}, {ticks} WHERE {' AND '.join(where)} {groups} {having}"
        ).fetchall()
    )


def end_of_ticks(data: Mapping[str, pa.Table], sql: str) -> int:
    """Return the event time before which a query over finished, finite streams has ticks.

    A later time changes nothing, as DuckDB finds nothing after the last match is over. An aggregate
    of all rows, which has a row at every tick, ends when nothing can match any more.
    """
    query = parse_stream_query(sql, SCHEMAS, "ts")
    if query.groups or not query.aggregates:
        return 10**15
    last = {
        s: int(data[s]["ts"].cast(pa.int64()).to_numpy().max()) for s in query.windows_by_stream
    }
    return max(max(last.values()) + 1, min(t + query.windows_by_stream[s] for s, t in last.items()))


def _in_duckdb(having: str) -> str:
    return f"HAVING {sqlglot.transpile(having, 'spark', 'duckdb')[0]}"


def _at_every_tick(
    db: Any, query: Any, ticks: str, text: str, where: list[str], having: str
) -> Counter[tuple[Any, ...]]:
    """Add a row at each tick of an aggregate of all rows, from the start of the last stream.

    As in SQL, such an aggregate has one row even without matches.
    """
    begun = max(
        db.sql(f"SELECT min(epoch_us(ts)) FROM {s}").fetchall()[0][0]
        for s in query.windows_by_stream
    )
    bounds = [w for w in where if w.startswith("t.at >") or w.startswith("t.at < ")]
    bounds += [] if any(w.startswith("t.at >") for w in bounds) else [f"t.at >= {begun}"]
    inner = [w for w in where if w not in bounds]
    return Counter(
        db.sql(
            f"SELECT t.at, told.* FROM {ticks}, LATERAL ({text} WHERE {' AND '.join(inner)} {having}) told "
            f"WHERE {' AND '.join(bounds)}"
        ).fetchall()
    )


def create_frames(spark: SparkSession, data: Mapping[str, pa.Table]) -> dict[str, DataFrame]:
    """Return the tuples as static frames, with the column that numbers their batches."""
    return {
        s: spark.createDataFrame(rows.to_pandas()).selectExpr(
            *(f"cast({c} as {t}) as {c}" for c, t in TYPES[s].items()),
            "cast(batch as int) as batch",
        )
        for s, rows in data.items()
    }


def query_rows(run: HubRun, name: str) -> Counter[tuple[Any, ...]]:
    """Return the answer of a hub to a query; a tick is in microseconds."""
    rows = run.query(name).results()
    return count_rows(rows if isinstance(rows, pa.Table) else rows.toArrow())


def count_rows(rows: pa.Table) -> Counter[tuple[Any, ...]]:
    """Return the rows of an answer; a tick is in microseconds."""
    columns = [
        c.cast(pa.int64()) if name == "tick" else c
        for name, c in zip(rows.column_names, rows.columns, strict=True)
    ]
    return Counter(zip(*(c.to_pylist() for c in columns), strict=True))


def stored_state(folder: Path) -> HubState | None:
    """Return the state of the hub in a folder as of its last commit; None before the first."""
    store = RunStore(folder)
    store.log.read_new_entries()
    commits = store.log.commits[-1:]
    return HubState.from_json(read_hub_state(store, commits[0])) if commits else None


class SteppedHub:
    """A hub of tables that takes its batches one by one, in a folder that a later hub may open."""

    def __init__(
        self,
        folder: Path,
        data: Mapping[str, pa.Table],
        network: Network | None = None,
        at: Mapping[str, str] | None = None,
        reuse: Reuse = "relaxed",
        history: int = 0,
        rates: Rates | None = None,
        lateness: Mapping[str, int] | None = None,
    ) -> None:
        if not (folder / "input").exists():
            ArrowReplay(data, dict.fromkeys(data, "ts"), "batch").write_input(folder / "input")
            split_input(folder / "input")
        copied = InputSnapshot(folder / "input")
        schemas = {s: t.drop_columns(["batch"]).schema for s, t in data.items()}
        reader = ArrowStreamReader(schemas, "ts", copied, BATCHES)
        places = dict(at or dict.fromkeys(data, "here"))
        settings = HubSettings(
            "ts", dict.fromkeys(data, 0) | dict(lateness or {}), UNITS["day"], reuse, history,
            network, places, rates,
        )  # fmt: skip
        store = RunStore(folder)
        if not (folder / "run.json").exists():
            store.create_run({"hub": sorted(data), "ready": False})
        self.registry = QueryRegistry(store, reader, settings)
        self.registry.reoptimizer.share = math.inf  # the same in every run

    def step(self) -> None:
        """Take the next micro-batch."""
        number = self.registry.ledger.micro_batch + 1
        run_batch(self.registry, number, number)
        if number == BATCHES - 1:
            answer_rest(self.registry)

    def submit(
        self, sql: str, name: str | None = None, at: str | None = None, **more: Any
    ) -> RegisteredQuery:
        settings: dict[str, Any] = dict(windows=None, slide=None, lifetime=None)
        return self.registry.register_query(
            self.registry.admit_query(sql, name, at, **{**settings, **more})
        )

    def answered(self, name: str) -> Counter[tuple[Any, ...]]:
        return count_rows(answer_query(self.registry, self.registry.last_query(name)))


FC = "flights [RANGE {f} SECONDS] f, checkins [RANGE {c} SECONDS] c WHERE f.num = c.flight"
WIDE = "SELECT f.id, c.id AS c FROM " + FC.format(f=90, c=60)
ARRIVES = WIDE + " AND unix_micros(f.ts) * 50000000000 > 5"
"""A query that fails on a flight of the fourth batch, because a product overflows."""
NARROW = (
    "SELECT c.id AS c, f.id, f.carrier FROM "
    + FC.format(f=40, c=60)
    + " AND f.terminal IN ('A', 'B') AND c.seats > 1"
)
CROSS = WIDE + " AND f.carrier <> c.status"
LONG = "SELECT f.id, c.id AS c FROM " + FC.format(f=200, c=200) + " AND f.terminal = 'C'"
THREE = (
    "SELECT f.id, c.id AS c, b.id AS b FROM flights [RANGE 60 SECONDS] f JOIN checkins [RANGE 50 SECONDS] c ON f.num = c.flight "
    "JOIN baggage [RANGE 70 SECONDS] b ON b.flight = f.num WHERE b.area < 3"
)
TICKED = "SELECT f.id, c.id AS c FROM flights [RANGE 90 SECONDS SLIDE 20 SECONDS] f, checkins [RANGE 60 SECONDS] c WHERE f.num = c.flight"
GROUPED = (
    "SELECT f.terminal, count(*) AS n, max(c.seats) AS most FROM flights [RANGE 90 SECONDS SLIDE 30 SECONDS] f, "
    "checkins [RANGE 60 SECONDS] c WHERE f.num = c.flight GROUP BY f.terminal HAVING count(*) > 2"
)


COUNTED = (
    "SELECT count(*) AS n, sum(c.seats) AS seats FROM flights [RANGE 20 SECONDS SLIDE 5 SECONDS] f, "
    "checkins [RANGE 20 SECONDS] c WHERE f.num = c.flight AND f.terminal = 'A' AND c.status = 'B'"
)
ENOUGH = COUNTED + " HAVING count(*) < 1"


def random_query(rng: random.Random) -> str:
    """Return a random query without a SLIDE: two or three streams, selections, and any window."""
    size = lambda: rng.choice([30, 60, 90, 150])  # noqa: E731
    on = rng.choice(["f.num = c.flight", "c.flight = f.num AND c.seats < 3"])
    more = rng.choice(
        ["", " AND f.terminal = 'A'", " AND f.terminal IN ('A', 'B')", " AND f.carrier <> c.status"]
    )
    sql = (
        f"FROM flights [RANGE {size()} SECONDS] f JOIN checkins [RANGE {size()} SECONDS] c ON {on}"
    )
    if rng.random() < 0.5:
        third = f" JOIN baggage [RANGE {size()} SECONDS] b ON b.flight = f.num"
        return f"SELECT f.id, c.id AS c, b.id AS b {sql}{third} WHERE b.area < {rng.randint(1, 4)}{more}"
    return f"SELECT f.id, c.id AS c {sql} WHERE c.seats >= {rng.randrange(2)}{more}"


def run_scripted_hub(
    spark: SparkSession,
    data: Mapping[str, pa.Table],
    path: Path,
    script: dict[int, Callable[[HubRun], Any]],
    monkeypatch: Any,
    **settings: Any,
) -> HubRun:
    """Run a hub over all the data, with actions after some of the batches (-1: before all)."""
    from braid.hub.hub import HubRun, QueryHub

    joined = HubRun._join_batch

    def run_script(run: HubRun, frame: Any, epoch: int) -> None:
        if epoch == 0 and run.state.epoch < 0 and -1 in script:
            script.pop(-1)(run)
        joined(run, frame, epoch)
        if epoch in script:
            script.pop(epoch)(run)

    monkeypatch.setattr(HubRun, "_join_batch", run_script)
    run = QueryHub(create_frames(spark, data), "ts", **settings).start(path, batches="batch")
    run.awaitTermination()
    return run


def hub_blocked_before_commit(spark: SparkSession, folder: str) -> HubRun:
    """Run a hub that submits a query after its second batch and blocks right before that commit."""
    import threading

    from braid.hub.hub import HubRun, QueryHub
    from braid.hub.hub_log import HubLog

    append, joined = HubLog.append_state, HubRun._join_batch

    def hold_commit(log: HubLog, state: HubState, happened: Any) -> None:
        if any(q.name == "cut off" for q in state.queries):
            Path(f"{folder}.held").touch()
            threading.Event().wait()
        append(log, state, happened)

    def run_script(run: HubRun, frame: Any, epoch: int) -> None:
        if epoch == 0:
            run.submit(WIDE, "wide")
            run.submit(THREE, "three")
        joined(run, frame, epoch)
        if epoch == 1:
            run.submit(LONG, "cut off")

    HubLog.append_state, HubRun._join_batch = hold_commit, run_script  # type: ignore[method-assign]
    return QueryHub(create_frames(spark, make_hub_tables(5)), "ts").start(folder, batches="batch")
