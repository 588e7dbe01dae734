"""Why a run did what it did: one sentence for each of its decisions, from events alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from braid.core.events import (
    BatchCommitted,
    Event,
    EventContext,
    EventsTrimmed,
    RunEnded,
    RunStarted,
)


class Decision(NamedTuple):
    """What was decided in a batch (from 0), the kind of the event that says so, and the words."""

    batch: int
    kind: str
    text: str


class DecisionCollector:
    """Takes the events of a run batch by batch, in order; ``take`` returns what was decided."""

    def __init__(self) -> None:
        self.streams: tuple[str, ...] = ()
        self._before: BatchCommitted | None = None
        self._beside: list[Event] = []
        self._told: dict[str, str] = {}
        self._since = 0

    def collect(self, event: Event) -> list[Decision]:
        """What was decided in a batch, once it is committed; nothing before. What a kind says
        twice in a row is told once.
        """
        if isinstance(event, RunStarted):
            self.streams = event.streams
        if isinstance(event, EventsTrimmed):
            self._since = event.batch + 1
        self._beside.append(event)
        if not isinstance(event, (BatchCommitted, RunEnded)):
            return []
        moment = EventContext(self.streams, self._before, self._beside)
        self._before = event if isinstance(event, BatchCommitted) else self._before
        self._beside = []
        batch = self._before.batch if self._before else 0
        new = [
            e
            for e in moment.batch_events
            if getattr(e, "batch", batch) >= self._since or not self._since
        ]
        return [d for e in new if (d := self._make_decision(e, moment, batch)) is not None]

    def _make_decision(self, event: Event, moment: EventContext, batch: int) -> Decision | None:
        text, kind = event.describe_decision(moment), type(event).__name__
        told = f"{kind} {getattr(event, 'stream', '')} {getattr(event, 'group', '')}"
        if not text or self._told.get(told) == text:
            return None
        self._told[told] = text
        return Decision(batch, kind, text)


def collect_decisions(events: Iterable[Any]) -> list[Decision]:
    """All decisions of a run, in order."""
    deciding = DecisionCollector()
    return [decision for event in events for decision in deciding.collect(event)]


def describe_batch_decisions(batch: int, decided: Sequence[Decision]) -> str:
    """What was decided in a batch as one sentence, with the batch counted from 1."""
    return f"batch {batch + 1:,}: {'; '.join(d.text for d in decided)}"
