"""Controls of the panels, all in one style: a name that says what it is, with the paper's symbol,
the unit and the range behind it, and a tip that says more. A number is typed, or chosen by the
thumb below its box. A value out of range is refused where it is typed; no control changes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import anywidget
import ipywidgets as W

from braid_widgets.base.player import read_bundle

REFUSED = "braid-refused"
"""The CSS class of a control whose value is out of range; ``stage.css`` draws it."""


PLACED = "which policy says where tuples are stored and joined"


def _make_style(tip: str, label: str = "220px") -> dict[str, Any]:
    width = {"description_width": label}
    return {"style": width, "layout": W.Layout(width="auto"), "tooltip": tip}


class _Ranged:
    """A number from ``low`` to ``high``; others are kept, marked, and refused by the panel."""

    def _set_range(self, text: str, low: float, high: float) -> None:
        self.text, self.low, self.high = text, low, high
        self.observe(self._mark_validity, "value")  # type: ignore[attr-defined]
        self._mark_validity()

    @property
    def refusal(self) -> str:
        """Why the value is not taken; nothing when it is."""
        value = self.value  # type: ignore[attr-defined]
        if self.low <= value <= self.high:
            return ""
        return f"{self.text} is {value:,}; it must be from {self.low:,} to {self.high:,}"

    def _mark_validity(self, change: Any = None) -> None:
        mark = self.add_class if self.refusal else self.remove_class  # type: ignore[attr-defined]
        mark(REFUSED)


class IntControl(_Ranged, W.IntText):
    """A box for a whole number."""


class FloatControl(_Ranged, W.FloatText):
    """A box for a number."""


def _format_label(text: str, low: float, high: float) -> str:
    return f"{text} · {low:,} to {high:,}"


def int_control(text: str, low: int, high: int, value: int, tip: str) -> IntControl:
    """A whole number from ``low`` to ``high``."""
    control = IntControl(
        description=_format_label(text, low, high), value=value, **_make_style(tip)
    )
    control._set_range(text, low, high)
    return control


def float_control(
    text: str, low: float, high: float, value: float, step: float | None, tip: str
) -> FloatControl:
    """A number from ``low`` to ``high``; ``step`` is that of the arrow buttons."""
    control = FloatControl(
        description=_format_label(text, low, high), value=value, step=step, **_make_style(tip)
    )
    control._set_range(text, low, high)
    return control


def choice_control(
    text: str, options: Sequence[Any] | dict[str, Any], value: Any, tip: str
) -> W.Dropdown:
    """One of the options (values, pairs of label and value, or values by label); else the first."""
    chosen = {} if value is None else {"value": value}
    return W.Dropdown(description=text, options=options, **chosen, **_make_style(tip, "90px"))


def text_control(text: str, value: str, tip: str) -> W.Text:
    """Free text, which counts once Enter is pressed or the box is left."""
    return W.Text(
        description=text, value=value, continuous_update=False, **_make_style(tip, "130px")
    )


def checkbox_control(text: str, tip: str) -> W.Checkbox:
    """On or off; off at first."""
    return W.Checkbox(description=text, value=False, **_make_style(tip))


def slider_control(text: str, low: float, high: float, value: float, step: float, tip: str) -> Any:
    """A number that a thumb on a line chooses; it counts once the thumb is let go. Its name is
    short, so that the line has room.
    """
    bounds = dict(min=low, max=high, step=step, value=value, continuous_update=False)
    return W.FloatSlider(
        description=_format_label(text, low, high), **bounds, **_make_style(tip, "160px")
    )


def batches_control(value: int) -> IntControl:
    """How many micro-batches."""
    return int_control("micro-batches", 1, 1000, value, "in so many steps the input comes")


def pace_control(value: float) -> FloatControl:
    """Seconds from batch to batch, at least."""
    tip = "a batch begins so long after the one before, or later; 0: as fast as it goes"
    return float_control("pace (s a batch)", 0, 60, value, 0.25, tip)


class NumberSliders(anywidget.AnyWidget):
    """Puts a thumb below each number box of the panel that it stands in, and has the notebook's
    charts drawn as wide as they are.
    """

    _esm = read_bundle("dials")


def validation_errors(controls: Sequence[Any]) -> list[str]:
    """Why values of these controls are not taken."""
    return [text for c in controls if (text := getattr(c, "refusal", ""))]
