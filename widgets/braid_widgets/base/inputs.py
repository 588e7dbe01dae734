"""Controls of the panels, all in one style: a name that says what it is, with the paper's symbol,
the unit and the range behind it, and a tip that says more. A number is typed, or chosen by the
thumb below its box. A value out of range is refused where it is typed; no control changes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import anywidget
import ipywidgets as W

from braid_widgets.base.film import bundle

REFUSED = "braid-refused"
"""The CSS class of a control whose value is out of range; ``stage.css`` draws it."""


PLACED = "which policy says where tuples are stored and joined"


def _style(tip: str, label: str = "220px") -> dict[str, Any]:
    width = {"description_width": label}
    return {"style": width, "layout": W.Layout(width="auto"), "tooltip": tip}


class _Ranged:
    """A number from ``low`` to ``high``; others are kept, marked, and refused by the panel."""

    def _within(self, text: str, low: float, high: float) -> None:
        self.text, self.low, self.high = text, low, high
        self.observe(self._judged, "value")  # type: ignore[attr-defined]
        self._judged()

    @property
    def refusal(self) -> str:
        """Why the value is not taken; nothing when it is."""
        value = self.value  # type: ignore[attr-defined]
        if self.low <= value <= self.high:
            return ""
        return f"{self.text} is {value:,}; it must be from {self.low:,} to {self.high:,}"

    def _judged(self, change: Any = None) -> None:
        mark = self.add_class if self.refusal else self.remove_class  # type: ignore[attr-defined]
        mark(REFUSED)


class Whole(_Ranged, W.IntText):
    """A box for a whole number."""


class Number(_Ranged, W.FloatText):
    """A box for a number."""


def _named(text: str, low: float, high: float) -> str:
    return f"{text} · {low:,} to {high:,}"


def whole(text: str, low: int, high: int, value: int, tip: str) -> Whole:
    """A whole number from ``low`` to ``high``."""
    control = Whole(description=_named(text, low, high), value=value, **_style(tip))
    control._within(text, low, high)
    return control


def number(
    text: str, low: float, high: float, value: float, step: float | None, tip: str
) -> Number:
    """A number from ``low`` to ``high``; ``step`` is that of the arrow buttons."""
    control = Number(description=_named(text, low, high), value=value, step=step, **_style(tip))
    control._within(text, low, high)
    return control


def choice(text: str, options: Sequence[Any] | dict[str, Any], value: Any, tip: str) -> W.Dropdown:
    """One of the options (values, pairs of label and value, or values by label); else the first."""
    chosen = {} if value is None else {"value": value}
    return W.Dropdown(description=text, options=options, **chosen, **_style(tip, "90px"))


def line(text: str, value: str, tip: str) -> W.Text:
    """Free text, which counts once Enter is pressed or the box is left."""
    return W.Text(description=text, value=value, continuous_update=False, **_style(tip, "130px"))


def switch(text: str, tip: str) -> W.Checkbox:
    """On or off; off at first."""
    return W.Checkbox(description=text, value=False, **_style(tip))


def slider(text: str, low: float, high: float, value: float, step: float, tip: str) -> Any:
    """A number that a thumb on a line chooses; it counts once the thumb is let go. Its name is
    short, so that the line has room.
    """
    bounds = dict(min=low, max=high, step=step, value=value, continuous_update=False)
    return W.FloatSlider(description=_named(text, low, high), **bounds, **_style(tip, "160px"))


def batches(value: int) -> Whole:
    """How many micro-batches."""
    return whole("micro-batches", 1, 1000, value, "in so many steps the input comes")


def pace(value: float) -> Number:
    """Seconds from batch to batch, at least."""
    tip = "a batch begins so long after the one before, or later; 0: as fast as it goes"
    return number("pace (s a batch)", 0, 60, value, 0.25, tip)


class Dials(anywidget.AnyWidget):
    """Puts a thumb below each number box of the panel that it stands in, and has the notebook's
    charts drawn as wide as they are.
    """

    _esm = bundle("dials")


def refusals(controls: Sequence[Any]) -> list[str]:
    """Why values of these controls are not taken."""
    return [text for c in controls if (text := getattr(c, "refusal", ""))]
