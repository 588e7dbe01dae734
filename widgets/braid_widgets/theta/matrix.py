"""The join matrix: which host joins which part, the joined share of each part, and moves."""

from __future__ import annotations

from typing import NamedTuple, TypedDict

import numpy as np

from braid_widgets.base.columnar import Columns
from braid_widgets.base.join_matrix import tile_rectangles as tiles
from braid_widgets.base.run_view import RunView

STEP = 5
"""Shares are rounded to this many percent."""


class MatrixCell(NamedTuple):
    """A rectangle of the matrix, in shares of the two key spaces.

    ``percent`` is the share of its due pairs that are joined.
    """

    top: float
    bottom: float
    left: float
    right: float
    host: int
    percent: int
    moving: bool


class MoveChip(NamedTuple):
    """Tuples that move between hosts; source and target are in shares of the two key spaces."""

    x0: float
    y0: float
    x1: float
    y1: float
    stream: int
    rows: int
    source: int
    target: int


class MatrixFrame(TypedDict):
    """The join matrix of streams 0 (top to bottom) and 1 (left to right), with live tuples.

    It is drawn to scale, |R| by |S|. Several frames shown together use the maximum of ``max_rows``,
    so that the matrix visibly grows.
    """

    title: str
    note: str
    streams: list[str]
    rows: list[int]
    max_rows: int
    cells: Columns[MatrixCell]
    chips: Columns[MoveChip]


def matrix_cells(scene: RunView) -> list[MatrixCell]:
    """Return the matrix as rectangles.

    Stream 0 runs from top to bottom, stream 1 from left to right. ``percent`` is the share of due
    pairs that are joined. A cell is moving while its pairs are pending or its host receives copies.
    """
    joined = scene.join_matrix
    pending = scene.pending_density()
    due = joined.met + pending
    share = np.divide(joined.met, due, out=np.ones_like(due), where=due > 0)
    percent = np.floor(share * 100 / STEP + 1e-9).astype(int) * STEP
    moving = (pending > 0) | np.isin(joined.host, [c.target for c in scene.copies])
    code = np.where(joined.host < 0, -1, (joined.host * 101 + percent) * 2 + moving)
    code, rows = _merge_equal_rows(code, joined.cuts[0])
    columned, columns = _merge_equal_rows(code.T, joined.cuts[1])
    cells = []
    for r0, r1, c0, c1 in tiles(columned.T):
        value, migrates = divmod(int(columned[c0, r0]), 2)
        host, done = divmod(value, 101)
        corners = (
            *_compute_span_fractions(rows, r0, r1),
            *_compute_span_fractions(columns, c0, c1),
        )
        cells.append(MatrixCell(*corners, host, done, bool(migrates)))
    return cells


def _merge_equal_rows(code: np.ndarray, cuts: list[int]) -> tuple[np.ndarray, list[int]]:
    """Return the rows with equal neighbors merged, and the remaining cuts."""
    if len(code) == 0:
        return code, cuts
    first = np.append(True, (code[1:] != code[:-1]).any(1))
    return code[first], [*(c for c, f in zip(cuts, first, strict=False) if f), cuts[-1]]


def _compute_span_fractions(cuts: list[int], low: int, high: int) -> tuple[float, float]:
    span = cuts[-1] - cuts[0]
    return round((cuts[low] - cuts[0]) / span, 5), round((cuts[high] - cuts[0]) / span, 5)


def move_chips(scene: RunView, rectangles: list[MatrixCell]) -> list[MoveChip]:
    """Return the blocks copied in the last batch, one chip per stream and pair of hosts.

    A chip goes from the source host's largest cell to that of the target, in shares of the key
    spaces. It is placed in the upper right of a cell, beside the host's number.
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
        MoveChip(*anchor[a][1:], *anchor[b][1:], stream, n, a, b)
        for (a, b, stream), n in sorted(rows.items())
    ]


def matrix_frame(scene: RunView) -> MatrixFrame:
    """Return the frame of the join matrix."""
    rectangles = matrix_cells(scene)
    live = scene.last.live_tuples if scene.last else [0, 0]
    names = (
        [*scene.stream_aliases, "R", "S"][:2]
        if len(scene.stream_aliases) < 2
        else list(scene.stream_aliases[:2])
    )
    return {
        "title": f"Join matrix {names[0]} × {names[1]}: who joins what",
        "note": "color: host that joined last · pale: to come · outlined: migrating · "
        "squares: moving",
        "streams": names,
        "rows": list(live[:2]),
        "max_rows": max(live[:2]),
        "cells": Columns.from_records(MatrixCell, rectangles),
        "chips": Columns.from_records(MoveChip, move_chips(scene, rectangles)),
    }
