"""The (n, m) grid of the hosts, with what each stores."""

from __future__ import annotations

from collections.abc import Iterable
from math import ceil, sqrt
from typing import Any

import plotly.graph_objects as go

from braid_widgets.base import colours
from braid_widgets.base.charts import Chart, frames_chart
from braid_widgets.base.fold import Scene
from braid_widgets.base.metrics import Grid
from braid_widgets.base.recording import Recording


def mapping(grid: Grid, moving: bool = False) -> str:
    """The mapping as text: "(8, 8) -> (4, 16), epoch 3" while its blocks are exchanged, else "(4,
    16), epoch 3".
    """
    before = f"{grid.before} → " if moving and grid.before else ""
    return f"{before}{grid.mapping}, epoch {grid.epoch}"


def data(scene: Scene) -> dict[str, Any]:
    """What the stage paints of the hosts: groups of cells, tuples stored by host, their mean."""
    stored = list(scene.last.host_stored) if scene.last else []
    point = scene.points[-1] if scene.points else None
    mean, most = (round(point.ilf, 1), point.ilf_max) if point else (0, 0)
    hosts = max(len(stored), scene.start.hosts if scene.start else 1)
    groups = [_group(g) for _, g in sorted(scene.grids.items())] or [_shelf(hosts)]
    return {
        "title": _title(scene),
        "scale": f"tuples stored, a full box is {most:,}",
        "note": _note(scene, mean),
        "mapping": bool(scene.grids),
        "groups": groups,
        "stored": stored,
        "mean": mean,
        "top": most,
    }


def _title(scene: Scene) -> str:
    name = (scene.start.placement if scene.start else "Hosts") + (
        " (modelled run)" if scene.modelled else ""
    )
    if not scene.grids:
        return f"{name}: tuples stored by each host"
    return f"{name}: mapping " + "; ".join(
        mapping(g, k in scene.migrating) for k, g in sorted(scene.grids.items())
    )


def _note(scene: Scene, mean: float) -> str:
    ilf = f"red: mean of the hosts in use (ILF) = {mean:,.0f} tuples"
    left = sum(scene.migrating.values())
    return f"{ilf} · migrating, {left:,} tuples wait" if scene.migrating else ilf


def _group(grid: Grid) -> dict[str, Any]:
    n, m = grid.mapping
    return {
        "n": n,
        "m": m,
        "mapping": True,
        "cells": [[h, r, c] for h, (r, c) in sorted(grid.cells.items())],
    }


def _shelf(hosts: int) -> dict[str, Any]:
    """Hosts without a grid, row by row."""
    m = ceil(sqrt(hosts))
    return {
        "n": ceil(hosts / m),
        "m": m,
        "mapping": False,
        "cells": [[h, *divmod(h, m)] for h in range(hosts)],
    }


def figure(events: Iterable[Any], batch: int | None = None) -> Chart:
    """Tuples stored by each host, at its place in the grid: of one batch (-1: the last), or of all,
    with slider and Play.
    """
    recording = Recording(events)
    scenes = iter(recording) if batch is None else [recording.at(batch % len(recording))]
    frames, rows = [], []
    for scene in scenes:
        view = data(scene)
        label = str(scene.last.batch) if scene.last else "–"
        frames.append((label, view["title"], f"{view['scale']}<br>{view['note']}", _traces(view)))
        rows += [
            (label, h, view["stored"][h])
            for g in view["groups"]
            for h, _, _ in g["cells"]
            if h < len(view["stored"])
        ]
    names = [*scene.streams[:2], "R", "S"]
    gridded = bool(scene.grids)
    axis = dict(showticklabels=False, showgrid=False, zeroline=False)
    layout = dict(
        xaxis=dict(
            title=f"partitions of {names[1]}" if gridded else "hosts",
            side="top",
            range=[0, 1],
            **axis,
        ),
        yaxis=dict(title=f"partitions of {names[0]}" if gridded else "", range=[1, 0], **axis),
        width=680,
        height=700 if len(frames) == 1 else 790,
        barmode="overlay",
    )
    return frames_chart("hosts", frames, layout, rows, ["batch", "host", "stored"])


def boxes(groups: list[dict[str, Any]]) -> dict[int, tuple[float, float, float, float]]:
    """By host, its box (left, top, width, height) in the unit square; groups lie below one another,
    sized by their hosts.
    """
    total = sum(sqrt(len(g["cells"])) for g in groups)
    top = 0.0
    found: dict[int, tuple[float, float, float, float]] = {}
    for g in groups:
        tall = sqrt(len(g["cells"])) / total
        w, h = 1 / g["m"], (tall - 0.02 * (len(groups) > 1)) / g["n"]
        found |= {host: (column * w, top + row * h, w, h) for host, row, column in g["cells"]}
        top += tall
    return found


def _traces(view: dict[str, Any]) -> list[Any]:
    """A bar in each host's box, the boxes, the level of the mean, and the hosts' numbers where they
    fit.
    """
    places, most = boxes(view["groups"]), view["top"] or 1
    stored = [view["stored"][h] if h < len(view["stored"]) else 0 for h in places]
    corners = list(places.values())
    bars = go.Bar(
        x=[x + w / 2 for x, _, w, _ in corners],
        base=[y + h for _, y, _, h in corners],
        y=[-h * n / most for (_, _, _, h), n in zip(corners, stored, strict=True)],
        width=[0.96 * w for _, _, w, _ in corners],
        marker=dict(color=[colours.host(h) for h in places], line=dict(width=0)),
        hovertext=[f"host {h}: {n:,} tuples stored" for h, n in zip(places, stored, strict=True)],
        hoverinfo="text",
        showlegend=False,
    )
    edges, mean = [], []
    for x, y, w, h in corners:
        edges += [(x, y), (x + w, y), (x + w, y + h), (x, y + h), (x, y), (None, None)]
        mean += [
            (x, y + h * (1 - view["mean"] / most)),
            (x + w, y + h * (1 - view["mean"] / most)),
            (None, None),
        ]
    fit = [
        (x + w / 2, y + h - 0.015, host)
        for host, (x, y, w, h) in places.items()
        if w * 600 > 9 * len(str(host)) and h > 0.025
    ]
    numbers = go.Scatter(
        x=[f[0] for f in fit],
        y=[f[1] for f in fit],
        text=[str(f[2]) for f in fit],
        mode="text",
        hoverinfo="skip",
        textfont=dict(size=11, color=[colours.ink(colours.host(f[2])) for f in fit]),
        showlegend=False,
    )
    return [bars, _lines(edges, "#c8ccd1", 1), _lines(mean, colours.BOUND, 1.5), numbers]


def _lines(points: list[Any], colour: str, width: float) -> go.Scatter:
    x, y = zip(*points, strict=True)
    return go.Scatter(
        x=x,
        y=y,
        mode="lines",
        line=dict(color=colour, width=width),
        hoverinfo="skip",
        showlegend=False,
    )
