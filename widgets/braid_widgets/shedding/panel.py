"""The panel of a join that sheds load: each change is simulated at once.

Launch runs the same join on Spark; a change of the budget then takes effect on the active run.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from braid_widgets.base import controls
from braid_widgets.base.launcher import Launch
from braid_widgets.base.screen_panel import RunScreen, ScreenPanel
from braid_widgets.base.simulation_panel import Simulate

METHODS = {
    "selective (Algorithm 5)": "selective",
    "direction first (Algorithm 4)": "direction",
    "time correlation": "time",
    "newest first": "partial",
    "any (uniform)": "uniform",
    "drop tuples": "drop",
}


BUDGETS = {"a share of all pairs (r)": "fraction", "seconds a batch": "seconds"}
BURST = "factor of the rate in the middle third"
DEAR = "fraction of the tuples that are worth ten times as much as others; 0: all alike"
ALLOWED = "time limit of a batch, if the budget is in seconds; it takes effect on an active run"
SHIFT = "delay of the items of the first stream in the second one"
BUDGET = "share of all pairs that is processed; it takes effect on an active run"
SAMPLE = "share of the work spread evenly over all ages, to learn the age of matches"


class ShedPanel(ScreenPanel):
    """A panel that simulates and launches a join that sheds load.

    ``defaults`` set controls by name: kappa, theta, window, shift, rate, burst, dear, method,
    budget, fraction, allowed, sample, pace. A change of the budget (that control, ``fraction`` or
    ``allowed``) adjusts an active run; other changes wait for the next launch.
    """

    def __init__(
        self, simulate: Simulate, launch: Launch, screen: RunScreen, **defaults: Any
    ) -> None:
        super().__init__(simulate, launch, screen, _make_controls(), defaults)
        self.show_events(self.events)

    def applies_while_running(self, control: Any) -> bool:
        """Return True for the controls of the budget."""
        return control in [self.inputs[name] for name in ("budget", "fraction", "allowed")]

    def _apply_control_change(self, change: Any) -> None:
        if self.state in ("running", "paused") and self.applies_while_running(change.owner):
            adjust = getattr(self.run, "adjust", None)
            if adjust is not None and not self.has_invalid_controls():
                self._adjust_budget(adjust)
            return
        super()._apply_control_change(change)

    def _adjust_budget(self, adjust: Callable[..., None]) -> None:
        kind = self.inputs["budget"].value
        amount = self.inputs["allowed" if kind == "seconds" else "fraction"].value
        try:
            adjust(**{kind: amount})
        except (ValueError, RuntimeError) as error:
            self.show_error(error)


def _make_controls() -> dict[str, Any]:
    return {
        "kappa": controls.float_control(
            "skew of items (κ)", 0, 2, 0.8, 0.1, "Zipf; 0: all equally frequent"
        ),
        "theta": controls.int_control(
            "common items (θ)", 1, 8, 3, "minimum number of shared items of joined sets"
        ),
        "window": controls.float_control(
            "window (w, s)", 2, 60, 10, 1, "how long a tuple can be joined"
        ),
        "shift": controls.float_control("delay (τ / cycle)", 0, 1, 0.625, 0.025, SHIFT),
        "rate": controls.float_control("rate (tuples/s)", 5, 2000, 100, 10, "of each stream"),
        "burst": controls.float_control("burst (times the rate)", 1, 10, 3, 0.5, BURST),
        "dear": controls.float_control("dear tuples (share)", 0, 1, 0, 0.05, DEAR),
        "method": controls.choice_control(
            "method", METHODS, "selective", "which pairs are left out"
        ),
        "budget": controls.choice_control(
            "budget", BUDGETS, "fraction", "limit on the work of a batch"
        ),
        "fraction": controls.slider_control("processed (r)", 0.02, 1, 0.25, 0.01, BUDGET),
        "allowed": controls.float_control("allowance (s a batch)", 0.05, 60, 1, 0.05, ALLOWED),
        "sample": controls.float_control("sample (γ)", 0.01, 1, 0.3, 0.05, SAMPLE),
        "pace": controls.pace_control(0),
    }
