"""A hub on Spark: every query's answer is DuckDB's answer to that query alone.

Queries come and go in any order. tests/unit/test_hub.py has the tests that do not need Spark.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import braid
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from braid.answer_check import check_answers
from braid.hub.hub import HubRun, QueryHub
from braid.hub.spark_backend import SparkStreamReader
from duck import connect_duckdb
from hub_cases import (
    AT,
    BATCHES,
    COUNTED,
    ENOUGH,
    FC,
    GROUPED,
    LONG,
    NARROW,
    NETWORK,
    THREE,
    TICKED,
    WIDE,
    count_rows,
    create_frames,
    end_of_ticks,
    expect_rows,
    make_hub_tables,
    query_rows,
    run_scripted_hub,
)
from pyspark.sql import DataFrame, SparkSession
from unit.test_hub_kinds import ASOF, KINDS, count_plain_rows


def test_queries_from_the_start_get_what_duckdb_finds_for_each_alone(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = make_hub_tables(1)
    asked = {"wide": WIDE, "long": LONG, "ticked": TICKED, "grouped": GROUPED, "enough": ENOUGH}

    def submit(run: HubRun) -> None:
        assert "a new operator" in run.explain(WIDE)
        for name, sql in asked.items():
            run.submit(sql, name)

    run = run_scripted_hub(spark, data, tmp_path / "hub", {-1: submit}, monkeypatch)
    matches = {name: q.reuse_kind for name, q in run.queries.items()}
    assert matches == dict.fromkeys(asked, "holds") | {"wide": "new", "long": "relaxed"}
    for name, sql in asked.items():
        truth = expect_rows(data, sql, until=end_of_ticks(data, sql))
        assert truth and query_rows(run, name) == truth, name
    ticked = expect_rows(data, TICKED, until=end_of_ticks(data, TICKED))
    last = max(row[0] for row in ticked)
    here = [n for row, n in ticked.items() if row[0] == last]
    assert len(run.query("ticked").current_answer()) == sum(here)
    check_last_rows(run, {"wide": 20, "ticked": min(3, sum(here))}, monkeypatch)


def check_last_rows(run: HubRun, counts: dict[str, int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Check that the last rows of queries are rows of their answers, and what is read for them."""
    answers = {name: run.query(name).current_answer() for name in counts}
    files, collected = list[int](), list[int]()
    answer_query, frames = SparkStreamReader.answer_query, type(run.query("wide").results())
    to_pandas = frames.toPandas

    def count_files(self: SparkStreamReader, query: Any, parts: Any, ticks: Any) -> DataFrame:
        files.append(sum(len(part.files) for part in parts))
        return answer_query(self, query, parts, ticks)

    def count_rows_collected(self: DataFrame) -> Any:
        rows = to_pandas(self)
        collected.append(len(rows))
        return rows

    with monkeypatch.context() as patched:
        patched.setattr(SparkStreamReader, "answer_query", count_files)
        patched.setattr(frames, "toPandas", count_rows_collected)
        for name, count in counts.items():
            rows = run.query(name).current_answer(limit=count)
            assert len(rows) == count
            found = Counter(rows.itertuples(index=False))
            assert not found - Counter(answers[name].itertuples(index=False))
    assert files[0] < files[-1], "only the last batches are read where no tick needs more"
    assert collected and max(collected) <= max(counts.values()) < len(answers["wide"])


LOUD = WIDE + " AND upper(f.carrier) = 'A' AND lower(c.status) <> 'b'"
"""A query with upper, which only Spark evaluates."""


