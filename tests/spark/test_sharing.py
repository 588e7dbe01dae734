"""Shared joins on Spark: selections, queries added and removed during a run, restarts and
refusals.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from braid.answer_check import check_answers
from braid.answer_report import QueryReports
from braid.core.run_events import BatchCommitted, BatchQueryResults, QueryAdded
from braid.core.touch_events import HostLost
from braid.papers.shedding.shed import Shed
from braid.papers.slices.run_events import ChainChanged
from braid.shared.shared_join import SharedJoin, SharedRun
from duck import connect_duckdb
from oracle import (
    Ids,
    compute_expected,
    create_frames,
    describe_difference,
    make_tables,
    wait_until,
)
from pyspark.sql import DataFrame, SparkSession
from unit.test_answer_check import with_query

ON = "a.k = b.k"
STREAMS = make_tables("ab", {"a": 700, "b": 600}, seed=3, batches=8)
Asked = dict[str, tuple[dict[str, int], dict[str, str]]]
QUERIES: Asked = {
    "alarm": ({"a": 60, "b": 60}, {}),
    "trend": ({"a": 300, "b": 300}, {"a": "a.n > 100 AND a.s <> ''"}),
    "uneven": ({"a": 200, "b": 100}, {"b": "b.flag", "a": "upper(a.s) LIKE 'A%'"}),
}


def shared(streams: dict[str, DataFrame], asked: Asked, **settings: Any) -> SharedJoin:
    join = SharedJoin(streams, ON, **{"time": "ts"} | settings, partitions=2, check=True)
    for name, (windows, where) in asked.items():
        join.add(name, {a: f"{w} seconds" for a, w in windows.items()}, where)
    return join


def ids(results: DataFrame) -> Ids:
    columns = (
        results.select(*[results[a]["id"].alias(a) for a in results.columns]).toArrow().columns
    )
    return Counter(zip(*(c.to_pylist() for c in columns), strict=True))


def truth(name: str, streams: dict[str, pa.Table] = STREAMS) -> Ids:
    windows, where = QUERIES[name]
    return compute_expected(streams, " AND ".join([ON, *where.values()]), windows)


def since(batch: int) -> Ids:
    """Return the results of "alarm" whose last member arrived in this batch or later."""
    came = {
        a: dict(zip(t["id"].to_pylist(), t["batch"].to_pylist(), strict=True))
        for a, t in STREAMS.items()
    }
    return Counter(
        {
            (a, b): n
            for (a, b), n in truth("alarm").items()
            if max(came["a"][a], came["b"][b]) >= batch
        }
    )


@pytest.mark.parametrize(("chain", "hosts"), [("memory", 1), ("auto", 3), (["100 seconds"], 1)])
def test_every_query_gets_its_own_results(
    spark: SparkSession, tmp_path: Path, chain: Any, hosts: int
) -> None:
    streams, own = create_frames(spark, STREAMS), {"a": "ts", "b": "came at"}
    streams["b"] = streams["b"].withColumnRenamed("ts", own["b"])
    run = shared(streams, QUERIES, chain=chain, hosts=hosts, time=own).start(
        tmp_path / "run", batches="batch"
    )
    run.awaitTermination()
    for name in QUERIES:
        assert not describe_difference(ids(run.results(name)), truth(name)), name
    times = [
        max(row.a.ts, row.b["came at"])
        for row in run.results("trend", ordered=True).toLocalIterator()
    ]
    assert times == sorted(times) and len(times) == truth("trend").total()
    done = [e for e in run.events() if isinstance(e, BatchCommitted)]
    assert not any(any(e.late_tuples) for e in done)
    for name in QUERIES:
        served = [
            e.results_by_query[name] for e in run.events() if isinstance(e, BatchQueryResults)
        ]
        assert len(served) == len(done) and sum(served) == truth(name).total(), name


KINDS = ("left", "right", "full", "semi", "anti")


def truth_of_kind(how: str, seconds: int, selection: str) -> Counter[tuple[int | None, ...]]:
    """Return the rows of a kind of join of tuples of ``a`` that are selected, from DuckDB."""
    ids = "a.id" if how in ("semi", "anti") else "a.id, b.id"
    late = f"abs(epoch(a.ts) - epoch(b.ts)) < {seconds}"
    source = f"(SELECT * FROM a WHERE {selection}) a {how} JOIN b ON {ON} AND {late}"
    with connect_duckdb() as db:
        for alias, rows in STREAMS.items():
            db.register(alias, rows)
        return Counter(db.sql(f"SELECT {ids} FROM {source}").fetchall())


def truth_of_latest(seconds: int) -> Counter[tuple[int | None, ...]]:
    """Return each tuple of ``a`` with its latest partner, or with None, from DuckDB."""
    near = f"b.ts <= a.ts AND epoch(a.ts) - epoch(b.ts) <= {seconds}"
    first = "QUALIFY row_number() OVER (PARTITION BY a.id ORDER BY b.ts DESC, b.id DESC) = 1"
    with connect_duckdb() as db:
        for alias, rows in STREAMS.items():
            db.register(alias, rows)
        joined = f"SELECT a.id, b.id FROM a LEFT JOIN b ON {ON} AND {near} {first}"
        return Counter(db.sql(joined).fetchall())


def structs(results: DataFrame) -> Counter[tuple[int | None, ...]]:
    rows = results.toArrow()
    columns = [[row and row["id"] for row in column.to_pylist()] for column in rows.columns]
    return Counter(zip(*columns, strict=True))


@pytest.mark.parametrize(("executor", "hosts"), [("spark", 3), ("process", 1)])
def test_queries_of_every_kind_get_their_own_rows(
    spark: SparkSession, tmp_path: Path, executor: str, hosts: int
) -> None:
    """Tuples have NULL keys. A run that is stopped and resumed answers the same."""
    join = SharedJoin(
        create_frames(spark, STREAMS),
        ON,
        "ts",
        hosts=hosts,
        partitions=2,
        check=True,
        executor=executor,
    )
    for seconds, where in ((60, "a.n > 100"), (300, "true")):
        for how in KINDS:
            name = f"{how} {seconds}"
            join.add(name, f"{seconds} seconds", {"a": where} if seconds == 60 else None, how=how)
    join.add("inner", "60 seconds")
    join.add("latest", how="left", match="latest", tolerance="60 seconds", ties="id")
    delivered: dict[str, Counter[Any]] = {}

    def take(results: Mapping[str, DataFrame], batch: int) -> None:
        if batch > 9:  # the last ones
            for name, rows in results.items():
                delivered.setdefault(name, Counter()).update(structs(rows))

    path = tmp_path / "run"
    run = join.start(path, batches="batch", foreachBatch=take)
    wait_until(lambda: run.status["batch"] >= 3, "the fourth batch")
    run.stop()
    run = SharedJoin.resume(
        path, create_frames(spark, STREAMS), executor=executor, foreachBatch=take
    )
    assert run.awaitTermination()
    for seconds, where in ((60, "a.n > 100"), (300, "true")):
        for how in KINDS:
            found = structs(run.results(f"{how} {seconds}"))
            assert found == truth_of_kind(how, seconds, where), (how, seconds)
    assert structs(run.results("latest")) == truth_of_latest(60)
    assert not describe_difference(ids(run.results("inner")), truth("alarm"))
    if executor == "process":
        check_answers_by_query(path, run)
    with pytest.raises(RuntimeError, match="the run has ended"):
        run.add("later", "5 seconds", how="left")


def check_answers_by_query(path: Path, run: SharedRun) -> None:
    """Recompute the answers of a run, also as if two queries had been others."""
    report = check_answers(path)
    assert isinstance(report, QueryReports) and report.is_right, report
    assert [*report.reports] == [q.name for q in run.queries]
    assert all(each.results and not each.late for each in report.reports.values())
    check_reasons_by_query(run, report, limit=12)
    asked = [list(query) for query in run.store.read_settings()["queries"]]
    for query in asked:
        if query[0] == "latest":
            query[6] = {**query[6], "match": "first"}
        elif query[0] == "left 60":
            query[2] = [None, None]
    with_query(path, queries=asked)
    wrong = {name: each for name, each in check_answers(path).reports.items() if not each.is_right}
    assert [*wrong] == ["left 60", "latest"] and all(each.missing for each in wrong.values())


def check_reasons_by_query(run: SharedRun, report: QueryReports, limit: int) -> Counter[str]:
    """Return how often combinations of the first tuples have each verdict; none is a fault."""
    counts: Counter[str] = Counter()
    for name in report.reports:
        answer = run.why({"a": "true", "b": "true"}, limit, name)
        assert "fault" not in {pair.verdict for pair in answer.pairs}, f"{name}: {answer}"
        counts.update(pair.verdict for pair in answer.pairs)
    return counts


def test_a_query_of_a_kind_is_refused_where_it_cannot_be_answered(spark: SparkSession) -> None:
    streams = create_frames(spark, make_tables("abc", 5, 1))
    three = SharedJoin(streams, "a.k = b.k AND b.k = c.k", "ts")
    with pytest.raises(ValueError, match="this join is of 3 streams; queries .* are inner joins"):
        three.add("kept", "5 seconds", how={"a": "keep"})
    two = SharedJoin({a: streams[a] for a in "ab"}, ON, "ts", shed=Shed(fraction=0.5))
    with pytest.raises(ValueError, match="in a join that sheds load, where pairs are left out"):
        two.add("kept", "5 seconds", how="left")


@pytest.mark.parametrize(
    "on", ["a.k = b.k AND a.n > b.n - 40 AND a.n < b.n + 40", "a.k = b.k OR a.n = b.n"]
)
def test_queries_share_every_kind_of_index(spark: SparkSession, tmp_path: Path, on: str) -> None:
    join = SharedJoin(create_frames(spark, STREAMS), on, time="ts", partitions=2, check=True)
    windows = {"short": {"a": 60, "b": 60}, "long": {"a": 300, "b": 200}}
    for name, seconds in windows.items():
        join.add(name, {a: f"{w} seconds" for a, w in seconds.items()})
    run = join.start(tmp_path / "run", batches="batch")
    run.awaitTermination()
    for name, seconds in windows.items():
        assert not describe_difference(
            ids(run.results(name)), compute_expected(STREAMS, on, seconds)
        )


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """The number of batches after which a run is paused, by name of its folder."""
    publish, after = SharedRun._publish_events, dict[str, int]()

    def publishing(run: SharedRun, happened: list[Any]) -> None:
        publish(run, happened)
        if run.status["batch"] == after.get(run.store.path.name):
            del after[run.store.path.name]
            run.pause()

    monkeypatch.setattr(SharedRun, "_publish_events", publishing)
    return after


@pytest.fixture
def silent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run a batch without tuples before two micro-batches, as if the source were silent."""
    join = SharedRun._join_batch

    def join_after_silence(run: SharedRun, source: Any, number: int) -> None:
        if number in (1, 6):
            run._run_empty_batch()
        join(run, source, number)

    monkeypatch.setattr(SharedRun, "_join_batch", join_after_silence)


