"""The panel of a join of two streams."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from braid.core.placement import placements_for

from braid_widgets.base.controls import BATCHES, HOSTS, PACE, PLACED, Row, list_placements
from braid_widgets.base.screen_panel import Rows, ScreenPanel

WORKLOADS = {
    "eq5": ("EQ5: supplier ⋈ lineitem, equality", {"skew"}),
    "eq7": ("EQ7: supplier ⋈ lineitem 1995-96, equality", {"skew"}),
    "bci": ("BCI: ship dates, band", {"width"}),
    "bnci": ("BNCI: order keys, band", {"skew", "width"}),
    "fluct": ("Fluct-Join: orders ⋈ lineitem, in turns", {"skew", "fluctuation"}),
}
"""The workloads of Elseidy 2014, section 5, and the controls that they use. One that uses a width
joins on a band, others on equality. Skew changes foreign keys, so it does not affect a join on ship
dates.
"""
LABELS = {label: name for name, (label, _) in WORKLOADS.items()}
DEFAULT = "AdaptiveGrid"
JOINED = "which tables are joined, and on what"
SKEW = "of the foreign keys; 0: all equally frequent"
SCALE = "a scale factor of 1 is about 1 GB; generated once, then stored"
WIDTH = "maximum distance of joined tuples: days of BCI, order keys of BNCI"
SWING = "each side grows in turn until it is k times the other"
GROWTH = "the grid is reconsidered when a stream has grown by this share"


def _uses(control: str) -> Callable[[Mapping[str, Any]], bool]:
    """Return whether the chosen workload uses a control."""
    return lambda chosen: control in WORKLOADS[chosen["workload"]][1]


def _sets(control: str) -> Callable[[Mapping[str, Any]], bool]:
    """Return whether the chosen placement has the setting of a control."""
    return lambda chosen: control in placements_for(2)[chosen["placement"]].setting_names()


class ThetaPanel(ScreenPanel):
    """A panel that launches a join of two streams."""

    rows: ClassVar[Rows] = {
        "workload": Row("workload", None, LABELS, JOINED),
        "skew": Row("skew (Zipf z)", 0.0, (0, 4), SKEW, 0.25, _uses("skew")),
        "scale": Row("data (GB, TPC-H SF)", 0.01, (0.001, 100), SCALE, 0.01),
        "width": Row("band width", 1, (0, 365), WIDTH, is_used=_uses("width")),
        "hosts": HOSTS._replace(is_used=_sets("hosts")),
        "placement": Row("placement", DEFAULT, list_placements, PLACED),
        "fluctuation": Row("swing of |R|/|S| (k)", 4, (2, 16), SWING, None, _uses("fluctuation")),
        "epsilon": Row("adapt at growth by (ε)", 1.0, (0.05, 1), GROWTH, 0.05, _sets("epsilon")),
        "batches": BATCHES,
        "pace": PACE,
    }
    width = 380

    def _update_available_controls(self, change: Any = None) -> None:
        """Offer placements that route by the value of an equality only for an equality join."""
        placement = self.inputs["placement"]
        options = list_placements("width" not in WORKLOADS[self.inputs["workload"].value][1])
        if list(placement.options) != options:
            chosen, placement.options = placement.value, options
            placement.value = chosen if chosen in dict(options).values() else DEFAULT
        super()._update_available_controls()
