"""The panel of a ring: each change is simulated at once; Launch runs the same join on Spark."""

from __future__ import annotations

from typing import Any

from braid_widgets.base import controls
from braid_widgets.base.launcher import PICTURE, Launch
from braid_widgets.base.simulation_panel import Simulate, SimulationPanel
from braid_widgets.psp.ring import RingPlayer


class RingPanel(SimulationPanel):
    """A panel that simulates and launches a ring.

    ``defaults`` set controls by name: rates, windows, streams, sigma, nodes, form, slicing, resize.
    """

    def __init__(self, simulate: Simulate, launch: Launch, **defaults: Any) -> None:
        super().__init__(simulate, launch, _make_controls(), defaults)
        self.view = RingPlayer(self.events)
        self.view.add_class(PICTURE)
        self.children = (*self.children, self.view)

    def show_events(self, events: list[Any]) -> None:
        """Load these events into the ring's player."""
        with self.lock:
            self.events = events
            self.view.load_events(events)

    def static_views(self) -> list[RingPlayer]:
        """Return the ring of the simulated run."""
        self.events = list(self.simulate(self.requested_settings()))
        return [RingPlayer(self.events)]


FORMS = {"PSP (basic)": "basic", "PSP-I (interleaved)": "interleaved", "PSP-D (dynamic)": "dynamic"}

EACH = "one number, or one for each stream, with commas"


def _make_controls() -> dict[str, Any]:
    return {
        "streams": controls.int_control("streams (M)", 2, 5, 3, "number of joined streams"),
        "rates": controls.text_control("rates (λ, tuples/s)", "20", EACH),
        "windows": controls.text_control("windows (W, s)", "10", EACH),
        "sigma": controls.float_control(
            "selectivity (σ)", 0, 1, 0.05, 0.01, "share of pairs that match"
        ),
        "nodes": controls.int_control(
            "nodes (N)", 1, 24, 6, "hosts of the ring; each holds a slice of every window"
        ),
        "form": controls.choice_control(
            "form", FORMS, "dynamic", "how tuples and slices move around the ring"
        ),
        "slicing": controls.choice_control(
            "slices by", ["time", "count"], "time", "windows are cut by age, or in equal numbers"
        ),
        "resize": controls.int_control(
            "half-way to (nodes)", 0, 24, 0, "the ring's number of nodes from then on; 0: unchanged"
        ),
    }
