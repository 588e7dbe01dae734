"""The experiments on the shared ring: Wang 2008, chapters 19 to 21.

The book prints no figures for Part III, so runs are compared with its theorems: what is stored and
compared, that every query gets its own results, and how state is divided among hosts.

Columns that end in ``_modelled`` are closed forms. All others are numbers of tuples and pairs,
counted by a run on Spark or, for ``DuckDBOracle``, in the data by DuckDB.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from braid.core.batch_history import LiveBlocks
from braid.core.query import Query
from braid.core.run_events import BatchCommitted
from braid.papers.slices.run_events import ChainChanged
from braid.util.durations import format_duration

from braid_lab.common.recorded_settings import record_values
from braid_lab.shared_ring.cost import PASSING, WINDOWS
from braid_lab.workloads.dashboards import SharedWorkload
from braid_lab.workloads.poisson_arrivals import MODULUS, Arrivals

if TYPE_CHECKING:
    from braid.shared.shared_run import SharedRun
    from pyspark.sql import SparkSession

Ids = Counter[tuple[int, ...]]


def start_shared(
    shared: SharedWorkload, path: str | Path, hosts: int, pace: float = 0.0
) -> SharedRun:
    """Start one run for all the queries, with the slices of Mem-Opt, on a ring of ``hosts`` hosts.

    1: a chain.
    """
    from braid.shared.shared_join import SharedJoin

    join = SharedJoin(
        shared.join.streams,
        shared.join.condition,
        shared.join.time or "ts",
        chain="memory",
        hosts=hosts,
    )
    join.add_all(q.to_arguments(tuple(shared.join.streams)) for q in shared.queries)
    return join.start(path, batches=shared.join.batch or 20, pace=pace)


def result_ids(run: SharedRun, name: str) -> Ids:
    """Return the results of a query, as the ids of their members."""
    columns = [f"{alias}.id AS {alias}" for alias in run.config.streams]
    rows = run.results(name).selectExpr(*columns).toArrow()
    return Counter(zip(*(column.to_pylist() for column in rows.columns), strict=True))


class DuckDBOracle:
    """The data of a join, queried by DuckDB for each query alone."""

    def __init__(self, shared: SharedWorkload) -> None:
        from braid.condition.residual_evaluation import duckdb_cursor

        self.shared = shared
        self.connection = duckdb_cursor()
        for alias, frame in shared.join.streams.items():
            self.connection.register(alias, frame.toArrow())

    def expected_results(self, query: Query) -> Ids:
        """Return the results of a query by its windows and selections, and the join's condition."""
        aliases = list(self.shared.join.streams)
        now = f"greatest({', '.join(f'{a}.ts' for a in aliases)})"
        live = [
            f"{now} - {a}.ts < {_to_sql_interval(window)}"
            for a, window in zip(aliases, query.windows, strict=True)
        ]
        chosen = filter(None, query.selections)
        where = " AND ".join(f"({term})" for term in (self.shared.join.condition, *chosen, *live))
        ids = ", ".join(f"{a}.id" for a in aliases)
        return Counter(
            self.connection.sql(f"SELECT {ids} FROM {', '.join(aliases)} WHERE {where}").fetchall()
        )

    def needed_tuples(self, queries: Sequence[Query], longer: int = 0) -> pd.Series:
        """Return, by batch, the tuples that some query needs.

        The age of a tuple is relative to the latest tuple so far at the end of the batch. Windows
        are ``longer`` by that many microseconds.
        """
        batch = self.shared.join.batch
        ends = " UNION ALL ".join(
            f"SELECT ts, {batch} AS n FROM {a}" for a in self.shared.join.streams
        )
        counts = []
        for s, a in enumerate(self.shared.join.streams):
            wanted = " OR ".join(
                f"({q.selections[s] or 'true'} AND e.now - {a}.ts < "
                f"{_to_sql_interval(q.windows[s] + longer)})"
                for q in queries
            )
            counts.append(
                f"SELECT e.n, count(*) AS rows FROM e JOIN {a} ON {a}.{batch} <= e.n WHERE "
                f"{wanted} GROUP BY e.n"
            )
        ended = (
            f"WITH e AS (SELECT n, max(max(ts)) OVER (ORDER BY n) AS now FROM ({ends}) GROUP BY n) "
        )
        table = self.connection.sql(
            f"{ended} SELECT n, sum(rows) FROM ({' UNION ALL '.join(counts)}) GROUP BY n ORDER BY n"
        ).df()
        return pd.Series(
            table.iloc[:, 1].astype(int).to_numpy(), table.iloc[:, 0].astype(int), name="of_use"
        )


