"""Numbers that a paper prints about its figures: values, ranges and places.

They are stated in the paper's text or tables. Curves cannot be read from a text and are not
guessed.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class PrintedFigure:
    """Numbers of a paper, in the units of our chart of the same figure.

    Without ``y`` it is a place on the x axis (two: an interval), such as the one where curves
    cross. Without ``x`` it is a level for every x of our chart.
    """

    where: str
    """Figure and section."""
    caption: str
    """The statement of the paper, in our words."""
    x: tuple[float, ...] = ()
    y: tuple[float, ...] = ()
    """One for each x, or one for all."""
    y_max: tuple[float, ...] = ()
    """Upper ends of a printed range; ``y`` are the lower ones."""
    series: str = ""
    """Our curve that it applies to; "": all."""
    measure: str = ""
    """Our curve that a printed ratio is relative to."""
    interpretation: str = ""
    """The questions that the paper leaves open, and their interpretation here."""
