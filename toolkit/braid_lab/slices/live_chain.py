"""A shared chain on Spark that changes while it runs, compared with DuckDB for each query alone.

Source: Wang 2008, Part I.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pandas as pd
from braid.core.query import Query
from braid.core.run_events import BatchPlanned, QueryAdded, QueryRemoved
from braid.papers.slices.run_events import ChainChanged
from braid.util.durations import format_duration

from braid_lab.common.claims import ClaimRegistry, Finding, judge
from braid_lab.common.recorded_settings import format_recorded, record_values

if TYPE_CHECKING:
    from braid.shared.shared_run import SharedRun

    from braid_lab.workloads.base import Workload

CLAIMS = ClaimRegistry(
    "Wang 2008, I",
    {
        "": "Chain ({chain}) on Spark, beside each query by DuckDB in the batches in which it is "
        "served; {days} days of flights and weather of {month}, {batches} batches, {queries} "
        "queries with windows of {windows}, {selecting} of them with selections: {added} added, "
        "{complete} of these with all tuples held that it can join, and {removed} removed while it "
        "runs, slices {changes}"
    },
)

PLANS = {"memory": "Mem-Opt", "cpu": "CPU-Opt"}
"""The book's names of chains, by those of ``Chain``."""


def apply_changes(
    run: SharedRun,
    batches: int,
    changes: Mapping[float, Callable[[], Any]],
    say: Callable[[str], Any] = print,
) -> None:
    """Hold the run at each share of its batches, make the change, and let it continue.

    The run is stopped if a change or ``say`` fails.
    """
    try:
        for share, act in changes.items():
            run.unpause()
            while _count_planned_batches(
                run.events()
            ) < share * batches and not run.awaitTermination(0.05):
                pass
            run.pause()
            say(f"batch {run.status['batch']} of {batches}\n")
            act()
    except Exception:
        run.stop()
        raise
    run.unpause()


def _count_planned_batches(events: Iterable[Any]) -> int:
    return sum(isinstance(e, BatchPlanned) for e in events)


def served_batches(events: Sequence[Any], name: str, batches: int) -> range:
    """Return the input batches, out of ``batches``, in which a query was served."""
    first, end = 0, batches
    for k, e in enumerate(events):
        if isinstance(e, (QueryAdded, QueryRemoved)) and e.name == name and e.batch >= 0:
            done = _count_planned_batches(events[:k])
            first, end = (first, done) if isinstance(e, QueryRemoved) else (done, end)
    return range(first, end)


def compare_answers(
    run: SharedRun, join: Workload, queries: Iterable[Query], batches: int
) -> pd.DataFrame:
    """Return the results of each query, and the expected ones, by DuckDB over the same tuples.

    Columns: query, window, selection, batches (from 1), results, by DuckDB, the same.
    """
    import duckdb

    db, events, rows = duckdb.connect(), run.events(), []
    tables: dict[str, Any] = {a: stream.toPandas() for a, stream in join.streams.items()}
    for alias, table in tables.items():
        db.register(alias, table)
    for query in queries:
        span = served_batches(events, query.name, batches)
        got, wanted = (
            _read_results(run, join, query.name),
            _query_expected_results(db, join, query, span),
        )
        same, windows = (
            "yes" if got == wanted else "no",
            zip(join.streams, query.windows, strict=True),
        )
        spans = ", ".join(f"{alias} {format_duration(window)}" for alias, window in windows)
        where = " AND ".join(filter(None, query.selections)) or "every tuple"
        labels = (query.name, spans, where, f"{span.start + 1} to {span.stop}")
        rows.append((*labels, len(got), len(wanted), same))
    names = ["query", "window", "selection", "batches", "results", "by DuckDB", "the same"]
    month = f"{min(table['ts'].min() for table in tables.values()):%B %Y}"
    return record_values(pd.DataFrame(rows, columns=names), month=month, **_list_changes(events))


def _list_changes(events: Sequence[Any]) -> dict[str, Any]:
    """Return how a run was changed, by name."""
    reasons = [e.reason for e in events if isinstance(e, ChainChanged)]
    queries = [e for e in events if isinstance(e, QueryAdded)]
    windows = sorted({window for q in queries for window in q.windows.values()})
    added = [q for q in queries if q.batch >= 0]
    return {
        "batches": _count_planned_batches(events),
        "queries": len(queries),
        "windows": tuple(map(format_duration, windows)),
        "selecting": sum(any(q.selections.values()) for q in queries),
        "added": len(added),
        "complete": sum(not any(q.complete_since.values()) for q in added),
        "removed": sum(isinstance(e, QueryRemoved) for e in events),
        "changes": [r for r in reasons if r in ("split", "merged")],
    }


def _read_results(run: SharedRun, join: Workload, name: str) -> list[tuple[Any, ...]]:
    rows = run.results(name)
    ids = rows.select(*(rows[f"{alias}.id"].alias(alias) for alias in join.streams)).toArrow()
    return sorted(zip(*(column.to_pylist() for column in ids.columns), strict=True))


def _query_expected_results(
    db: Any, join: Workload, query: Query, span: range
) -> list[tuple[Any, ...]]:
    """Return the pairs that match, pass the selections, and are less than a window apart.

    Both members arrived in these batches.
    """
    aliases = tuple(join.streams)
    now = f"greatest({', '.join(f'epoch_us({a}.ts)' for a in aliases)})"
    latest = f"greatest({', '.join(f'{a}.{join.batch}' for a in aliases)})"
    windows = zip(aliases, query.windows, strict=True)
    terms = [
        join.condition,
        *(f"{now} - epoch_us({a}.ts) < {w}" for a, w in windows),
        f"{latest} BETWEEN {span.start} AND {span.stop - 1}",
        *filter(None, query.selections),
    ]
    where = " AND ".join(f"({term})" for term in terms)
    ids = ", ".join(f"{a}.id" for a in aliases)
    return sorted(db.execute(f"SELECT {ids} FROM {', '.join(aliases)} WHERE {where}").fetchall())


@CLAIMS.claim(
    "Theorem 2, Theorem 4, Lemma 5, Lemma 6",
    "every query has the results that it has alone, none lost and none doubled",
    is_required=True,
)
def answers_claim(answers: pd.DataFrame) -> Finding:
    """Theorem 2, Lemmas 5 and 6: every query has exactly its own results, none lost or doubled."""
    same = (answers["the same"] == "yes") & (answers["results"] > 0)
    result = (
        f"{same.sum()} of {len(answers)} queries as by DuckDB, {answers['results'].sum():,} results"
    )
    plan = format_recorded(answers, "chain")
    return replace(judge(result, same.all(), result), ran={"chain": PLANS.get(plan, plan)})
