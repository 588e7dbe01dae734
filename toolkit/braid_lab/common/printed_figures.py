"""What a paper prints of a figure, as numbers: values, ranges and places that its text or tables
state. The curves themselves cannot be read from a text, and are not guessed.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class PrintedFigure:
    """Numbers of a paper, in the units of our chart of the same figure.

    Without ``y`` it is a place on the x axis (two: from here to there), such as the one where
    curves cross; without ``x`` it is a level for every x of ours.
    """

    where: str
    """Figure and section."""
    caption: str
    """What the paper states, in our words."""
    x: tuple[float, ...] = ()
    y: tuple[float, ...] = ()
    """One for each x, or one for all."""
    y_max: tuple[float, ...] = ()
    """Where a range is printed, its upper ends; ``y`` are the lower ones."""
    series: str = ""
    """The curve of ours that it is about; empty: all."""
    measure: str = ""
    """Where a ratio is printed: to which curve of ours."""
    interpretation: str = ""
    """What of it the paper leaves open, and how it is read here."""
