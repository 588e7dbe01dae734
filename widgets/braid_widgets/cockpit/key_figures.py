"""The strip of key figures of a run after one of its batches, as text."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from braid.util.machine import format_bytes

from braid_widgets.base.batch_figures import BatchFigures
from braid_widgets.base.key_figures import RECENT, KeyFigure
from braid_widgets.base.run_view import RunView

LATENCY = 5
"""Number of latest batches whose median is the latency."""


def make_key_figures(
    scene: RunView, recall: float | None, first: KeyFigure | None
) -> Iterator[KeyFigure]:
    """Yield the key figures after the last commit. Times are included only if they were measured.

    - ``recall``: share of all results that was produced, as estimated; None if no load is shed.
    - ``first``: the figure of the map.
    """
    if scene.last is None or not scene.points:
        return
    now, totals = scene.points[-1], scene.totals
    recent = [p for p in list(scene.points)[-RECENT:] if p.seconds > 0]
    if recent:
        rate = sum(p.received for p in recent) / sum(p.seconds for p in recent)
        meaning = f"rows in by seconds of the batches, over the last {len(recent)}"
        yield KeyFigure("rows/s the join takes", f"{rate:,.0f}", meaning)
    else:
        yield KeyFigure("rows in so far", f"{sum(totals.received):,}", "of all streams")
    yield KeyFigure(
        "results so far", f"{totals.results:,}", f"{now.results:,} of them in this batch"
    )
    held = f"{totals.stored:,} rows held by all hosts, with replicas"
    if totals.stored_bytes and not scene.is_modelled:  # a model has rows of one byte
        yield KeyFigure("state, all copies", format_bytes(totals.stored_bytes), held)
    else:
        yield KeyFigure("rows, all copies", f"{totals.stored:,}", held)
    if now.seconds > 0:
        latest = [p.seconds for p in list(scene.points)[-LATENCY:] if p.seconds > 0]
        meaning = f"median of {len(latest)} batches, from plan to next state"
        yield KeyFigure("latency of a batch", f"{median(latest):,.2f} s", meaning)
    if recall is not None:
        meaning = "results found / results of the full join, as estimated by their weights"
        yield KeyFigure("recall so far", f"{recall:.1%}", meaning)
    yield first or KeyFigure(
        "fullest / mean host", _format_imbalance(now), "rows stored; 1 is even"
    )
    moved = f"{now.migrated_tuples:,} in this batch"
    if totals.moved:
        yield KeyFigure("rows moved so far", f"{totals.moved:,}", f"between hosts; {moved}")
    if totals.late:
        yield KeyFigure("late rows so far", f"{totals.late:,}", "they may have missed partners")


def _format_imbalance(now: BatchFigures) -> str:
    return f"{now.ilf_max / now.ilf:.2f}" if now.ilf else "no state yet"
