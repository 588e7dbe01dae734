"""Answers of a hub's queries batch by batch, as ``foreachBatch`` receives them.

A match is delivered with the batch that made it. A tick of a query with a SLIDE is delivered with
the first batch after which it is final, by the clocks of that batch. Both follow from what is
committed, so a delivery that is repeated has the same rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from braid.core.stream_clocks import LAST_TIME, find_least_time
from braid.hub.hub_backend import TickRange
from braid.hub.hub_state import RegisteredQuery, ServingInterval
from braid.hub.query_answers import compose_answer
from braid.hub.query_completeness import find_final_time
from braid.hub.query_parser import StreamQuery
from braid.hub.query_registry import QueryRegistry
from braid.papers.reuse.hub_events import HubBatchCommitted


class BatchAnswers:
    """Answers of each batch of a hub."""

    def __init__(self, registry: QueryRegistry) -> None:
        self._registry = registry
        self._passed: dict[int, Mapping[str, int | None]] = {}

    def read_batch(self, epoch: int) -> dict[int, Any]:
        """Return the new rows of each query's answer by its id, without queries that have none."""
        answers = {}
        for served in self._registry.ledger.queries:
            if _is_served(served, epoch):
                answer = self._answer_query(served, epoch)
                if answer is not None and has_rows(answer):
                    answers[served.number] = answer
        return answers

    def _answer_query(self, served: RegisteredQuery, epoch: int) -> Any:
        """Return the new rows of a query's answer; None: there is none."""
        registry, query = self._registry, self._registry.query_reader.restore_query(served)
        if query.slide is None:
            spans = [s for s in served.serving_intervals if _covers(s, epoch)]
            ticks = TickRange(None, None, None)
            return compose_answer(registry, served, query, spans, ticks, range(epoch, epoch + 1))
        until = self._find_final_time(served, query, epoch)
        first = served.serving_intervals[0].first_epoch
        since = self._find_final_time(served, query, epoch - 1) if epoch > first else None
        if until is None or (since is not None and since >= until):
            return None
        begins = [t for t in (served.start_time, None if since is None else since - 1) if t]
        began = [registry.ledger.first_event_times.get(s) for s in query.definition.streams]
        start = None if None in began else max(t for t in began if t is not None)
        ticks = TickRange(max(begins, default=None), until, start)
        spans = [s for s in served.serving_intervals if s.first_epoch <= epoch]
        return compose_answer(registry, served, query, spans, ticks, range(epoch + 1))

    def _find_final_time(
        self, served: RegisteredQuery, query: StreamQuery, epoch: int
    ) -> int | None:
        """Return the event time before which ticks are final after a batch; None: no tick is."""
        passed = find_least_time(self._read_passed_times(epoch), query.definition.streams)
        ledger = self._registry.ledger
        return find_final_time(ledger, served, query) if passed == LAST_TIME else passed

    def _read_passed_times(self, epoch: int) -> Mapping[str, int | None]:
        """Return the event times that streams have passed with a batch."""
        if epoch not in self._passed:
            events = self._registry.log.store.events
            recent = {
                e.epoch: e.passed_times
                for e in events.recent_events()
                if isinstance(e, HubBatchCommitted)
            }
            if epoch not in recent:
                committed = events.events_of_type(HubBatchCommitted)
                recent |= {e.epoch: e.passed_times for e in committed}
            self._passed = recent
        return self._passed.get(epoch, {})


def _is_served(served: RegisteredQuery, epoch: int) -> bool:
    spans = served.serving_intervals
    has_begun = bool(spans) and spans[0].first_epoch <= epoch
    return has_begun and (served.end_epoch is None or epoch < served.end_epoch)


def _covers(span: ServingInterval, epoch: int) -> bool:
    return span.first_epoch <= epoch and (span.end_epoch is None or epoch < span.end_epoch)


def has_rows(answer: Any) -> bool:
    """Return whether an answer, an Arrow table or a Spark DataFrame, has rows."""
    return bool(answer.num_rows if hasattr(answer, "num_rows") else not answer.isEmpty())
