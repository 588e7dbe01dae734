"""The decisions of a run as flags of the time line: label, sentence and duration of each."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any, NamedTuple, TypedDict

from braid.core.plan_sentences import format_count
from braid.core.run_events import (
    BatchCommitted,
    EventContext,
    EventsTrimmed,
    QueryAdded,
    QueryRemoved,
    RunEnded,
    RunStarted,
)
from braid.core.touch_events import HostLost, SettingChanged
from braid.papers.diffusion.run_events import MasterSwitched
from braid.papers.psp.run_events import RingResized
from braid.papers.reuse import hub_events as hub
from braid.papers.shedding.run_events import SheddingPlanned
from braid.papers.slices.run_events import ChainChanged
from braid.papers.theta.run_events import MappingChanged, MigrationEnded, MigrationStarted

from braid_widgets.base.run_view import HISTORY

LONGEST = 220
"""Most characters of a flag's sentence."""


class Annotation(TypedDict):
    """The decisions taken in a batch (from 1).

    - ``end``: the last batch of what began, such as a migration; null if nothing lasts.
    - ``short``: a label of at most 16 characters; empty for a minor decision.
    - ``text``: the decisions and their reasons, as one sentence.
    - ``kind``: "change", "query", "fault" or "minor".
    - ``rows``: rows that move because of it.
    - ``lost``: hosts that lose their state.
    """

    batch: int
    end: int | None
    short: str
    text: str
    kind: str
    rows: int
    lost: list[int]


class Decision(NamedTuple):
    """A decision in a batch (from 0); ``kind`` is the type of the event that reports it."""

    batch: int
    kind: str
    text: str


class FlagCollector:
    """A collector of flags. Pass the events of a run to ``apply_event``, in order."""

    def __init__(self) -> None:
        self.flags: deque[Annotation] = deque(maxlen=HISTORY)
        self._streams: tuple[str, ...] = ()
        self._before: BatchCommitted | None = None
        self._batch_events: list[Any] = []
        self._last_texts: dict[str, str] = {}
        self._since = 0
        self._budget: tuple[str, float] | None = None
        self._slice_ends: dict[int, tuple[int, ...]] = {}
        self._open: dict[int, Annotation] = {}

    def apply_event(self, event: Any) -> list[Decision]:
        """Fold in an event; return the decisions of its batch if it ends one, else none.

        A decision that repeats the previous one of its kind is omitted.
        """
        self._batch_events.append(event)
        if isinstance(event, RunStarted):
            self._streams = event.streams
        if isinstance(event, EventsTrimmed):
            self._since = event.batch + 1
        if isinstance(event, MigrationEnded) and event.group in self._open:
            self._open.pop(event.group)["end"] = event.batch + 1
        return self._end_batch(event) if isinstance(event, (BatchCommitted, RunEnded)) else []

    def _end_batch(self, event: BatchCommitted | RunEnded) -> list[Decision]:
        happened, self._batch_events = self._batch_events, []
        moment = EventContext(self._streams, self._before, happened)
        self._before = event if isinstance(event, BatchCommitted) else self._before
        batch = self._before.batch if self._before else 0
        retained = [e for e in happened if getattr(e, "batch", batch) >= self._since]
        new = retained if self._since else happened
        decided = [decision for e in new if (decision := self._make_decision(e, batch, moment))]
        labels = [label for e in happened if (label := self._label_change(e) or _make_label(e))]
        if decided:
            started = [e for e in happened if isinstance(e, MigrationStarted)]
            kind, short = _choose_label(labels)
            flag: Annotation = {
                "batch": batch + 1,
                "end": None,
                "short": short,
                "text": _join_texts(f"batch {batch + 1:,}: ", [d.text for d in decided]),
                "kind": kind,
                "rows": sum(e.tuples_to_copy for e in started),
                "lost": [e.host for e in happened if isinstance(e, HostLost)],
            }
            self.flags.append(flag)
            self._open |= {e.group: flag for e in started}
        return decided

    def _make_decision(self, event: Any, batch: int, moment: EventContext) -> Decision | None:
        text, kind = event.describe_decision(moment), type(event).__name__
        label = f"{kind} {getattr(event, 'stream', '')} {getattr(event, 'group', '')}"
        if not text or self._last_texts.get(label) == text:
            return None
        self._last_texts[label] = text
        return Decision(batch, kind, text)

    def _label_change(self, event: Any) -> tuple[str, str] | None:
        """Return a label for a changed budget of shedding, or for slices shared out anew."""
        if isinstance(event, ChainChanged):
            is_known = self._slice_ends.get(event.stream) == event.slice_ends
            self._slice_ends[event.stream] = event.slice_ends
            return ("change", "shared out anew") if is_known else None
        if not isinstance(event, SheddingPlanned):
            return None
        budget, before = (event.budget, event.budget_amount), self._budget
        self._budget = budget
        if before in (None, budget):
            return None
        amount = f"{budget[1]:.0%}" if budget[0] == "fraction" else f"{budget[1]:g} {budget[0]}"
        return "change", _shorten(f"budget {amount}")


def _join_texts(head: str, texts: Sequence[str]) -> str:
    """Return a sentence of at most ``LONGEST`` characters; the last texts are only counted."""
    for n in range(len(texts), 0, -1):
        rest = "; ".join([*texts[:n], *[f"and {len(texts) - n} more"] * (n < len(texts))])
        if len(head + rest) <= LONGEST:
            return head + rest
    return f"{(head + texts[0])[: LONGEST - 1]}…"


def _choose_label(labels: list[tuple[str, str]]) -> tuple[str, str]:
    """Return the kind and label of a batch: of its first fault, else change, else query."""
    faults, changes = ([one for one in labels if one[0] == kind] for kind in ("fault", "change"))
    if not faults and not changes and len(labels) > 1:
        return "query", f"{len(labels)} queries"
    return next(iter([*faults, *changes, *labels]), ("minor", ""))


def _make_label(event: Any) -> tuple[str, str] | None:
    """Return the kind and the label of the flag of an event; None for a minor one."""
    match event:
        case MappingChanged() if event.previous_mapping != event.mapping:
            (n, m), (k, j) = event.previous_mapping, event.mapping
            return "change", f"{n}×{m} → {k}×{j}"
        case RingResized():
            return "change", f"{event.previous_nodes} → {format_count(event.nodes, 'node')}"
        case MasterSwitched():
            return "change", "new master"
        case ChainChanged():
            return "change", format_count(len(event.slice_ends), "slice")
        case QueryAdded() | hub.QuerySubmitted():
            return "query", _shorten(f"+ {event.name}")
        case QueryRemoved() | hub.QueryEnded():
            return "query", _shorten(f"- {event.name}")
        case hub.OperatorMoved():
            return "change", _shorten(f"⋈{event.operator} → {event.target_node}")
        case HostLost():
            return "fault", f"host {event.host} lost"
        case SettingChanged():
            return "change", _shorten(f"{event.name} {event.after:g}")
        case hub.NodeFailed():
            return "fault", _shorten(f"{event.node} fails")
        case hub.NodeRestored():
            return "change", _shorten(f"{event.node} is back")
        case RunEnded() if event.outcome == "failed":
            return "fault", "failed"
    return None


def _shorten(label: str) -> str:
    return label if len(label) <= 16 else f"{label[:15]}…"
