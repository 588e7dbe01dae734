"""The panel of a join that sheds load; the drawer of the cockpit changes the budget of a run."""

from __future__ import annotations

from typing import ClassVar

from braid_widgets.base.controls import PACE, Row
from braid_widgets.base.screen_panel import Rows, ScreenPanel

METHODS = {
    "selective (Algorithm 5)": "selective",
    "direction first (Algorithm 4)": "direction",
    "time correlation": "time",
    "newest first": "partial",
    "any (uniform)": "uniform",
    "drop tuples": "drop",
}
BUDGETS = {"a share of all pairs (r)": "fraction", "seconds a batch": "seconds"}
COMMON = "minimum number of shared items of joined sets"
SHIFT = "delay of the items of the first stream in the second one"
BURST = "factor of the rate in the middle third"
DEAR = "fraction of the tuples that are worth ten times as much as others; 0: all alike"
BUDGET = "share of all pairs that is processed"
ALLOWED = "time limit of a batch, if the budget is in seconds"
SAMPLE = "share of the work spread evenly over all ages, to learn the age of matches"


class ShedPanel(ScreenPanel):
    """A panel that simulates and launches a join that sheds load."""

    rows: ClassVar[Rows] = {
        "kappa": Row("skew of items (κ)", 0.8, (0, 2), "Zipf; 0: all equally frequent", 0.1),
        "theta": Row("common items (θ)", 3, (1, 8), COMMON),
        "window": Row("window (w, s)", 10.0, (2, 60), "how long a tuple can be joined", 1),
        "shift": Row("delay (τ / cycle)", 0.625, (0, 1), SHIFT, 0.025),
        "rate": Row("rate (tuples/s)", 100.0, (5, 2000), "of each stream", 10),
        "burst": Row("burst (times the rate)", 3.0, (1, 10), BURST, 0.5),
        "dear": Row("dear tuples (share)", 0.0, (0, 1), DEAR, 0.05),
        "method": Row("method", "selective", METHODS, "which pairs are left out"),
        "budget": Row("budget", "fraction", BUDGETS, "limit on the work of a batch"),
        "fraction": Row("processed (r)", 0.25, (0.02, 1), BUDGET, 0.01),
        "allowed": Row("allowance (s a batch)", 1.0, (0.05, 60), ALLOWED, 0.05),
        "sample": Row("sample (γ)", 0.3, (0.01, 1), SAMPLE, 0.05),
        "pace": PACE,
    }
