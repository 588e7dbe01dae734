"""A stepper for tuples typed by the user."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ipywidgets as W
from braid_lab.common.tuple_models import Trace

from braid_widgets.base import controls
from braid_widgets.base.charts import STYLE, WIDTH
from braid_widgets.base.display import display_view
from braid_widgets.base.interactivity import is_headless
from braid_widgets.base.live_updates import error_html
from braid_widgets.base.static_fallback import StaticFallback
from braid_widgets.base.stepper import Stepper, step_frames

HINT = "a letter each, in order of arrival; a:2 has the value 2, others 1; - is a second without"


class TypedTupleStepper(W.VBox):
    """A stepper that shows ``example`` until the user types tuples, then their ``trace``.

    ``trace`` is called with the text; it raises ValueError with a sentence if the text is invalid.
    """

    def __init__(self, example: Trace, trace: Callable[[str], Trace], letter: str = "V") -> None:
        self.film, self.trace, self.letter = Stepper(example, letter), trace, letter
        self.text = controls.text_control("", "", f"your own tuples: {HINT}")
        self.text.placeholder, self.message = "a b a:2 b:2", W.HTML()
        self.text.observe(self._show_typed_tuples, "value")
        heading = W.HTML(f"{STYLE}<b>Your own tuples</b>: {HINT}")
        parts = [heading, self.text, self.message, self.film]
        super().__init__(parts, layout=W.Layout(max_width=WIDTH))
        self.add_class("braid-live")
        self.example = example

    def _show_typed_tuples(self, change: Any) -> None:
        """Show the steps of the typed tuples; of the example if the text is empty."""
        text = change["new"].strip()
        try:
            trace = self.trace(text) if text else self.example
        except ValueError as error:
            self.message.value = error_html(error)
            return
        self.message.value = ""
        self.film.set_frames(step_frames(trace, self.letter), 0)


def show_typed_steps(example: Trace, trace: Callable[[str], Trace], letter: str = "V") -> None:
    """Display the steps of an example with a box for other tuples; in a report only the example."""
    if is_headless():
        display_view(Stepper(example, letter))
        return
    stepper = TypedTupleStepper(example, trace, letter)
    StaticFallback(stepper, stepper.film.to_html)
