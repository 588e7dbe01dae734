"""The join matrix by arrival time: which host joins which batches.

ATR draws a staircase, CTR patches.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from braid.core.run_events import BatchPlanned, RunStarted
from braid.papers.diffusion.run_events import SegmentPlaced

from braid_widgets.base import colors
from braid_widgets.base.charts import TEMPLATE, Chart
from braid_widgets.base.text import data_origin

LATEST = 60
"""Number of latest batches shown."""


def meeting_table(events: Iterable[Any], streams: tuple[int, int] = (0, 1)) -> pd.DataFrame:
    """Return one row per host and pair of batches (of the first and the second stream) that it
    joins.

    Several hosts join a pair if each has another part of a third stream.
    """
    arrived: dict[int, list[int]] = {}
    meetings: set[tuple[int, int, int]] = set()
    for e in events:
        if not isinstance(e, BatchPlanned):
            continue
        for d in e.derivations:
            arrived[d.block.id] = [batch for source in d.source_blocks for batch in arrived[source]]
        arrived |= {r.block.id: [e.batch] for r in e.routes if r.is_fresh}
        for stream, id, other, host in _list_probed_pairs(e, streams):
            for a in arrived[id]:
                meetings |= {
                    (a, b, host) if stream == streams[0] else (b, a, host) for b in arrived[other]
                }
    return pd.DataFrame(sorted(meetings), columns=["first", "second", "host"])


def _list_probed_pairs(
    plan: BatchPlanned, streams: tuple[int, int]
) -> Iterator[tuple[int, int, int, int]]:
    for route in plan.routes:
        stream, id = route.block.stream, route.block.id
        for hop in (hop for path in route.paths for hop in path):
            if {stream, hop.stream} == set(streams):
                yield from (
                    (stream, id, b, h) for h, ids in hop.blocks_by_host.items() for b in ids
                )


def matrix_axes(events: Iterable[Any]) -> tuple[int, int]:
    """Return the last master stream and the first other one, else streams 0 and 1.

    Under ATR, each of their pairs is joined by one host.
    """
    masters = [e.master_stream for e in events if isinstance(e, SegmentPlaced)]
    master = masters[-1] if masters else 0
    return (0, master) if master else (0, 1)


def _make_host_colorbar(hosts: int) -> dict[str, Any]:
    """Return the legend of the hosts' colors, with a subset of many hosts."""
    every = -(-hosts // 16)
    ticks = list(range(0, hosts, every))
    spot = dict(orientation="h", x=0, xanchor="left", y=-0.02, yanchor="top", len=1)
    return dict(title=dict(text="host", side="right"), tickvals=ticks, thickness=14, **spot)


def arrival_matrix(events: Iterable[Any], latest: int = LATEST) -> Chart:
    """Return the matrix of the last batches, colored by host.

    If several hosts join a pair, it has the color of the lowest-numbered one.
    """
    events = list(events)
    start, streams = next(e for e in events if isinstance(e, RunStarted)), matrix_axes(events)
    data = meeting_table(events, streams)
    end = 1 + int(data[["first", "second"]].to_numpy().max()) if len(data) else 1
    low = max(0, end - latest)
    z, words = (
        np.full((end - low, end - low), np.nan),
        np.full((end - low, end - low), "", dtype=object),
    )
    for (a, b), hosts in data[(data["first"] >= low) & (data["second"] >= low)].groupby(
        ["first", "second"]
    )["host"]:
        z[a - low, b - low] = hosts.min()
        words[a - low, b - low] = (
            f"batch {a + 1} × batch {b + 1}: host {', '.join(map(str, sorted(hosts)))}"
        )
    one, two = (start.streams[s] for s in streams)
    host_count = max(
        start.hosts, 1 + int(data["host"].max()) if len(data) else 1
    )  # the number of hosts may have grown
    scale = [
        (edge, colors.host_color(h))
        for h in range(host_count)
        for edge in (h / host_count, (h + 1) / host_count)
    ]
    heat = go.Heatmap(
        x0=low + 1,
        y0=low + 1,
        z=z.tolist(),
        text=words.tolist(),
        hovertemplate="%{text}<extra></extra>",
        colorscale=scale,
        zmin=-0.5,
        zmax=host_count - 0.5,
        colorbar=_make_host_colorbar(host_count),
    )
    kind = data_origin(start)
    plot = go.Figure(heat)
    plot.update_layout(
        template=TEMPLATE,
        title=f"Join matrix by arrival, colored by host: {start.placement} ({kind})",
    )
    plot.update_layout(height=720, margin=dict(t=130), title_y=0.97)
    plot.update_xaxes(
        title=f"stream {two}, batch",
        side="top",
        constrain="domain",
        constraintoward="left",
        showgrid=False,
        zeroline=False,
    )
    plot.update_yaxes(
        title=f"stream {one}, batch",
        autorange="reversed",
        scaleanchor="x",
        constrain="domain",
        constraintoward="top",
        showgrid=False,
        zeroline=False,
    )
    return Chart("join matrix by arrival", plot, data)
