"""Describe a query of a shared run after a batch: windows, selections, slices, blocks and
results.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any

from braid.core import plan_sentences
from braid.core.plan import Block
from braid.core.run_events import BatchCommitted, BatchQueryResults, EventsTrimmed, QueryAdded
from braid.util.durations import format_duration

from braid_widgets.base.text import format_held_blocks, missing_batch_text
from braid_widgets.slices.shared_view_state import SharedViewState


def describe_query(events: Iterable[Any], name: str, batch: int) -> str:
    """Describe what serves a query after a batch (from 1).

    Raises ValueError for a query that was not served then, and for a batch that does not exist.
    """
    scene = SharedViewState()
    counts: list[int | None] = []
    served: BatchQueryResults | None = None
    since = 0
    for event in events:
        scene.apply_event(event)
        if isinstance(event, EventsTrimmed):
            since = event.batch + 1
        elif isinstance(event, BatchQueryResults):
            served = event
        elif isinstance(event, BatchCommitted):
            counts.append(_count_batch_results(event, served, name))
            if event.batch == batch - 1:
                return _format_description(scene, name, batch, counts, since)
    raise ValueError(missing_batch_text(batch, since))


def _count_batch_results(
    event: BatchCommitted, served: BatchQueryResults | None, name: str
) -> int | None:
    """Return the query's results in a batch; None if the events do not count results by query."""
    if served is not None and served.batch == event.batch:
        return served.results_by_query.get(name, 0)
    return None if event.results else 0


def _format_description(
    scene: SharedViewState, name: str, batch: int, counts: Sequence[int | None], since: int
) -> str:
    if (query := scene.queries.get(name)) is None:
        names = ", ".join(scene.queries) or "none"
        raise ValueError(f"no query {name!r} is served after batch {batch}; there are: {names}")
    windows = ", ".join(f"{alias} {format_duration(w)}" for alias, w in query.windows.items())
    where = ", ".join(f"{alias}: {sql}" for alias, sql in query.selections.items() if sql)
    lines = [
        f"query {name} after batch {batch}",
        f"  windows: {windows}; selections: {where or 'none'}",
        f"  {_format_results(counts, since if query.batch < since else 0)}",
    ]
    return "\n".join([*lines, *_describe_slices(scene, query)])


def _format_results(counts: Sequence[int | None], since: int) -> str:
    """Return the number of results; those of the first ``since`` batches are unknown."""
    counted = [n for n in counts if n is not None]
    if len(counted) < len(counts):
        return "results: these events do not tell whose they are"
    span = f"since batch {since + 1}" if since else "so far"
    return f"results: {sum(counted):,} {span}, {counted[-1]:,} of them in this batch"


def _describe_slices(scene: SharedViewState, query: QueryAdded) -> Iterator[str]:
    assert scene.start is not None
    for stream, chain in sorted(scene.chains.items()):
        alias = scene.start.streams[stream]
        reach = query.windows[alias]
        serve = [
            (k, a, b) for k, (a, b) in enumerate(pairwise((0, *chain.slice_ends))) if a < reach
        ]
        yield (
            f"{alias}: served by {plan_sentences.format_count(len(serve), 'slice')} of "
            f"{len(chain.slice_ends)}"
        )
        for number, first, last in serve:
            slices = [
                b
                for b in scene.blocks.values()
                if b.stream == stream and scene.slices.get(b.id, 0) == number
            ]
            ages = f"{format_duration(first) if first else '0'} to {format_duration(last)}"
            yield f"  slice {number + 1}, ages {ages}: {format_held_blocks(slices, _format_hosts)}"


def _format_hosts(block: Block) -> str:
    return f", {plan_sentences.format_hosts(block.hosts)}"
