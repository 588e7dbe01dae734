"""Charts of a join that sheds load, as functions of its events. Source: Gedik 2007."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import sqrt
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from braid.core.run_events import BatchCommitted, BatchPlanned, BatchShed, RunStarted
from braid.papers.shedding.run_events import SheddingPlanned
from braid.util.durations import format_duration
from plotly.subplots import make_subplots

from braid_widgets.base import colors
from braid_widgets.base.charts import TEMPLATE, Chart

PALE = 0.3
"""Opacity of what is not processed."""
_ENOUGH = 30
"""Minimum number of sampled results for a useful interval; batches are grouped until they have as
many.
"""


def _find_start_event(events: Sequence[Any]) -> RunStarted:
    start = next((e for e in events if isinstance(e, RunStarted)), None)
    if start is None or not any(isinstance(e, SheddingPlanned) for e in events):
        raise ValueError("the events are not of a run that sheds load")
    return start


def data_origin(start: RunStarted) -> str:
    """Return the origin of a run's figures: modelled or measured."""
    return "modelled" if start.time_source == "modelled" else "measured"


def shedding_table(events: Iterable[Any]) -> pd.DataFrame:
    """Return one row per batch and item of its harvest.

    - direction and basic window of the item.
    - ``output``: learned matches per thousand pairs; NaN before any match.
    - ``volume``: pairs.
    - ``share``: share of the pairs processed.
    """
    events = list(events)
    names = _find_start_event(events).streams
    planned = [e for e in events if isinstance(e, SheddingPlanned)]
    learned = {e.batch for e in planned if any(i.expected_matches != 1.0 for i in e.items)}
    rows = [
        (
            e.batch,
            f"{names[i.stream]} against the window of {names[i.window]}",
            i.basic_window,
            1000 * i.expected_matches if e.batch in learned else np.nan,
            i.pairs,
            float(np.mean(i.shares)),
        )
        for e in planned
        for i in e.items
    ]
    columns = ["batch", "direction", "basic", "output", "volume", "share"]
    return pd.DataFrame(rows, columns=columns)


