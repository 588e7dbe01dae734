"""Random conditions and all regressions over Spark frames, compared with Spark's own evaluation."""

from __future__ import annotations

import contextlib
import random
from pathlib import Path

import pytest
from braid.stream_join import StreamJoin
from fuzz import routes
from fuzz.brute_force import brute_force
from fuzz.campaign import Campaign
from fuzz.cases import CORPUS, Case, load
from fuzz.grammar import random_case, random_stream, random_streams
from fuzz.oracles import SparkOracle
from fuzz.outcomes import Truth
from fuzz.replay import list_outcomes
from oracle import PLACEMENTS, killed_before, result_ids
from pyspark.sql import SparkSession


def test_conditions_of_a_fixed_seed_are_answered_rightly(spark: SparkSession) -> None:
    report = Campaign(1, spark).run(count=60)
    assert not report.findings, [(f.route, f.wrong, f.shrunk.on) for f in report.findings]
    assert report.verdicts["Spark kernels", "rows"] > 8
    assert report.verdicts["process run", "rows"] > 0


@pytest.mark.parametrize(
    "name", [p.stem for p in sorted(CORPUS.glob("*.json")) if isinstance(load(p), Case)]
)
def test_a_case_that_was_found_is_answered_rightly(spark: SparkSession, name: str) -> None:
    wrong = {r: w for r, w in list_outcomes(load(CORPUS / f"{name}.json"), spark).items() if w}
    assert not wrong


def test_brute_force_says_of_random_conditions_what_spark_says(spark: SparkSession) -> None:
    draw, oracle = random.Random(3), SparkOracle(spark)
    streams, compared, failing = random_streams(draw), 0, 0
    for _ in range(200):
        case = random_case(draw, streams)
        mine = brute_force(case)
        if not mine.is_known:
            continue
        theirs = oracle.truth(case)
        if theirs.is_known:
            compared, failing = compared + 1, failing + theirs.may_fail
            assert (mine.rows, mine.may_fail, mine.must_fail) == (
                theirs.rows,
                theirs.may_fail,
                theirs.must_fail,
            ), case.on
    assert compared > 40


@pytest.mark.parametrize("on", ["a.k = b.k", "a.i < b.i OR a.s = b.s", "a.n >= b.n"])
def test_sparks_optimiser_and_its_own_cross_join_say_the_same(spark: SparkSession, on: str) -> None:
    """The oracle evaluates a condition without a query, which takes milliseconds."""
    case = Case(random_streams(random.Random(4)), on)
    oracle = SparkOracle(spark)
    quick = oracle.truth(case)
    assert isinstance(quick, Truth) and quick.rows
    assert quick.rows == oracle.by_query(case).rows


def test_the_executor_may_change_when_a_run_is_resumed(spark: SparkSession, tmp_path: Path) -> None:
    draw = random.Random(5)
    streams = {a: random_stream(draw, {"k": "int", "i": "int"}, 8, 3) for a in ("a", "b")}
    case = Case(streams, "a.k = b.k OR a.i < b.i")
    frames = {a: spark.createDataFrame(routes.timed(case, a)) for a in case.streams}
    placement = PLACEMENTS[case.placement]
    for first, second in (("process", "spark"), ("spark", "process")):
        join = StreamJoin(frames, case.on, placement, executor=first)
        folder = tmp_path / first
        with killed_before(1), contextlib.suppress(Exception):
            join.start(folder, batches="batch").awaitTermination()
        run = StreamJoin.resume(folder, frames, executor=second)
        run.awaitTermination()
        assert result_ids(run.results().toArrow()) == SparkOracle(spark).truth(case).rows
