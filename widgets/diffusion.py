"""Controls of a multiway join on many hosts: Simulate shows it at once (modelled), Launch runs it on Spark (measured)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any

import ipywidgets as W

from widgets import by_arrival, loads, routing, segments
from widgets.charts import Chart
from widgets.player import problem
from widgets.stage import WIDTH

VIEWS: Mapping[str, Callable[[list[Any]], Chart]] = {
    "Segments": segments.figure,
    "Join matrix": by_arrival.figure,
    "Routing path": routing.figure,
    "Host loads": loads.figure,
}

Act = Callable[[dict[str, Any]], list[Any]]
"""From settings to the events of a run that has ended."""


class DiffusionPanel(W.VBox):
    """``simulate`` and ``launch`` get the settings and return events; ``launch`` may take minutes and has a thread of its own.

    ``defaults`` set controls by name: placement, streams, window, slowest, fastest, selectivity, hosts, length, copies, bursts,
    burst. ``events`` are those that the views show; ``error`` keeps what went wrong. Raises ValueError for a name that is not a
    control.
    """

    def __init__(self, simulate: Act, launch: Act, placements: tuple[str, ...], **defaults: Any) -> None:
        self.error: BaseException | None = None
        self.events: list[Any] = []
        self._lock, self._thread = threading.RLock(), None
        self.inputs = _inputs(placements)
        if unknown := sorted(set(defaults) - set(self.inputs)):
            raise ValueError(f"the panel has no control {unknown[0]!r}; it has: {', '.join(self.inputs)}")
        for name, value in defaults.items():
            self.inputs[name].value = value
        self.start = W.Button(description="Simulate", button_style="primary", icon="play")
        self.launch = W.Button(description="Launch on Spark", icon="rocket")
        self.status, self.message = W.Label(), W.HTML()
        self.start.on_click(lambda _: self._begin(simulate, "simulating…"))
        self.launch.on_click(lambda _: self._begin(launch, "running on Spark…"))
        self.inputs["bursts"].observe(self._relevant, "value")
        self.inputs["placement"].observe(self._relevant, "value")
        self.outputs = [W.Output() for _ in VIEWS]
        tabs = W.Tab(self.outputs, titles=list(VIEWS))
        columns = W.Layout(grid_template_columns="repeat(auto-fit, minmax(300px, 1fr))", grid_gap="0 16px")
        grid = W.GridBox(list(self.inputs.values()), layout=columns)
        bar = W.HBox([self.start, self.launch, self.status])
        super().__init__([grid, bar, self.message, tabs], layout=W.Layout(max_width=WIDTH))
        self._relevant()
        self._act(simulate, self.settings())

    def settings(self) -> dict[str, Any]:
        """The controls' values by name: plain literals."""
        return {name: control.value for name, control in self.inputs.items()}

    def wait(self, timeout: float | None = None) -> None:
        """Wait until what a button began is done."""
        if self._thread is not None:
            self._thread.join(timeout)

    def _relevant(self, change: Any = None) -> None:
        """Grey out what the choices do not heed."""
        self.inputs["burst"].disabled = not self.inputs["bursts"].value
        self.inputs["copies"].disabled = not self.inputs["placement"].value.startswith("CTR")

    def _begin(self, act: Act, text: str) -> None:
        if self._thread is not None and self._thread.is_alive():
            return
        self._able(False, text)
        settings = self.settings()
        self._thread = threading.Thread(target=self._act, args=(act, settings), name="braid-diffusion", daemon=True)
        self._thread.start()

    def _act(self, act: Act, settings: dict[str, Any]) -> None:
        self.error, text = None, ""
        try:
            self._show(act(settings))
        except Exception as error:
            self.error, text = error, problem(error)
        with self._lock:
            self.message.value = text
        self._able(True, "failed" if self.error else _told(self.events))

    def _able(self, on: bool, text: str) -> None:
        with self._lock:
            self.start.disabled = self.launch.disabled = not on
            self.status.value = text

    def _show(self, events: list[Any]) -> None:
        charts = [view(events) for view in VIEWS.values()]
        with self._lock:
            self.events = events
            for output, chart in zip(self.outputs, charts, strict=True):
                output.outputs = ({"output_type": "display_data", "data": chart._repr_mimebundle_(), "metadata": {}},)


def _told(events: list[Any]) -> str:
    start, end = events[0], events[-1]
    return f"{start.placement}, {start.hosts} hosts, {end.batch + 1} batches, {start.clock}"


def _inputs(placements: tuple[str, ...]) -> dict[str, Any]:
    style: dict[str, Any] = {"style": {"description_width": "150px"}, "layout": W.Layout(width="auto")}
    return {
        "placement": W.Dropdown(description="placement", options=placements, **style),
        "streams": W.BoundedIntText(description="streams n", min=2, max=6, value=3, **style),
        "window": W.BoundedFloatText(description="window W (s)", min=1, max=120, value=10.0, **style),
        "slowest": W.BoundedFloatText(description="rates from (tuples/s)", min=0.1, max=500, value=5.0, **style),
        "fastest": W.BoundedFloatText(description="rates to (tuples/s)", min=0.1, max=500, value=20.0, **style),
        "selectivity": W.BoundedFloatText(description="selectivity σ", min=0, max=1, step=0.05, value=0.1, **style),
        "hosts": W.BoundedIntText(description="hosts J", min=1, max=256, value=12, **style),
        "length": W.BoundedIntText(description="segment length T (s)", min=1, max=60, value=2, **style),
        "copies": W.BoundedIntText(description="copies L of CTR (0: √J)", min=0, max=256, value=0, **style),
        "bursts": W.Checkbox(description="bursts", value=False, **style),
        "burst": W.BoundedFloatText(description="bursty ratio θ", min=0, max=1, step=0.25, value=0.5, **style),
    }
