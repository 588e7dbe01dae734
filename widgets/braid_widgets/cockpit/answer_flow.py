"""The answers of an outer, semi, anti or as-of join: rows that wait, and those answered."""

from __future__ import annotations

from collections import Counter, deque
from typing import Any, TypedDict

from braid.core.answer_events import TuplesAnswered

from braid_widgets.base.run_view import HISTORY, RunView
from braid_widgets.base.track_records import Track, make_series, make_track


class AnswerFlow(TypedDict):
    """Rows of one preserved stream after a batch.

    - ``stream``: its index; ``name``: its alias.
    - ``held``: rows held; ``waiting``: those of them that a later row may still match.
    - ``answered``, ``unmatched``: answered in the batch, and those without a partner.
    - ``total_answered``, ``total_unmatched``: the same since the first of the events.
    """

    stream: int
    name: str
    held: int
    waiting: int
    answered: int
    unmatched: int
    total_answered: int
    total_unmatched: int


class AnswerCollector:
    """A collector of answers. Pass the events of a run to ``apply_event``, after ``scene``."""

    def __init__(self, scene: RunView) -> None:
        self._scene = scene
        self._answered: Counter[int] = Counter()
        self._unmatched: Counter[int] = Counter()
        self._history: deque[tuple[int, int, int]] = deque(maxlen=HISTORY)

    def apply_event(self, event: Any) -> None:
        """Fold in an event; only answers matter."""
        if isinstance(event, TuplesAnswered):
            self._answered.update(dict(enumerate(event.answered)))
            self._unmatched.update(dict(enumerate(event.unmatched)))
            self._history.append((event.batch + 1, sum(event.waiting), sum(event.unmatched)))

    def list_flows(self) -> list[AnswerFlow]:
        """Return the flow of each stream that had rows to answer; none for an inner join."""
        last, commit = self._scene.find_latest(TuplesAnswered), self._scene.last
        if last is None or commit is None:
            return []
        return [
            {
                "stream": stream,
                "name": name,
                "held": commit.live_tuples[stream],
                "waiting": last.waiting[stream],
                "answered": last.answered[stream],
                "unmatched": last.unmatched[stream],
                "total_answered": self._answered[stream],
                "total_unmatched": self._unmatched[stream],
            }
            for stream, name in enumerate(self._scene.stream_aliases)
            if last.waiting[stream] or self._answered[stream]
        ]

    def list_tracks(self) -> list[Track]:
        """Return the track of rows that wait, and of answers without a partner, of all streams."""
        if not self._history:
            return []
        batches = [batch for batch, *_ in self._history]
        waiting = make_series("wait", "main", batches, [n for _, n, _ in self._history])
        alone = make_series("without a partner", "mean", batches, [n for *_, n in self._history])
        return [make_track("rows that wait", "lines", "rows", [waiting, alone], None)]
