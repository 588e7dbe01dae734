"""The panel of a multiway join on many hosts.

Simulate shows the modelled run at once; Launch runs it on Spark, live and measured.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import ipywidgets as W
from braid.core.plan_sentences import format_count
from braid.core.run_events import BatchCommitted

from braid_widgets.base import controls
from braid_widgets.base.charts import Chart
from braid_widgets.base.launcher import PICTURE, Launch, LaunchPanel, State
from braid_widgets.diffusion import arrival_matrix, host_load, routing_path, segments

HEIGHT = "520px"
"""Height reserved for a view, so that the page does not jump when the view is redrawn."""

VIEWS: Mapping[str, Callable[[list[Any]], Chart]] = {
    "Segments": segments.segment_chart,
    "Join matrix": arrival_matrix.arrival_matrix,
    "Routing path": routing_path.route_chart,
    "Host loads": host_load.load_chart,
}


class DiffusionPanel(LaunchPanel):
    """A panel that simulates and launches a multiway join.

    - ``simulate``: called with the settings; returns the events of a simulated run, all at once or
      one by one. It is canceled if a control changes.
    - ``launch``: returns a run on Spark, which is shown live.
    - ``defaults``: initial values by control: placement, streams, window, slowest, fastest,
      selectivity, hosts, length, copies, bursts, burst.
    - ``events``: the visible events. Only the front view is drawn.

    Raises ValueError for a name that is not a control.
    """

    def __init__(
        self,
        simulate: Callable[[dict[str, Any]], Iterable[Any]],
        launch: Launch,
        placements: tuple[str, ...],
        **defaults: Any,
    ) -> None:
        self.events: list[Any] = []
        self._changed = threading.Event()
        self.simulate = W.Button(
            description="Simulate", button_style="primary", icon="play", tooltip="model the run"
        )
        super().__init__(launch, _make_controls(placements), defaults)
        self.start.button_style, self.start.icon = "", "rocket"
        self.bar.children = (self.simulate, *self.bar.children)
        self.simulate.on_click(lambda _: self._start_simulation(simulate))
        self.inputs["bursts"].observe(self._disable_unused_controls, "value")
        self.inputs["placement"].observe(self._disable_unused_controls, "value")
        self.outputs = [W.Output(layout=W.Layout(min_height=HEIGHT)) for _ in VIEWS]
        self.tabs = W.Tab(self.outputs, titles=list(VIEWS))
        self.tabs.add_class(PICTURE)
        self.tabs.observe(self._draw_front_view, "selected_index")
        self.children = (*self.children, self.tabs)
        self._disable_unused_controls()
        self._run_and_show_errors(lambda: self._simulate_and_show(simulate(self.settings())))
        for control in self.inputs.values():
            control.observe(lambda change: self._changed.set(), "value")

    def set_state(self, state: State, text: str | None = None) -> None:
        super().set_state(state, text)
        self.simulate.disabled = state != "idle"

    def show_events(self, events: list[Any]) -> None:
        """Draw these events in the open tab, and in other tabs when they are opened."""
        with self.lock:
            self.events = events
            for k, output in enumerate(self.outputs):
                if k != self.tabs.selected_index:
                    output.outputs = ()
            self._draw_front_view()

    def static_views(self) -> list[Chart]:
        """Return all views of the simulated run. Raises the error of a failed simulation."""
        if self.error is not None:
            raise self.error
        return [view(self.events) for view in VIEWS.values()]

    def _start_simulation(self, simulate: Callable[[dict[str, Any]], Iterable[Any]]) -> None:
        if self.state == "idle" and not self.has_invalid_controls():
            self._changed.clear()
            settings = self.settings()
            self.start_work("simulating", lambda: self._simulate_and_show(simulate(settings)))

    def _simulate_and_show(self, coming: Iterable[Any]) -> None:
        """Simulate a run and show its events, unless a control changes meanwhile."""
        events: list[Any] = []
        for event in coming:
            if self._changed.is_set():
                self.set_state(
                    "idle", "given up, as a control changed; Simulate models what it says"
                )
                return
            events.append(event)
            if isinstance(event, BatchCommitted):
                self.status.value = (
                    f"simulating… {event.batch + 1} of {events[0].planned_batches} batches"
                )
        self.show_events(events)
        start, end = events[0], events[-1]
        self.set_state(
            "idle",
            f"{start.placement}, {format_count(start.hosts, 'host')}, {end.batch + 1} batches, "
            "modelled",
        )

    def _disable_unused_controls(self, change: Any = None) -> None:
        """Disable controls that the current choices do not use."""
        placement = self.inputs["placement"].value
        self.inputs["burst"].disabled = not self.inputs["bursts"].value
        self.inputs["copies"].disabled = not placement.startswith("CTR")
        self.inputs["hosts"].disabled = self.inputs["length"].disabled = placement == "Centralized"

    def _draw_front_view(self, change: Any = None) -> None:
        """Draw the front view."""
        with self.lock:
            front = self.tabs.selected_index or 0
            if self.events:
                data = _render_view(list(VIEWS.values())[front], self.events)
                self.outputs[front].outputs = (
                    {"output_type": "display_data", "data": data, "metadata": {}},
                )


def _render_view(view: Callable[[list[Any]], Chart], events: list[Any]) -> dict[str, Any]:
    """Return a chart of the events, or a sentence that says why there is none yet."""
    try:
        return view(events)._repr_mimebundle_()
    except ValueError as error:
        return {"text/plain": str(error)}


SLOW = "each stream has its own rate, drawn between the slowest and the fastest, and changes it"
FAST = "no slower than the slowest"
BURSTS = "0: steady rates; 1: everything arrives in bursts, nothing between them"


def _make_controls(placements: tuple[str, ...]) -> dict[str, Any]:
    return {
        "placement": controls.choice_control("placement", placements, None, controls.PLACED),
        "streams": controls.int_control("streams (n)", 2, 6, 3, "number of joined streams"),
        "window": controls.float_control(
            "window (W, s)", 1, 120, 10.0, None, "how long a tuple can be joined"
        ),
        "slowest": controls.float_control("slowest rate (tuples/s)", 0.1, 500, 5.0, None, SLOW),
        "fastest": controls.float_control("fastest rate (tuples/s)", 0.1, 500, 20.0, None, FAST),
        "selectivity": controls.float_control(
            "selectivity (σ)", 0, 1, 0.1, 0.05, "share of pairs that match"
        ),
        "hosts": controls.int_control("hosts (J)", 1, 256, 12, "logical hosts that share the join"),
        "length": controls.int_control(
            "segment length (T, s)", 1, 60, 2, "tuples of a segment take the same route"
        ),
        "copies": controls.int_control(
            "copies (L; 0: √J)",
            0,
            256,
            0,
            "hosts that store a segment under CTR; 0: the square root of their number",
        ),
        "bursts": controls.checkbox_control("bursts", "rates rise and fall"),
        "burst": controls.float_control("share in bursts (θ)", 0, 1, 0.5, 0.25, BURSTS),
    }
