"""Input controls of the panels, all in one style: a panel has a table with a row for each.

A label has the name, the paper's symbol, the unit and the range; a tooltip explains the rest. A
number is typed, or chosen with the arrows of its box. A value out of range is refused where it is
typed; no control changes it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import ipywidgets as W
from braid.condition.query_text import format_query_text, parse_query_texts
from braid.core.placement import placements_for
from braid.core.query import Query

REFUSED = "braid-refused"
"""The CSS class of a control whose value is out of range; ``stage.css`` styles it."""
WORDY = "braid-wordy"
"""The CSS class of a control with a row of its own, for long file names, conditions and queries."""


class Row(NamedTuple):
    """A row of a table of controls. The type of ``value`` decides which control it is.

    - ``takes``: the range of a number; the options of a choice, or a function that lists them;
      None for a text. Options are (label, value) pairs or values by label. The first one is
      selected if ``value`` is None.
    - ``step``: the change of a number by the arrows of its box; by default 1, and of a fraction a
      hundredth of the highest value or more.
    - ``is_used``: whether the control is used, by the values of all controls.
    """

    label: str
    value: Any
    takes: Any
    tip: str
    step: float | None = None
    is_used: Callable[[Mapping[str, Any]], bool] = lambda chosen: True


def make_control(row: Row) -> Any:
    """Return the widget of a row; the value of a text changes with Enter or when it loses focus."""
    value, takes = row.value, row.takes
    if isinstance(value, bool):
        return W.Checkbox(value=value, **_make_style(row))
    if isinstance(value, int | float):
        return (IntControl if isinstance(value, int) else FloatControl)(row)
    if takes is None:
        return W.Combobox(value=value, continuous_update=False, **_make_style(row, "130px"))
    chosen = {} if value is None else {"value": value}
    options = takes() if callable(takes) else takes
    return W.Dropdown(options=options, **chosen, **_make_style(row, "90px"))


def _make_style(row: Row, width: str = "220px") -> dict[str, Any]:
    style, layout = {"description_width": width}, W.Layout(width="auto")
    return {"description": row.label, "tooltip": row.tip, "style": style, "layout": layout}


class _Ranged:
    """A number from ``low`` to ``high``. An invalid value stays, is marked, and is refused by the
    panel.
    """

    def __init__(self, row: Row) -> None:
        self.text, (self.low, self.high) = row.label, row.takes
        digits = len(str(int(self.high)))
        step = row.step or (1 if isinstance(self, IntControl) else 10.0 ** (digits - 3))
        super().__init__(value=row.value, step=step, **_make_style(row))  # type: ignore[call-arg]
        self.description = f"{row.label} · {self.low:,} to {self.high:,}"
        self.observe(_mark_validity, "value")  # type: ignore[attr-defined]

    @property
    def refusal(self) -> str:
        """Return why the value is invalid; empty if it is valid."""
        value = self.setting
        is_fraction = isinstance(self, IntControl) and isinstance(value, float)
        if self.low <= value <= self.high and not is_fraction:
            return ""
        kind = "a whole number " if is_fraction else ""
        return f"{self.text} is {value:,}; it must be {kind}from {self.low:,} to {self.high:,}"

    @property
    def setting(self) -> float:
        """Return the number as a run takes it."""
        return float(self.value)  # type: ignore[attr-defined]


def _mark_validity(change: Any) -> None:
    control = change.owner
    (control.add_class if control.refusal else control.remove_class)(REFUSED)


class IntControl(_Ranged, W.FloatText):
    """A box for a whole number. A fraction stays as it was typed, and is refused."""

    @property
    def setting(self) -> float:
        """Return the whole number, or the fraction, which is refused."""
        return int(self.value) if super().setting.is_integer() else super().setting


class FloatControl(_Ranged, W.FloatText):
    """A box for a number."""


def describe_values(control: Any) -> str:
    """Return the values that a control accepts, in words."""
    if isinstance(control, _Ranged):
        kind = "whole number" if isinstance(control, IntControl) else "number"
        return f"a {kind} from {control.low:,} to {control.high:,}"
    if isinstance(control, W.Dropdown):
        return f"one of {', '.join(map(repr, dict(control.options).values()))}"
    return "True or False" if isinstance(control, W.Checkbox) else "a text"


class QueriesControl(W.Textarea):
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
        self.load_queries(streams, queries)
        self.observe(_mark_validity, "value")

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


def list_placements(equality: bool = True) -> list[tuple[str, str]]:
    """Return labels and names of the placements of two streams."""
    return [(kind.label, name) for name, kind in placements_for(2, equality).items()]


PLACED = "policy that decides where tuples are stored and joined"
HOSTS = Row("hosts (J)", 16, (1, 256), "logical hosts that share the join")
BATCHES = Row("micro-batches", 20, (1, 1000), "steps in which the input arrives")
SLOWLY = "minimum time between two batches; 0: as fast as possible"
PACE = Row("pace (s a batch)", 0.5, (0, 60), SLOWLY, 0.25)
