"""Key figures with names, as in the strips above views."""

from __future__ import annotations

from typing import NamedTuple

RECENT = 10
"""Number of latest batches over which a rate is measured."""


class KeyFigure(NamedTuple):
    """One figure: its name, its value with the unit, and a tooltip with its exact definition."""

    name: str
    value: str
    tooltip: str
