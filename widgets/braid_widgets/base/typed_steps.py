"""Steppers for what the user types."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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


class EditableStepper(W.VBox):
    """A stepper below text boxes: it opens on an example and then follows their texts.

    ``explain`` returns the steps for the texts of the ``boxes``, which the view ``form`` arranges.
    It raises ValueError with a sentence if a text is invalid, which is shown, and the steps stay.
    """

    def __init__(
        self,
        example: Trace,
        explain: Callable[..., Trace],
        boxes: Sequence[Any],
        form: W.Widget,
        heading: str,
        letter: str = "V",
    ) -> None:
        self.film, self.message = Stepper(example, letter), W.HTML()
        self.boxes, self.explain, self.letter = boxes, explain, letter
        for box in boxes:
            box.observe(self._show_steps, "value")
        parts = [W.HTML(f"{STYLE}{heading}"), form, self.message, self.film]
        super().__init__(parts, layout=W.Layout(max_width=WIDTH))
        self.add_class("braid-live")

    def _show_steps(self, change: Any) -> None:
        try:
            trace = self.explain(*(box.value.strip() for box in self.boxes))
        except ValueError as error:
            self.message.value = error_html(error)
            return
        self.message.value = ""
        self.film.set_frames(step_frames(trace, self.letter), 0)


class TypedTupleStepper(EditableStepper):
    """A stepper that shows ``example`` until the user types tuples, then their ``trace``.

    ``trace`` is called with the text; it raises ValueError with a sentence if the text is invalid.
    """

    def __init__(self, example: Trace, trace: Callable[[str], Trace], letter: str = "V") -> None:
        self.text = controls.text_control("", "", f"your own tuples: {HINT}")
        self.text.placeholder, heading = "a b a:2 b:2", f"<b>Your own tuples</b>: {HINT}"

        def explain(text: str) -> Trace:
            return trace(text) if text else example

        super().__init__(example, explain, [self.text], self.text, heading, letter)


def show_steps(example: Trace, make: Callable[[], EditableStepper], letter: str = "V") -> None:
    """Display a stepper for texts of the user's own; in a report only its example."""
    if is_headless():
        display_view(Stepper(example, letter))
        return
    stepper = make()
    StaticFallback(stepper, stepper.film.to_html)


def show_typed_steps(example: Trace, trace: Callable[[str], Trace], letter: str = "V") -> None:
    """Display the steps of an example with a box for other tuples; in a report only the example."""
    show_steps(example, lambda: TypedTupleStepper(example, trace, letter), letter)
