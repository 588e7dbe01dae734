"""Describe a hub's query: its request, the operators that serve it, and their state."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from braid.core import plan_sentences
from braid.papers.reuse.deployment import DeployedQuery
from braid.papers.reuse.hub_events import HubBatchCommitted
from braid.papers.reuse.relaxation import format_window

from braid_widgets.base.text import format_held_blocks

_SHOWN = 20
"""Maximum number of rows of an answer shown."""


def describe_live_query(run: Any, name: str) -> str:
    """Describe what serves a query of a hub now, with the latest rows of its answer.

    Raises ValueError for a query that is not active.
    """
    if name not in run.queries:
        raise ValueError(f"query {name!r} is there no longer; select another")
    query: DeployedQuery = run.deployment.queries[name]
    rows = run.queries[name].current_answer(limit=_SHOWN)
    lines = [
        f"query {name}, asked at {query.sink}",
        *([f"  {query.sql}"] if query.sql else []),
        _format_definition(query),
        *_describe_operators(run, query.operator),
        "\nlatest rows of its answer",
        rows.to_string(index=False) if len(rows) else "no row yet",
    ]
    return "\n".join(lines)


def _format_definition(query: DeployedQuery) -> str:
    streams, definition = query.definition.streams, query.definition
    windows = [f"{s} {format_window(w)}" for s, w in zip(streams, definition.windows, strict=True)]
    chosen = zip(streams, definition.selections, strict=True)
    where = ", ".join(f"{s}: {sel.to_sql}" for s, sel in chosen if sel.to_sql != "TRUE")
    return f"  windows: {', '.join(windows)}; selections: {where or 'none'}"


def _describe_operators(run: Any, first: int) -> Iterator[str]:
    """Return a line per operator needed and its state, each before the operators that it reads."""
    results = Counter[int]()
    for event in run.events():
        for metrics in event.operator_metrics if isinstance(event, HubBatchCommitted) else ():
            results[metrics.operator] += metrics.results
    plan, due = run.deployment, [first]
    for id in due:
        operator = plan.operators[id]
        due += [read for read in operator.inputs if isinstance(read, int) and read not in due]
        shared = plan_sentences.format_count(len(operator.demands), "demand")
        joins = " ⋈ ".join(operator.definition.streams)
        reads = [
            f"operator {read}" if isinstance(read, int) else f"{read} from {plan.source_node(read)}"
            for read in operator.inputs
        ]
        counted = plan_sentences.format_count(results[id], "result")
        yield f"operator {id} at {operator.node}: {joins}, {shared}, {counted} so far"
        yield f"  reads {', '.join(reads)}"
        yield f"  holds {format_held_blocks(run.operator_blocks(id))}"
