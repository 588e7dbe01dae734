"""The panel of a shared ring: hosts, queries, and a live run on Spark."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from braid.core.query import Query

from braid_widgets.base import controls
from braid_widgets.base.launcher import Launch
from braid_widgets.base.screen_panel import RunScreen, RunScreenPanel


class SharedRingPanel(RunScreenPanel):
    """The ring on a screen, controls, Launch, Pause and Stop.

    - ``launch``: called with the settings, including ``queries``; returns the run.
    - ``queries``: the initial queries over ``streams``.
    - ``defaults``: initial values by control: hosts, month, days, batches, pace.
    - ``screen``: shows a recording until a run is launched; its drawer changes the run.

    Raises ValueError for a name that is not a control and for an invalid query.
    """

    def __init__(
        self,
        launch: Launch,
        streams: Sequence[str],
        queries: Sequence[Query],
        screen: RunScreen,
        **defaults: Any,
    ) -> None:
        self.screen = screen
        super().__init__(launch, _make_controls(streams, queries), defaults)
        self.children = (screen, *self.children)


def _make_controls(streams: Sequence[str], queries: Sequence[Query]) -> dict[str, Any]:
    return {
        "queries": controls.QueriesControl(streams, queries),
        "hosts": controls.int_control(
            "hosts (J)", 1, 24, 4, "of the ring; each holds some ages of every window"
        ),
        "month": controls.int_control("month of 2013", 1, 12, 2, "of the flights that are joined"),
        "days": controls.int_control(
            "days", 1, 31, 3, "number of days, from the first of the month"
        ),
        "batches": controls.batches_control(24),
        "pace": controls.pace_control(0.0),
    }
