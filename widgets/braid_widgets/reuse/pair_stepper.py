"""A stepper for two queries of one's own: what is relaxed, and what compensates."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ipywidgets as W
from braid_lab.common.tuple_models import Trace

from braid_widgets.base.charts import STYLE, WIDTH
from braid_widgets.base.display import display_view
from braid_widgets.base.interactivity import is_headless
from braid_widgets.base.live_updates import error_html
from braid_widgets.base.static_fallback import StaticFallback
from braid_widgets.base.stepper import Stepper, step_frames


class QueryPairStepper(W.VBox):
    """Two boxes for queries, and the steps by which one operator serves both.

    It opens on the queries ``first`` and ``second``, which count again where a box is emptied.
    ``explain`` returns the steps for two texts; it raises ValueError with a sentence if one is no
    query, which is shown, and the steps stay.
    """

    def __init__(self, first: str, second: str, explain: Callable[[str, str], Trace]) -> None:
        self.film, self.message = Stepper(explain(first, second)), W.HTML()
        self.first, self.second = map(_make_query_box, (first, second))
        self.explain = explain
        for box in (self.first, self.second):
            box.observe(self._show_steps, "value")
        heading = W.HTML(f"{STYLE}<b>Two queries of your own</b>: change one, then click elsewhere")
        labelled = [
            W.VBox([W.Label(label), box], layout=W.Layout(flex="1 1 300px"))
            for label, box in (
                ("the query that the operator answers", self.first),
                ("the query that arrives", self.second),
            )
        ]
        boxes = W.HBox(labelled, layout=W.Layout(flex_flow="row wrap"))
        super().__init__(
            [heading, boxes, self.message, self.film], layout=W.Layout(max_width=WIDTH)
        )
        self.add_class("braid-live")

    def _show_steps(self, change: Any) -> None:
        try:
            trace = self.explain(
                *(box.value.strip() or box.placeholder for box in (self.first, self.second))
            )
        except ValueError as error:
            self.message.value = error_html(error)
            return
        self.message.value = ""
        self.film.set_frames(step_frames(trace), 0)


def _make_query_box(sql: str) -> W.Textarea:
    """Return a text box; its value changes when it loses focus."""
    layout = W.Layout(width="auto")
    return W.Textarea(sql, placeholder=sql, continuous_update=False, rows=5, layout=layout)


def show_pair_steps(first: str, second: str, explain: Callable[[str, str], Trace]) -> None:
    """Display the stepper; in a report the steps of these queries."""
    if is_headless():
        display_view(Stepper(explain(first, second)))
        return
    stepper = QueryPairStepper(first, second, explain)
    StaticFallback(stepper, stepper.film.to_html)
