"""The tracks of the time line: seconds by phase, and rows on the fullest host, batch by batch."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite, nan
from typing import TypedDict

from braid.core.batch_history import PHASES

from braid_widgets.base.batch_figures import BatchFigures
from braid_widgets.base.run_view import RunView
from braid_widgets.base.track_records import Series, Track, make_series, make_track

PHASE_NAMES = dict(
    zip(PHASES, ("read the source", "plan", "send rows", "join", "commit"), strict=True)
)
"""Names of the phases of a batch in plain words."""


class TimelineFrame(TypedDict):
    """The time line: ``batch`` lists the batches, from 1; ``last`` is the last planned one."""

    batch: list[int]
    last: int
    tracks: list[Track]


def make_timeline(
    scene: RunView, baselines: Sequence[Series], tops: dict[str, float], more: Sequence[Track] = ()
) -> TimelineFrame:
    """Return the time line of the retained batches.

    - ``baselines``: modelled curves of other placements, drawn beside the fullest host.
    - ``tops``: the scales so far, by name of the track; they are updated.
    - ``more``: tracks of the map or the answers. Lines replace those of the fullest host,
      except beside baselines. A heat track comes last.
    """
    points = list(scene.points)
    batches = [p.batch + 1 for p in points]
    limit = scene.start.interval_seconds if scene.start else None
    if any(p.seconds_by_phase for p in points):
        tracks = [_make_seconds_track(points, batches, limit)]
    else:
        tracks = [_make_arrivals_track(points, batches)]
    lines = [track for track in more if track["kind"] != "heat"]
    tracks += lines
    if baselines or not lines:
        tracks.append(_make_load_track(points, batches, baselines))
    tracks += [track for track in more if track["kind"] == "heat"]
    for track in tracks:
        track["top"] = tops[track["name"]] = max(tops.get(track["name"], 0.0), _find_top(track))
    planned = scene.start.planned_batches or 1 if scene.start else 1
    return {"batch": batches, "last": planned, "tracks": tracks}


def _make_seconds_track(
    points: Sequence[BatchFigures], batches: list[int], limit: float | None
) -> Track:
    series = [
        make_series(name, phase, batches, [p.seconds_by_phase.get(phase, nan) for p in points])
        for phase, name in PHASE_NAMES.items()
    ]
    return make_track("seconds a batch", "bars", "s", series, limit)


def _make_arrivals_track(points: Sequence[BatchFigures], batches: list[int]) -> Track:
    rows_in = make_series("rows in", "main", batches, [p.received for p in points])
    sent = make_series("copies sent", "mean", batches, [p.sent for p in points])
    return make_track("rows in, copies sent", "lines", "rows", [rows_in, sent], None)


def _make_load_track(
    points: Sequence[BatchFigures], batches: list[int], baselines: Sequence[Series]
) -> Track:
    series = [
        make_series("fullest host", "main", batches, [p.ilf_max for p in points]),
        make_series("mean", "mean", batches, [p.ilf for p in points]),
    ]
    stayed = [nan if p.ilf_before is None else p.ilf_before for p in points]
    if any(map(isfinite, stayed)):
        series.append(make_series("had the grid not changed", "baseline", batches, stayed))
    return make_track("rows, fullest host", "lines", "rows", [*series, *baselines], None)


def _find_top(track: Track) -> float:
    """Return the greatest value of a track, and its limit unless that is far above all values."""
    columns = [[v or 0.0 for v in series["values"]] for series in track["series"]]
    if track["kind"] == "bars":
        top = max((sum(column) for column in zip(*columns, strict=True)), default=0.0)
    else:
        top = max((max(values, default=0.0) for values in columns), default=0.0)
    limit = track["limit"] or 0.0
    return limit if top < limit <= 5 * top else top