def shedding_animation(events: Iterable[Any], played: bool = True) -> Chart:
    """Return a chart of the harvest, batch by batch, with a slider.

    It shows the learned productivity by age of the basic window (the newest is 0), filled to the
    processed share. Unless ``played``, it shows only the last batch, without a slider.
    """
    events = list(events)
    start, data = _find_start_event(events), shedding_table(events)
    ways = sorted(data["direction"].unique())
    plot = make_subplots(1, len(ways), subplot_titles=ways, shared_yaxes=True)
    batches = sorted(data["batch"].unique())
    fractions = {e.batch: e.fraction for e in events if isinstance(e, SheddingPlanned)}
    last = batches[-1]
    for column, _ in enumerate(ways, 1):
        for trace in _make_direction_bars(
            data[data["batch"] == last], ways[column - 1], column == 1
        ):
            plot.add_trace(trace, row=1, col=column)
    if played:
        plot.frames = [
            go.Frame(
                name=str(b),
                data=[
                    t
                    for way in ways
                    for t in _make_direction_bars(data[data["batch"] == b], way, False)
                ],
                layout=dict(title=_format_title(start, b, fractions[b])),
            )
            for b in batches
        ]
        plot.update_layout(sliders=[_make_slider(batches)])
    plot.update_layout(
        template=TEMPLATE,
        title=_format_title(start, last, fractions[last]),
        barmode="overlay",
        height=460,
        margin=dict(t=120),
        legend=dict(orientation="h", y=1.36, yanchor="top", x=1, xanchor="right"),
    )
    plot.update_xaxes(title=f"age, in basic windows{_format_window_length(events)}")
    # The first estimates rest on few matches and may be far too high.
    settled = data[data["batch"] >= batches[len(batches) // 2]]["output"]
    most = float(np.nanmax([*settled, 1e-9]))
    plot.update_yaxes(title="matches of 1000 pairs (learned)", col=1)
    plot.update_yaxes(range=[0, 1.05 * most])
    return Chart("harvest", plot, data)


def _make_slider(batches: Sequence[int]) -> dict[str, Any]:
    """Return a slider through the frames of these batches, set to the last."""
    at_once = dict(mode="immediate", frame=dict(duration=0, redraw=True))
    steps = [dict(method="animate", label=str(b + 1), args=[[str(b)], at_once]) for b in batches]
    layout = dict(currentvalue=dict(prefix="batch "), pad=dict(t=46))
    return dict(steps=steps, active=len(batches) - 1, **layout)


def _format_title(start: RunStarted, batch: int, fraction: float) -> str:
    return f"Batch {batch + 1}: r = {fraction:.2f} of all pairs processed ({data_origin(start)})"


def _format_window_length(events: Sequence[Any]) -> str:
    """Return the length of basic windows, if it is the same for both streams."""
    lengths = next(e.basic_window_lengths for e in events if isinstance(e, SheddingPlanned))
    first = lengths[0]
    return f" of {format_duration(first)}" if first and set(lengths) == {first} else ""


def _make_direction_bars(rows: pd.DataFrame, way: str, legend: bool) -> list[Any]:
    bars = rows[rows["direction"] == way].sort_values("basic")
    shade = colors.stream_color(0 if way == min(rows["direction"], default=way) else 1)
    x, y = bars["basic"].tolist(), bars["output"].tolist()
    filled = (bars["output"] * bars["share"]).tolist()
    labels = [f"{s:.0%} processed" for s in bars["share"]]
    look = dict(x=x, marker_color=shade, showlegend=legend, hovertext=labels, width=0.8)
    return [
        go.Bar(**look, y=y, name="learned", opacity=PALE),
        go.Bar(**look, y=filled, name="processed"),
    ]


def throttle_table(events: Iterable[Any]) -> pd.DataFrame:
    """Return one row per batch: tuples, ``fraction`` r, ``took`` seconds and the ``allowance``.

    For each group of batches with 30 sampled results, ``found`` is the mean of results and
    ``estimated`` that of the full join, with its 95 % interval from ``low`` to ``high``. The
    estimate is at least the results found.
    """
    events = list(events)
    planned = {e.batch: e for e in events if isinstance(e, SheddingPlanned)}
    shed = {e.batch: e for e in events if isinstance(e, BatchShed)}
    rows, gathered = [], [0.0, 0.0, 0.0, 0.0]
    for e in (e for e in events if isinstance(e, BatchCommitted) and e.batch in shed):
        plan, got = planned[e.batch], shed[e.batch]
        gathered = [
            a + b
            for a, b in zip(
                gathered, (1, e.results, got.estimated_results, got.variance or 0.0), strict=True
            )
        ]
        n, matches, estimated, variance = gathered
        off = 1.96 * sqrt(variance) / n
        took = max(e.seconds_by_phase.values(), default=0.0)
        rows.append(
            (
                e.batch,
                sum(e.received_tuples),
                plan.fraction,
                took,
                plan.allowed_seconds,
                matches / n,
                estimated / n,
                min(estimated, max(matches, estimated - off * n)) / n,
                estimated / n + off,
                got.skipped_pairs / max(1.0, got.considered_pairs + got.skipped_pairs),
            )
        )
        if gathered[1] >= _ENOUGH:
            gathered = [0.0, 0.0, 0.0, 0.0]
    sizes = ["batch", "tuples", "fraction", "took", "allowance", "found"]
    columns = [*sizes, "estimated", "low", "high", "left_out"]
    return pd.DataFrame(rows, columns=columns)


def throttle_chart(events: Iterable[Any]) -> Chart:
    """Return a chart of the throttle.

    It shows received tuples, the fraction r and the pairs left out, the duration of batches and its
    limit, and the results with the estimated results of the full join. The band contains the full
    result in 95 of 100 runs.
    """
    events = list(events)
    how, data = data_origin(_find_start_event(events)), throttle_table(events)
    x = (data["batch"] + 1).tolist()
    plot = make_subplots(4, 1, shared_xaxes=True, vertical_spacing=0.05)

    def line(row: int, column: str, name: str, shade: str, **more: Any) -> None:
        style = dict(color=shade, width=2, **more)
        y = data[column].astype(float).tolist()
        plot.add_trace(go.Scatter(x=x, y=y, name=name, mode="lines", line=style), row=row, col=1)

    line(1, "tuples", "tuples of the batch", colors.THROUGHPUT)
    line(2, "fraction", "r", colors.RATIO)
    line(2, "left_out", "left out", colors.BOUND, dash="dot")
    line(3, "took", f"batch ({how})", colors.SIDES)
    if data["allowance"].notna().any():
        line(3, "allowance", "allowance", colors.BOUND, dash="dash")
    band = dict(
        x=[*x, *reversed(x)],
        y=[*data["high"], *reversed(data["low"])],
        mode="lines",
        fill="toself",
        line=dict(width=0),
        fillcolor="rgba(92,148,13,0.25)",
        name="95 %",
        hoverinfo="skip",
    )
    plot.add_trace(go.Scatter(**band), row=4, col=1)
    line(4, "estimated", "full join (estimated)", colors.RESULTS, dash="dash")
    line(4, "found", "found", colors.RESULTS)
    for row, unit in enumerate(("tuples", "share", "seconds", "results"), 1):
        plot.update_yaxes(title=unit, rangemode="tozero", row=row, col=1)
    plot.update_xaxes(title="batch", row=4, col=1)
    title = f"Throttle: tuples, share processed, seconds, results ({how})"
    plot.update_layout(template=TEMPLATE, title=title, height=640)
    return Chart("throttle", plot, data)


def gain_table(events: Iterable[Any]) -> pd.DataFrame:
    """Return the gain of more work, from the latest estimates.

    It lists the share of ``results`` in the most productive share of ``pairs``.
    """
    events = list(events)
    _find_start_event(events)
    last = next(e for e in reversed(events) if isinstance(e, SheddingPlanned))
    items = sorted(last.items, key=lambda i: -i.expected_matches)
    volumes = np.array([i.pairs for i in items])
    matches = volumes * [i.expected_matches for i in items]
    pairs, results = (np.r_[0, np.cumsum(v)] / max(v.sum(), 1e-300) for v in (volumes, matches))
    return pd.DataFrame({"pairs": pairs, "results": results})


def yield_curve(events: Iterable[Any]) -> Chart:
    """Return a curve of the share of results by the share of pairs processed, most productive
    first.

    It shows the gain of more CPU. A dot marks the run.
    """
    events = list(events)
    start, data = _find_start_event(events), gain_table(events)
    last = next(e for e in reversed(events) if isinstance(e, SheddingPlanned))
    here = float(np.interp(last.fraction, data["pairs"], data["results"]))
    line = dict(color=colors.RATIO, width=2)
    plot = go.Figure(go.Scatter(x=data["pairs"], y=data["results"], name="learned", line=line))
    plot.add_trace(
        go.Scatter(
            x=[last.fraction],
            y=[here],
            mode="markers",
            name="now",
            marker=dict(size=12, color=colors.BOUND),
        )
    )
    even = dict(color=colors.SIDES, dash="dot")
    plot.add_trace(go.Scatter(x=[0, 1], y=[0, 1], name="any pairs", mode="lines", line=even))
    plot.update_layout(
        template=TEMPLATE, height=380, title=f"Gain of more work ({data_origin(start)})"
    )
    plot.update_xaxes(title="share of pairs processed", range=[0, 1])
    plot.update_yaxes(title="share of results", range=[0, 1.02])
    return Chart("yield", plot, data)


def processed_share_table(events: Iterable[Any]) -> pd.DataFrame:
    """Return the share of processed pairs by the two batches in which their tuples arrived.

    Rows are batches of the first stream, columns of the second; a merged block counts for all its
    batches. 0: never due.
    """
    events = list(events)
    _find_start_event(events)
    planned = {e.batch: e for e in events if isinstance(e, SheddingPlanned)}
    holds: dict[int, frozenset[int]] = {}
    batches = 1 + max(planned, default=0)
    shares = np.zeros((batches, batches))
    for e in (e for e in events if isinstance(e, BatchPlanned) and e.batch in planned):
        plan = planned[e.batch]
        by_item = {i[:3]: float(np.mean(i.shares)) for i in plan.items}
        for d in e.derivations:
            holds[d.block.id] = frozenset().union(
                *(holds.get(s, frozenset()) for s in d.source_blocks)
            )
        for route in e.routes:
            holds[route.block.id] = frozenset({e.batch})
        for route in (r for r in e.routes if r.is_fresh):
            for path in route.paths:
                for other in path[0].probed_blocks():
                    item = (
                        route.block.stream,
                        path[0].stream,
                        plan.basic_window_by_block.get(other, -1),
                    )
                    for b in holds.get(other, ()):
                        at = (e.batch, b) if route.block.stream == 0 else (b, e.batch)
                        shares[at] = max(shares[at], by_item.get(item, 1.0))
    return pd.DataFrame(shares)


def processed_share_matrix(events: Iterable[Any]) -> Chart:
    """Return the join matrix by arrival time, shaded by the share of pairs processed.

    If matching tuples arrive at a constant distance, bands run parallel to the diagonal.
    """
    events = list(events)
    start, data = _find_start_event(events), processed_share_table(events)
    number = (data.columns + 1).tolist()
    heat = go.Heatmap(
        x=number,
        y=number,
        z=data.to_numpy().round(4).tolist(),
        zmin=0,
        zmax=1,
        colorscale="Blues",
        colorbar=dict(title="share"),
        hovertemplate="batch %{y} with %{x}: %{z:.0%}<extra></extra>",
    )
    plot = go.Figure(heat)
    plot.update_layout(
        template=TEMPLATE, height=460, title=f"Pairs that met ({data_origin(start)})"
    )
    plot.update_xaxes(title=f"batch of {start.streams[1]}", constrain="domain")
    plot.update_yaxes(
        title=f"batch of {start.streams[0]}",
        autorange="reversed",
        scaleanchor="x",
        constrain="domain",
        constraintoward="top",
    )
    return Chart("matrix", plot, data)
