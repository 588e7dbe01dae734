"""The timeline: ILF/ILF* with its bound, migrations, |R|/|S|, measured rates and batch phases.

Source: Elseidy 2014, figure 5k.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product
from math import isfinite
from typing import Any

import pandas as pd
import plotly.graph_objects as go
from braid.core.batch_history import PHASES
from braid.core.run_events import BatchCommitted, RunStarted
from plotly.subplots import make_subplots

from braid_widgets.base import colors
from braid_widgets.base.batch_figures import BatchFigures
from braid_widgets.base.charts import TEMPLATE, Chart
from braid_widgets.base.run_view import RunView
from braid_widgets.base.text import MODELLED

CAP = 2.0
"""Maximum of the ratio axis. Before both streams flow, the ratio of a mapping can be as large
as J.
"""


def batch_figures(events: Iterable[Any]) -> list[BatchFigures]:
    """Return the figures of every batch of a run of any length."""
    scene, points = RunView(), []
    for event in events:
        scene.apply_event(event)
        if isinstance(event, BatchCommitted):
            points.append(scene.points[-1])
    return points


def migration_ranges(points: Sequence[BatchFigures]) -> list[tuple[int, int]]:
    """Return the batches [first, last] of each migration."""
    ranges: list[tuple[int, int]] = []
    for p in points:
        if p.migrating and ranges and ranges[-1][1] == p.batch - 1:
            ranges[-1] = (ranges[-1][0], p.batch)
        elif p.migrating:
            ranges.append((p.batch, p.batch))
    return ranges


def _has_grid(points: Sequence[BatchFigures]) -> bool:
    return any(p.ilf_mapping is not None for p in points)


def _format_title(points: Sequence[BatchFigures], modelled: bool) -> str:
    first = "How even the load is"
    if _has_grid(points):
        first = "ILF of the grid / ILF* of an oracle"
        bounded = any(p.bound is not None for p in points)
        first += " · dashed: what Theorem 4.1 allows" if bounded else ""
        first += " · shaded: migrating"
    return first + (f" · {MODELLED}" if modelled else " · measured rates")


def _ratio_name(gridded: bool) -> str:
    return "ILF / ILF*" if gridded else "most stored / ILF*"


def _choose_ratios(points: Sequence[BatchFigures], gridded: bool) -> list[float | None]:
    return _round_values(p.ratio if gridded else p.stored_ratio for p in points)


def _compute_stream_ratio(p: BatchFigures) -> float:
    return p.live[0] / p.live[1] if len(p.live) > 1 and p.live[1] else float("nan")


def _round_values(values: Iterable[float]) -> list[float | None]:
    """Return values with four significant digits; None for NaN, which JSON does not have."""
    return [float(f"{v:.4g}") if isfinite(v) else None for v in values]


def timeline_table(events: Iterable[Any]) -> pd.DataFrame:
    """Return one row per batch: all of ``BatchFigures``, with phases, ratios and rates as
    columns.
    """
    columns = ("stored_ratio", "rows_per_second", "results_per_second")
    fields = [name for name in BatchFigures.__dataclass_fields__ if name != "seconds_by_phase"]
    rows = [
        {c: getattr(p, c) for c in (*fields, *columns)} | dict(p.seconds_by_phase)
        for p in batch_figures(events)
    ]
    return pd.DataFrame(rows, columns=[*fields, *columns, *PHASES])


def timeline_chart(events: Iterable[Any]) -> Chart:
    """Return the timeline of a whole run.

    The lower panels (measured rates, and seconds by phase if known) are left out for a modelled
    run.
    """
    events = list(events)
    scene, points = _make_start_view(events), batch_figures(events)
    gridded, rows = _has_grid(points), 1 if scene.is_modelled else 2
    timed = not scene.is_modelled and any(p.seconds_by_phase for p in points)
    rows += timed
    plot = make_subplots(
        rows, 1, shared_xaxes=True, vertical_spacing=0.1, specs=[[{"secondary_y": True}]] * rows
    )
    x, names = [p.batch + 1 for p in points], [*scene.stream_aliases[:2], "R", "S"]
    ratios = _choose_ratios(points, gridded)
    sizes = _round_values(map(_compute_stream_ratio, points))
    curves = [
        (sizes, f"|{names[0]}| / |{names[1]}|", colors.SIDES, 1, True),
        (ratios, _ratio_name(gridded), colors.RATIO, 1, False),
    ]
    if not scene.is_modelled:
        arriving = _round_values(p.rows_per_second for p in points)
        results = _round_values(p.results_per_second for p in points)
        curves.append((arriving, "tuples in per second", colors.THROUGHPUT, 2, False))
        curves.append((results, "results per second", colors.RESULTS, 2, True))
    for values, name, colour, row, is_right in curves:
        _draw_curve(plot, x, values, name, colour, row, is_right)
    if gridded:
        highest = max([1.3, *(min(CAP, 1.02 * v) for v in ratios if v is not None)])
        _draw_ratio_bound(plot, points, highest)
    if timed:
        _draw_phases(plot, points, rows)
    shade = dict(fillcolor=colors.MIGRATION, opacity=0.25, line_width=0)
    for (first, last), row in product(migration_ranges(points), range(1, rows + 1)):
        plot.add_vrect(first + 0.5, last + 1.5, row=row, col=1, **shade)
    plot.update_xaxes(title="batch", row=rows, col=1)
    plot.update_layout(
        template=TEMPLATE,
        title=dict(text=_format_title(points, scene.is_modelled), font=dict(size=15)),
    )
    plot.update_layout(showlegend=False, height=140 + 180 * rows, margin=dict(t=60, b=50))
    return Chart("time line", plot, timeline_table(events))


def _draw_phases(plot: go.Figure, points: Sequence[BatchFigures], row: int) -> None:
    """Draw the seconds of every batch, stacked by phase; the sum is the batch."""
    x = [p.batch + 1 for p in points if p.seconds_by_phase]
    for part, colour in colors.PARTS.items():
        seconds = [p.seconds_by_phase[part] for p in points if p.seconds_by_phase]
        plot.add_trace(go.Bar(x=x, y=seconds, name=part, marker_color=colour), row=row, col=1)
    title = " + ".join(
        f'<span style="color:{c}">■</span> {part}' for part, c in colors.PARTS.items()
    )
    plot.update_layout(barmode="stack", bargap=0.15)
    plot.update_yaxes(title="seconds", row=row, col=1, secondary_y=False)
    place = dict(x=0, y=1.02, xref="x domain", yref="y domain", yanchor="bottom", showarrow=False)
    plot.add_annotation(text=f"seconds a batch: {title}", row=row, col=1, **place)


def _draw_ratio_bound(plot: go.Figure, points: Sequence[BatchFigures], top: float) -> None:
    """Draw the bound of Theorem 4.1, batch by batch, as it is checked."""
    bound = _round_values(float("nan") if p.bound is None else p.bound for p in points)
    seen = max([top, *(min(CAP, 1.02 * b) for b in bound if b is not None)])
    plot.update_yaxes(range=[0.98, seen], row=1, col=1, secondary_y=False)
    if not any(bound):
        return
    line = dict(color=colors.BOUND, dash="dash", shape="hvh")
    allowed = go.Scatter(
        x=[p.batch + 1 for p in points], y=bound, name="bound", mode="lines", line=line
    )
    plot.add_trace(allowed, row=1, col=1, secondary_y=False)


def _make_start_view(events: Iterable[Any]) -> RunView:
    scene = RunView()
    for event in events:
        if isinstance(event, RunStarted):
            scene.apply_event(event)
    return scene


def _draw_curve(
    plot: go.Figure,
    x: list[int],
    y: list[float | None],
    name: str,
    colour: str,
    row: int,
    right: bool,
) -> None:
    line = go.Scatter(
        x=x,
        y=y,
        name=name,
        mode="lines" if len(x) > 1 else "markers",
        line=dict(color=colour, width=2),
    )
    plot.add_trace(line, row=row, col=1, secondary_y=right)
    plot.update_yaxes(
        title=dict(text=name, font=dict(color=colour)),
        rangemode="tozero",
        row=row,
        col=1,
        secondary_y=right,
    )
    if right:
        plot.update_yaxes(
            showgrid=False, tickmode="auto", nticks=5, row=row, col=1, secondary_y=True
        )
