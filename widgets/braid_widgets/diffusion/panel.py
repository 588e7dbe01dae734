"""The panel of a multiway join on many hosts: each change is simulated at once.

Launch runs the same join on Spark, live and measured.
"""

from __future__ import annotations

from typing import Any

from braid_widgets.base import controls
from braid_widgets.base.launcher import Launch
from braid_widgets.base.screen_panel import RunScreen, ScreenPanel
from braid_widgets.base.simulation_panel import Simulate


class DiffusionPanel(ScreenPanel):
    """A panel that simulates and launches a multiway join.

    ``defaults`` set controls by name: placement, streams, window, slowest, fastest, selectivity,
    hosts, length, copies, bursts, burst. Raises ValueError for a name that is not a control.
    """

    def __init__(
        self,
        simulate: Simulate,
        launch: Launch,
        screen: RunScreen,
        placements: tuple[str, ...],
        **defaults: Any,
    ) -> None:
        super().__init__(simulate, launch, screen, _make_controls(placements), defaults)
        for name in ("bursts", "placement"):
            self.inputs[name].observe(self._disable_unused_controls, "value")
        self._disable_unused_controls()
        self.show_events(self.events)

    def _disable_unused_controls(self, change: Any = None) -> None:
        """Disable controls that the current choices do not use."""
        placement = self.inputs["placement"].value
        self.inputs["burst"].disabled = not self.inputs["bursts"].value
        self.inputs["copies"].disabled = not placement.startswith("CTR")
        self.inputs["hosts"].disabled = self.inputs["length"].disabled = placement == "Centralized"


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
