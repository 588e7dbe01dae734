"""The panel of a multiway join on many hosts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from operator import itemgetter
from typing import Any, ClassVar

from braid_widgets.base.controls import HOSTS, PLACED, Row
from braid_widgets.base.launcher import Launch
from braid_widgets.base.screen_panel import Rows, RunScreen, ScreenPanel, Simulate

SLOW = "each stream has its own rate, drawn between the slowest and the fastest, and changes it"
FAST = "no slower than the slowest"
LENGTH = "tuples of a segment take the same route"
COPIES = "hosts that store a segment under CTR; 0: the square root of their number"
BURSTS = "0: steady rates; 1: everything arrives in bursts, nothing between them"


def _has_hosts(chosen: Mapping[str, Any]) -> bool:
    return bool(chosen["placement"] != "Centralized")


def _has_copies(chosen: Mapping[str, Any]) -> bool:
    return bool(chosen["placement"].startswith("CTR"))


class DiffusionPanel(ScreenPanel):
    """A panel that simulates and launches a multiway join under one of the ``placements``."""

    rows: ClassVar[Rows] = {
        "streams": Row("streams (n)", 3, (2, 6), "number of joined streams"),
        "window": Row("window (W, s)", 10.0, (1, 120), "how long a tuple can be joined"),
        "slowest": Row("slowest rate (tuples/s)", 5.0, (0.1, 500), SLOW),
        "fastest": Row("fastest rate (tuples/s)", 20.0, (0.1, 500), FAST),
        "selectivity": Row("selectivity (σ)", 0.1, (0, 1), "share of pairs that match", 0.05),
        "hosts": HOSTS._replace(value=12, is_used=_has_hosts),
        "length": Row("segment length (T, s)", 2, (1, 60), LENGTH, is_used=_has_hosts),
        "copies": Row("copies (L; 0: √J)", 0, (0, 256), COPIES, None, _has_copies),
        "bursts": Row("bursts", False, None, "rates rise and fall"),
        "burst": Row("share in bursts (θ)", 0.5, (0, 1), BURSTS, 0.25, itemgetter("bursts")),
    }

    def __init__(
        self,
        launch: Launch,
        screen: RunScreen,
        simulate: Simulate,
        placements: Iterable[str],
        **defaults: Any,
    ) -> None:
        placement = Row("placement", None, {name: name for name in placements}, PLACED)
        rows = {"placement": placement, **self.rows}
        super().__init__(launch, screen, simulate, rows, **defaults)
