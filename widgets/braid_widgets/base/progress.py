"""The progress of a run as one line for a notebook or a console."""

from __future__ import annotations

from braid.util.durations import UNITS, format_duration

from braid_widgets.base.run_view import RunView
from braid_widgets.base.text import MODELLED

FINISHING = "input done, finishing a migration"


def input_batches(scene: RunView) -> int:
    """Return the number of finished batches that had input.

    The others only change queries or slices, or finish a migration after the end of the input.
    """
    done = scene.last.batch + 1 - scene.changes if scene.last else 0
    planned = scene.start.planned_batches if scene.start else None
    return done if planned is None else min(done, planned)


def is_finishing(scene: RunView) -> bool:
    """Return whether all input is processed while a migration is still running."""
    planned = scene.start.planned_batches if scene.start else None
    return (
        planned is not None
        and input_batches(scene) == planned
        and bool(scene.migrating)
        and scene.end is None
    )


def progress_line(scene: RunView, live: bool = True) -> str:
    """Return the finished and total batches, tuples per second and, for a live run, the time left.

    The rate and the time left are absent if time was not measured. The time left is estimated from
    the intervals between batches.
    """
    if scene.start is None:
        return "nothing has started"
    planned = scene.start.planned_batches
    done = input_batches(scene)
    parts = [
        f"batch {done:,} of {planned:,} ({done / planned:.0%})" if planned else f"batch {done:,}"
    ]
    if is_finishing(scene):
        parts.append(FINISHING)
    last = None if planned is None else planned + scene.changes
    timed = [
        p
        for p in scene.points
        if p.seconds == p.seconds and p.seconds > 0 and (last is None or p.batch < last)
    ]
    if timed:
        recent = timed[-10:]
        seconds = sum(p.seconds for p in recent)
        parts.append(f"{sum(p.received for p in recent) / seconds:,.0f} tuples/s")
        if planned and planned > done and live and scene.end is None:
            left = None if scene.pace is None else scene.pace.seconds_left(planned)
            left = seconds / len(recent) * (planned - done) if left is None else left
            parts.append(f"{format_duration(round(left) * UNITS['second'])} left")
    if scene.is_modelled:
        parts.append(MODELLED)
    if scene.end is not None:
        parts.append(scene.end.outcome + (f": {scene.end.error}" if scene.end.error else ""))
    return " · ".join(parts)
