"""Joins of three to six streams under every placement that supports them, against DuckDB.

It also tests the workloads for them. Rates change in the middle, windows are equal and unequal,
every plan is checked against the cover rule, and each run is stopped and resumed once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from math import sqrt
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from braid import Aligned, Centralized, Coordinated, Ring, SemanticsUnaware
from braid.core.placement import Placement
from braid.core.run_events import BatchCommitted
from braid.errors import PredicateError
from braid.simulation.simulator import simulate
from braid.stream_join import JoinRun, StreamJoin
from braid_lab.launches.launching import make_workload
from braid_lab.workloads import flights, vectors
from braid_lab.workloads.base import Workload
from braid_lab.workloads.poisson_arrivals import Arrivals
from local_runs import LocalRun
from oracle import (
    PLACEMENTS,
    Ids,
    committed_ids,
    compute_expected,
    create_frames,
    describe_difference,
    kernel_join,
    make_tables,
    wait_until,
)
from placement_checks import describe_placement
from pyspark.sql import SparkSession
from pyspark.sql import functions as F


def prepared(given: Workload, placement: Placement) -> StreamJoin:
    return StreamJoin(
        given.streams,
        given.condition,
        placement,
        given.windows,
        given.time,
        partitions=2,
        check=True,
    )


def start(given: Workload, placement: Placement, folder: Path) -> JoinRun:
    return prepared(given, placement).start(folder, batches="batch")


def ended(run: JoinRun) -> JoinRun:
    run.awaitTermination()
    assert run.status["state"] == "completed"
    return run


def batches(events: list) -> list[BatchCommitted]:
    return [e for e in events if isinstance(e, BatchCommitted)]


# Streams whose rates change in the middle, by number of streams: few tuples, but some hundred
# results.
RATES = {
    3: (6.0, 8.0, 4.0),
    4: (3.0, 2.5, 3.0, 2.0),
    5: (1.5, 1.2, 1.2, 1.0, 1.0),
    6: (1.1, 1.0, 1.0, 0.9, 0.8, 0.8),
}
WINDOWS = {"equal": lambda m: (9.5,) * m, "unequal": lambda m: (9.5, 4.5, 13.0, 6.5, 7.5, 5.5)[:m]}
MODULI = {3: 5, 4: 4, 5: 3, 6: 2}


def given(streams: int, windows: str) -> Arrivals:
    """Return five batches of three seconds; after seven seconds the last stream is the fastest."""
    rates = RATES[streams]
    return Arrivals(
        rates,
        15.0,
        3.0,
        WINDOWS[windows](streams),
        0.3,
        changes=((7.0, rates[::-1]),),
        seed=streams,
    )


def condition(arrivals: Arrivals, keying: str) -> str:
    """Return a condition of the given kind.

    By value, it is a chain of equalities; otherwise bands and a random pair, to cover conditions
    with and without an index.
    """
    own = [f"{a}.u_{'s' if a == 'r' else 'r'}" for a in arrivals.stream_aliases]
    if keying == "join":
        modulus = MODULI[len(own)]
        chain = [f"{x} % {modulus} = {y} % {modulus}" for x, y in zip(own, own[1:], strict=False)]
        return " AND ".join([*chain, f"{own[0]} < {own[-1]} + 600000"])
    bands = [f"abs({x} - {y}) < 300000" for x, y in zip(own, own[1:], strict=False)]
    return " AND ".join([*bands, arrivals.condition.split(" AND ")[0]])


@cache
def truth(streams: int, windows: str, on: str) -> Ids:
    arrivals = given(streams, windows)
    spans = dict(zip(arrivals.stream_aliases, arrivals.windows, strict=True))
    return compute_expected(arrivals.make_tables(), on, spans)


JOINS = [(streams, "unequal") for streams in RATES] + [(3, "equal")]
"""Joins with unequal windows; equal windows are a special case, as each stream is checked
separately.
"""


@pytest.mark.parametrize(("streams", "windows"), JOINS)
def test_every_placement(spark: SparkSession, tmp_path: Path, streams: int, windows: str) -> None:
    """Each placement joins by value if it needs that, otherwise on a condition without an equality.

    Another driver continues from the third batch on.
    """
    arrivals, wrong = given(streams, windows), {}
    for keying in ("tuple", "join"):
        join = replace(arrivals.make_workload(spark), condition=condition(arrivals, keying))
        run, want = LocalRun(prepared(join, Centralized())), truth(streams, windows, join.condition)
        assert want.total() > 50
        for name, placement in PLACEMENTS.items():
            if placement.supports_streams(streams) and placement.routing_key_source == keying:
                got, happened = run.run(placement, tmp_path / name, stops=(1,))
                wrong[name] = describe_difference(got, want)
                assert [e.received_tuples for e in batches(happened)][
                    : arrivals.micro_batch_count
                ] == [tuple(n) for n in arrivals.batch_counts()]
    assert len(wrong) > 9 and not any(wrong.values()), wrong


@pytest.mark.parametrize(
    "placement",
    [
        Aligned(5, segment_batches=2, sample_batches=3),
        Coordinated(5, segment_batches=2),
        Ring(3, form="basic"),
    ],
    ids=describe_placement,
)
def test_a_run_that_is_stopped_and_resumed(
    spark: SparkSession, tmp_path: Path, placement: Placement
) -> None:
    arrivals = given(3, "unequal")
    join = replace(
        arrivals.make_workload(spark), condition=condition(arrivals, placement.routing_key_source)
    )
    run = start(join, placement, tmp_path / "run")
    wait_until(lambda: run.status["batch"] >= 1 or not run.isActive, "batch 1")
    run.stop()
    run = StreamJoin.resume(tmp_path / "run", join.streams)
    assert describe_difference(committed_ids(ended(run)), truth(3, "unequal", join.condition)) == ""


def test_routing_that_knows_no_semantics_loses_results_and_doubles_none(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Gu's baseline: with three streams on four hosts, most combinations never meet."""
    arrivals, placement = replace(given(3, "equal"), step=1.5), SemanticsUnaware(4)
    join = replace(arrivals.make_workload(spark), condition=condition(arrivals, "tuple"))
    want = truth(3, "equal", join.condition)
    got, _ = LocalRun(prepared(join, placement)).run(placement, tmp_path / "run")
    assert not got - want
    assert 0 < got.total() < 0.3 * want.total()


