"""Describe a hub's query: its request, the operators that serve it, and their state."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from braid.core import plan_sentences
from braid.core.plan import Block
from braid.papers.reuse.deployment import DeployedQuery, Deployment
from braid.papers.reuse.hub_events import HubBatchCommitted
from braid.papers.reuse.relaxation import format_window

from braid_widgets.base.text import format_held_blocks

Blocks = Callable[[int], Sequence[Block]]
"""Returns the live blocks of an operator."""
_SHOWN = 20
"""Maximum number of rows of an answer shown."""


@dataclass(frozen=True)
class Serving:
    """An operator that serves a query, in words.

    ``inputs`` are operators, and streams with the nodes that they come from.
    """

    node: str
    streams: Sequence[str]
    demands: int
    results: int
    inputs: Sequence[str | int]
    holds: str


def describe_live_query(run: Any, name: str) -> str:
    """Describe what serves a query of a hub now, with the latest rows of its answer.

    Raises ValueError for a query that is not active.
    """
    if name not in run.queries:
        raise ValueError(f"query {name!r} is there no longer; select another")
    text = describe_query(run.deployment, run.events(), run.operator_blocks, name)
    rows = run.queries[name].current_answer(limit=_SHOWN)
    shown = rows.to_string(index=False) if len(rows) else "no row yet"
    return f"{text}\n\nlatest rows of its answer\n{shown}"


def describe_query(deployment: Deployment, events: Iterable[Any], blocks: Blocks, name: str) -> str:
    """Describe what serves a query now. Raises KeyError for a query that is not active."""
    query = deployment.queries[name]
    results: dict[int, int] = {}
    for event in events:
        for metrics in event.operator_metrics if isinstance(event, HubBatchCommitted) else ():
            results[metrics.operator] = results.get(metrics.operator, 0) + metrics.results

    def serving(id: int) -> Serving:
        o = deployment.operators[id]
        inputs = _format_sources(o.inputs, deployment.stream_nodes)
        counts = len(o.demands), results.get(id, 0)
        return Serving(
            o.node, o.definition.streams, *counts, inputs, format_held_blocks(blocks(id))
        )

    head = (
        f"query {name}, asked at {query.sink}",
        f"  {query.sql}".rstrip(),
        *_describe_definition(query),
    )
    return "\n".join([*filter(None, head), *_describe_operators(query.operator, serving)])


def _format_sources(inputs: Iterable[str | int], at: Mapping[str, str]) -> list[str | int]:
    """Return what an operator reads; streams are given with the node that they come from."""
    return [i if isinstance(i, int) else f"{i} from {at[i.partition('#')[0]]}" for i in inputs]


def _describe_definition(query: DeployedQuery) -> Iterator[str]:
    definition = query.definition
    windows = ", ".join(
        f"{s} {format_window(w)}"
        for s, w in zip(definition.streams, definition.windows, strict=True)
    )
    chosen = zip(definition.streams, definition.selections, strict=True)
    where = ", ".join(f"{s}: {sel.to_sql}" for s, sel in chosen if sel.to_sql != "TRUE")
    yield f"  windows: {windows}; selections: {where or 'none'}"


def _describe_operators(first: int, serving: Callable[[int], Serving | None]) -> Iterator[str]:
    """Return a line per operator needed and its state, each before the operators that it reads."""
    due = [first]
    while due:
        id = due.pop(0)
        if (o := serving(id)) is None:
            yield f"σ{id} is not there just then"
            continue
        due += [read for read in o.inputs if isinstance(read, int) and read not in due]
        shared, joins = plan_sentences.format_count(o.demands, "demand"), " ⋈ ".join(o.streams)
        yield f"σ{id} at {o.node}: {joins}, {shared}, {o.results:,} results so far"
        yield f"  reads {', '.join(i if isinstance(i, str) else f'σ{i}' for i in o.inputs)}"
        yield f"  holds {o.holds}"