@pytest.mark.usefixtures("silent")
def test_queries_come_and_go_and_slices_change_while_it_runs(
    spark: SparkSession, tmp_path: Path, held: dict[str, int]
) -> None:
    first = {n: QUERIES[n] for n in ("trend", "uneven")}
    held["run"] = 2
    run = shared(create_frames(spark, STREAMS), first, chain="memory").start(
        tmp_path / "run", batches="batch"
    )
    wait_until(lambda: run.isPaused, "second batch")
    run.lose(0)
    run.add("alarm", "60 seconds")
    run.add("latest", match="latest", tolerance="60 seconds", ties="id")
    added = next(e for e in run.events() if isinstance(e, QueryAdded) and e.name == "alarm")
    run.split_slice("150 seconds", stream="a")
    run.stop()
    held["run"] = 4
    again = SharedJoin.resume(tmp_path / "run", create_frames(spark, STREAMS))
    assert [q.name for q in again.queries] == ["trend", "uneven", "alarm", "latest"]
    wait_until(lambda: again.isPaused, "more batches")
    again.lose(0)
    again.merge_slices("150 seconds")
    again.remove("uneven")
    again.rebalance("memory")
    again.unpause()
    again.awaitTermination()
    assert not describe_difference(ids(again.results("trend")), truth("trend"))
    assert not ids(again.results("uneven")) - truth("uneven")
    batches = data_batches(again)
    entered = sum(b < added.batch for b in batches)
    found = ids(again.results("alarm"))
    assert not found - since(entered)
    members = {
        a: dict(zip(t["id"].to_pylist(), t["batch"].to_pylist(), strict=True))
        for a, t in STREAMS.items()
    }
    later = Counter(
        {
            g: n
            for g, n in since(entered).items()
            if min(members["a"][g[0]], members["b"][g[1]]) >= entered
        }
    )
    assert later and not later - found, "what came after the query must be complete"
    pairs = truth_of_latest(60)
    assert (report := check_answers(tmp_path / "run")).is_right, report
    names = [name.partition(" (")[0] for name in report.reports]
    assert names == ["uneven", "trend", "alarm", "latest"]
    assert isinstance(report, QueryReports)
    counts = check_reasons_by_query(again, report, limit=60)
    assert counts["found"] and counts["not served"], counts
    for name, found in ((None, "query is missing"), ("trends", "there is no query 'trends'")):
        with pytest.raises(ValueError, match=f"{found}; the shared run in .* uneven .*, trend, al"):
            again.why({"a": "id = 1"}, query=name)
    new = {pair: n for pair, n in pairs.items() if members["a"][pair[0]] >= entered}
    assert structs(again.results("latest")) == {p: n for p, n in new.items() if p[1] is not None}
    reasons = [e.reason for e in again.events() if isinstance(e, ChainChanged)]
    assert {"memory", "split", "merged"} <= set(reasons)
    assert [e.stored_tuples > 0 for e in again.events() if isinstance(e, HostLost)] == [True] * 2


