"""Measure a hub: time per batch by number of operators, and sharing among overlapping queries.

Many overlapping queries run on one hub, and each on a hub of its own. Two streams from the same
files feed all of them. Queries differ in windows and selections; their answers are the same on both
sides. Time is that of the median batch, without the first. A hub with one query and a SharedJoin
with the same query run in turns. The median of the ratios of neighboring runs counts, without the
first two: one run of few batches may take twice as long as the next.

Required: one hub takes at most a sixth of the batch time of separate hubs. It takes at most a fifth
of the bytes into operators, a quarter of the comparisons and a fifth of the state. A hub with one
query takes at most 1.3 times a SharedJoin. Deploying a query that an operator already answers takes
at most 0.2 of a median batch; deploying one that relaxes an operator, which is rebuilt from
history, at most 5.
"""

from __future__ import annotations

import time
from pathlib import Path
from statistics import median

import pandas as pd
from _common import (
    Measure,
    find_warm_median,
    make_scratch_folder,
    parse_arguments,
    read_batch_seconds,
    read_stream,
    write_figures,
    write_two_streams,
)
from braid.hub.hub import QueryHub
from braid.hub.hub_run import HubRun
from braid.papers.reuse.hub_events import QuerySubmitted
from braid.shared.shared_join import SharedJoin
from braid.spark_session import session
from pyspark.sql import SparkSession

SIZES = (1, 4, 8, 16)


def write_queries(count: int) -> list[str]:
    """Return queries with windows from one to three minutes; every third has a selection."""
    statements = []
    for n in range(count):
        where = f" AND a.x < {0.2 + 0.6 * n / count:.3f}" if n % 3 == 1 else ""
        window = 60 + 120 * n // count
        statements.append(
            f"SELECT a.v, b.v AS w FROM a [RANGE {window} SECONDS], b [RANGE {window} SECONDS] "
            f"WHERE a.k = b.k{where}"
        )
    return statements


def write_disjoint_queries(count: int) -> list[str]:
    """Return queries on different conditions, so that no two share an operator."""
    return [
        f"SELECT a.v FROM a [RANGE 60 SECONDS], b [RANGE 60 SECONDS] WHERE a.k = b.k + {n}"
        for n in range(count)
    ]


def run_hub(spark: SparkSession, folder: Path, statements: list[str], out: Path) -> HubRun:
    """Run a hub that answers these queries from its first batch to the end of the files."""
    hub = QueryHub({s: read_stream(spark, folder / s) for s in "ab"}, "ts")
    hub_run = hub.start(out, availableNow=True, queries=statements)
    hub_run.awaitTermination()
    return hub_run


def sum_cost(hub_run: HubRun) -> dict[str, float]:
    """Return the seconds of a hub's median batch, and sums over its operators."""
    done = hub_run.metrics()
    last = done.sort_values("batch").groupby("operator").last()
    return {
        "seconds": find_warm_median(read_batch_seconds(hub_run.spark_query)),
        "bytes": done["received_bytes"].sum(),
        "compared": done["compared_pairs"].sum(),
        "state": last["stored_bytes"].sum(),
    }


def time_shared_join(spark: SparkSession, folder: Path, out: Path, executor: str = "auto") -> float:
    """Return the seconds of the median batch of a SharedJoin with the first query."""
    streams = {s: read_stream(spark, folder / s) for s in "ab"}
    join = SharedJoin(streams, "a.k = b.k", "ts", "memory", executor=executor)
    join.add("q", "60 seconds")
    shared_run = join.start(out, availableNow=True)
    shared_run.awaitTermination()
    return find_warm_median(read_batch_seconds(shared_run))


def compare_with_shared_join(spark: SparkSession, folder: Path, rounds: int) -> list[float]:
    """Return, by round, the median batch of a hub with the first query over that of a
    SharedJoin.
    """
    ratios = []
    for n in range(rounds):
        hub = run_hub(spark, folder, write_queries(1), folder / f"one {n}")
        ratios.append(
            find_warm_median(read_batch_seconds(hub.spark_query))
            / time_shared_join(spark, folder, folder / f"join {n}")
        )
    return ratios


def time_deployments(
    spark: SparkSession, folder: Path, batches: int, out: Path
) -> dict[str, float]:
    """Return seconds to plan and deploy a query on a running hub, by kind of reuse.

    They are divided by the seconds of the hub's median batch.
    """
    hub = QueryHub({s: read_stream(spark, folder / s) for s in "ab"}, "ts")
    hub_run = hub.start(out, availableNow=True, queries=write_queries(1))
    while hub_run.state.epoch < min(2, batches - 2):
        time.sleep(0.01)
    (query,) = write_queries(1)
    hub_run.submit(query.replace("60 SECONDS", "50 SECONDS"))
    hub_run.submit(query.replace("60 SECONDS", "90 SECONDS"))
    hub_run.awaitTermination()
    submitted = [e for e in hub_run.events() if isinstance(e, QuerySubmitted) and e.epoch >= 0]
    batch = find_warm_median(read_batch_seconds(hub_run.spark_query))
    return {e.reuse_kind: (e.planning_seconds + e.deployment_seconds) / batch for e in submitted}


def main() -> None:
    quick = {"rows": 4000, "batches": 3, "queries": 3, "rounds": 3}
    args = parse_arguments(
        __doc__ or "", rows=100_000, batches=6, queries=24, rounds=11, quick=quick
    )
    spark = session("benchmark")
    with make_scratch_folder() as folder:
        write_two_streams(spark, folder, args)
        run_hub(spark, folder, write_queries(1), folder / "warm")
        sizes = {
            n: run_hub(spark, folder, write_disjoint_queries(n), folder / f"size {n}")
            for n in SIZES
        }
        shared = run_hub(spark, folder, write_queries(args.queries), folder / "shared")
        separate = []
        for n, sql in enumerate(write_queries(args.queries)):
            hub_run = run_hub(spark, folder, [sql], folder / f"alone {n}")
            name = f"q{n + 1}"
            assert hub_run.query_results("q1").count() == shared.query_results(name).count(), name
            separate.append(sum_cost(hub_run))
        together, total = sum_cost(shared), pd.DataFrame(separate).sum()
        ways = pd.DataFrame(
            {"executor": way, "s/batch": time_shared_join(spark, folder, folder / way, way)}
            for way in ("process", "spark")
        )
        table = pd.DataFrame(
            {"operators": n, "s/batch": find_warm_median(read_batch_seconds(r.spark_query))}
            for n, r in sizes.items()
        )
        named = {"seconds": 1 / 6, "bytes": 1 / 5, "compared": 1 / 4, "state": 1 / 5}
        measures = [
            Measure(f"one hub / {args.queries} hubs: {what}", together[what] / total[what], most,
                    most=True)
            for what, most in named.items()
        ]  # fmt: skip
        single = median(compare_with_shared_join(spark, folder, args.rounds)[2:])
        measures.append(Measure("a hub with one query / SharedJoin", single, 1.3, most=True))
        took = time_deployments(spark, folder, args.batches, folder / "deploying")
        measures += [
            Measure("deploying a query that is held, in batches", took["holds"], 0.2, most=True),
            Measure("deploying a relaxed query, in batches", took["relaxed"], 5, most=True),
        ]
        tables = {"Operators of a hub": table, "One SharedJoin, by executor": ways}
        write_figures(args, {name: t.round(3) for name, t in tables.items()}, measures)


if __name__ == "__main__":
    main()
