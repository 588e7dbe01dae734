"""The panel of a join of two streams: what to run, and Launch, Pause, Stop."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from braid.core.placement import Placement, offered

from braid_widgets.base import inputs
from braid_widgets.base.launcher import Launch, Launched, Launcher
from braid_widgets.base.live import Follower, Run


class Screen(Protocol):
    """What shows a run: the cockpit."""

    events: list[Any]

    def attach(self, run: Run, ended: Callable[[BaseException | None], Any]) -> Follower:
        """Follow a live run, and call ``ended`` when it is over."""

    def load(self, source: Iterable[Any]) -> None:
        """Show a run that is over."""

    def stale(self) -> None:
        """Say that what is seen is not the run that is being started."""


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
        "Fluct-Join: orders ⋈ lineitem, in turns", frozenset({"skew", "fluctuation"})
    ),
}
"""Section 5 of Elseidy 2014. Skew changes foreign keys, so it cannot matter to a join of ship
dates.
"""


DEFAULT = "AdaptiveGrid"
JOINED = "which tables are joined, and on what"
GROWTH = "the grid is looked at again when a stream has grown by this share of itself"


class Panel(Launcher):
    """Controls of a live run, which the screen shows.

    ``defaults`` set controls by name: workload, skew, scale, width, hosts, placement, fluctuation,
    epsilon, batches, pace. Raises ValueError for a name that is not among them.
    """

    def __init__(self, launch: Launch, screen: Screen, **defaults: Any) -> None:
        self.screen = screen
        super().__init__(launch, _inputs(), defaults, "Launch", 380)
        for name in ("workload", "placement"):
            self.inputs[name].observe(self._relevant, "value")
        self._relevant()

    def stale(self) -> None:
        self.screen.stale()

    def follow(self, run: Launched) -> Follower:
        return self.screen.attach(run, self.over)

    def twins(self) -> list[Any]:
        """The screen, with a run that has ended."""
        self.screen.load(self.complete())
        return [self.screen]

    def events(self) -> list[Any]:
        """Of the run so far; as long as there is none, of the recording that is shown."""
        return self.run.events() if self.run is not None else self.screen.events

    def shown(self) -> list[Any]:
        return self.events()

    def _relevant(self, change: Any = None) -> None:
        """Grey out what the chosen workload and placement do not heed; those that route by the
        value of an equality are offered where there is one.
        """
        workload = WORKLOADS[self.inputs["workload"].value]
        placement = self.inputs["placement"]
        kinds = offered(2, workload.equality)
        options = _labelled(kinds)
        if list(placement.options) != options:
            chosen = placement.value
            placement.options = options
            placement.value = chosen if chosen in kinds else DEFAULT
        for name in ("skew", "width", "fluctuation"):
            self.inputs[name].disabled = name not in workload.heeds
        self.inputs["width"].description = f"band width ({workload.width or 'none'}) · 0 to 365"
        for name in ("epsilon", "hosts"):
            self.inputs[name].disabled = name not in kinds[placement.value].takes()


def _labelled(kinds: Mapping[str, type[Placement]]) -> list[tuple[str, str]]:
    return [(kind.label, name) for name, kind in kinds.items()]


def _inputs() -> dict[str, Any]:
    return {
        "workload": inputs.choice(
            "workload", [(w.label, k) for k, w in WORKLOADS.items()], None, JOINED
        ),
        "skew": inputs.number(
            "skew (Zipf z)", 0, 4, 0.0, 0.25, "of the foreign keys; 0: all as often"
        ),
        "scale": inputs.number(
            "data (GB, TPC-H SF)",
            0.001,
            100,
            0.01,
            0.01,
            "a scale factor of 1 is about 1 GB; made once, then kept",
        ),
        "width": inputs.whole("band width", 0, 365, 1, "tuples at most so far apart join"),
        "hosts": inputs.whole("hosts (J)", 1, 256, 16, "logical hosts that share the join"),
        "placement": inputs.choice("placement", _labelled(offered(2)), DEFAULT, inputs.PLACED),
        "fluctuation": inputs.whole(
            "swing of |R|/|S| (k)",
            2,
            16,
            4,
            "one side grows until it is k times the other, then the other does",
        ),
        "epsilon": inputs.number("adapt at growth by (ε)", 0.05, 1, 1.0, 0.05, GROWTH),
        "batches": inputs.batches(20),
        "pace": inputs.pace(0.0),
    }
