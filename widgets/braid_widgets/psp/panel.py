"""Controls of a ring: each change is simulated at once and shown; Launch runs the same on Spark,
live.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ipywidgets as W

from braid_widgets.base.launcher import Launch, Launcher
from braid_widgets.psp.ring import Ring

MODELLED = "modelled: every change is simulated at once"


class RingPanel(Launcher):
    """``simulate`` gets the settings and returns events, within a second or so; ``launch`` returns
    a run, and may take its time.

    ``defaults`` set controls by name: rates, windows, streams, sigma, nodes, form, slicing, resize.
    ``events`` are those that the view shows. While a run is live, changes wait for the next launch.
    Raises ValueError for a name that is not a control.
    """

    def __init__(
        self, simulate: Callable[[dict[str, Any]], list[Any]], launch: Launch, **defaults: Any
    ) -> None:
        super().__init__(launch, _inputs(), defaults)
        self.simulate = simulate
        self.events = simulate(self.settings())
        self.view = Ring(self.events)
        self.children = (*self.children, self.view)
        self.become("idle", MODELLED)
        for control in self.inputs.values():
            control.observe(self._changed, "value")

    def show(self, events: list[Any]) -> None:
        with self.lock:
            self.events = events
            self.view.load(events)

    def _changed(self, change: Any) -> None:
        if self.state != "idle":
            return
        self.message.value, self.error = "", None
        try:
            self.show(self.simulate(self.settings()))
            self.become("idle", MODELLED)
        except ValueError as error:
            self.fail(error)


FORMS = {"PSP (basic)": "basic", "PSP-I (interleaved)": "interleaved", "PSP-D (dynamic)": "dynamic"}


def _inputs() -> dict[str, Any]:
    style: dict[str, Any] = {
        "style": {"description_width": "130px"},
        "layout": W.Layout(width="auto"),
    }
    late: dict[str, Any] = {"continuous_update": False, **style}
    return {
        "streams": W.BoundedIntText(description="streams M", min=2, max=5, value=3, **style),
        "rates": W.Text(description="rates λ (tuples/s)", value="20", **late),
        "windows": W.Text(description="windows W (s)", value="10", **late),
        "sigma": W.BoundedFloatText(
            description="selectivity σ", min=0, max=1, step=0.01, value=0.05, **style
        ),
        "nodes": W.BoundedIntText(description="nodes N", min=1, max=24, value=6, **style),
        "form": W.Dropdown(description="form", options=FORMS, value="dynamic", **style),
        "slicing": W.Dropdown(
            description="slices by", options=["time", "count"], value="time", **style
        ),
        "resize": W.BoundedIntText(
            description="half-way to nodes", min=0, max=24, value=0, **style
        ),
    }
