"""The panel of a join of two streams: its settings, and Launch, Pause and Stop."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from braid.core.placement import Placement, placements_for

from braid_widgets.base import controls
from braid_widgets.base.launcher import ControllableRun, Launch
from braid_widgets.base.live_updates import RunFollower
from braid_widgets.base.screen_panel import RunScreen, RunScreenPanel


@dataclass(frozen=True)
class PanelWorkload:
    """A workload of the panel.

    - ``used_controls``: the controls that it uses.
    - ``width``: the unit of its band width.
    - ``equality``: whether it joins on equality.
    """

    label: str
    used_controls: frozenset[str] = frozenset()
    width: str = ""
    equality: bool = True


WORKLOADS = {
    "eq5": PanelWorkload("EQ5: supplier ⋈ lineitem, equality", frozenset({"skew"})),
    "eq7": PanelWorkload("EQ7: supplier ⋈ lineitem 1995-96, equality", frozenset({"skew"})),
    "bci": PanelWorkload("BCI: ship dates, band", frozenset({"width"}), "days", False),
    "bnci": PanelWorkload(
        "BNCI: order keys, band", frozenset({"skew", "width"}), "order keys", False
    ),
    "fluct": PanelWorkload(
        "Fluct-Join: orders ⋈ lineitem, in turns", frozenset({"skew", "fluctuation"})
    ),
}
"""The workloads of Elseidy 2014, section 5. Skew changes foreign keys, so it does not affect a join
on ship dates.
"""


DEFAULT = "AdaptiveGrid"
JOINED = "which tables are joined, and on what"
GROWTH = "the grid is reconsidered when a stream has grown by this share"


class ThetaPanel(RunScreenPanel):
    """Controls of a live run, which the screen shows.

    ``defaults`` set controls by name: workload, skew, scale, width, hosts, placement, fluctuation,
    epsilon, batches, pace. Raises ValueError for other names.
    """

    def __init__(self, launch: Launch, screen: RunScreen, **defaults: Any) -> None:
        self.screen = screen
        super().__init__(launch, _make_controls(), defaults, "Launch", 380)
        for name in ("workload", "placement"):
            self.inputs[name].observe(self._update_available_controls, "value")
        self._update_available_controls()

    def follow_run(self, run: ControllableRun) -> RunFollower:
        return self.screen.follow(run, self.finish)

    def events(self) -> list[Any]:
        """Return the events of the latest run; before the first launch, those of the recording."""
        return self.visible_events()

    def _update_available_controls(self, change: Any = None) -> None:
        """Disable controls that the chosen workload and placement do not use.

        Placements that route by the value of an equality are offered only for an equality join.
        """
        workload = WORKLOADS[self.inputs["workload"].value]
        placement = self.inputs["placement"]
        kinds = placements_for(2, workload.equality)
        options = _make_placement_options(kinds)
        if list(placement.options) != options:
            chosen = placement.value
            placement.options = options
            placement.value = chosen if chosen in kinds else DEFAULT
        for name in ("skew", "width", "fluctuation"):
            self.inputs[name].disabled = name not in workload.used_controls
        self.inputs["width"].description = f"band width ({workload.width or 'none'}) · 0 to 365"
        for name in ("epsilon", "hosts"):
            self.inputs[name].disabled = name not in kinds[placement.value].setting_names()


def _make_placement_options(kinds: Mapping[str, type[Placement]]) -> list[tuple[str, str]]:
    return [(kind.label, name) for name, kind in kinds.items()]


def _make_controls() -> dict[str, Any]:
    return {
        "workload": controls.choice_control(
            "workload", [(w.label, k) for k, w in WORKLOADS.items()], None, JOINED
        ),
        "skew": controls.float_control(
            "skew (Zipf z)", 0, 4, 0.0, 0.25, "of the foreign keys; 0: all equally frequent"
        ),
        "scale": controls.float_control(
            "data (GB, TPC-H SF)",
            0.001,
            100,
            0.01,
            0.01,
            "a scale factor of 1 is about 1 GB; generated once, then stored",
        ),
        "width": controls.int_control("band width", 0, 365, 1, "maximum distance of joined tuples"),
        "hosts": controls.int_control("hosts (J)", 1, 256, 16, "logical hosts that share the join"),
        "placement": controls.choice_control(
            "placement", _make_placement_options(placements_for(2)), DEFAULT, controls.PLACED
        ),
        "fluctuation": controls.int_control(
            "swing of |R|/|S| (k)",
            2,
            16,
            4,
            "each side grows in turn until it is k times the other",
        ),
        "epsilon": controls.float_control("adapt at growth by (ε)", 0.05, 1, 1.0, 0.05, GROWTH),
        "batches": controls.batches_control(20),
        "pace": controls.pace_control(0.0),
    }
