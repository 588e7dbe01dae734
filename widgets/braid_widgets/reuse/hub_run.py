"""The events of a hub as those of a run: a start and commits, with nodes as hosts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from braid.core.batch_history import split_batch_seconds
from braid.core.batch_report import HostMetrics
from braid.core.run_events import BatchCommitted, RunStarted
from braid.papers.reuse.hub_events import (
    HubBatchCommitted,
    HubStarted,
    OperatorBuilt,
    OperatorMoved,
    QueryEnded,
    QuerySubmitted,
)
from braid.papers.reuse.network import Network


def get_batch_number(event: Any) -> int | None:
    """Return the number of the batch that an event commits, from 0; None for other events."""
    if isinstance(event, HubBatchCommitted):
        return event.epoch
    return event.batch if isinstance(event, BatchCommitted) else None


class HubTranslator:
    """A translator of events, in order. Those of a run stay as they are."""

    def __init__(self) -> None:
        self._names: list[str] = []
        self._streams: tuple[str, ...] = ()
        self._places: dict[int, str] = {}
        self._queries: set[str] = set()
        self._totals: Counter[str] = Counter()

    def translate_events(self, events: Iterable[Any]) -> Iterator[Any]:
        """Yield the events, and after each start and batch of a hub the same as of a run."""
        for event in events:
            yield event
            if isinstance(event, HubStarted):
                yield self._make_start(event)
            elif isinstance(event, OperatorBuilt):
                self._places[event.operator] = event.node
            elif isinstance(event, OperatorMoved):
                self._places[event.operator] = event.target_node
            elif isinstance(event, QuerySubmitted):
                self._queries.add(event.name)
            elif isinstance(event, QueryEnded):
                self._queries.discard(event.name)
            elif isinstance(event, HubBatchCommitted):
                yield self._make_commit(event)

    def _make_start(self, event: HubStarted) -> RunStarted:
        self._names = [node.name for node in Network.from_dict(event.network).nodes]
        self._streams = event.streams
        nodes = max(1, len(self._names))
        settings = {"reuse": event.reuse_level}
        name, pace = "QueryHub", event.interval_seconds
        return RunStarted(
            event.streams, "", {}, name, settings, nodes, 1, None, interval_seconds=pace
        )

    def _make_commit(self, event: HubBatchCommitted) -> BatchCommitted:
        self._totals.update(event.received_tuples)
        metrics = self._sum_by_node(event)
        joined = sum(m.seconds for m in event.operator_metrics)
        return BatchCommitted(
            event.epoch,
            tuple(event.received_tuples.get(name, 0) for name in self._streams),
            tuple(self._totals[name] for name in self._streams),
            (0,) * len(self._streams),
            self._count_results(event),
            split_batch_seconds(event.seconds, 0.0, 0.0, min(joined, event.seconds), 0.0),
            (),
            (),
            metrics,
            late_tuples=event.late,
        )

    def _sum_by_node(self, event: HubBatchCommitted) -> tuple[HostMetrics, ...]:
        """Return the work of the operators of each node."""
        sums = {name: HostMetrics() for name in self._names or [""]}
        first = next(iter(sums))
        for m in event.operator_metrics:
            work = HostMetrics(
                received_tuples=m.received_tuples,
                received_bytes=m.received_bytes,
                stored_tuples=m.live_tuples,
                stored_bytes=m.live_bytes,
                compared_pairs=m.compared_pairs,
                results=m.results,
                seconds=m.seconds,
            )
            sums.get(self._places.get(m.operator, first), sums[first]).add_counts(work)
        return tuple(sums.values())

    def _count_results(self, event: HubBatchCommitted) -> int:
        """Return the rows that queries receive; without a network, those of all operators."""
        if not event.flows:
            return sum(m.results for m in event.operator_metrics)
        return sum(flow.rows for flow in event.flows if flow.consumer in self._queries)
