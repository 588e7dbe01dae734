"""The load of hosts, batch by batch."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from braid.core.plan_sentences import format_count
from braid.core.run_events import BatchCommitted, RunStarted
from plotly.subplots import make_subplots

from braid_widgets.base import colors
from braid_widgets.base.charts import TEMPLATE, Chart


def load_table(events: Iterable[Any]) -> pd.DataFrame:
    """Return one row per batch and host.

    - ``busy``: seconds, modelled or measured like the run's clock.
    - ``stored``: tuples.
    """
    rows = [
        (e.batch, host, metrics.seconds, metrics.stored_tuples)
        for e in events
        if isinstance(e, BatchCommitted)
        for host, metrics in enumerate(e.host_metrics)
    ]
    return pd.DataFrame(rows, columns=["batch", "host", "busy", "stored"])


def load_chart(events: Iterable[Any]) -> Chart:
    """Return a heat map of each host's busy seconds by batch, with mean and maximum below it."""
    events = list(events)
    start = next(e for e in events if isinstance(e, RunStarted))
    data = load_table(events)
    grid = data.pivot(index="host", columns="batch", values="busy")
    kind = "modelled" if start.time_source == "modelled" else "measured"
    plot = make_subplots(2, 1, shared_xaxes=True, row_heights=[0.7, 0.3], vertical_spacing=0.06)
    batches, hosts, busy = (grid.columns + 1).tolist(), grid.index.tolist(), grid.to_numpy()
    bar = dict(title=dict(text="s"), len=0.68, y=1, yanchor="top", thickness=14)
    hover = f"host %{{y}}, batch %{{x}}: %{{z:.2f}} s busy ({kind})<extra></extra>"
    heat = go.Heatmap(
        x=batches,
        y=hosts,
        z=np.round(busy, 3).tolist(),
        colorscale="YlOrRd",
        zmin=0,
        colorbar=bar,
        hovertemplate=hover,
    )
    plot.add_trace(heat, row=1, col=1)
    for name, values, shade in (
        ("busiest host", busy.max(axis=0), colors.BOUND),
        ("mean", busy.mean(axis=0), colors.RATIO),
    ):
        line = go.Scatter(
            x=batches,
            y=np.round(values, 3).tolist(),
            name=name,
            mode="lines",
            line=dict(color=shade, width=2),
        )
        plot.add_trace(line, row=2, col=1)
    many = format_count(start.hosts, "host")
    title = f"Host loads: {start.placement}, {many} ({kind} seconds busy with a batch)"
    plot.update_layout(template=TEMPLATE, title=title, height=520, margin=dict(t=70))
    plot.update_layout(legend=dict(orientation="h", y=-0.13, yanchor="top"))
    plot.update_yaxes(title="host", autorange="reversed", row=1, col=1)
    plot.update_yaxes(title="seconds", rangemode="tozero", row=2, col=1)
    last = max(start.planned_batches or 0, len(batches))
    plot.update_xaxes(range=[0.5, last + 0.5], dtick=1 if last <= 16 else None)
    plot.update_xaxes(title="batch", row=2, col=1)
    return Chart("host loads", plot, data)
