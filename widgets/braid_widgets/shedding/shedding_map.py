"""The state map of a join that sheds load: which pairs are compared, and what they are worth.

Source: Gedik 2007, sections 4 and 5.
"""

from __future__ import annotations

from collections import deque
from math import sqrt
from typing import Any, NamedTuple, TypedDict

from braid.core.run_events import BatchCommitted, BatchShed
from braid.papers.shedding.run_events import SheddingPlanned, ShedItem

from braid_widgets.base.columnar import Columns
from braid_widgets.base.run_view import HISTORY, RunView
from braid_widgets.base.state_maps import StateMap
from braid_widgets.base.track_records import Track, make_series, make_track

SETTLED = 30
"""Results from which on the learned matches set the scale; earlier ones rest on too few."""


class ShedBar(NamedTuple):
    """New rows of ``stream`` against the old rows of ``window`` in one age slice (0: youngest).

    - ``pairs``: pairs of the batch, expected.
    - ``matches``: learned matches of 1,000 pairs.
    - ``share``: share of the pairs that is compared; the mean of all types, of tuples that are
      skipped at arrival too.
    """

    stream: int
    window: int
    age_slice: int
    pairs: float
    matches: float
    share: float


class SheddingFrame(TypedDict):
    """The shares of a batch and what they found.

    - ``lengths``: by stream, microseconds of an age slice; 0: they differ.
    - ``is_learned``: whether any match has been seen; else all pairs count alike.
    - ``work``: share of the pairs that is compared, as planned.
    - ``recall``: share of the results that is found, as estimated; ``work`` if no result is.
    - ``results``, ``estimated``: results of the batch, and those of the full join as estimated.
    - ``margin``: half of the 95 % interval of the estimate; null if unknown.
    - ``scale_max``: matches of a full bar. Frames shown together use the maximum.
    """

    streams: list[str]
    lengths: list[int]
    items: Columns[ShedBar]
    is_learned: bool
    work: float
    recall: float
    results: int
    estimated: float
    margin: float | None
    scale_max: float


class SheddingMap(StateMap):
    """The state map of runs that leave out pairs."""

    name = "shedding"
    rank = 3
    shown_kinds = (SheddingPlanned,)

    def __init__(self, scene: RunView) -> None:
        super().__init__(scene)
        self._results: deque[tuple[int, int, float]] = deque(maxlen=HISTORY)

    def apply_event(self, event: Any) -> None:
        shed = self.scene.find_latest(BatchShed)
        if isinstance(event, BatchCommitted) and shed is not None:
            self._results.append((event.batch + 1, event.results, shed.estimated_results))

    def make_frame(self) -> SheddingFrame:
        plan, shed = self.scene.find_latest(SheddingPlanned), self.scene.find_latest(BatchShed)
        items = plan.items if plan else ()
        learned = any(item.expected_matches != 1 for item in items)
        bars = [_make_shed_bar(item, plan.kept_pair_share) for item in items] if plan else []
        settled = learned and self.scene.totals.results >= SETTLED
        variance, work = shed.variance if shed else None, round(plan.fraction, 4) if plan else 1.0
        results, estimated = self.last.results, shed.estimated_results if shed else 0.0
        return {
            "streams": list(self.scene.stream_aliases),
            "lengths": [length or 0 for length in plan.basic_window_lengths] if plan else [],
            "items": Columns.from_records(ShedBar, bars),
            "is_learned": learned,
            "work": work,
            "recall": round(min(1.0, results / estimated), 4) if estimated else work,
            "results": results,
            "estimated": round(estimated, 1),
            "margin": None if variance is None else round(1.96 * sqrt(variance), 1),
            "scale_max": max((bar.matches for bar in bars), default=0) if settled else 0,
        }

    def make_tracks(self) -> list[Track]:
        """Return the results found beside those of the full join."""
        batches = [batch for batch, *_ in self._results]
        results = make_series("found", "main", batches, [n for _, n, _ in self._results])
        estimates = make_series(
            "full join, estimated", "baseline", batches, [n for *_, n in self._results]
        )
        return [make_track("results found", "lines", "results", [results, estimates], None)]


def _make_shed_bar(item: ShedItem, kept_share: float) -> ShedBar:
    share = sum(item.shares) / len(item.shares)
    return ShedBar(
        item.stream,
        item.window,
        item.basic_window,
        round(item.pairs / kept_share, 1),
        float(f"{1000 * item.expected_matches:.5g}"),
        round(share * kept_share, 4),
    )
