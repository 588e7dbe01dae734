"""The panel of a shared ring: hosts and queries, and a run on Spark that is watched live and whose
ages are shared out anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

import ipywidgets as W
from braid.papers.slices.events import ChainChanged

from braid_widgets.base import controls
from braid_widgets.base.launcher import PICTURE, ControllableRun, LaunchPanel, State
from braid_widgets.base.query_table import QueryRow, QueryTable
from braid_widgets.slices.shared_ring import SharedRingPlayer

EMPTY = "<i>Launch on Spark, and the ring is drawn here as it fills.</i>"
RECORDED = "<i>A recorded run. Launch on Spark, and yours is drawn here as it fills.</i>"


class RebalanceableRun(ControllableRun, Protocol):
    """A run whose ages can be shared out anew; SharedRun is one."""

    def rebalance(self, chain: str) -> None:
        """Choose the chain anew: "memory", "cpu" or "auto"."""


class SharedRingPanel(LaunchPanel):
    """The table of queries, controls, Launch, Pause, Stop, and the ring; queries that are changed
    are served by the next launch.

    ``launch`` gets the settings, ``queries`` (Query, those that are on) among them, and returns the
    run. *Share out anew* deploys a running ring by the selectivities seen so far (section 21.3).
    ``asked`` are the queries to begin with, over ``streams``. ``defaults`` set controls by name:
    hosts, month, days, batches, pace; the events ``recorded`` are shown until a run is launched.
    Raises ValueError for a name that is not a control, and for a query that cannot be asked of the
    streams.
    """

    run: RebalanceableRun | None

    def __init__(
        self,
        launch: Callable[[dict[str, Any]], RebalanceableRun],
        streams: Iterable[str],
        asked: Iterable[QueryRow],
        recorded: Iterable[Any] = (),
        **defaults: Any,
    ) -> None:
        self.table = QueryTable(tuple(streams), asked)
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
        self.events = list(recorded)
        self.view = SharedRingPlayer(self.events) if self.events else None
        told = W.HTML(RECORDED if self.events else EMPTY)
        self.place = W.VBox([told] if self.view is None else [told, self.view])
        self.place.add_class(PICTURE)
        self.children = (self.table, *self.children, self.place)

    def settings(self) -> dict[str, Any]:
        return super().settings() | {"queries": self.table.active_queries}

    def set_state(self, state: State, text: str | None = None) -> None:
        super().set_state(state, text)
        self.anew.disabled = self.pause.disabled

    def show_events(self, events: list[Any]) -> None:
        """Draw the ring as it is after these events; nothing before it is set."""
        if not any(isinstance(e, ChainChanged) for e in events):
            return
        with self.lock:
            if self.view is None:
                self.view = SharedRingPlayer(events)
            else:
                self.view.load_events(events)
            self.place.children = [self.view]

    def static_views(self) -> list[SharedRingPlayer]:
        """The ring of a run that has ended."""
        return [SharedRingPlayer(self.run_to_end())]

    def wait_for_changes(self, timeout: float | None = None) -> None:
        """Wait until what was asked of the running ring so far is done."""
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
        "days": controls.int_control("days", 1, 31, 3, "so many, from the first of the month"),
        "batches": controls.batches_control(24),
        "pace": controls.pace_control(0.0),
    }
