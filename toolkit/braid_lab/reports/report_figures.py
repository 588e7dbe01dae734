"""Figures of a report: their records, their texts, and how runs differ in them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from statistics import median
from typing import Literal

from braid.util.durations import UNITS, format_duration

Better = Literal["less", "more", ""]
RECENT = 8
"""Number of earlier runs that a figure is compared with."""
FEW = 4
"""Minimum number of earlier runs from which a change is called one."""
DEVIATIONS, SHARE = 3.0, 0.05
"""A change is beyond this many median absolute deviations, and this share of the median."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One number that a report finds.

    - ``name``: what is counted or measured, such as "rows on the fullest host".
    - ``unit``: "s", "%", "rows" and so on; empty: the number has none.
    - ``better``: which direction is an improvement; empty: neither.
    """

    name: str
    value: float
    unit: str = ""
    better: Better = ""

    def __post_init__(self) -> None:
        if not self.name or not isfinite(self.value):
            raise ValueError(
                f"the figure {self.name!r} is {self.value}; it takes a name and a finite number"
            )
        if self.better not in ("less", "more", ""):
            raise ValueError(f"better is {self.better!r}; it takes 'less', 'more' or ''")

    @property
    def text(self) -> str:
        """The value with its unit, unless the name states the unit."""
        if self.unit == "s" and self.value >= 120:
            return format_duration(self.value * UNITS["second"])
        shown = format_number(self.value)
        return shown if not self.unit or self.unit in self.name.split() else f"{shown} {self.unit}"


def format_number(value: float) -> str:
    """Return a number with separated thousands; fractions have three significant digits."""
    if abs(value) >= 10_000_000:
        return f"{value / 1e6:,.4g} M"
    if value == int(value) or abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}"


@dataclass(frozen=True, slots=True)
class Change:
    """The difference of a figure from earlier runs of equal settings.

    - ``text``: in a few words, such as "9 % slower than usual".
    - ``is_change``: whether the difference is beyond the spread of the earlier runs.
    - ``tone``: "good", "bad" or "" (no change, or neither is better).
    - ``rises``: whether the value is greater than usual.
    """

    text: str
    is_change: bool = False
    tone: str = ""
    rises: bool = False


_WORDS = {"s": ("slower", "faster"), "rows": ("more", "fewer"), "results": ("more", "fewer")}


def compare_figure(figure: Figure, earlier: Sequence[float]) -> Change:
    """Return the change of a figure from its values in earlier runs, the oldest first.

    It is called a change only beyond three median absolute deviations of the last eight runs and
    over 5 % of their median. Fewer than four runs are too few to say.
    """
    if not earlier:
        return Change("first run")
    recent = earlier[-RECENT:]
    middle = median(recent)
    if len(recent) < FEW:
        return Change("too few runs to compare")
    spread = median(abs(value - middle) for value in recent)
    difference = figure.value - middle
    if abs(difference) <= max(DEVIATIONS * spread, SHARE * abs(middle)):
        return Change("as usual")
    return _describe_change(figure, difference, middle)


def _describe_change(figure: Figure, difference: float, usual: float) -> Change:
    rises = difference > 0
    more, less = _WORDS.get(figure.unit, ("higher", "lower"))
    tone = "" if not figure.better else "good" if rises == (figure.better == "more") else "bad"
    amount = (
        f"{abs(difference / usual):.0%}".replace("%", " %")
        if usual
        else format_number(abs(difference))
    )
    return Change(f"{amount} {more if rises else less} than usual", True, tone, rises)
