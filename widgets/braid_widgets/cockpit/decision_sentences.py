"""Describe the decisions of a run, one sentence each, from its events."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from braid.core.run_events import (
    BatchCommitted,
    Event,
    EventContext,
    EventsTrimmed,
    RunEnded,
    RunStarted,
)


class Decision(NamedTuple):
    """A decision.

    - ``batch``: number of the batch, from 0.
    - ``kind``: type of the event that reports it.
    - ``text``: the decision in words.
    """

    batch: int
    kind: str
    text: str


class DecisionCollector:
    """A collector of decisions. Pass the events of a run to ``collect``, in order."""

    def __init__(self) -> None:
        self.streams: tuple[str, ...] = ()
        self._before: BatchCommitted | None = None
        self._batch_events: list[Event] = []
        self._last_texts: dict[str, str] = {}
        self._since = 0

    def collect(self, event: Event) -> list[Decision]:
        """Return the decisions of a batch once its commit is passed in; before that, none.

        A decision that repeats the previous one of its kind is omitted.
        """
        if isinstance(event, RunStarted):
            self.streams = event.streams
        if isinstance(event, EventsTrimmed):
            self._since = event.batch + 1
        self._batch_events.append(event)
        if not isinstance(event, (BatchCommitted, RunEnded)):
            return []
        moment = EventContext(self.streams, self._before, self._batch_events)
        self._before = event if isinstance(event, BatchCommitted) else self._before
        self._batch_events = []
        batch = self._before.batch if self._before else 0
        new = [
            e
            for e in moment.batch_events
            if getattr(e, "batch", batch) >= self._since or not self._since
        ]
        return [d for e in new if (d := self._make_decision(e, moment, batch)) is not None]

    def _make_decision(self, event: Event, moment: EventContext, batch: int) -> Decision | None:
        text, kind = event.describe_decision(moment), type(event).__name__
        label = f"{kind} {getattr(event, 'stream', '')} {getattr(event, 'group', '')}"
        if not text or self._last_texts.get(label) == text:
            return None
        self._last_texts[label] = text
        return Decision(batch, kind, text)


def collect_decisions(events: Iterable[Any]) -> list[Decision]:
    """Return all decisions of a run, in order."""
    deciding = DecisionCollector()
    return [decision for event in events for decision in deciding.collect(event)]


def describe_batch_decisions(batch: int, decided: Sequence[Decision]) -> str:
    """Return the decisions of a batch as one sentence. Batches count from 1 here."""
    return f"batch {batch + 1:,}: {'; '.join(d.text for d in decided)}"
