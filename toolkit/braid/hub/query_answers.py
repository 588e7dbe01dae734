"""Compose a query's answer from the operators that have answered it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from braid.errors import DamagedRunError, QueryError
from braid.hub.hub_backend import AnswerPart, StreamReader, TickRange
from braid.hub.hub_state import HubState, RegisteredQuery, ServingInterval
from braid.hub.operator_instance import read_operator_spec
from braid.hub.query_completeness import find_final_time
from braid.hub.query_parser import StreamQuery
from braid.hub.query_registry import QueryRegistry
from braid.storage.hub_files import check_pin, open_operator, operator_key
from braid.util.error_summary import take_first_line

if TYPE_CHECKING:
    from braid.util.row_tables import RowTable

_WIDENING = 4
"""Factor by which more batches are read for the last rows if the last ones have too few."""


class _AnswerSource(Protocol):
    """The folder of a hub, its state and its reader, from which answers are read."""

    @property
    def path(self) -> Path: ...
    @property
    def ledger(self) -> HubState: ...
    @property
    def reader(self) -> StreamReader: ...


def read_last_rows(
    registry: QueryRegistry, number: int, limit: int, turn: AbstractContextManager[Any]
) -> RowTable:
    """Return the last rows of a query's answer, at most ``limit``.

    Without a SLIDE, it reads the results of the last batches that have this number of rows. No
    batch of the hub begins inside ``turn``, which is not held while Spark reads. Raises as
    ``answer_query`` does.
    """
    with turn:
        served, epoch = registry.ledger.queries[number], registry.ledger.epoch
    is_ticked = registry.query_reader.restore_query(served).slide is not None
    end = epoch + 1 if served.end_epoch is None else served.end_epoch
    count = end if is_ticked else 1
    while True:
        epochs = range(end - count, end) if count < end else None
        with turn:
            answer = answer_query(registry, served, epochs)
        rows = registry.reader.read_last_rows(answer, limit, is_ticked)
        if len(rows) >= limit or epochs is None:
            return rows
        count *= _WIDENING


def answer_query(
    registry: QueryRegistry, served: RegisteredQuery, epochs: range | None = None
) -> Any:
    """Return a query's answer so far; ``epochs``: from the results of these batches, None: of all.

    The first ticks of a query with a SLIDE include matches that were there before it was submitted.

    Raises DamagedRunError if a file is damaged. Raises QueryError if a selected expression fails on
    the matches; a Spark DataFrame raises Spark's error instead, when it is collected.
    """
    query = registry.query_reader.restore_query(served)
    streams = query.definition.streams
    began = [registry.ledger.first_event_times.get(s) for s in streams]
    start = None if None in began else max(t for t in began if t is not None)
    ticks = TickRange(served.start_time, find_final_time(registry.ledger, served, query), start)
    return compose_answer(registry, served, query, served.serving_intervals, ticks, epochs)


def compose_answer(
    registry: _AnswerSource,
    served: RegisteredQuery,
    query: StreamQuery,
    spans: Sequence[ServingInterval],
    ticks: TickRange,
    epochs: range | None = None,
) -> Any:
    """Return a query's answer from the results of some intervals. Raises as ``answer_query`` does.

    ``epochs``: batches whose results are read; None: all.
    """
    past = query.slide is not None
    try:
        parts = [
            _make_answer_part(registry, span, past and span is served.serving_intervals[0], epochs)
            for span in spans
        ]
    except DamagedRunError as damaged:
        raise DamagedRunError(f"{damaged}; the answer to {served.name!r} needs it") from None
    try:
        return registry.reader.answer_query(query, parts, ticks)
    except registry.reader.evaluation_errors as error:
        reason = take_first_line(error)
        raise QueryError(f"the answer to {served.name!r} fails: {reason}") from error


def _make_answer_part(
    registry: _AnswerSource, span: ServingInterval, past: bool, epochs: range | None
) -> AnswerPart:
    """Return the results of an operator that its pinned entry names. Each is verified.

    ``epochs``: batches whose results are read; None: all.
    """
    pin = registry.ledger.operators[operator_key(span.operator, span.version)]
    store = open_operator(registry.path, pin)
    check_pin(store, pin)
    spec = read_operator_spec(store)
    first = 0 if past else spec.batch_of_epoch(span.first_epoch)
    stops = [span.end_epoch, None if epochs is None else epochs.stop]
    ends = [spec.batch_of_epoch(stop) for stop in stops if stop is not None]
    end = min([pin.batch + 1, *ends])
    if epochs is not None:
        first = max(first, spec.batch_of_epoch(epochs.start)) if epochs.start else first
    files = store.results.result_files(first, end, deep=True) if first < end else []
    return AnswerPart(files, spec.result_shape, span.bit, span.compensation)
