"""The (n, m) grid of the hosts with the tuples that each stores."""

from __future__ import annotations

from math import ceil, sqrt
from typing import NamedTuple, TypedDict

from braid_widgets.base.batch_figures import GroupMapping
from braid_widgets.base.columnar import Columns
from braid_widgets.base.run_view import RunView
from braid_widgets.base.text import MODELLED


class HostCell(NamedTuple):
    """A host's position in its group."""

    host: int
    row: int
    column: int


class HostGroup(TypedDict):
    """Hosts in ``n`` rows and ``m`` columns.

    ``mapping`` tells whether rows and columns are partitions; if False, they are only a layout.
    """

    n: int
    m: int
    mapping: bool
    cells: Columns[HostCell]


class HostsFrame(TypedDict):
    """Hosts by group with the tuples that each stores.

    - ``stored``: tuples by host.
    - ``mean``: mean of the stored tuples.
    - ``scale_max``: tuples of a full bar. Several frames shown together use the maximum, so that
      all bars have one scale.
    - ``baseline``: tuples that each host would store on a square grid; null without a grid.
    """

    title: str
    note: str
    groups: list[HostGroup]
    stored: list[int]
    mean: float
    scale_max: int
    baseline: float | None


def format_mapping(grid: GroupMapping, moving: bool = False) -> str:
    """Return the mapping as text: "(4, 16), epoch 3".

    While blocks are exchanged it is "(8, 8) -> (4, 16), epoch 3".
    """
    before = f"{grid.before} → " if moving and grid.before else ""
    return f"{before}{grid.mapping}, epoch {grid.epoch}"


def hosts_frame(scene: RunView) -> HostsFrame:
    """Return the frame of the hosts: groups of cells, tuples stored by host, and their mean."""
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
    """Return hosts without a grid, row by row."""
    m = ceil(sqrt(hosts))
    cells = [HostCell(h, *divmod(h, m)) for h in range(hosts)]
    return {
        "n": ceil(hosts / m),
        "m": m,
        "mapping": False,
        "cells": Columns.from_records(HostCell, cells),
    }
