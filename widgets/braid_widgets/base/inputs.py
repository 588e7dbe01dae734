"""Controls of the panels, all in one style: a text before them, as wide as their column."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ipywidgets as W


def _style() -> dict[str, Any]:
    return {"style": {"description_width": "150px"}, "layout": W.Layout(width="auto")}


def whole(text: str, low: int, high: int, value: int) -> W.BoundedIntText:
    """A whole number from ``low`` to ``high``."""
    return W.BoundedIntText(description=text, min=low, max=high, value=value, **_style())


def number(
    text: str, low: float, high: float, value: float, step: float | None = None
) -> W.BoundedFloatText:
    """A number from ``low`` to ``high``; ``step`` is that of the arrow buttons."""
    return W.BoundedFloatText(
        description=text, min=low, max=high, value=value, step=step, **_style()
    )


def choice(text: str, options: Sequence[Any] | dict[str, Any], value: Any = None) -> W.Dropdown:
    """One of the options (values, pairs of label and value, or values by label); else the first."""
    chosen = {} if value is None else {"value": value}
    return W.Dropdown(description=text, options=options, **chosen, **_style())


def line(text: str, value: str) -> W.Text:
    """Free text, which counts once Enter is pressed or the box is left."""
    return W.Text(description=text, value=value, continuous_update=False, **_style())


def switch(text: str) -> W.Checkbox:
    """On or off; off at first."""
    return W.Checkbox(description=text, value=False, **_style())


def batches(value: int) -> W.BoundedIntText:
    """How many micro-batches."""
    return whole("micro-batches", 1, 1000, value)


def pace(value: float) -> W.BoundedFloatText:
    """Seconds from batch to batch, at least."""
    return number("pace (s per batch)", 0, 60, value, 0.25)
