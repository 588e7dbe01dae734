"""The panel of a shared ring: hosts, queries, and a live run on Spark."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from braid.core.query import Query

from braid_widgets.base.controls import BATCHES, PACE, QueriesControl, Row
from braid_widgets.base.launcher import Launch
from braid_widgets.base.screen_panel import Rows, RunScreen, ScreenPanel

HOSTS = "of the ring; each holds some ages of every window"


class SharedRingPanel(ScreenPanel):
    """A panel that launches a shared ring, initially of these ``queries`` over ``streams``.

    Raises ValueError for a name that is not a control and for an invalid query.
    """

    rows: ClassVar[Rows] = {
        "hosts": Row("hosts (J)", 4, (1, 24), HOSTS),
        "month": Row("month of 2013", 2, (1, 12), "of the flights that are joined"),
        "days": Row("days", 3, (1, 31), "number of days, from the first of the month"),
        "batches": BATCHES._replace(value=24),
        "pace": PACE,
    }

    def __init__(
        self,
        launch: Launch,
        streams: Sequence[str],
        queries: Sequence[Query],
        screen: RunScreen,
        **defaults: Any,
    ) -> None:
        rows = {"queries": QueriesControl(streams, queries), **self.rows}
        super().__init__(launch, screen, rows=rows, **defaults)