def data_batches(run: SharedRun) -> list[int]:
    """Return the numbers of the batches with tuples."""
    return [
        e.batch for e in run.events() if isinstance(e, BatchCommitted) and sum(e.received_tuples)
    ]


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ({"windows": {"a": "1 minute"}}, "windows for a; it needs one for each of a, b"),
        ({"windows": "soon"}, "must be a positive span"),
        ({"match": "latest"}, "match='latest' without tolerance and windows"),
        ({"match": "latest", "order": "n"}, "order is 'n', but as-of queries of a shared join"),
        ({"match": "last", "windows": "1 s"}, "match is 'last'; match must be one of latest, f"),
        ({"match": "latest", "tolerance": 3}, "tolerance is 3, but times are compared"),
        ({"windows": "1 s", "tolerance": "1 s"}, "tolerance is given without match"),
        ({"match": "first", "windows": "1 s", "how": "semi"}, "it must be 'inner' or 'left', as"),
        (
            {"windows": "1 minute", "on": "a.n = b.n"},
            "joins on 'a.n = b.n'; this join is on 'a.k = b.k'",
        ),
        (
            {"windows": "1 minute", "on": "a.k <> b.k"},
            "joins on 'a.k <> b.k'; this join is on 'a.k = b.k'",
        ),
        ({"windows": "1 minute", "streams": ["a", "c"]}, "joins a, c; this join is of a, b"),
        ({"windows": "1 minute", "where": {"c": "c.n > 1"}}, "selects on c; the streams are a, b"),
        (
            {"windows": "1 minute", "where": {"a": "a.nowhere > 1"}},
            "column 'a.nowhere' in the selection of 'new' on a is unknown",
        ),
        ({"windows": "1 minute", "where": {"a": "b.n > 1"}}, "b"),
        *(
            ({"windows": "1 minute", "where": {"a": where}}, said)
            for where, said in (
                ("a.s", "is of type STRING; it must be boolean"),
                ("'true'", "is of type STRING; it must be boolean"),
                ("a.n", "it must be boolean"),
                ("nowhere(a.n)", "function 'nowhere' in the selection of 'new' on a is unknown"),
                ("max(a.n) > 1", "Spark refuses"),
                ("row_number() OVER (ORDER BY a.n) > 1", "Spark refuses"),
                ("a.n > AND", "is not valid Spark SQL"),
                (f"a.s{'[0]' * 300} > 0", "is too deep"),
                ("rand() < 0.5", "another answer each time"),
                ("a.n > 10 * randn(3)", "another answer each time"),
                ("uuid() > a.s", "another answer each time"),
            )
        ),
    ],
)
def test_a_query_that_does_not_fit_is_refused(
    spark: SparkSession, query: dict[str, Any], said: str
) -> None:
    join = shared(create_frames(spark, STREAMS), {})
    with pytest.raises(ValueError, match=said) as refused:
        join.add("new", **query)
    assert "\n" not in str(refused.value)
    fits = {"name": "fits", "windows": "1 minute", "where": {"a": "a.n > 1", "b": "b.n > 1"}}
    with pytest.raises(ValueError) as together:
        join.add_all([fits, {"name": "new", **query}])
    assert str(together.value) == str(refused.value), "with others it is judged no otherwise"
    assert join.queries == ()


