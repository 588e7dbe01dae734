"""What a query was told, from the operators that answered it one after another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from braid.engine.store import Store
from braid.hub.desk import Desk, said
from braid.hub.dialect import QueryError
from braid.hub.instance import blueprint_of, files_of, folder_of
from braid.hub.ledger import Served, Span
from braid.hub.reader import Part, Ticks


def answer(desk: Desk, served: Served, ended: bool) -> Any:
    """What a query was told so far; ``ended``: all has come. One with a SLIDE is told at its first
    ticks of matches too that were there before it came.

    Raises QueryError if what it selects fails on what it was told; a DataFrame says so only when
    it is collected, with Spark's own error.
    """
    query = desk.asking.of(served)
    past = query.every is not None
    parts = [_part(desk, span, past and i == 0) for i, span in enumerate(served.spans)]
    streams = query.definition.streams
    began = [desk.ledger.first.get(s) for s in streams]
    start = None if None in began else max(t for t in began if t is not None)
    ticks = Ticks(served.since, _until(desk, served, streams, ended), start)
    try:
        return desk.reader.answer(query, parts, ticks)
    except desk.reader.faults as error:
        raise QueryError(f"the answer to {served.name!r} fails: {said(error)}") from error


def _part(desk: Desk, span: Span, past: bool) -> Part:
    folder = folder_of(desk.path, span.operator, span.version)
    made = blueprint_of(folder)
    files = files_of(Store(folder), made, None if past else span.first, span.end)
    return Part(files, made.shape, span.bit, span.where)


def _until(desk: Desk, served: Served, streams: Sequence[str], ended: bool) -> int | None:
    if served.end is not None:
        return served.until
    if ended:
        latest = [t for s in streams if (t := desk.ledger.latest(s)) is not None]
        return max(latest) + 1 if latest else None
    return desk.progress(streams)
