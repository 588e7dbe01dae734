"""Trace batches with OpenTelemetry: ``braid.spans``."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from braid.core.batch_history import PHASES
from braid.event_handlers import EventHandler, attach_handler
from braid.util.optional_imports import OptionalImport

if TYPE_CHECKING:
    from opentelemetry.trace import Tracer, TracerProvider

_NANOSECONDS = 1_000_000_000


class SpanHandler(EventHandler):
    """Makes a span of each batch, with a child for each phase."""

    def __init__(self, tracer: Tracer) -> None:
        super().__init__()
        self._tracer = tracer

    def receive_event(self, event: Any, run: str, time: float) -> None:
        from opentelemetry.trace import set_span_in_context

        seconds = getattr(event, "seconds_by_phase", {})
        if "total" not in seconds:
            return
        end = int(time * _NANOSECONDS)
        begin = end - int(seconds["total"] * _NANOSECONDS)
        results = {"braid.results": event.results} if hasattr(event, "results") else {}
        attributes = {"braid.run": run, "braid.batch": event.batch, **results}
        batch = self._tracer.start_span("batch", start_time=begin, attributes=attributes)
        context = set_span_in_context(batch)
        for phase in PHASES:
            until = begin + int(seconds.get(phase, 0.0) * _NANOSECONDS)
            self._tracer.start_span(phase, context, start_time=begin).end(until)
            begin = until
        batch.end(end)


def spans(provider: TracerProvider | None = None) -> logging.Handler:
    """Trace each batch of the runs of this process with OpenTelemetry. Return the handler.

    A batch is a span with ``braid.run``, ``braid.batch`` and ``braid.results``. Its children are
    its phases: source, planning, transfer, kernels and commit, one after the other. A second call
    replaces the first.

    Parameters
    ----------
    provider
        Where spans go. Default: the provider that the program has set.

    Raises ModuleNotFoundError without the extra ``otel``.
    """
    with OptionalImport("otel"):
        from opentelemetry import trace
    tracer = trace.get_tracer("braid", tracer_provider=provider)
    handler = SpanHandler(tracer)
    attach_handler(handler, logging.DEBUG)
    return handler