def _to_sql_interval(micros: int) -> str:
    return f"to_microseconds({micros})"


def describe_run(
    events: Iterable[Any], values: Mapping[str, object], queries: Sequence[Query] = ()
) -> dict[str, object]:
    """Return the values of a run, by their names in settings of claims; some are those given."""
    commits = [e for e in events if isinstance(e, BatchCommitted)]
    return {
        **values,
        "batches": len(commits),
        "hosts": len(commits[-1].host_metrics),
        "streams": len(commits[-1].live_tuples),
        "queries": len(queries),
        "window_hours": [w / 3600e6 for q in queries for w in q.windows],
        "selecting": sum(any(q.selections) for q in queries),
    }


@dataclass(frozen=True)
class QueryAnswers:
    """Results of each query over ``streams``, and those that DuckDB finds, by name.

    ``values`` are those of the run, by ``describe_run``.
    """

    actual: Mapping[str, Ids]
    expected: Mapping[str, Ids]
    streams: Sequence[str]
    values: Mapping[str, object]

    @classmethod
    def from_run(
        cls, run: SharedRun, oracle: DuckDBOracle, queries: Iterable[Query]
    ) -> QueryAnswers:
        """Return the answers of a run that has ended."""
        queries = list(queries)
        return cls(
            {q.name: result_ids(run, q.name) for q in queries},
            {q.name: oracle.expected_results(q) for q in queries},
            tuple(run.config.streams),
            describe_run(run.events(), oracle.shared.values, queries),
        )

    def to_table(self, queries: Iterable[Query]) -> pd.DataFrame:
        """Return a table: dashboard, windows, selections, results, by DuckDB, the same."""
        rows = []
        for q in queries:
            got, truth = self.actual[q.name], self.expected[q.name]
            windows = zip(self.streams, q.windows, strict=True)
            spans = ", ".join(f"{alias} {format_duration(window)}" for alias, window in windows)
            where = " AND ".join(filter(None, q.selections))
            same = "yes" if got == truth else "no"
            rows.append((q.name, spans, where, got.total(), truth.total(), same))
        names = ["dashboard", "windows", "selections", "results", "by DuckDB", "the same"]
        return pd.DataFrame(rows, columns=names)


LONGER = (1, 2, 3)
"""Batches by which windows are made longer, to find how late tuples leave."""


def state_usage(
    events: Sequence[Any], oracle: DuckDBOracle, queries: Sequence[Query], hours: float
) -> pd.DataFrame:
    """Return, by batch of ``hours``, the stored tuples, and those that some query needs.

    Columns: held, of use, and by the number of batches in LONGER those of longer windows.
    """
    held = balance_by_batch(events).set_index("batch")["held"]
    batch = round(hours * 3600e6)
    later = {k: oracle.needed_tuples(queries, k * batch) for k in LONGER}
    columns: dict[str | int, pd.Series] = {"held": held, "of use": oracle.needed_tuples(queries)}
    use = pd.DataFrame(columns | later).dropna()
    return record_values(use, **describe_run(events, oracle.shared.values, queries))


