"""Controls of a ring: each change is simulated at once and shown; Launch runs the same on Spark."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import ipywidgets as W

from widgets.player import Run, problem
from widgets.ring import Ring
from widgets.stage import WIDTH

INTERVAL = 0.5
"""Seconds between two looks at a running join."""


class RingPanel(W.VBox):
    """``simulate`` gets the settings and returns events, within a second or so; ``launch`` returns a run, and may take its time.

    ``defaults`` set controls by name: rates, windows, streams, sigma, nodes, form, slicing, resize. ``events`` are those that the
    view shows, ``run`` is the last launched; ``error`` keeps what went wrong. Raises ValueError for a name that is not a control.
    """

    def __init__(
        self, simulate: Callable[[dict[str, Any]], list[Any]], launch: Callable[[dict[str, Any]], Run], **defaults: Any
    ) -> None:
        self.simulate, self.launch = simulate, launch
        self.run: Run | None = None
        self.error: BaseException | None = None
        self._thread: threading.Thread | None = None
        self.inputs = _inputs()
        if unknown := sorted(set(defaults) - set(self.inputs)):
            raise ValueError(f"the panel has no control {unknown[0]!r}; it has: {', '.join(self.inputs)}")
        for name, value in defaults.items():
            self.inputs[name].value = value
        self.start = W.Button(description="Launch on Spark", button_style="primary", icon="play")
        self.status, self.message = W.Label("modelled: every change is simulated at once"), W.HTML()
        self.events = simulate(self.settings())
        self.view = Ring(self.events)
        for control in self.inputs.values():
            control.observe(self._changed, "value")
        self.start.on_click(self._launch)
        columns = W.Layout(grid_template_columns="repeat(auto-fit, minmax(300px, 1fr))", grid_gap="0 16px")
        grid = W.GridBox(list(self.inputs.values()), layout=columns)
        bar = W.HBox([self.start, self.status])
        super().__init__([grid, bar, self.message, self.view], layout=W.Layout(max_width=WIDTH))

    def settings(self) -> dict[str, Any]:
        """The controls' values by name: plain literals."""
        return {name: control.value for name, control in self.inputs.items()}

    def wait(self, timeout: float | None = None) -> None:
        """Wait until a launched run has ended and been shown."""
        if self._thread is not None:
            self._thread.join(timeout)

    def _changed(self, change: Any) -> None:
        if self._thread is not None and self._thread.is_alive():
            return
        self.message.value, self.error = "", None
        try:
            events = self.simulate(self.settings())
        except ValueError as error:
            self._fail(error)
            return
        self._show(events)
        self.status.value = "modelled: every change is simulated at once"

    def _launch(self, button: Any) -> None:
        if self._thread is not None and self._thread.is_alive():
            return
        self.message.value, self.error = "", None
        self.start.disabled = True
        self._thread = threading.Thread(target=self._follow, args=(self.settings(),), name="braid-ring", daemon=True)
        self._thread.start()

    def _follow(self, settings: dict[str, Any]) -> None:
        """One thread starts the run, looks at it now and then, and repaints when there is a new batch."""
        try:
            self.status.value = "starting Spark…"
            self.run = self.launch(settings)
            self.status.value, seen, pause = "running on Spark", 0, threading.Event()
            while self.run.isActive:
                pause.wait(INTERVAL)
                seen = self._repaint(self.run.events(), seen)
            if (error := self.run.exception()) is not None:
                raise error
            self._repaint(self.run.events(), seen)
            self.status.value = "measured on Spark; a change of the controls simulates again"
        except Exception as error:
            self._fail(error)
        finally:
            self.start.disabled = False

    def _repaint(self, events: list[Any], seen: int) -> int:
        if len(events) > seen and any(type(e).__name__ == "BatchCommitted" for e in events):
            self._show(events)
        return len(events)

    def _show(self, events: list[Any]) -> None:
        self.events = events
        self.view.load(events)

    def _fail(self, error: BaseException) -> None:
        self.error = error
        self.message.value = problem(error)


FORMS = {"PSP (basic)": "basic", "PSP-I (interleaved)": "interleaved", "PSP-D (dynamic)": "dynamic"}


def _inputs() -> dict[str, Any]:
    style: dict[str, Any] = {"style": {"description_width": "130px"}, "layout": W.Layout(width="auto")}
    late: dict[str, Any] = {"continuous_update": False, **style}
    return {
        "streams": W.BoundedIntText(description="streams M", min=2, max=5, value=3, **style),
        "rates": W.Text(description="rates λ (tuples/s)", value="20", **late),
        "windows": W.Text(description="windows W (s)", value="10", **late),
        "sigma": W.BoundedFloatText(description="selectivity σ", min=0, max=1, step=0.01, value=0.05, **style),
        "nodes": W.BoundedIntText(description="nodes N", min=1, max=24, value=6, **style),
        "form": W.Dropdown(description="form", options=FORMS, value="dynamic", **style),
        "slicing": W.Dropdown(description="slices by", options=["time", "count"], value="time", **style),
        "resize": W.BoundedIntText(description="half-way to nodes", min=0, max=24, value=0, **style),
    }  # fmt: skip
