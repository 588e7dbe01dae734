"""Segments over time: which host stores which batches, as a Gantt chart.

Source: Gu 2007, Fig. 3 and 5.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pandas as pd
import plotly.graph_objects as go
from braid.core.plan_sentences import format_count
from braid.core.run_events import BatchPlanned, RunStarted
from braid.papers.diffusion.run_events import MasterSwitched, SegmentLengthTuned, SegmentPlaced

from braid_widgets.base import colors
from braid_widgets.base.charts import BELOW, GREY, TEMPLATE, Chart
from braid_widgets.base.text import data_origin

LATEST = 60
"""Number of latest batches shown."""

COLUMNS = ["host", "stream", "first", "last", "master"]


def segment_table(events: Iterable[Any]) -> pd.DataFrame:
    """Return one row per stretch of consecutive batches of a stream that one host stores.

    - ``first``, ``last``: the batches in which the tuples arrived.
    - ``master``: whether the stream was the master then.

    A stretch of a master stream ends with its segment. A stretch on several hosts is replicated.
    """
    stored: dict[tuple[int, int], dict[int, tuple[int, bool]]] = {}
    arrived: dict[int, list[tuple[int, int, bool]]] = {}
    master, segment, all_events = None, 0, list(events)
    placed = {e.batch: e for e in all_events if isinstance(e, SegmentPlaced)}
    for e in all_events:
        if not isinstance(e, BatchPlanned):
            continue
        if e.batch in placed:
            master, segment = placed[e.batch].master_stream, e.batch
        for d in e.derivations:
            arrived[d.block.id] = [batch for source in d.source_blocks for batch in arrived[source]]
            _add_stored_batches(stored, d.source_hosts, arrived[d.block.id], segment)
        for b in (r.block for r in e.routes if r.is_fresh):
            arrived[b.id] = [(b.stream, e.batch, b.stream == master)]
            _add_stored_batches(stored, b.hosts, arrived[b.id], segment)
    rows = [
        (host, stream, *stretch)
        for (host, stream), batches in sorted(stored.items())
        for stretch in _merge_batch_ranges(batches)
    ]
    return pd.DataFrame(rows, columns=COLUMNS)


def _add_stored_batches(
    stored: dict[Any, Any], hosts: Iterable[int], batches: list[tuple[int, int, bool]], segment: int
) -> None:
    for host in hosts:
        for stream, batch, master in batches:
            stored.setdefault((host, stream), {}).setdefault(
                batch, (segment if master else -1, master)
            )


def _merge_batch_ranges(batches: dict[int, tuple[int, bool]]) -> list[tuple[int, int, bool]]:
    ranges: list[tuple[int, int, bool]] = []
    for batch in sorted(batches):
        if ranges and ranges[-1][1] == batch - 1 and batches[batch - 1] == batches[batch]:
            ranges[-1] = (ranges[-1][0], batch, ranges[-1][2])
        else:
            ranges.append((batch, batch, batches[batch][1]))
    return ranges


def segment_chart(events: Iterable[Any], latest: int = LATEST) -> Chart:
    """Return the Gantt chart of the last batches.

    Each host has a row with a lane per stream; a master's segments are outlined. A solid line marks
    a switch of the master, a dotted line a change of the segment length.
    """
    events = list(events)
    start = next(e for e in events if isinstance(e, RunStarted))
    data = segment_table(events)
    end = 1 + int(data["last"].max()) if len(data) else 0
    shown = data[data["last"] >= end - latest].assign(
        first=lambda d: d["first"].clip(lower=end - latest)
    )
    plot = go.Figure(
        [
            _make_stream_bars(shown[shown.stream == s], s, name, len(start.streams))
            for s, name in enumerate(start.streams)
        ]
    )
    for e in events:
        if isinstance(e, (MasterSwitched, SegmentLengthTuned)) and e.batch > end - latest:
            _annotate_change(plot, e, start.streams, end - latest)
    kind = data_origin(start)
    title = (
        f"Segments by host: {start.placement}, {format_count(start.hosts, 'host')} "
        f"({kind})<br><sub>{_format_note(events)}</sub>"
    )
    plot.update_layout(
        template=TEMPLATE,
        title=title,
        barmode="overlay",
        height=210 + 30 * min(start.hosts, 30),
        margin=dict(t=120, b=90),
    )
    plot.update_layout(legend=BELOW)
    right = max(end, min(start.planned_batches or 0, latest))
    plot.update_xaxes(
        title="batch in which the tuples arrived", range=[max(0, end - latest) + 0.5, right + 0.5]
    )
    plot.update_yaxes(
        title="host",
        range=[start.hosts - 0.5, -0.5],
        tickmode="auto",
        nticks=min(start.hosts, 16) + 1,
        zeroline=False,
    )
    return Chart("segments", plot, data)


def _format_note(events: list[Any]) -> str:
    note = "several hosts with the same batches: replicas"
    return note + (
        " · outlined: segments of the master"
        if any(isinstance(e, SegmentPlaced) for e in events)
        else ""
    )


def _make_stream_bars(rows: pd.DataFrame, stream: int, name: str, streams: int) -> go.Bar:
    height, shade = 0.84 / streams, colors.stream_color(stream)
    words = [
        f"{name}, batches {r.first + 1} to {r.last + 1}, host {r.host}"
        + (", master" if r.master else "")
        for r in rows.itertuples()
    ]
    return go.Bar(
        name=f"stream {name}",
        orientation="h",
        base=(rows["first"] + 0.5).tolist(),
        x=(rows["last"] - rows["first"] + 1).tolist(),
        y=(rows["host"] - 0.42 + height * (stream + 0.5)).tolist(),
        width=height,
        hovertext=words,
        hoverinfo="text",
        marker=dict(
            color=shade,
            opacity=[1.0 if m else 0.45 for m in rows["master"]],
            line=dict(
                color=[GREY if m else shade for m in rows["master"]],
                width=[2 if m else 0 for m in rows["master"]],
            ),
        ),
    )


def _annotate_change(plot: go.Figure, e: Any, streams: tuple[str, ...], low: int) -> None:
    switched = isinstance(e, MasterSwitched)
    text = (
        f"master {streams[e.previous_master]} → {streams[e.master]}"
        if switched
        else f"T {e.previous_batches} → {e.batches}"
    )
    line = dict(
        color=colors.BOUND if switched else colors.MIGRATION,
        width=2,
        dash="solid" if switched else "dot",
    )
    plot.add_vline(e.batch + 0.5, line=line)
    label = dict(
        x=e.batch + 0.5,
        y=1,
        yref="paper",
        xanchor="left" if e.batch < (low + LATEST / 2) else "right",
        yanchor="bottom",
        yshift=0 if switched else 15,  # a switch of the master often changes the length too
    )
    plot.add_annotation(
        text=text, showarrow=False, font=dict(color=line["color"], size=11), **label
    )