def compare_isolated(
    run: Callable[[SharedWorkload], list[Any]],
    shared: SharedWorkload,
    oracle: DuckDBOracle,
    few: int,
) -> pd.DataFrame:
    """Return the costs of the first queries in one run, and of each in a run of its own.

    Columns: queries, those of ``count_totals``, and the mean of needed tuples. The first row is the
    shared run. ``run`` returns the events of a run that has ended.
    """
    queries = shared.queries[:few]
    rows: dict[str, dict[str, float]] = {}
    values: dict[str, object] = {}
    for name, served in {"all in one run": queries, **{q.name: (q,) for q in queries}}.items():
        events = run(replace(shared, queries=served))
        values = values or describe_run(events, shared.values, served)
        rows[name] = count_totals(events) | {"of use": oracle.needed_tuples(served).mean()}
    costs = pd.DataFrame(rows).T.rename_axis("queries").reset_index()
    return record_values(costs, **values)


def tidy_costs(costs: pd.DataFrame) -> pd.DataFrame:
    """Return ``compare_isolated`` as a tidy frame: queries, how (shared or alone), what, number."""
    named = {
        "held_mean": "tuples held, mean",
        "of use": "tuples of use, mean",
        "compared": "pairs compared",
    }
    how = ["shared"] + ["alone"] * (len(costs) - 1)
    tall = costs.assign(how=how).melt(
        ["queries", "how"], list(named), var_name="what", value_name="number"
    )
    return tall.replace({"what": named})


def count_totals(events: Sequence[Any]) -> dict[str, float]:
    """Return totals of a run: compared pairs, probes, results, stored tuples (maximum, mean)."""
    commits = [e for e in events if isinstance(e, BatchCommitted)]
    live = [sum(e.live_tuples) for e in commits]
    return {
        "compared": sum(e.total_host_metrics.compared_pairs for e in commits),
        "probed": sum(e.total_host_metrics.probes for e in commits),
        "results": sum(e.results for e in commits),
        "held_most": max(live),
        "held_mean": float(np.mean(live)),
    }


RATE = 20.0
"""Tuples per second of each stream of the deployment."""


def stationary_workload(spark: SparkSession, batches: int = 40, seed: int = 0) -> SharedWorkload:
    """Return two Poisson streams of equal rates and three queries; the last one selects.

    A batch is a second of event time. On steady streams the share of state in a stretch of ages
    does not depend on the time of day.
    """
    given = Arrivals((RATE, RATE), float(batches), 1.0, sigma=0.02, seed=seed)
    few = {"r": f"r.u_s < {round(PASSING * MODULUS)}", "s": f"s.u_r < {round(PASSING * MODULUS)}"}
    queries = [
        Query.parse(
            f"{w:g} s", given.stream_aliases, f"{w} seconds", few if w == WINDOWS[-1] else {}
        )
        for w in WINDOWS
    ]
    values = {"rate": RATE, "windows": WINDOWS, "passing": PASSING, "seed": seed}
    return SharedWorkload(given.make_workload(spark), tuple(queries), values)


def balance_by_batch(events: Sequence[Any]) -> pd.DataFrame:
    """Return, by batch, the balance of state among the hosts.

    Columns: batch, deployment (how often ages have been divided), held (tuples), and ratio: the
    fullest host's share of a stream's state over an equal share, the mean of the streams.
    """
    streams, rows, at = _count_held_tuples(events), [], 0
    shared = sorted({e.batch for e in events if isinstance(e, ChainChanged)})
    for batch, held in streams.items():
        at = sum(b <= batch for b in shared)
        ratios = [max(by) / (sum(by) / len(by)) for by in held if sum(by)]
        rows.append((batch, at, sum(map(sum, held)), float(np.mean(ratios))))
    return pd.DataFrame(rows, columns=["batch", "deployment", "held", "ratio"])


AS_RUN, EVENLY = "by selectivity, as run", "in equal stretches"


def compare_balances(events: Sequence[Any], values: Mapping[str, object]) -> pd.DataFrame:
    """Return batch, ratio, ages (AS_RUN or EVENLY) and seed of a run of ``stationary_workload``.

    ``values`` are those of that workload.
    """
    balances = pd.concat(
        [balance_by_batch(events).assign(ages=AS_RUN), even_balance(events).assign(ages=EVENLY)],
        ignore_index=True,
    )
    return record_values(balances.assign(seed=values["seed"]), **describe_run(events, values))


