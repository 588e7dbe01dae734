"""The decisions of a run as flags of the time line: label, sentence and duration of each."""

from __future__ import annotations

from collections import deque
from typing import Any, TypedDict

from braid.core.run_events import (
    BatchCommitted,
    QueryAdded,
    QueryRemoved,
    RunEnded,
)
from braid.core.touch_events import HostLost, SettingChanged
from braid.papers.diffusion.run_events import MasterSwitched
from braid.papers.psp.run_events import RingResized
from braid.papers.reuse.hub_events import (
    NodeFailed,
    NodeRestored,
    OperatorMoved,
    QueryEnded,
    QuerySubmitted,
)
from braid.papers.shedding.run_events import SheddingPlanned
from braid.papers.slices.run_events import ChainChanged
from braid.papers.theta.run_events import MappingChanged, MigrationEnded, MigrationStarted

from braid_widgets.base.run_view import HISTORY
from braid_widgets.cockpit.decision_sentences import DecisionCollector, describe_batch_decisions


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


class FlagCollector:
    """A collector of flags. Pass the events of a run to ``apply_event``, in order."""

    def __init__(self) -> None:
        self.flags: deque[Annotation] = deque(maxlen=HISTORY)
        self._decisions = DecisionCollector()
        self._batch_events: list[Any] = []
        self._budget: tuple[str, float] | None = None
        self._budget_labels: list[tuple[str, str]] = []
        self._open: dict[int, Annotation] = {}

    def apply_event(self, event: Any) -> None:
        """Fold in an event."""
        self._batch_events.append(event)
        if isinstance(event, SheddingPlanned):
            self._label_budget(event)
        if isinstance(event, MigrationEnded) and event.group in self._open:
            self._open.pop(event.group)["end"] = event.batch + 1
        if decided := self._decisions.collect(event):
            labels = [label for e in self._batch_events if (label := _make_label(e))]
            labels += self._budget_labels
            started = [e for e in self._batch_events if isinstance(e, MigrationStarted)]
            kind, short = _choose_label(labels)
            flag: Annotation = {
                "batch": decided[0].batch + 1,
                "end": None,
                "short": short,
                "text": describe_batch_decisions(decided[0].batch, decided),
                "kind": kind,
                "rows": sum(e.tuples_to_copy for e in started),
                "lost": [e.host for e in self._batch_events if isinstance(e, HostLost)],
            }
            self.flags.append(flag)
            self._open |= {e.group: flag for e in started}
        if isinstance(event, (BatchCommitted, RunEnded)):
            self._batch_events, self._budget_labels = [], []

    def _label_budget(self, event: SheddingPlanned) -> None:
        """Add a label if somebody has changed the budget of shedding since the last batch."""
        budget = event.budget, event.budget_amount
        if self._budget not in (None, budget):
            amount = f"{budget[1]:.0%}" if budget[0] == "fraction" else f"{budget[1]:g} {budget[0]}"
            self._budget_labels.append(("change", _shorten(f"budget {amount}")))
        self._budget = budget


def _choose_label(labels: list[tuple[str, str]]) -> tuple[str, str]:
    """Return the kind and label of a batch: of its first fault, else change, else query."""
    if not labels:
        return "minor", ""
    changes = [label for label in labels if label[0] != "query"]
    if not changes and len(labels) > 1:
        return "query", f"{len(labels)} queries"
    faults = [label for label in changes if label[0] == "fault"]
    return (faults or changes or labels)[0]


def _make_label(event: Any) -> tuple[str, str] | None:
    """Return the kind and the label of the flag of an event; None for a minor one."""
    match event:
        case MappingChanged() if event.previous_mapping != event.mapping:
            (n, m), (k, j) = event.previous_mapping, event.mapping
            return "change", f"{n}×{m} → {k}×{j}"
        case RingResized():
            return "change", _shorten(f"{event.nodes} nodes")
        case MasterSwitched():
            return "change", "new master"
        case ChainChanged():
            return "change", f"{len(event.slice_ends)} slices"
        case QueryAdded() | QuerySubmitted():
            return "query", _shorten(f"+ {event.name}")
        case QueryRemoved() | QueryEnded():
            return "query", _shorten(f"- {event.name}")
        case OperatorMoved():
            return "change", _shorten(f"{event.operator} → {event.target_node}")
        case HostLost():
            return "fault", f"host {event.host} lost"
        case SettingChanged():
            return "change", _shorten(f"{event.name} {event.after:g}")
        case NodeFailed():
            return "fault", _shorten(f"{event.node} fails")
        case NodeRestored():
            return "change", _shorten(f"{event.node} is back")
        case RunEnded() if event.outcome == "failed":
            return "fault", "failed"
    return None


def _shorten(label: str) -> str:
    return label if len(label) <= 16 else f"{label[:15]}…"
