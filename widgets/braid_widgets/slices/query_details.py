"""Describe a query of a shared run after a batch: windows, selections, slices, blocks and
results.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Any

from braid.core import plan_sentences
from braid.core.run_events import BatchCommitted, BatchQueryResults, EventsTrimmed, QueryAdded
from braid.util.durations import format_duration

from braid_widgets.base.text import format_held_blocks, missing_batch_text
from braid_widgets.slices.shared_view_state import SharedViewState


def describe_query(events: Iterable[Any], name: str, batch: int) -> str:
    """Describe what serves a query after a batch (from 1).

    Raises ValueError for a query that was not served then, and for a batch that does not exist.
    """
    scene, counts, since = SharedViewState(), dict[int, int](), 0
    for event in events:
        scene.apply_event(event)
        if isinstance(event, EventsTrimmed):
            since = event.batch + 1
        elif isinstance(event, BatchQueryResults):
            counts[event.batch] = event.results_by_query.get(name, 0)
        elif isinstance(event, BatchCommitted):
            if not event.results:
                counts.setdefault(event.batch, 0)
            if event.batch == batch - 1:
                return _format_description(scene, name, batch, counts, since)
    raise ValueError(missing_batch_text(batch, since))


def _format_description(
    scene: SharedViewState, name: str, batch: int, counts: Mapping[int, int], since: int
) -> str:
    """Describe a query; ``counts`` are its results by batch, of the first ``since`` unknown."""
    if (query := scene.queries.get(name)) is None:
        names = ", ".join(scene.queries) or "none"
        raise ValueError(f"no query {name!r} is served after batch {batch}; there are: {names}")
    windows = ", ".join(f"{alias} {format_duration(w)}" for alias, w in query.windows.items())
    where = ", ".join(f"{alias}: {sql}" for alias, sql in query.selections.items() if sql)
    results = "these events do not tell whose they are"
    if len(counts) == batch - since:
        span = f"since batch {since + 1}" if 0 < since > query.batch else "so far"
        results = f"{sum(counts.values()):,} {span}, {counts[batch - 1]:,} of them in this batch"
    lines = [
        f"query {name} after batch {batch}",
        f"  windows: {windows}; selections: {where or 'none'}",
        f"  results: {results}",
    ]
    return "\n".join([*lines, *_describe_slices(scene, query)])


def _describe_slices(scene: SharedViewState, query: QueryAdded) -> Iterator[str]:
    assert scene.start is not None
    for stream, chain in sorted(scene.chains.items()):
        alias = scene.start.streams[stream]
        reach = query.windows[alias]
        ends = enumerate(pairwise((0, *chain.slice_ends)))
        serve = [(number, a, b) for number, (a, b) in ends if a < reach]
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
            held = format_held_blocks(slices, lambda b: f", {plan_sentences.format_hosts(b.hosts)}")
            yield f"  slice {number + 1}, ages {ages}: {held}"