def simulated(placement: Placement, arrivals: Arrivals) -> list:
    """Return a simulated run of the same arrivals, with the bytes of a tuple in a block."""
    size = (12 + 8 * len(arrivals.stream_aliases) + 8,) * len(arrivals.stream_aliases)
    settings = {
        "tuple_bytes": size,
        "windows": arrivals.windows,
        "seconds": arrivals.step,
        "selectivity": arrivals.sigma,
    }
    return simulate(placement, arrivals.batch_counts(), **settings)


BOTH = [Centralized(), Aligned(4, sample_batches=3), Coordinated(4, segment_batches=2), Ring(4)]


def test_a_simulated_run_counts_what_an_executed_one_does(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Counts are equal by tuple, host and batch; only results and intermediate results are
    expectations.

    Windows end in the middle of batches: whether a tuple is live does not depend on its position in
    its batch.
    """
    sigma, changes = 0.2, ((35.0, (4.5, 3.0, 1.0)),)
    arrivals = Arrivals(
        (2.0, 3.0, 4.5), 60.0, 10.0, (25.0, 25.0, 35.0), sigma, changes=changes, seed=7
    )
    run, results = LocalRun(prepared(arrivals.make_workload(spark), Centralized())), set()
    for k, placement in enumerate(BOTH):
        executed = batches(run.run(placement, tmp_path / str(k))[1])
        modelled = batches(simulated(placement, arrivals))
        for name in (
            "received_tuples",
            "total_received_tuples",
            "live_tuples",
        ):
            assert [getattr(e, name) for e in executed] == [getattr(e, name) for e in modelled], (
                placement,
                name,
            )
        for name in ("received_tuples", "stored_tuples", "stored_bytes", "migrated_tuples"):
            done, expected = (
                [[getattr(h, name) for h in e.host_metrics] for e in run]
                for run in (executed, modelled)
            )
            assert done == expected, (placement, name)
        results.add(sum(e.results for e in executed))
        expectation = sum(e.results for e in modelled)
    assert len(results) == 1
    groups, live = expectation / sigma**3, max(sum(e.live_tuples) for e in modelled)
    deviation = sqrt(groups * (sigma**3 + 2 * live * (sigma**5 - sigma**6)))
    assert abs(results.pop() - expectation) < 3 * deviation < 0.2 * expectation


def test_selectivity_in_the_engine(spark: SparkSession, tmp_path: Path) -> None:
    """With selectivity 0 nothing matches, with 1 every group within its windows."""
    for sigma in (0.0, 1.0):
        arrivals = Arrivals((1.0, 1.5, 1.0), 12.0, 4.0, (6.0, 5.0, 7.0), sigma, seed=3)
        want = compute_expected(arrivals.make_tables(), "true", {"r": 6, "s": 5, "t": 7})
        got, _ = LocalRun(prepared(arrivals.make_workload(spark), Ring(3))).run(
            Ring(3), tmp_path / str(sigma)
        )
        assert describe_difference(got, want if sigma else Ids()) == ""


DUCKDB = {
    "vector_l2_distance": "list_distance",
    "vector_inner_product": "list_inner_product",
    "vector_cosine_similarity(a.v, b.v)": "nullif(list_cosine_similarity(a.v, b.v), 'nan'::double)",
}
"""DuckDB functions that return NULL for a vector without a direction, as in Spark."""
CLOSE = [
    "vector_l2_distance(a.v, b.v) < 2.2",
    "vector_l2_distance(b.v, a.v) <= 0",
    "NOT vector_l2_distance(a.v, b.v) < 5 AND a.n < b.n",
    "vector_l2_distance(a.v, b.v) BETWEEN 1 AND 2 AND a.k = b.k",
    "Vector_Inner_Product(a.v, b.v) > 9",
    "vector_cosine_similarity(a.v, b.v) > 0.8 OR a.k = b.k",
    "vector_l2_distance(a.v, b.v) < vector_inner_product(a.v, b.v) + a.f",
    "vector_l2_distance(a.v, b.v) < abs(a.n - b.n) / 200",
]


def with_vectors(streams: Mapping[str, pa.Table]) -> dict[str, pa.Table]:
    """Return a column of vectors of eight numbers.

    One in twelve is NULL, one in twelve is zero, and some are the same in all streams.
    """
    out = {}
    for k, (alias, rows) in enumerate(streams.items()):
        draw = np.random.default_rng(k)
        values = draw.normal(size=(rows.num_rows, 8)).astype(np.float32)
        values[::12] = 0
        values[1::12] = 0.25
        lists = [None if i % 12 == 5 else v.tolist() for i, v in enumerate(values)]
        out[alias] = rows.append_column("v", pa.array(lists, pa.list_(pa.float32())))
    return out


def doubles(rows: pa.Table) -> pa.Table:
    at = rows.schema.get_field_index("v")
    return rows.set_column(at, "v", rows["v"].cast(pa.list_(pa.float64())))


@pytest.mark.parametrize("on", CLOSE)
def test_conditions_on_vectors(spark: SparkSession, on: str) -> None:
    streams = with_vectors(make_tables("ab", {"a": 200, "b": 240}, seed=8))
    text = on.lower()
    for ours, theirs in DUCKDB.items():
        text = text.replace(ours, theirs)
    want = compute_expected({a: doubles(rows) for a, rows in streams.items()}, text)
    assert want
    assert (
        describe_difference(
            kernel_join(StreamJoin(create_frames(spark, streams), on, Centralized())), want
        )
        == ""
    )


def test_vectors_in_doubles_are_refused_in_one_sentence(spark: SparkSession) -> None:
    streams = {a: doubles(rows) for a, rows in with_vectors(make_tables("ab", 5, seed=8)).items()}
    with pytest.raises(PredicateError, match='requires the "ARRAY<FLOAT>" type'):
        StreamJoin(create_frames(spark, streams), CLOSE[0], Centralized())


@pytest.mark.parametrize(
    ("cost", "placement", "settings"),
    [
        (
            "concepts",
            Coordinated(4, segment_batches=2),
            {"rates": (3.0, 2.0, 4.0), "sigma": 0.2, "batches": 4},
        ),
        ("small", Ring(3), {"rates": (0.8, 0.8), "sigma": 0.25, "batches": 3}),
    ],
)
def test_vectors_match_where_they_show_the_same(
    spark: SparkSession, tmp_path: Path, cost: str, placement: Placement, settings: dict
) -> None:
    join = make_workload(spark, "vectors", seed=6, cost=cost, seconds=30.0, window=12.0, **settings)
    streams = {a: f.toArrow() for a, f in join.streams.items()}
    aliases = list(streams)
    same = " AND ".join(
        f"{a}.scene = {b}.scene" for a, b in zip(aliases, aliases[1:], strict=False)
    )
    want = compute_expected(streams, same, dict.fromkeys(streams, 12))
    assert want.total() > 20
    assert {len(v) for rows in streams.values() for v in rows["v"].to_pylist()} == {
        vectors.COSTS[cost]
    }
    assert (
        describe_difference(committed_ids(ended(start(join, placement, tmp_path / "run"))), want)
        == ""
    )


def test_flights_against_duckdb(spark: SparkSession, tmp_path: Path) -> None:
    """Five days of March, including the start of daylight saving time in New York."""
    join = make_workload(spark, "flights", batches=6, month=3, days=12)
    late = {
        a: f.where(F.col("ts") >= "2013-03-08").withColumn("batch", F.col("batch") - 3)
        for a, f in join.streams.items()
    }
    streams = {a: f.toArrow() for a, f in late.items()}
    want = compute_expected(streams, flights.ON, {"d": 3600, "a": 8 * 3600, "w": 3600})
    assert want.total() > 50
    run = ended(start(replace(join, streams=late), Aligned(4, sample_batches=3), tmp_path / "run"))
    assert describe_difference(committed_ids(run), want) == ""
