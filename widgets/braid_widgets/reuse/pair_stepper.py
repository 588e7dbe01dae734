"""A stepper for two queries of one's own: what is relaxed, and what compensates."""

from __future__ import annotations

from collections.abc import Callable

import ipywidgets as W
from braid_lab.common.tuple_models import Trace

from braid_widgets.base.typed_steps import EditableStepper, show_steps

LABELS = ("the query that the operator answers", "the query that arrives")
HEADING = "<b>Two queries of your own</b>: change one, then click elsewhere"


class QueryPairStepper(EditableStepper):
    """Two boxes for queries, and the steps by which one operator serves both.

    It opens on the queries ``first`` and ``second``, which count again where a box is emptied.
    ``explain`` returns the steps for two texts; it raises ValueError if one is no query.
    """

    def __init__(self, first: str, second: str, explain: Callable[[str, str], Trace]) -> None:
        self.first, self.second = boxes = list(map(_make_query_box, (first, second)))
        layout = W.Layout(flex="1 1 300px")
        columns = [
            W.VBox([W.Label(label), box], layout=layout)
            for label, box in zip(LABELS, boxes, strict=True)
        ]

        def explain_texts(text: str, other: str) -> Trace:
            return explain(text or first, other or second)

        form = W.HBox(columns, layout=W.Layout(flex_flow="row wrap"))
        super().__init__(explain(first, second), explain_texts, boxes, form, HEADING)


def _make_query_box(sql: str) -> W.Textarea:
    """Return a text box; its value changes when it loses focus."""
    layout = W.Layout(width="auto")
    return W.Textarea(sql, placeholder=sql, continuous_update=False, rows=5, layout=layout)


def show_pair_steps(first: str, second: str, explain: Callable[[str, str], Trace]) -> None:
    """Display the stepper; in a report the steps of these queries."""
    show_steps(explain(first, second), lambda: QueryPairStepper(first, second, explain))