def test_a_query_on_the_same_condition_is_taken_however_it_is_written(spark: SparkSession) -> None:
    join = SharedJoin(create_frames(spark, STREAMS), "a.k = b.k AND a.n < b.n", time="ts")
    join.add("same", "1 minute", on="(A.n<b.n) and b.k=a.k", streams=["b", "a"])
    assert [q.name for q in join.queries] == ["same"]


def test_what_cannot_run_is_refused_before_it_starts(spark: SparkSession, tmp_path: Path) -> None:
    streams = create_frames(spark, STREAMS)
    with pytest.raises(ValueError, match="no query has been added"):
        shared(streams, {}).start(tmp_path / "run")
    with pytest.raises(ValueError, match="has no event-time column"):
        SharedJoin(streams, ON, time=None)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="chain is 'fast'; it must be one of auto, memory, cpu"):
        shared(streams, QUERIES, chain="fast")
    join = shared(streams, QUERIES)
    with pytest.raises(ValueError, match="a query named 'alarm' is being served"):
        join.add("alarm", "1 minute")
    with pytest.raises(ValueError, match="no query is named 'x'"):
        join.remove("x")
    assert not (tmp_path / "run").exists()


def test_a_run_that_has_ended_refuses_changes_and_keeps_its_results(
    spark: SparkSession, tmp_path: Path
) -> None:
    small = make_tables("ab", 60, seed=4, batches=2)
    run = shared(create_frames(spark, small), {"alarm": QUERIES["alarm"]}).start(
        tmp_path / "run", batches="batch"
    )
    run.awaitTermination()
    with pytest.raises(RuntimeError, match="the run has ended"):
        run.add("late", "60 seconds")
    with pytest.raises(ValueError, match="no query is named 'late'; there are: alarm"):
        run.results("late")
    assert not describe_difference(ids(run.results("alarm")), truth("alarm", small))


