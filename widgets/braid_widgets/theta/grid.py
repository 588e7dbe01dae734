"""The (n, m) grid of the hosts, with what each stores."""

from __future__ import annotations

from math import ceil, sqrt
from typing import NamedTuple, TypedDict

from braid_widgets.base.batch_figures import GroupMapping
from braid_widgets.base.columnar import Columns
from braid_widgets.base.run_view import RunView
from braid_widgets.base.text import MODELLED


class HostCell(NamedTuple):
    """A host's place in its group."""

    host: int
    row: int
    column: int


class HostGroup(TypedDict):
    """Hosts in ``n`` rows and ``m`` columns; ``mapping`` says whether these are partitions."""

    n: int
    m: int
    mapping: bool
    cells: Columns[HostCell]


class HostsFrame(TypedDict):
    """Hosts by group, with the tuples that each stores (by host), their mean, and the most that is
    drawn. ``ghost`` is what each would store had the grid stayed square, null without a grid.
    Whoever shows several frames takes the greatest ``top``, so that all bars are on one scale.
    """

    title: str
    note: str
    groups: list[HostGroup]
    stored: list[int]
    mean: float
    scale_max: int
    baseline: float | None


def format_mapping(grid: GroupMapping, moving: bool = False) -> str:
    """The mapping as text: "(8, 8) -> (4, 16), epoch 3" while its blocks are exchanged, else "(4,
    16), epoch 3".
    """
    before = f"{grid.before} → " if moving and grid.before else ""
    return f"{before}{grid.mapping}, epoch {grid.epoch}"


def hosts_frame(scene: RunView) -> HostsFrame:
    """What the stage paints of the hosts: groups of cells, tuples stored by host, their mean."""
    stored = [h.stored_tuples for h in scene.last.host_metrics] if scene.last else []
    point = scene.points[-1] if scene.points else None
    mean, most = (round(point.ilf, 1), point.ilf_max) if point else (0, 0)
    square = point.ilf_square if point else None
    hosts = max(len(stored), scene.start.hosts if scene.start else 1)
    groups = [_make_grid_group(g) for _, g in sorted(scene.grids.items())] or [
        _make_gridless_group(hosts)
    ]
    return {
        "title": _format_title(scene),
        "note": _format_note(scene, mean, square),
        "groups": groups,
        "stored": stored,
        "mean": mean,
        "scale_max": max(most, round(square or 0)),
        "baseline": None if square is None else round(square, 1),
    }


def _format_title(scene: RunView) -> str:
    name = (scene.start.placement if scene.start else "Hosts") + (
        f" ({MODELLED})" if scene.is_modelled else ""
    )
    if not scene.grids:
        return f"{name}: tuples stored by each host"
    return f"{name}: mapping " + "; ".join(
        format_mapping(g, k in scene.migrating) for k, g in sorted(scene.grids.items())
    )


def _format_note(scene: RunView, mean: float, square: float | None) -> str:
    ilf = f"red: mean of the hosts in use (ILF) = {mean:,.0f} tuples"
    if square is not None:
        ilf += f" · dashed: had the grid stayed square = {square:,.0f} (modelled)"
    left = sum(scene.migrating.values())
    return f"{ilf} · migrating, {left:,} tuples wait" if scene.migrating else ilf


def _make_grid_group(grid: GroupMapping) -> HostGroup:
    n, m = grid.mapping
    cells = [HostCell(h, r, c) for h, (r, c) in sorted(grid.cells.items())]
    return {
        "n": n,
        "m": m,
        "mapping": True,
        "cells": Columns.from_records(HostCell, cells),
    }


def _make_gridless_group(hosts: int) -> HostGroup:
    """Hosts without a grid, row by row."""
    m = ceil(sqrt(hosts))
    cells = [HostCell(h, *divmod(h, m)) for h in range(hosts)]
    return {
        "n": ceil(hosts / m),
        "m": m,
        "mapping": False,
        "cells": Columns.from_records(HostCell, cells),
    }
