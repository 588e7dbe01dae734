"""Controls of a ring: each change is simulated at once and shown; Launch runs the same on Spark,
live.
"""

from __future__ import annotations

from typing import Any

from braid_widgets.base import inputs
from braid_widgets.base.launcher import PICTURE, Launch
from braid_widgets.base.modelled import ModelledPanel, Simulate
from braid_widgets.psp.ring import Ring


class RingPanel(ModelledPanel):
    """``defaults`` set controls by name: rates, windows, streams, sigma, nodes, form, slicing,
    resize.
    """

    def __init__(self, simulate: Simulate, launch: Launch, **defaults: Any) -> None:
        super().__init__(simulate, launch, _inputs(), defaults)
        self.view = Ring(self.events)
        self.view.add_class(PICTURE)
        self.children = (*self.children, self.view)

    def show(self, events: list[Any]) -> None:
        """Load these events into the ring's film."""
        with self.lock:
            self.events = events
            self.view.load(events)

    def twins(self) -> list[Ring]:
        """The ring of the modelled run."""
        self.events = list(self.simulate(self.asked()))
        return [Ring(self.events)]


FORMS = {"PSP (basic)": "basic", "PSP-I (interleaved)": "interleaved", "PSP-D (dynamic)": "dynamic"}

EACH = "one number, or one for each stream, with commas"


def _inputs() -> dict[str, Any]:
    return {
        "streams": inputs.whole("streams (M)", 2, 5, 3, "that are joined with each other"),
        "rates": inputs.line("rates (λ, tuples/s)", "20", EACH),
        "windows": inputs.line("windows (W, s)", "10", EACH),
        "sigma": inputs.number("selectivity (σ)", 0, 1, 0.05, 0.01, "share of pairs that match"),
        "nodes": inputs.whole(
            "nodes (N)", 1, 24, 6, "hosts of the ring; each holds a slice of every window"
        ),
        "form": inputs.choice(
            "form", FORMS, "dynamic", "how tuples and slices move round the ring"
        ),
        "slicing": inputs.choice(
            "slices by", ["time", "count"], "time", "windows are cut by age, or in equal numbers"
        ),
        "resize": inputs.whole(
            "half-way to (nodes)", 0, 24, 0, "the ring gets so many nodes then; 0: it stays"
        ),
    }