def test_selections_on_columns_of_any_name_and_kind(
    spark: SparkSession, tmp_path: Path, held: dict[str, int]
) -> None:
    """A struct field beside a column of the same name, columns named like internal ones, and
    constant false.

    Selections are given at the start and on a running join.
    """
    given = {a: frame.where("batch < 4") for a, frame in create_frames(spark, STREAMS).items()}
    odd = given["a"].selectExpr(
        "*",
        "struct(n AS x, struct(flag AS deep) AS y) AS st",
        "-n AS x",
        "n AS host",
        "n AS `a block`",
    )
    asked = {
        "field": "a.st.x > 100 AND a.st.y.deep",
        "host": "a.host > 100",
        "space": "a.`a block` > 100",
        "never": "1 = 0",
        "null": "a.n = NULL",
    }
    join = SharedJoin({"a": odd, "b": given["b"]}, ON, time="ts", partitions=2, check=True)
    for name in ("field", "never"):
        join.add(
            name,
            "90 seconds",
            {"a": asked[name], "b": "b.n = NULL"} if name == "never" else {"a": asked[name]},
        )
    held["run"] = 1
    run = join.start(tmp_path / "run", batches="batch")
    wait_until(lambda: run.isPaused, "first batch")
    for name in ("host", "space", "null"):
        run.add(name, "90 seconds", {"a": asked[name]})
    run.unpause()
    run.awaitTermination()
    streams = {a: STREAMS[a].filter(pa.compute.less(STREAMS[a]["batch"], 4)) for a in "ab"}
    windows = {"a": 90, "b": 90}
    assert not describe_difference(
        ids(run.results("field")),
        compute_expected(streams, f"{ON} AND a.n > 100 AND a.flag", windows),
    )
    above = compute_expected(streams, f"{ON} AND a.n > 100", windows)
    for name in ("host", "space"):
        found = ids(run.results(name))
        assert found and not found - above
    assert not ids(run.results("never")) and not ids(run.results("null"))


def test_nothing_but_what_is_never_selected(spark: SparkSession, tmp_path: Path) -> None:
    """Spark finds both selections false before it runs; batches continue, and event time
    advances.
    """
    small = make_tables("ab", 60, seed=4, batches=2)
    never: Asked = {"never": ({"a": 60, "b": 60}, {"a": "1 = 0", "b": "b.n = NULL"})}
    run = shared(create_frames(spark, small), never).start(tmp_path / "run", batches="batch")
    run.awaitTermination()
    assert [e.received_tuples for e in run.events() if isinstance(e, BatchCommitted)] == [
        (0, 0)
    ] * 2
    assert not ids(run.results("never"))


