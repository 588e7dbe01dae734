"""What a query was told, from the operators that answered it one after another."""

from __future__ import annotations

from typing import Any

from braid.engine.store import Store
from braid.hub.desk import Desk, said
from braid.hub.dialect import QueryError
from braid.hub.instance import blueprint_of, check_batches, files_of, folder_of
from braid.hub.ledger import Served, Span
from braid.hub.query import StreamQuery
from braid.hub.reader import Part, Ticks
from braid.papers.reuse.definition import UNBOUNDED


def answer(desk: Desk, served: Served) -> Any:
    """What a query was told so far. One with a SLIDE is told at its first ticks of matches too that
    were there before it came.

    Raises Damaged for a file that is not what was written, and QueryError if what it selects fails
    on what it was told; a DataFrame says so only when it is collected, with Spark's own error.
    """
    query = desk.asking.of(served)
    past = query.every is not None
    parts = [_part(desk, span, past and i == 0) for i, span in enumerate(served.spans)]
    streams = query.definition.streams
    began = [desk.ledger.first.get(s) for s in streams]
    start = None if None in began else max(t for t in began if t is not None)
    ticks = Ticks(served.since, _until(desk, served, query), start)
    try:
        return desk.reader.answer(query, parts, ticks)
    except desk.reader.faults as error:
        raise QueryError(f"the answer to {served.name!r} fails: {said(error)}") from error


def _part(desk: Desk, span: Span, past: bool) -> Part:
    folder = folder_of(desk.path, span.operator, span.version)
    made, store = blueprint_of(folder), Store(folder)
    check_batches(store, made, desk.ledger.epoch + 1 if span.end is None else span.end)
    files = files_of(store, made, None if past else span.first, span.end)
    return Part(files, made.shape, span.bit, span.where)


def _until(desk: Desk, served: Served, query: StreamQuery) -> int | None:
    """Return the event time before which ticks are final; None: there are none. The ticks at which
    an aggregate has a row for nothing go as far as clocks do, whatever a wrong timestamp says.
    """
    if served.end is not None:
        return served.until
    if not desk.has_ended():
        return desk.progress(query.definition.streams)
    every_tick = query.aggregates and not query.groups
    ledger, definition = desk.ledger, query.definition
    latest = [ledger.clocks.get(s) if every_tick else ledger.latest(s) for s in definition.streams]
    known = [t for t in latest if t is not None]
    if len(known) < len(latest):
        return max(known) + 1 if known else None
    over = min(t + w for t, w in zip(known, definition.windows, strict=True))
    return max(max(known) + 1, over) if over < UNBOUNDED else max(known) + 1
