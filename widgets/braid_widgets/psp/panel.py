"""The panel of a ring: each change is simulated at once; Launch runs the same join on Spark."""

from __future__ import annotations

from typing import Any

from braid_widgets.base import controls
from braid_widgets.base.launcher import Launch
from braid_widgets.base.screen_panel import RunScreen, ScreenPanel
from braid_widgets.base.simulation_panel import Simulate


class RingPanel(ScreenPanel):
    """A panel that simulates and launches a ring.

    ``defaults`` set controls by name: rates, windows, streams, sigma, nodes, form, slicing, resize.
    """

    def __init__(
        self, simulate: Simulate, launch: Launch, screen: RunScreen, **defaults: Any
    ) -> None:
        super().__init__(simulate, launch, screen, _make_controls(), defaults)
        self.show_events(self.events)


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
