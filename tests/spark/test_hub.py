"""A hub on Spark: every query's answer is DuckDB's for that query alone, however they come and go."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
import sqlglot
from braid.condition.sqltypes import SqlType
from braid.hub.hub import HubRun, QueryHub
from braid.hub.query import understood
from pyspark.sql import SparkSession

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


def tables(seed: int) -> dict[str, pa.Table]:
    """Tuples whose event time goes on with the batches: a minute each."""
    rng = random.Random(seed)

    def made(stream: str, count: int) -> pa.Table:
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
        "flights": made("flights", 120),
        "checkins": made("checkins", 160),
        "baggage": made("baggage", 90),
    }


def expected(
    data: Mapping[str, pa.Table],
    sql: str,
    first: int = 0,
    end: int = BATCHES,
    complete: Mapping[str, int | None] | None = None,
    since: int | None = None,
    until: int | None = None,
) -> Counter[tuple[Any, ...]]:
    """What DuckDB finds for one query alone: matches whose last member came in these batches, and
    whose members are not older than ``complete``; or, with a SLIDE, what holds at its ticks.
    """
    query = understood(sql, SCHEMAS, "ts")
    db = duckdb.connect()
    db.sql("SET TimeZone = 'UTC'")
    for name, rows in data.items():
        db.register(name, rows)
    aliases = query.aliases
    latest = "greatest(" + ", ".join(f"epoch_us({a}.ts)" for a in aliases) + ")"
    came = "greatest(" + ", ".join(f"{a}.batch" for a in aliases) + ")"
    where = [sqlglot.transpile(query.where or "TRUE", "spark", "duckdb")[0]]
    where += [f"{latest} - epoch_us({a}.ts) < {query.windows[s]}" for a, s in aliases.items()]
    where += [f"{came} < {end}"] + ([] if query.every else [f"{came} >= {first}"])
    where += [
        f"epoch_us({a}.ts) >= {t}"
        for a, s in aliases.items()
        if (t := (complete or {}).get(s)) is not None
    ]
    source = ", ".join(f"{s} AS {a}" for a, s in aliases.items())
    select = ", ".join(sqlglot.transpile(s, "spark", "duckdb")[0] for s in query.select)
    if query.every is None:
        return Counter(
            db.sql(f"SELECT {select} FROM {source} WHERE {' AND '.join(where)}").fetchall()
        )
    ticks = f"(SELECT unnest(range({BATCHES * 60 * SECOND} // {query.every} + 40)) * {query.every} AS at) t"
    where += [f"{latest} <= t.at"]
    where += [f"t.at - epoch_us({a}.ts) < {query.windows[s]}" for a, s in aliases.items()]
    where += [] if since is None else [f"t.at > {since}"]
    where += ["FALSE" if until is None else f"t.at < {until}"]
    groups = (
        ""
        if not query.aggregates
        else "GROUP BY t.at" + "".join(f", {g}".replace("`", '"') for g in query.groups)
    )
    having = "" if query.having is None else f"HAVING {query.having}"
    return Counter(
        db.sql(
            f"SELECT t.at, {select} FROM {source}, {ticks} WHERE {' AND '.join(where)} {groups} {having}"
        ).fetchall()
    )


def answered(run: HubRun, name: str) -> Counter[tuple[Any, ...]]:
    """What a hub told a query; a tick as microseconds."""
    rows = run.query(name).results()
    if "tick" in rows.columns:
        rows = rows.selectExpr("unix_micros(tick) AS tick", *(f"`{c}`" for c in rows.columns[1:]))
    return Counter(zip(*(c.to_pylist() for c in rows.toArrow().columns), strict=True))


Script = dict[int, Callable[[HubRun], None]]


def play(
    spark: SparkSession,
    data: Mapping[str, pa.Table],
    path: Path,
    script: Script,
    monkeypatch: Any,
    **settings: Any,
) -> HubRun:
    """A hub over all the data, with something done after some of the batches (-1: before all)."""
    frames = {s: spark.createDataFrame(rows.to_pandas()).selectExpr(*(f"cast({c} as {t}) as {c}" for c, t in TYPES[s].items()), "cast(batch as int) as batch") for s, rows in data.items()}  # fmt: skip
    joined = HubRun._joined

    def scripted(run: HubRun, frame: Any, epoch: int) -> None:
        if epoch == 0 and run.ledger.epoch < 0 and -1 in script:
            script.pop(-1)(run)
        joined(run, frame, epoch)
        if epoch in script:
            script.pop(epoch)(run)

    monkeypatch.setattr(HubRun, "_joined", scripted)
    run = QueryHub(frames, "ts", **settings).start(path, batches="batch")
    run.awaitTermination()
    return run


FC = "flights [RANGE {f} SECONDS] f, checkins [RANGE {c} SECONDS] c WHERE f.num = c.flight"
WIDE = "SELECT f.id, c.id AS c FROM " + FC.format(f=90, c=60)
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


def test_queries_from_the_start_get_what_duckdb_finds_for_each_alone(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = tables(1)
    asked = {
        "wide": WIDE,
        "narrow": NARROW,
        "cross": CROSS,
        "long": LONG,
        "three": THREE,
        "ticked": TICKED,
        "grouped": GROUPED,
    }
    matched: dict[str, str] = {}

    def submit(run: HubRun) -> None:
        for name, sql in asked.items():
            assert "operator" in run.explain(sql)
            matched[name] = run.submit(sql, name).match

    run = play(spark, data, tmp_path / "hub", {-1: submit}, monkeypatch)
    assert matched == {
        "wide": "new", "narrow": "holds", "cross": "holds", "long": "relaxed", "three": "new", "ticked": "holds", "grouped": "holds",
    }  # fmt: skip
    assert len(run.operators) == 2
    end = (
        max(t["ts"].cast(pa.int64()).to_numpy().max() for s, t in data.items() if s != "baggage")
        + 1
    )
    for name, sql in asked.items():
        truth = expected(data, sql, until=int(end))
        assert truth and answered(run, name) == truth, name
    assert len(run.query("ticked").table()) == sum(
        n for row, n in expected(data, TICKED, until=int(end)).items() if row[0] == max(r[0] for r in expected(data, TICKED, until=int(end)))
    )  # fmt: skip


def test_queries_come_and_go_and_what_was_told_stays(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = tables(2)

    def second(run: HubRun) -> None:
        assert run.submit(NARROW, "held").match == "holds"
        assert run.submit(LONG, "relaxed").match == "relaxed"
        assert run.submit(THREE, "late").match == "new"

    def fourth(run: HubRun) -> None:
        run.query("wide").withdraw()
        with pytest.raises(ValueError, match="'wide' has been withdrawn already"):
            run.withdraw("wide")
        assert run.submit(WIDE, "wide again").match in ("relaxed", "holds")
        run.withdraw("late")

    run = play(
        spark,
        data,
        tmp_path / "hub",
        {-1: lambda r: [r.submit(WIDE, "wide")], 1: second, 3: fourth},
        monkeypatch,
    )
    spans = {
        "wide": (0, 4),
        "held": (2, 6),
        "relaxed": (2, 6),
        "late": (2, 4),
        "wide again": (4, 6),
    }
    asked = {"wide": WIDE, "held": NARROW, "relaxed": LONG, "late": THREE, "wide again": WIDE}
    for name, sql in asked.items():
        query = run.query(name)
        found = answered(run, name)
        whole = expected(data, sql, *spans[name])
        sure = expected(data, sql, *spans[name], complete=query.complete)
        assert not found - whole, f"{name} was told what is not so"
        assert not sure - found, f"{name} lacks what is complete"
    assert answered(run, "wide") == expected(data, WIDE, 0, 4)
    assert answered(run, "held") == expected(data, NARROW, 2, 6), (
        "a demand that was held is complete at once"
    )
    assert set(run.queries) == {"held", "relaxed", "wide again"} and len(run.operators) == 1


def test_a_hub_goes_on_where_it_was_when_it_failed(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = tables(3)
    from braid.hub.operators import Running

    once = [2]

    def start(run: HubRun) -> None:
        run.submit(WIDE, "wide")
        run.submit(THREE, "three")

    ran = Running.run

    def dying(self: Running, arrived: Any, epoch: int, own: str) -> None:
        ran(self, arrived, epoch, own)
        if epoch in once:  # the first operator has committed, the second has not
            once.remove(epoch)
            raise OSError("cut off")

    monkeypatch.setattr(Running, "run", dying)
    with pytest.raises(Exception, match="cut off"):
        play(spark, data, tmp_path / "hub", {-1: start}, monkeypatch)
    monkeypatch.undo()
    script: Script = {3: lambda r: [r.submit(NARROW, "narrow")]}
    run = play(spark, data, tmp_path / "hub", script, monkeypatch)
    for name, sql, first in (("wide", WIDE, 0), ("three", THREE, 0), ("narrow", NARROW, 4)):
        assert answered(run, name) == expected(data, sql, first), name


def test_what_a_hub_does_not_take_is_refused_and_changes_nothing(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = tables(4)
    bad = {
        "SELECT f.id FROM "
        + FC.format(f=1, c=1)
        + " AND nothing(f.id) = 1": "Spark refuses the query",
        "SELECT f.id + 'x' * c.ts FROM " + FC.format(f=1, c=1): "Spark refuses the query",
        "SELECT f.nope FROM " + FC.format(f=1, c=1): "column 'f.nope' in the query is unknown",
    }

    def submit(run: HubRun) -> None:
        run.submit(WIDE, "wide")
        before = run.ledger
        for sql, said in bad.items():
            with pytest.raises(ValueError, match=said):
                run.submit(sql)
        with pytest.raises(ValueError, match="a query named 'wide' is being answered"):
            run.submit(NARROW, "wide")
        with pytest.raises(ValueError, match="no query is named 'nobody'; there are: wide"):
            run.query("nobody")
        assert run.ledger == before

    run = play(spark, data, tmp_path / "hub", {-1: submit}, monkeypatch)
    with pytest.raises(RuntimeError, match="the hub has ended"):
        run.submit(NARROW)
    with pytest.raises(ValueError, match="reuse is 'much'"):
        QueryHub({"a": spark.range(1), "b": spark.range(1)}, "id", reuse="much")
