"""The (n, m) grid of the hosts, with what each stores."""

from __future__ import annotations

from math import ceil, sqrt
from typing import Any

from braid_widgets.base.fold import Scene
from braid_widgets.base.metrics import Grid
from braid_widgets.base.words import MODELLED


def mapping(grid: Grid, moving: bool = False) -> str:
    """The mapping as text: "(8, 8) -> (4, 16), epoch 3" while its blocks are exchanged, else "(4,
    16), epoch 3".
    """
    before = f"{grid.before} → " if moving and grid.before else ""
    return f"{before}{grid.mapping}, epoch {grid.epoch}"


def data(scene: Scene) -> dict[str, Any]:
    """What the stage paints of the hosts: groups of cells, tuples stored by host, their mean."""
    stored = [h.stored for h in scene.last.hosts] if scene.last else []
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
        f" ({MODELLED})" if scene.modelled else ""
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
