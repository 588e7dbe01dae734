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
from _common import Measure, arguments, both, leave, scratch, seconds, steady, stream
from braid.hub.hub import QueryHub
from braid.hub.hub_run import HubRun
from braid.papers.reuse.hub_events import QuerySubmitted
from braid.shared.shared_join import SharedJoin
from braid.spark_session import session
from pyspark.sql import SparkSession

SIZES = (1, 4, 8, 16)


def queries(count: int) -> list[str]:
    """Return queries with windows from one to three minutes; every third has a selection."""
    found = []
    for n in range(count):
        where = f" AND a.x < {0.2 + 0.6 * n / count:.3f}" if n % 3 == 1 else ""
        window = 60 + 120 * n // count
        found.append(
            f"SELECT a.v, b.v AS w FROM a [RANGE {window} SECONDS], b [RANGE {window} SECONDS] "
            f"WHERE a.k = b.k{where}"
        )
    return found


def disjoint(count: int) -> list[str]:
    """Return queries on different conditions, so that no two share an operator."""
    return [
        f"SELECT a.v FROM a [RANGE 60 SECONDS], b [RANGE 60 SECONDS] WHERE a.k = b.k + {n}"
        for n in range(count)
    ]


def run(spark: SparkSession, folder: Path, asked: list[str], out: Path) -> HubRun:
    """Run a hub that answers these queries from its first batch to the end of the files."""
    hub = QueryHub({s: stream(spark, folder / s) for s in "ab"}, "ts")
    found = hub.start(out, availableNow=True, queries=asked)
    found.awaitTermination()
    return found


def cost(found: HubRun) -> dict[str, float]:
    """Return the seconds of a hub's median batch, and sums over its operators."""
    done = found.metrics()
    last = done.sort_values("batch").groupby("operator").last()
    return {
        "seconds": steady(seconds(found.spark_query)),
        "bytes": done["received_bytes"].sum(),
        "compared": done["compared_pairs"].sum(),
        "state": last["stored_bytes"].sum(),
    }


def alone(spark: SparkSession, folder: Path, out: Path, executor: str = "auto") -> float:
    """Return the seconds of the median batch of a SharedJoin with the first query."""
    streams = {s: stream(spark, folder / s) for s in "ab"}
    join = SharedJoin(streams, "a.k = b.k", "ts", "memory", executor=executor)
    join.add("q", "60 seconds")
    found = join.start(out, availableNow=True)
    found.awaitTermination()
    return steady(seconds(found))


def beside(spark: SparkSession, folder: Path, rounds: int) -> list[float]:
    """Return, by round, the median batch of a hub with the first query over that of a
    SharedJoin.
    """
    found = []
    for n in range(rounds):
        hub = run(spark, folder, queries(1), folder / f"one {n}")
        found.append(steady(seconds(hub.spark_query)) / alone(spark, folder, folder / f"join {n}"))
    return found


def deploying(spark: SparkSession, folder: Path, batches: int, out: Path) -> dict[str, float]:
    """Return seconds to plan and deploy a query on a running hub, by kind of reuse.

    They are divided by the seconds of the hub's median batch.
    """
    hub = QueryHub({s: stream(spark, folder / s) for s in "ab"}, "ts")
    found = hub.start(out, availableNow=True, queries=queries(1))
    while found.state.epoch < min(2, batches - 2):
        time.sleep(0.01)
    (held,) = queries(1)
    found.submit(held.replace("60 SECONDS", "50 SECONDS"))
    found.submit(held.replace("60 SECONDS", "90 SECONDS"))
    found.awaitTermination()
    told = [e for e in found.events() if isinstance(e, QuerySubmitted) and e.epoch >= 0]
    batch = steady(seconds(found.spark_query))
    return {e.reuse_kind: (e.planning_seconds + e.deployment_seconds) / batch for e in told}


def main() -> None:
    quick = {"rows": 4000, "batches": 3, "queries": 3, "rounds": 3}
    args = arguments(__doc__ or "", rows=100_000, batches=6, queries=24, rounds=11, quick=quick)
    spark = session("benchmark")
    with scratch() as folder:
        both(spark, folder, args)
        run(spark, folder, queries(1), folder / "warm")
        sizes = {n: run(spark, folder, disjoint(n), folder / f"size {n}") for n in SIZES}
        shared = run(spark, folder, queries(args.queries), folder / "shared")
        apart = []
        for n, sql in enumerate(queries(args.queries)):
            own = run(spark, folder, [sql], folder / f"alone {n}")
            name = f"q{n + 1}"
            assert own.query_results("q1").count() == shared.query_results(name).count(), name
            apart.append(cost(own))
        together, whole = cost(shared), pd.DataFrame(apart).sum()
        ways = pd.DataFrame(
            {"executor": way, "s/batch": alone(spark, folder, folder / way, way)}
            for way in ("process", "spark")
        )
        table = pd.DataFrame(
            {"operators": n, "s/batch": steady(seconds(r.spark_query))} for n, r in sizes.items()
        )
        named = {"seconds": 1 / 6, "bytes": 1 / 5, "compared": 1 / 4, "state": 1 / 5}
        measures = [
            Measure(f"one hub / {args.queries} hubs: {what}", together[what] / whole[what], most,
                    most=True)
            for what, most in named.items()
        ]  # fmt: skip
        single = median(beside(spark, folder, args.rounds)[2:])
        measures.append(Measure("a hub with one query / SharedJoin", single, 1.3, most=True))
        took = deploying(spark, folder, args.batches, folder / "deploying")
        measures += [
            Measure("deploying a query that is held, in batches", took["holds"], 0.2, most=True),
            Measure("deploying a relaxed query, in batches", took["relaxed"], 5, most=True),
        ]
        tables = {"Operators of a hub": table, "One SharedJoin, by executor": ways}
        leave(args, {name: t.round(3) for name, t in tables.items()}, measures)


if __name__ == "__main__":
    main()