def test_on_a_network_queries_come_and_go_and_what_was_told_stays(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = make_hub_tables(2)

    def second(run: HubRun) -> None:
        run.submit(LOUD, "loud", sink="S2")
        run.submit(LONG, "long", sink="S1")
        run.submit(THREE, "late", sink="S2")

    def fourth(run: HubRun) -> None:
        run.query("wide").withdraw()
        with pytest.raises(ValueError, match="'wide' has been withdrawn already"):
            run.withdraw("wide")
        run.move_operator(run.deployment.queries["long"].operator, "N4")
        run.fail_node("N4")
        run.submit(WIDE, "wide again", sink="S1")
        run.withdraw("late")

    script = {-1: lambda r: [r.submit(WIDE, "wide", sink="S1")], 1: second, 3: fourth}
    run = run_scripted_hub(
        spark, data, tmp_path / "hub", script, monkeypatch, network=NETWORK, at=AT
    )
    spans = {"wide": (0, 4), "loud": (2, 6), "long": (2, 6), "late": (2, 4), "wide again": (4, 6)}
    asked = {"wide": WIDE, "loud": LOUD, "long": LONG, "late": THREE, "wide again": WIDE}
    for name, sql in asked.items():
        query, found = run.query(name), query_rows(run, name)
        whole = expect_rows(data, sql, *spans[name])
        sure = expect_rows(data, sql, *spans[name], complete=query.complete_since)
        assert not found - whole, f"{name} was told what is not so"
        assert not sure - found, f"{name} lacks what is complete"
    for name in ("wide", "loud"):
        assert query_rows(run, name) == expect_rows(data, asked[name], *spans[name]), name
    assert set(run.queries) == {"loud", "long", "wide again"} and run.state.failed_nodes == ["N4"]
    flows = run.network_flows()
    rows = flows[flows["consumer"] == "loud"]["rows"].sum()
    assert rows == query_rows(run, "loud").total(), "what was sent is what was told"


def test_what_a_hub_does_not_take_is_refused_and_changes_nothing(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = make_hub_tables(4)
    bad = {
        "SELECT f.id FROM "
        + FC.format(f=1, c=1)
        + " AND nothing(f.id) = 1": "Spark refuses the query",
        "SELECT f.id + 'x' * c.ts FROM " + FC.format(f=1, c=1): "Spark refuses the query",
        "SELECT f.nope FROM " + FC.format(f=1, c=1): "column 'f.nope' in the query is unknown",
    }

    def submit(run: HubRun) -> None:
        run.submit(WIDE, "wide")
        before = run.state
        for sql, said in bad.items():
            with pytest.raises(ValueError, match=said):
                run.submit(sql)
        with pytest.raises(ValueError, match="a query named 'wide' is being answered"):
            run.submit(NARROW, "wide")
        with pytest.raises(ValueError, match="no query is named 'nobody'; there are: wide"):
            run.query("nobody")
        assert run.state == before

    first = {s: rows.filter(pc.equal(rows["batch"], 0)) for s, rows in data.items()}
    run = run_scripted_hub(spark, first, tmp_path / "hub", {-1: submit}, monkeypatch)
    with pytest.raises(RuntimeError, match="the hub has ended"):
        run.submit(NARROW)
    hub = QueryHub(create_frames(spark, data), "ts")
    with pytest.raises(ValueError, match="column 'f.nope' in the query is unknown"):
        hub.start(tmp_path / "given", "batch", [WIDE, [*bad][-1]])
    given = hub.start(tmp_path / "given", "batch", {"wide": WIDE, "narrow": NARROW})
    given.awaitTermination()
    assert query_rows(given, "narrow") == expect_rows(data, NARROW)
    did = given.metrics()
    assert set(did["operator"]) == {0} and did["results"].sum() > 0
    assert len(given.seconds) == BATCHES
    with pytest.raises(ValueError, match="reuse is 'much'"):
        QueryHub({"a": spark.range(1), "b": spark.range(1)}, "id", reuse="much")


def test_answers_are_delivered_batch_by_batch(spark: SparkSession, tmp_path: Path) -> None:
    """Of streams that end, their input is kept, so that each answer can be recomputed."""
    data = make_hub_tables(32)
    delivered: dict[int, Counter[Any]] = {}

    def count_answers(answers: Mapping[int, DataFrame], batch: int) -> None:
        for id, rows in answers.items():
            delivered[id] = delivered.get(id, Counter()) + count_rows(rows.toArrow())

    queries = {"wide": WIDE, "ticked": TICKED, "counted": COUNTED}
    run = QueryHub(create_frames(spark, data), "ts").start(
        tmp_path, batches="batch", queries=queries, foreachBatch=count_answers
    )
    assert run.awaitTermination()
    for name in queries:
        assert delivered[run.query(name).id] == query_rows(run, name)
    checked = check_answers(tmp_path)
    assert checked.reports["wide"].is_right and checked.unchecked.keys() == {"ticked", "counted"}
    answer = run.why({"f": "id < 20", "c": "id < 60"}, query="wide", limit=60)
    assert answer.is_certain and {pair.verdict for pair in answer.pairs} >= {"found", "condition"}
    assert "fault" not in str(answer) and braid.why(
        tmp_path, {"f": "id = 999"}, query="wide"
    ).missing == {"flights": "no tuple of flights with id = 999 is among the 120 of batches 1 to 6"}


LEFT = (
    "SELECT f.id, c.id AS c FROM flights [RANGE 30 SECONDS] f LEFT JOIN checkins [RANGE 30 SECONDS] "
    "c ON f.num = c.flight"
)


def test_rows_of_streams_that_do_not_end_are_explained(spark: SparkSession, tmp_path: Path) -> None:
    """Some are found, some missing, and of those that are let go no verdict is wrong."""
    data = {s: rows.slice(0, 60) for s, rows in make_hub_tables(3).items() if s != "baggage"}
    narrow = WIDE.replace("90", "40").replace("60", "40")
    queries = {"narrow": narrow, "loud": f"{narrow} AND hex(f.id) <> 'A'", "left": LEFT}
    hub = QueryHub(make_live_streams(spark, data, tmp_path), "ts")
    run = hub.start(tmp_path / "hub", availableNow=True, queries=queries)
    assert run.awaitTermination()
    for name in queries:
        results = query_rows(run, name)
        every = run.why({"f": "true", "c": "true"}, query=name, limit=60)
        verdicts = Counter(pair.verdict for pair in every.pairs)
        assert {"found", "unknown", "window", "condition"} <= {*verdicts}, (name, verdicts)
        pairs = sum(n for row, n in results.items() if None not in row)
        assert "fault" not in verdicts and 0 < verdicts["found"] <= pairs
        assert run.why({"f": "id < 30"}, query=name).verdict in ("found", "unknown", "unmatched")
    f, c = next(row for row in results if None not in row)
    assert run.why({"f": {"id": f}, "c": {"id": c}}, query="narrow").verdict == "found"
    from_outside = braid.why(tmp_path / "hub", {"f": "true", "c": "true"}, query="loud", limit=60)
    outside = {pair.verdict for pair in from_outside.pairs}
    assert "fault" not in outside and "unknown" in outside
    gone = run.why({"f": "id = 99999"}, query="narrow")
    assert (gone.verdict, gone.is_certain) == ("unknown", False)
    assert str(gone).count('QueryHub(history="7 days") keeps them')
    with pytest.raises(ValueError, match="stream checkins does not end and its input is not kept"):
        check_answers(tmp_path / "hub")


def make_live_streams(
    spark: SparkSession, data: Mapping[str, pa.Table], folder: Path
) -> dict[str, DataFrame]:
    """Return streams that do not end, of one file for each batch."""
    streams = {}
    for alias, rows in data.items():
        (folder / alias).mkdir()
        for batch in range(BATCHES):
            file = folder / alias / f"{batch}.parquet"
            mine = rows.filter(pc.equal(rows["batch"], batch)).drop_columns(["batch"])
            pq.write_table(mine, file)
            os.utime(file, (1_700_000_000 + batch,) * 2)
        schema = spark.createDataFrame(rows.drop_columns(["batch"]).slice(0, 0)).schema
        reader = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
        streams[alias] = reader.parquet(str(folder / alias))
    return streams


def test_joins_of_every_kind_have_the_rows_of_their_statements(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = make_hub_tables(3)
    statements = {**KINDS, **ASOF}
    kinds = [*KINDS][:10:3] + [*KINDS][12:20:4] + [*ASOF][3:4]
    asked = {f"q{n}": sql for n, sql in enumerate(kinds)}
    run = run_scripted_hub(
        spark,
        data,
        tmp_path / "hub",
        {-1: lambda run: [run.submit(sql, name) for name, sql in asked.items()]},
        monkeypatch,
    )
    assert run.exception() is None
    with connect_duckdb() as db:
        for name, rows in data.items():
            db.register(name, rows.drop_columns(["batch"]))
        for name, sql in asked.items():
            truth = Counter(db.sql(statements[sql]).fetchall())
            assert count_plain_rows(query_rows(run, name)) == count_plain_rows(truth), sql
