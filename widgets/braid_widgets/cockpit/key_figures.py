"""The strip of key figures of a run after one of its batches, as text."""

from __future__ import annotations

from collections.abc import Iterator

from braid.core.run_events import BatchShed

from braid_widgets.base.batch_figures import BatchFigures
from braid_widgets.base.key_figures import RECENT, KeyFigure
from braid_widgets.base.run_view import RunView


class SheddingTotals:
    """Totals of a run that sheds load: results produced, and the estimated results of the full
    join.
    """

    def __init__(self) -> None:
        self.found = self.estimated = 0.0
        self.seen = False

    def add_batch(self, event: BatchShed, results: int) -> None:
        """Add a batch."""
        self.seen = True
        self.found += results
        self.estimated += event.estimated_results

    @property
    def estimated_recall(self) -> float:
        """Return the share of all results that was produced, as estimated from weights."""
        return min(1.0, self.found / self.estimated) if self.estimated else 1.0


def strip_figures(scene: RunView, shed_totals: SheddingTotals) -> list[KeyFigure]:
    """Return the key figures after the last commit. Times are included only if they were
    measured.
    """
    return [*_make_key_figures(scene, shed_totals)]


def _make_key_figures(scene: RunView, shed_totals: SheddingTotals) -> Iterator[KeyFigure]:
    if scene.last is None or not scene.points:
        return
    now, totals = scene.points[-1], scene.totals
    recent = [p for p in list(scene.points)[-RECENT:] if p.seconds > 0]
    if recent:
        rate = sum(p.received for p in recent) / sum(p.seconds for p in recent)
        meaning = f"tuples in by seconds of the batches, over the last {len(recent)}"
        yield KeyFigure("tuples in", f"{rate:,.0f}/s", meaning)
    if scene.is_modelled:
        yield KeyFigure(
            "tuples in so far", f"{sum(totals.received):,}", "of all streams (modelled)"
        )
    results = f"{totals.results:,}"
    yield KeyFigure(
        "results so far",
        results + (" (modelled)" if scene.is_modelled else ""),
        f"{now.results:,} of them in this batch",
    )
    size = f" · {totals.stored_bytes / 1e6:,.1f} MB" if totals.stored_bytes else ""
    yield KeyFigure("state", f"{totals.stored:,} tuples{size}", "held by all hosts, with replicas")
    yield KeyFigure("fullest / mean host", _format_imbalance(now), "tuples stored; 1 is even")
    if now.seconds > 0:
        yield KeyFigure("batch took", f"{now.seconds:,.2f} s", "wall-clock from plan to next state")
    moved = f"{now.migrated_tuples:,} in this batch"
    far = f"from batch {totals.since} on" if totals.since else "so far"
    if totals.moved:
        yield KeyFigure(f"moved {far}", f"{totals.moved:,} tuples", f"between hosts; {moved}")
    if totals.late:
        yield KeyFigure(f"late {far}", f"{totals.late:,} tuples", "they may have missed partners")
    if shed_totals.seen:
        meaning = "results found / results of the full join, as estimated by their weights"
        yield KeyFigure("recall so far", f"{shed_totals.estimated_recall:.1%}", meaning)


def _format_imbalance(now: BatchFigures) -> str:
    return f"{now.ilf_max / now.ilf:.2f}" if now.ilf else "no state yet"
