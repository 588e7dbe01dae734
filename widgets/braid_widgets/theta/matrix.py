"""The join matrix: which host joins which part, how much of it is done, and what is on its way."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import plotly.graph_objects as go

from braid_widgets.base import colours
from braid_widgets.base.charts import Chart, frames_chart
from braid_widgets.base.fold import Scene
from braid_widgets.base.joined import rectangles as tiles
from braid_widgets.base.recording import Recording

STEP = 5
"""Fractions are shown to this many percent."""

Rectangle = tuple[float, float, float, float, int, int, int]


def cells(scene: Scene) -> list[Rectangle]:
    """The matrix as rectangles [top, bottom, left, right, host, percent, migrating] in shares of
    the two key spaces.

    Stream 0 runs from top to bottom, stream 1 from left to right. ``percent`` of the pairs that
    came due are joined; a cell migrates while pairs of it are owed or its host receives copies.
    """
    joined = scene.joined
    owed = scene.owing()
    due = joined.met + owed
    share = np.divide(joined.met, due, out=np.ones_like(due), where=due > 0)
    percent = np.floor(share * 100 / STEP + 1e-9).astype(int) * STEP
    moving = (owed > 0) | np.isin(joined.host, [c[2] for c in scene.copies])
    code = np.where(joined.host < 0, -1, (joined.host * 101 + percent) * 2 + moving)
    code, rows = _collapsed(code, joined.cuts[0])
    columned, columns = _collapsed(code.T, joined.cuts[1])
    found = []
    for r0, r1, c0, c1 in tiles(columned.T):
        value, migrates = divmod(int(columned[c0, r0]), 2)
        host, done = divmod(value, 101)
        found.append((*_shares(rows, r0, r1), *_shares(columns, c0, c1), host, done, migrates))
    return found


def _collapsed(code: np.ndarray, cuts: list[int]) -> tuple[np.ndarray, list[int]]:
    """Equal neighbouring rows as one, and the cuts that are left."""
    if len(code) == 0:
        return code, cuts
    first = np.append(True, (code[1:] != code[:-1]).any(1))
    return code[first], [*(c for c, f in zip(cuts, first, strict=False) if f), cuts[-1]]


def _shares(cuts: list[int], low: int, high: int) -> tuple[float, float]:
    span = cuts[-1] - cuts[0]
    return round((cuts[low] - cuts[0]) / span, 5), round((cuts[high] - cuts[0]) / span, 5)


def chips(scene: Scene, rectangles: list[Rectangle]) -> list[list[Any]]:
    """Blocks copied in the last batch as [x0, y0, x1, y1, stream, rows, from host, to host], one
    for each pair of hosts.

    A chip goes from the source host's largest cell to that of the target, in shares of the key
    spaces; it rests in the upper right of a cell, beside the host's number.
    """
    anchor: dict[int, tuple[float, float, float]] = {}
    for top, bottom, left, right, host, _, _ in rectangles:
        area = (bottom - top) * (right - left)
        if area > anchor.get(host, (0.0,))[0]:
            anchor[host] = (
                area,
                round(0.22 * left + 0.78 * right, 4),
                round(0.78 * top + 0.22 * bottom, 4),
            )
    rows: dict[tuple[int, int, int], int] = {}
    for block, source, target in scene.copies:
        if block in scene.moving and source in anchor and target in anchor:
            moved = scene.moving[block]
            key = (source, target, moved.stream)
            rows[key] = rows.get(key, 0) + moved.rows
    return [
        [*anchor[a][1:], *anchor[b][1:], stream, n, a, b]
        for (a, b, stream), n in sorted(rows.items())
    ]


def data(scene: Scene) -> dict[str, Any]:
    """What the stage paints of the join matrix: plain lists and texts."""
    rectangles = cells(scene)
    live = scene.last.live if scene.last else [0, 0]
    names = [*scene.streams, "R", "S"][:2] if len(scene.streams) < 2 else list(scene.streams[:2])
    return {
        "title": f"Join matrix {names[0]} × {names[1]}: who joins what",
        "note": "colour: host that joined last · pale: pairs owed · outlined: migrating · chips: "
        "tuples in transit",
        "streams": names,
        "rows": list(live[:2]),
        "cells": rectangles,
        "chips": chips(scene, rectangles),
    }


def figure(events: Iterable[Any], batch: int | None = None) -> Chart:
    """The join matrix as a chart: of one batch (by position, -1 is the last), or of all with a
    slider and Play.
    """
    recording = Recording(events)
    scenes = iter(recording) if batch is None else [recording.at(batch % len(recording))]
    hosts, frames, rows = 1, [], []
    for scene in scenes:
        view = data(scene)
        hosts = max([hosts, *(1 + cell[4] for cell in view["cells"])])
        label = str(scene.last.batch) if scene.last else "–"
        frames.append((label, _heading(scene), view["note"], _traces(view)))
        rows += [(label, *cell) for cell in view["cells"]]
    for *_, traces in frames:
        _paint(traces[0], hosts)
    columns = ["batch", "top", "bottom", "left", "right", "host", "percent", "migrating"]
    view_axis = dict(showticklabels=False, showgrid=False, zeroline=False, constrain="domain")
    layout = dict(
        xaxis=dict(
            title=f"{view['streams'][1]}, by routing key", side="top", range=[0, 1], **view_axis
        ),
        yaxis=dict(
            title=f"{view['streams'][0]}, by routing key",
            scaleanchor="x",
            range=[1, 0],
            **view_axis,
        ),
        width=640,
        height=700 if len(frames) == 1 else 790,
    )
    return frames_chart("join matrix", frames, layout, rows, columns)


def _heading(scene: Scene) -> str:
    return f"Join matrix, cells by host{' (modelled run)' if scene.modelled else ''}"


def _traces(view: dict[str, Any]) -> list[Any]:
    """A heatmap of the smallest grid on which the rectangles lie, a text for each rectangle, and
    the chips.
    """
    rectangles = view["cells"]
    ys = sorted({0.0, 1.0, *(v for cell in rectangles for v in cell[:2])})
    xs = sorted({0.0, 1.0, *(v for cell in rectangles for v in cell[2:4])})
    z = np.full((len(ys) - 1, len(xs) - 1), np.nan)
    note = np.full(z.shape, "", dtype=object)
    for top, bottom, left, right, host, percent, moving in rectangles:
        box = np.s_[ys.index(top) : ys.index(bottom), xs.index(left) : xs.index(right)]
        z[box] = host
        note[box] = f"host {host}: {percent}% of due pairs joined{', migrating' if moving else ''}"
    heat = go.Heatmap(
        x=xs,
        y=ys,
        z=z.tolist(),
        text=note.tolist(),
        hovertemplate="%{text}<extra></extra>",
        showscale=False,
    )
    fit = [
        c
        for c in rectangles
        if (c[3] - c[2]) * 560 > 9 * len(str(c[4])) and (c[1] - c[0]) * 560 > 10
    ]
    numbers = go.Scatter(
        x=[(c[2] + c[3]) / 2 for c in fit],
        y=[(c[0] + c[1]) / 2 for c in fit],
        text=[str(c[4]) for c in fit],
        mode="text",
        textfont=dict(size=11, color=[colours.ink(colours.host(c[4])) for c in fit]),
        hoverinfo="skip",
        showlegend=False,
    )
    return [heat, _veil(xs, ys, rectangles), numbers, _outlines(rectangles), _transit(view)]


def _veil(xs: list[float], ys: list[float], rectangles: list[Rectangle]) -> go.Heatmap:
    """White over what is owed."""
    z = np.full((len(ys) - 1, len(xs) - 1), 100)
    for top, bottom, left, right, _, percent, _ in rectangles:
        z[ys.index(top) : ys.index(bottom), xs.index(left) : xs.index(right)] = percent
    scale = [(0, "rgba(255,255,255,0.8)"), (1, "rgba(255,255,255,0)")]
    return go.Heatmap(
        x=xs,
        y=ys,
        z=z.tolist(),
        zmin=0,
        zmax=100,
        colorscale=scale,
        showscale=False,
        hoverinfo="skip",
    )


def _outlines(rectangles: list[Rectangle]) -> go.Scatter:
    x: list[float | None] = []
    y: list[float | None] = []
    for top, bottom, left, right, _, _, moving in rectangles:
        if moving:
            x += [left, right, right, left, left, None]
            y += [top, top, bottom, bottom, top, None]
    line = dict(color="#1f2328", width=1.5, dash="dot")
    return go.Scatter(x=x, y=y, mode="lines", line=line, hoverinfo="skip", showlegend=False)


def _transit(view: dict[str, Any]) -> go.Scatter:
    """Chips half-way between their hosts, each with a trail from its source."""
    x: list[float | None] = []
    y: list[float | None] = []
    text, shade = [], []
    for x0, y0, x1, y1, stream, rows, source, target in view["chips"]:
        x += [x0, (x0 + x1) / 2, None]
        y += [y0, (y0 + y1) / 2, None]
        text += [
            "",
            f"{rows:,} tuples of {view['streams'][stream]}: host {source} → host {target}",
            "",
        ]
        shade.append(colours.stream(stream))
    marks = [size for _ in view["chips"] for size in (0, 8, 0)]
    shades = [s for s in shade for _ in range(3)]
    return go.Scatter(
        x=x,
        y=y,
        mode="lines+markers",
        text=text,
        hovertemplate="%{text}<extra></extra>",
        showlegend=False,
        line=dict(color=shade[0] if shade else "#000000", width=1),
        marker=dict(symbol="square", size=marks, color="#ffffff", line=dict(width=2, color=shades)),
    )


def _paint(heat: go.Heatmap, hosts: int) -> None:
    """A colour scale with one step for each host."""
    scale = [(edge, colours.host(h)) for h in range(hosts) for edge in (h / hosts, (h + 1) / hosts)]
    heat.update(zmin=-0.5, zmax=hosts - 0.5, colorscale=scale)
