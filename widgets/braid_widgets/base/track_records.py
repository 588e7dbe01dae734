"""The tracks of a time line: curves and bars by batch."""

from __future__ import annotations

from collections.abc import Iterable
from math import isfinite
from typing import TypedDict


class Series(TypedDict):
    """A curve by batch (from 1).

    - ``role``: "main", "mean", "baseline" (modelled, dashed) or "stream0" and so on; in bars, the
      phase.
    - ``name``: of a row of a heat track, what selects it, such as "query:late".
    """

    name: str
    role: str
    batch: list[int]
    values: list[float | None]


class Track(TypedDict):
    """A row of the time line.

    - ``kind``: "bars" (its series are stacked), "lines", or "heat" (a row for each series), which
      replaces the rows of hosts until another measure of them is chosen.
    - ``unit``: unit of its values, such as "s" or "rows".
    - ``top``: the end of its scale. It never shrinks in a run.
    - ``limit``: drawn dashed; null without one.
    """

    name: str
    kind: str
    unit: str
    top: float
    limit: float | None
    series: list[Series]


def make_series(name: str, role: str, batches: list[int], values: Iterable[float]) -> Series:
    """Return a curve; values that are not finite are null."""
    rounded = [float(f"{v:.5g}") if isfinite(v) else None for v in values]
    return {"name": name, "role": role, "batch": batches, "values": rounded}


def make_track(name: str, kind: str, unit: str, series: list[Series], limit: float | None) -> Track:
    """Return a track whose scale is not known yet."""
    return {"name": name, "kind": kind, "unit": unit, "top": 0, "limit": limit, "series": series}
