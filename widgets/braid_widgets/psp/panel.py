"""The panel of a ring."""

from __future__ import annotations

from typing import ClassVar

from braid_widgets.base.controls import Row
from braid_widgets.base.screen_panel import Rows, ScreenPanel

FORMS = {"PSP (basic)": "basic", "PSP-I (interleaved)": "interleaved", "PSP-D (dynamic)": "dynamic"}
SLICES = {"time": "time", "count": "count"}
EACH = "one number, or one for each stream, with commas"
NODES = "hosts of the ring; each holds a slice of every window"
CUT = "windows are cut by age, or in equal numbers"
RESIZE = "the ring's number of nodes from then on; 0: unchanged"


class RingPanel(ScreenPanel):
    """A panel that simulates and launches a ring."""

    rows: ClassVar[Rows] = {
        "streams": Row("streams (M)", 3, (2, 5), "number of joined streams"),
        "rates": Row("rates (λ, tuples/s)", "20", None, EACH),
        "windows": Row("windows (W, s)", "10", None, EACH),
        "sigma": Row("selectivity (σ)", 0.05, (0, 1), "share of pairs that match", 0.01),
        "nodes": Row("nodes (N)", 6, (1, 24), NODES),
        "form": Row("form", "dynamic", FORMS, "how tuples and slices move around the ring"),
        "slicing": Row("slices by", "time", SLICES, CUT),
        "resize": Row("half-way to (nodes)", 0, (0, 24), RESIZE),
    }
