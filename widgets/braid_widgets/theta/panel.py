"""The panel of a join of two streams: what to run, and Launch, Pause, Stop."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import ipywidgets as W

from braid_widgets.base.launcher import Launch, Launched, Launcher
from braid_widgets.base.live import Follower
from braid_widgets.theta.player import Player


@dataclass(frozen=True)
class Workload:
    """A choice of the panel: the controls that it heeds, the unit of its band width, and whether it
    joins on equality.
    """

    label: str
    heeds: frozenset[str] = frozenset()
    width: str = ""
    equality: bool = True


WORKLOADS = {
    "eq5": Workload("EQ5: supplier ⋈ lineitem, equality", frozenset({"skew"})),
    "eq7": Workload("EQ7: supplier ⋈ lineitem 1995-96, equality", frozenset({"skew"})),
    "bci": Workload("BCI: ship dates, band", frozenset({"width"}), "days", False),
    "bnci": Workload("BNCI: order keys, band", frozenset({"skew", "width"}), "order keys", False),
    "fluct": Workload(
        "Fluct-Join: orders ⋈ lineitem, sides alternate", frozenset({"skew", "fluctuation"})
    ),
}
"""Section 5 of Elseidy 2014. Skew changes foreign keys, so it cannot matter to a join of ship
dates.
"""

PLACEMENTS = {
    "dynamic": "Dynamic (adaptive grid)",
    "static_mid": "StaticMid (square grid)",
    "static_opt": "StaticOpt (oracle's grid)",
    "hash": "SHJ (hash of the join key)",
    "biclique": "Join-biclique",
}


class Panel(Launcher):
    """Controls of a live run, which the player shows.

    ``defaults`` set controls by name: workload, skew, scale, width, hosts, placement, fluctuation,
    epsilon, batches, pace. Raises ValueError for a name that is not among them.
    """

    def __init__(self, launch: Launch, player: Player, **defaults: Any) -> None:
        self.player = player
        super().__init__(launch, _inputs(), defaults, "Launch", 380)
        for name in ("workload", "placement"):
            self.inputs[name].observe(self._relevant, "value")
        self._relevant()

    def follow(self, run: Launched) -> Follower:
        return self.player.attach(run, self.over)

    def _relevant(self, change: Any = None) -> None:
        """Grey out what the chosen workload and placement do not heed; SHJ is offered for equality
        only.
        """
        workload = WORKLOADS[self.inputs["workload"].value]
        placement = self.inputs["placement"]
        kinds = [
            (label, key) for key, label in PLACEMENTS.items() if workload.equality or key != "hash"
        ]
        if list(placement.options) != kinds:
            chosen = placement.value
            placement.options = kinds
            placement.value = chosen if chosen in [key for _, key in kinds] else "dynamic"
        for name in ("skew", "width", "fluctuation"):
            self.inputs[name].disabled = name not in workload.heeds
        self.inputs["width"].description = f"band width ({workload.width or 'none'})"
        self.inputs["epsilon"].disabled = placement.value != "dynamic"


def _inputs() -> dict[str, Any]:
    style: dict[str, Any] = {
        "style": {"description_width": "150px"},
        "layout": W.Layout(width="auto"),
    }
    return {
        "workload": W.Dropdown(
            description="workload", options=[(w.label, k) for k, w in WORKLOADS.items()], **style
        ),
        "skew": W.BoundedFloatText(
            description="skew z (Zipf)", min=0, max=4, step=0.25, value=0.0, **style
        ),
        "scale": W.BoundedFloatText(
            description="scale factor (TPC-H)", min=0.001, max=100, step=0.01, value=0.01, **style
        ),
        "width": W.BoundedIntText(description="band width", min=0, max=365, value=1, **style),
        "hosts": W.BoundedIntText(description="hosts J", min=1, max=256, value=16, **style),
        "placement": W.Dropdown(
            description="placement",
            options=[(label, k) for k, label in PLACEMENTS.items()],
            **style,
        ),
        "fluctuation": W.BoundedIntText(
            description="fluctuation k (ratio)", min=2, max=16, value=4, **style
        ),
        "epsilon": W.BoundedFloatText(
            description="epsilon (share)", min=0.05, max=1, step=0.05, value=1.0, **style
        ),
        "batches": W.BoundedIntText(
            description="micro-batches", min=1, max=1000, value=20, **style
        ),
        "pace": W.BoundedFloatText(
            description="pace (s per batch)", min=0, max=60, step=0.25, value=0.0, **style
        ),
    }
