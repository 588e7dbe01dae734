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
from plotly.subplots import make_subplots

from braid_widgets.base import colors
from braid_widgets.base.charts import TEMPLATE, Chart

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