def test_spark_looks_at_all_selections_of_a_stream_at_once(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    joins = [shared(create_frames(spark, STREAMS), {}) for _ in range(2)]
    kind, looked = type(joins[0].streams["a"]), list[Any]()
    whole = kind.filter
    monkeypatch.setattr(kind, "filter", lambda frame, on: looked.append(on) or whole(frame, on))
    asked = [
        {"name": str(n), "windows": "1 minute", "where": {"a": f"A.N > {n}", "b": "b.n <> 3"}}
        for n in range(9)
    ]
    joins[0].add_all(asked)
    assert len(looked) == 2
    for each in asked:
        joins[1].add(**each)
    assert joins[0].queries == joins[1].queries and len(looked) == 2 + 18


def test_many_queries_read_their_source_once(spark: SparkSession, tmp_path: Path) -> None:
    """Spark counts the rows that its scans read; rows of a batch read twice would count twice."""
    streams = {a: frame.where("batch < 4") for a, frame in create_frames(spark, STREAMS).items()}
    rows = {a: frame.count() for a, frame in streams.items()}
    tuples = {a: table.filter(pc.field("batch") < 4) for a, table in STREAMS.items()}
    eighty = compute_expected(tuples, f"{ON} AND a.n > 80", {"a": 80, "b": 80})
    assert eighty

    def read(query: Any) -> int:
        return sum(p.numInputRows for p in query.recentProgress)

    many = {f"q{n}": ({"a": n, "b": n}, {"a": f"a.n > {n}"}) for n in range(10, 90, 10)}
    for way in ("spark", "process"):
        run = shared(streams, many, executor=way).start(tmp_path / way, batches="batch")
        run.awaitTermination()
        assert {e.executor for e in run.events() if isinstance(e, BatchCommitted)} == {way}
        assert read(run.spark_query) == sum(rows.values())
        assert describe_difference(ids(run.results("q80")), eighty) == ""

    twice = spark.readStream.schema(streams["a"].drop("batch").schema)
    writer = twice.parquet(str(tmp_path / "spark" / "input" / "a")).writeStream.foreachBatch(
        lambda frame, _: [frame.toArrow(), frame.toArrow()]
    )
    query = writer.option("checkpointLocation", str(tmp_path / "twice"))
    again = query.trigger(availableNow=True).start()
    again.awaitTermination()
    assert read(again) == 2 * rows["a"]


def test_results_of_each_query_are_delivered_once(spark: SparkSession, tmp_path: Path) -> None:
    """A query comes and another goes while it runs; delivery fails once, and is repeated."""
    delivered: dict[int, dict[str, Ids]] = {}

    def keep_ids(results: Mapping[str, DataFrame], batch: int) -> None:
        assert all(rows.columns == ["a", "b"] for rows in results.values())
        delivered[batch] = {name: ids(rows) for name, rows in results.items()}
        if batch == 2 and not failed:
            failed.append(batch)
            raise OSError("no room")

    failed: list[int] = []
    streams = create_frames(spark, STREAMS)
    first = {name: QUERIES[name] for name in ("alarm", "trend")}
    run = shared(streams, first).start(tmp_path, batches="batch", foreachBatch=keep_ids)
    with pytest.raises(RuntimeError, match="foreachBatch failed on batch 2: OSError: no room"):
        run.awaitTermination()
    run = SharedJoin.resume(tmp_path, streams, foreachBatch=keep_ids)
    run.pause()
    windows, where = QUERIES["uneven"]
    run.add("uneven", {a: f"{w} seconds" for a, w in windows.items()}, where)
    run.remove("trend")
    run.unpause()
    assert run.awaitTermination() and [*delivered] == [*range(10)]
    assert {name for each in delivered.values() for name in each} == {*QUERIES}
    assert all(rows.total() for each in delivered.values() for rows in each.values())
    for name in QUERIES:
        rows = sum((each.get(name, Counter()) for each in delivered.values()), Counter())
        assert describe_difference(rows, ids(run.results(name))) == ""
    assert describe_difference(ids(run.results("alarm")), truth("alarm")) == ""
    run.close()
    assert delivered[run._engine.state.batch] == {} and run.status["state"] == "completed"
    with pytest.raises(ValueError, match="was closed after batch 11, so it takes no more tuples"):
        SharedJoin.resume(tmp_path, streams)
