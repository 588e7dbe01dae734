"""Input controls of the panels, all in one style.

A label has the name, the paper's symbol, the unit and the range; a tooltip explains the rest. A
number is typed, or chosen with the slider below its box. A value out of range is refused where it
is typed; no control changes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import anywidget
import ipywidgets as W
from braid.condition.query_text import format_query_text, parse_query_texts
from braid.core.query import Query

from braid_widgets.base.player import read_bundle

REFUSED = "braid-refused"
"""The CSS class of a control whose value is out of range; ``stage.css`` styles it."""


WORDY = "braid-wordy"
"""The CSS class of a control with a row of its own, for long file names, conditions and queries."""


PLACED = "policy that decides where tuples are stored and joined"


def _make_style(tip: str, label: str = "220px") -> dict[str, Any]:
    width = {"description_width": label}
    return {"style": width, "layout": W.Layout(width="auto"), "tooltip": tip}


class _Ranged:
    """A number from ``low`` to ``high``. A value out of range stays, is marked, and is refused by
    the panel.
    """

    def _set_range(self, text: str, low: float, high: float) -> None:
        self.text, self.low, self.high = text, low, high
        self.observe(self._mark_validity, "value")  # type: ignore[attr-defined]
        self._mark_validity()

    @property
    def refusal(self) -> str:
        """Return why the value is invalid; empty if it is valid."""
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


class QueriesControl(_Ranged, W.Textarea):
    """A box with a query of a shared join in each line; see ``braid.condition.query_text``.

    Raises ValueError for queries that are not over these streams.
    """

    def __init__(self, streams: Sequence[str], queries: Sequence[Query]) -> None:
        tip = "name: windows where selection; a window for all streams, or a: 1 hour, b: 5 minutes"
        super().__init__(
            description="queries", rows=len(queries) + 1, continuous_update=False, tooltip=tip
        )
        self.layout.width = "auto"
        self.add_class(WORDY)
        self.observe(self._mark_validity, "value")
        self.load_queries(streams, queries)

    def load_queries(
        self, streams: Sequence[str], queries: Sequence[Query], text: str | None = None
    ) -> None:
        """Replace the streams and their queries, which ``text`` replaces if it is given."""
        lines = "\n".join(format_query_text(query, streams) for query in queries)
        parse_query_texts(lines, streams)
        self.streams = tuple(streams)
        self.value = lines if text is None else text

    @property
    def setting(self) -> tuple[Query, ...]:
        """The queries. Raises ValueError if one is invalid."""
        return parse_query_texts(self.value, self.streams)

    def format_lines(self) -> list[str]:
        """Return a line for each query. Raises ValueError if one is invalid."""
        return [format_query_text(query, self.streams) for query in self.setting]

    @property
    def refusal(self) -> str:
        """Return why a query is invalid; empty if all are valid."""
        try:
            parse_query_texts(self.value, self.streams)
        except ValueError as error:
            return str(error)
        return ""


def _format_label(text: str, low: float, high: float) -> str:
    return f"{text} · {low:,} to {high:,}"


def int_control(text: str, low: int, high: int, value: int, tip: str) -> IntControl:
    """Return a box for a whole number from ``low`` to ``high``."""
    control = IntControl(
        description=_format_label(text, low, high), value=value, **_make_style(tip)
    )
    control._set_range(text, low, high)
    return control


def float_control(
    text: str, low: float, high: float, value: float, step: float | None, tip: str
) -> FloatControl:
    """Return a box for a number from ``low`` to ``high``; its arrows change it by ``step``."""
    control = FloatControl(
        description=_format_label(text, low, high), value=value, step=step, **_make_style(tip)
    )
    control._set_range(text, low, high)
    return control


def choice_control(
    text: str, options: Sequence[Any] | dict[str, Any], value: Any, tip: str
) -> W.Dropdown:
    """Return a dropdown of the options: values, (label, value) pairs, or values by label.

    Without a ``value`` the first option is selected.
    """
    chosen = {} if value is None else {"value": value}
    return W.Dropdown(description=text, options=options, **chosen, **_make_style(tip, "90px"))


def text_control(text: str, value: str, tip: str) -> W.Text:
    """Return a text box; its value changes when Enter is pressed or the box loses focus."""
    return W.Text(
        description=text, value=value, continuous_update=False, **_make_style(tip, "130px")
    )


def checkbox_control(text: str, tip: str) -> W.Checkbox:
    """Return a checkbox that is initially off."""
    return W.Checkbox(description=text, value=False, **_make_style(tip))


def slider_control(text: str, low: float, high: float, value: float, step: float, tip: str) -> Any:
    """Return a slider; its value changes when the thumb is released.

    Keep ``text`` short, to leave room for the slider.
    """
    bounds = dict(min=low, max=high, step=step, value=value, continuous_update=False)
    return W.FloatSlider(
        description=_format_label(text, low, high), **bounds, **_make_style(tip, "160px")
    )


def batches_control(value: int) -> IntControl:
    """Return the control for the number of micro-batches."""
    return int_control("micro-batches", 1, 1000, value, "steps in which the input arrives")


def pace_control(value: float) -> FloatControl:
    """Return the control for the minimum number of seconds between batches."""
    tip = "minimum time between two batches; 0: as fast as possible"
    return float_control("pace (s a batch)", 0, 60, value, 0.25, tip)


class NumberSliders(anywidget.AnyWidget):
    """A widget that adds a slider below each number box of its panel and resizes the notebook's
    charts.
    """

    _esm = read_bundle("dials")


def validation_errors(controls: Sequence[Any]) -> list[str]:
    """Return why the values of these controls are invalid, one sentence each."""
    return [text for c in controls if (text := getattr(c, "refusal", ""))]
