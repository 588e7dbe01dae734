"""The panel of a join of two streams."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, NamedTuple

from braid.core.placement import placements_for

from braid_widgets.base.controls import BATCHES, HOSTS, PACE, PLACED, Row, list_placements
from braid_widgets.base.screen_panel import Rows, ScreenPanel


class PanelWorkload(NamedTuple):
    """A workload of the panel, and the controls that it uses.

    It joins on a band if it uses a width, else on equality.
    """

    label: str
    used_controls: set[str]


WORKLOADS = {
    "eq5": PanelWorkload("EQ5: supplier ⋈ lineitem, equality", {"skew"}),
    "eq7": PanelWorkload("EQ7: supplier ⋈ lineitem 1995-96, equality", {"skew"}),
    "bci": PanelWorkload("BCI: ship dates, band", {"width"}),
    "bnci": PanelWorkload("BNCI: order keys, band", {"skew", "width"}),
    "fluct": PanelWorkload("Fluct-Join: orders ⋈ lineitem, in turns", {"skew", "fluctuation"}),
}
"""The workloads of Elseidy 2014, section 5. Skew changes foreign keys, so it does not affect a join
on ship dates.
"""
NAMES = {workload.label: name for name, workload in WORKLOADS.items()}
DEFAULT = "AdaptiveGrid"
JOINED = "which tables are joined, and on what"
SKEW = "of the foreign keys; 0: all equally frequent"
SCALE = "a scale factor of 1 is about 1 GB; generated once, then stored"
WIDTH = "maximum distance of joined tuples: days of BCI, order keys of BNCI"
SWING = "each side grows in turn until it is k times the other"
GROWTH = "the grid is reconsidered when a stream has grown by this share"


def _uses(control: str) -> Callable[[Mapping[str, Any]], bool]:
    """Return whether the chosen workload uses a control."""
    return lambda chosen: control in WORKLOADS[chosen["workload"]].used_controls


def _sets(control: str) -> Callable[[Mapping[str, Any]], bool]:
    """Return whether the chosen placement has the setting of a control."""
    return lambda chosen: control in placements_for(2)[chosen["placement"]].setting_names()


class ThetaPanel(ScreenPanel):
    """A panel that launches a join of two streams."""

    rows: ClassVar[Rows] = {
        "workload": Row("workload", None, NAMES, JOINED),
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