def second_deployment(events: Sequence[Any]) -> int:
    """Return the batch in which ages were divided for the second time."""
    return sorted({e.batch for e in events if isinstance(e, ChainChanged)})[1]


def steady_batches(runs: Iterable[Sequence[Any]], batches: int) -> range:
    """Return the batches with full windows after ages were divided again, in all of some runs.

    They are at least the last.
    """
    divided = max(second_deployment(events) for events in runs) + 1
    full = int(WINDOWS[-1]) + 8
    return range(min(max(divided, full), batches - 1), batches)


def compute_imbalance(balances: pd.DataFrame) -> pd.DataFrame:
    """Return the fullest host's share of the mean in ``compare_balances``, by seed and ages."""
    return balances.groupby(["seed", "ages"])["ratio"].mean().unstack("ages")


def even_balance(events: Sequence[Any]) -> pd.DataFrame:
    """Return the balance of the same tuples if ages were divided in equal stretches: batch, ratio.

    For runs of ``stationary_workload``: a batch is a second, and a block is as old as its first
    batch.
    """
    blocks, rows = LiveBlocks(), []
    for e in (e for e in events if isinstance(e, BatchCommitted)):
        blocks.apply_commit(e)
        hosts = len(e.host_metrics)
        held = np.zeros((len(e.live_tuples), hosts))
        for b in blocks.values():
            place = min(int((e.batch - b.batch) * hosts / WINDOWS[-1]), hosts - 1)
            held[b.stream, place] += b.rows
        rows.append((e.batch, float(np.mean([by.max() / by.mean() for by in held if by.any()]))))
    return pd.DataFrame(rows, columns=["batch", "ratio"])


def _count_held_tuples(events: Sequence[Any]) -> dict[int, list[list[int]]]:
    """Return, by batch, the stored tuples by stream and host."""
    blocks, tuples_by_batch = LiveBlocks(), {}
    for e in (e for e in events if isinstance(e, BatchCommitted)):
        blocks.apply_commit(e)
        held = [[0] * len(e.host_metrics) for _ in e.live_tuples]
        for b in blocks.values():
            held[b.stream][b.hosts[0]] += b.rows
        tuples_by_batch[e.batch] = held
    return tuples_by_batch


def ring_shares(
    events: Sequence[Any],
    batches: Mapping[str, range],
    rate: float = RATE,
    streams: Sequence[str] = ("r", "s"),
) -> pd.DataFrame:
    """Return the contents of the ring by deployment, stream and place, youngest first.

    A deployment is a name for a range of batches. Columns: ages (seconds), tuples held (the mean of
    those batches), and tuples_modelled, the number from the rate, the windows and PASSING.
    """
    held, rows = _count_held_tuples(events), []
    for name, few in batches.items():
        chains = {e.stream: e for e in events if isinstance(e, ChainChanged) and e.batch <= few[0]}
        for stream, chain in chains.items():
            first = 0.0
            for place, (age, host) in enumerate(chain.host_age_ranges):
                last = age / 1e6
                mean = float(np.mean([held[b][stream][host] for b in few if b in held]))
                rows.append(
                    (
                        name,
                        streams[stream],
                        place,
                        f"{first:.1f} to {last:.1f} s",
                        mean,
                        rate * _compute_held_seconds(first, last),
                    )
                )
                first = last
    return pd.DataFrame(
        rows, columns=["deployment", "stream", "place", "ages", "held", "tuples_modelled"]
    )


def _compute_held_seconds(first: float, last: float) -> float:
    """Return the seconds' worth of tuples stored between two ages.

    It is all tuples while a query without selection needs them.
    """
    return max(0.0, min(last, WINDOWS[-2]) - first) + PASSING * (
        last - max(first, min(last, WINDOWS[-2]))
    )
