"""The state map of a hypercube: the cells of the hosts, and how far a row of each stream goes.

Source: Afrati and Ullman 2010.
"""

from __future__ import annotations

from itertools import product
from math import prod
from typing import NamedTuple, TypedDict

from braid.papers.hypercube.run_events import SharesChosen

from braid_widgets.base.columnar import Columns
from braid_widgets.base.state_maps import StateMap


class CubeCell(NamedTuple):
    """A cell and its host; ``parts`` has its part of each dimension, from 0."""

    host: int
    parts: list[int]


class CubeDimension(NamedTuple):
    """A dimension: the streams that have it, and its number of parts."""

    streams: list[int]
    parts: int


class CubeFrame(TypedDict):
    """The cells after a batch.

    - ``reach``: by stream, the cells that store a row of it.
    - ``copies``: hosts that receive a row, on average, at the rates measured when the shares were
      chosen; ``copies_before`` with the shares before; null at the start.
    - ``before``: the shares before the last change; empty at the start.
    - ``since``: the batch, from 1, of that change.
    - ``idle``: hosts without a cell.
    - ``stored``: rows by host; ``moved`` are those that moved there in this batch.
    - ``scale_max``: rows of the darkest cell. Frames shown together use the maximum.
    """

    streams: list[str]
    rows: list[int]
    received: list[int]
    dimensions: Columns[CubeDimension]
    cells: Columns[CubeCell]
    reach: list[int]
    copies: float
    copies_before: float | None
    before: list[int]
    since: int
    idle: list[int]
    stored: list[int]
    moved: list[int]
    scale_max: int


class CubeMap(StateMap):
    """The state map of runs that share out the values of several equalities."""

    name = "hypercube"
    shown_kinds = (SharesChosen,)
    is_copying = True

    def make_frame(self) -> CubeFrame:
        chosen = self.scene.find_latest(SharesChosen)
        assert chosen is not None
        stored = self.list_by_host("stored_tuples")
        dimensions = [
            CubeDimension(list(streams), parts)
            for streams, parts in zip(chosen.dimensions, chosen.shares, strict=True)
        ]
        places = product(*map(range, chosen.shares))
        hosts = chosen.hosts or range(prod(chosen.shares))
        cells = [CubeCell(h, list(parts)) for h, parts in zip(hosts, places, strict=True)]
        names = list(self.scene.stream_aliases)
        return {
            "streams": names,
            "rows": list(self.last.live_tuples),
            "received": list(self.last.received_tuples),
            "dimensions": Columns.from_records(CubeDimension, dimensions),
            "cells": Columns.from_records(CubeCell, cells),
            "reach": [
                prod(d.parts for d in dimensions if stream not in d.streams)
                for stream in range(len(names))
            ],
            "copies": round(chosen.copies, 2),
            "copies_before": round(chosen.previous_copies, 2) if chosen.previous_shares else None,
            "before": list(chosen.previous_shares),
            "since": chosen.batch + 1,
            "idle": list(chosen.idle_hosts),
            "stored": stored,
            "moved": self.list_by_host("migrated_tuples"),
            "scale_max": max(stored, default=0),
        }
