"""The state map of a join of two streams: the join matrix, cut into the cells of its hosts."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple, TypedDict

from braid.core.run_events import RunStarted
from braid.papers.theta.mapping import input_load_factor

from braid_widgets.base.batch_figures import GroupMapping
from braid_widgets.base.columnar import Columns
from braid_widgets.base.run_view import RunView
from braid_widgets.base.state_maps import StateMap
from braid_widgets.theta.matrix import HostCopies, MatrixCell, host_copies, matrix_cells


class HostPlace(NamedTuple):
    """A host's row and column in the grid."""

    host: int
    row: int
    column: int


class GridFrame(TypedDict):
    """A join matrix with the rows on each host.

    - ``rows``: live rows by stream.
    - ``n``, ``m``: parts of the two streams; 0 without a grid, or with several.
    - ``places``: hosts in grid order; without a grid, ``cells`` are rectangles that hosts joined.
    - ``load``: |R|/n + |S|/m, rows that a host holds under the grid; null without one.
    - ``before``: the mapping before the last change, or empty; ``load_before`` is its load now.
    - ``is_moving``: whether blocks still move to the hosts of the new mapping.
    - ``copies``: rows that moved in this batch; ``moved_blocks`` is the number of copied blocks.
    - ``waiting``: rows that are still to be copied.
    - ``scale_max``: rows of a full bar. Frames shown together use the maximum.
    - ``across``: the longer stream, which is drawn along the longer side of the picture.
    """

    title: str
    streams: list[str]
    rows: list[int]
    n: int
    m: int
    places: Columns[HostPlace]
    cells: Columns[MatrixCell]
    stored: list[int]
    load: float | None
    before: list[int]
    load_before: float | None
    is_moving: bool
    copies: Columns[HostCopies]
    moved_blocks: int
    waiting: int
    scale_max: float
    across: int


class GridMap(StateMap):
    """The state map of two streams: every pair of their tuples is in the matrix once."""

    name = "grid"
    rank = 1

    @classmethod
    def can_show(cls, start: RunStarted, kinds: Collection[type]) -> bool:
        return len(start.streams) == 2

    def make_frame(self) -> GridFrame:
        scene = self.scene
        grid = next(iter(scene.grids.values())) if len(scene.grids) == 1 else None
        n, m = grid.mapping if grid else (0, 0)
        cells = sorted(grid.cells.items(), key=lambda cell: cell[1]) if grid else []
        places = [HostPlace(h, r, c) for h, (r, c) in cells]
        live, stored = list(self.last.live_tuples), self.list_by_host("stored_tuples")
        before = scene.points[-1].ilf_before
        return {
            "title": _format_title(scene, grid),
            "streams": list(scene.stream_aliases),
            "rows": live,
            "n": n,
            "m": m,
            "places": Columns.from_records(HostPlace, places),
            "cells": Columns.from_records(MatrixCell, [] if grid else matrix_cells(scene)),
            "stored": stored,
            "load": round(input_load_factor(live[0], live[1], n, m), 1) if grid else None,
            "before": list(grid.before) if grid and grid.before else [],
            "load_before": None if before is None else round(before, 1),
            "is_moving": bool(scene.migrating or scene.copies),
            "copies": Columns.from_records(HostCopies, host_copies(scene)),
            "moved_blocks": len(scene.copies),
            "waiting": sum(scene.migrating.values()),
            "scale_max": max([*stored, before or 0]),
            "across": int(live[1] > live[0]),
        }


def _format_title(scene: RunView, grid: GroupMapping | None) -> str:
    if grid is not None:
        n, m = grid.mapping
        return f"Every pair of rows is met in one cell. {n} × {m} hosts share the cells."
    hosts = scene.points[-1].hosts
    on = f"on one of {hosts:,} hosts" if hosts > 1 else "on one host"
    if scene.start and scene.start.placement == "HashPartition":
        return f"Rows of equal keys meet {on}; other pairs never meet."
    return f"Every pair of rows is met {on}."
