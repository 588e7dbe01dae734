"""The panel of a shared ring: hosts, queries, and a live run on Spark that can be rebalanced."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

import ipywidgets as W

from braid_widgets.base import controls
from braid_widgets.base.launcher import ControllableRun, LaunchPanel, State
from braid_widgets.base.live_updates import RunFollower
from braid_widgets.base.query_table import QueryRow, QueryTable
from braid_widgets.base.screen_panel import RunScreen


class RebalanceableRun(ControllableRun, Protocol):
    """A run whose ages can be redistributed over hosts, such as SharedRun."""

    def rebalance(self, chain: str) -> None:
        """Choose the chain again: "memory", "cpu" or "auto"."""


class SharedRingPanel(LaunchPanel):
    """The ring on a screen, the table of queries, controls, Launch, Pause and Stop.

    - ``launch``: called with the settings, including ``queries`` (the active ones); returns the
      run.
    - ``asked``: the initial queries over ``streams``.
    - ``defaults``: initial values by control: hosts, month, days, batches, pace.
    - ``screen``: shows a recording until a run is launched.

    A change of queries takes effect at the next launch. *Share out anew* redistributes a running
    ring by the selectivities measured so far (Wang 2008, section 21.3). Raises ValueError for a
    name that is not a control and for an invalid query.
    """

    run: RebalanceableRun | None

    def __init__(
        self,
        launch: Callable[[dict[str, Any]], RebalanceableRun],
        streams: Iterable[str],
        asked: Iterable[QueryRow],
        screen: RunScreen,
        **defaults: Any,
    ) -> None:
        self.table, self.screen = QueryTable(tuple(streams), asked), screen
        self._changes = ThreadPoolExecutor(1, "braid-changes")
        self.anew = W.Button(
            description="Share ages out anew",
            icon="refresh",
            tooltip="by the selectivities seen so far",
            layout=W.Layout(width="auto"),
        )
        self.anew.on_click(self._submit_rebalance)
        super().__init__(launch, _make_controls(), defaults)
        self.bar.children = (*self.bar.children[:-1], self.anew, self.status)
        self.children = (screen, self.table, *self.children)

    def settings(self) -> dict[str, Any]:
        return super().settings() | {"queries": self.table.active_queries}

    def set_state(self, state: State, text: str | None = None) -> None:
        super().set_state(state, text)
        self.anew.disabled = self.pause.disabled

    def mark_stale(self) -> None:
        self.screen.mark_stale()

    def follow_run(self, run: ControllableRun) -> RunFollower:
        return self.screen.follow(run, self._handle_run_end)

    def visible_events(self) -> list[Any]:
        return self.run.events() if self.run is not None else self.screen.events

    def static_views(self) -> list[Any]:
        """Return the screen with a finished run."""
        self.screen.load_run(self.run_to_end())
        return [self.screen]

    def wait_for_changes(self, timeout: float | None = None) -> None:
        """Wait until the requested changes of the running ring are done."""
        self._changes.submit(lambda: None).result(timeout)

    def _submit_rebalance(self, button: Any) -> None:
        assert self.run is not None
        self.message.value, self.error = "", None
        self._changes.submit(self._rebalance_ring, self.run)

    def _rebalance_ring(self, run: RebalanceableRun) -> None:
        try:
            run.rebalance("memory")
        except Exception as error:
            self.show_error(error)


def _make_controls() -> dict[str, Any]:
    return {
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
