"""The panel of a shared ring: hosts, queries, and a live run on Spark that can be rebalanced."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

import ipywidgets as W
from braid.papers.slices.run_events import ChainChanged

from braid_widgets.base import controls
from braid_widgets.base.launcher import PICTURE, ControllableRun, LaunchPanel, State
from braid_widgets.base.query_table import QueryRow, QueryTable
from braid_widgets.slices.shared_ring import SharedRingPlayer

EMPTY = "<i>Launch on Spark, and the ring is drawn here as it fills.</i>"
RECORDED = "<i>A recorded run. Launch on Spark, and yours is drawn here as it fills.</i>"


class RebalanceableRun(ControllableRun, Protocol):
    """A run whose ages can be redistributed over hosts, such as SharedRun."""

    def rebalance(self, chain: str) -> None:
        """Choose the chain again: "memory", "cpu" or "auto"."""


class SharedRingPanel(LaunchPanel):
    """The table of queries, controls, Launch, Pause and Stop, and the ring.

    - ``launch``: called with the settings, including ``queries`` (the active ones); returns the
      run.
    - ``asked``: the initial queries over ``streams``.
    - ``defaults``: initial values by control: hosts, month, days, batches, pace.
    - ``recorded``: events shown until a run is launched.

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
        heading = W.HTML(RECORDED if self.events else EMPTY)
        self.place = W.VBox([heading] if self.view is None else [heading, self.view])
        self.place.add_class(PICTURE)
        self.children = (self.table, *self.children, self.place)

    def settings(self) -> dict[str, Any]:
        return super().settings() | {"queries": self.table.active_queries}

    def set_state(self, state: State, text: str | None = None) -> None:
        super().set_state(state, text)
        self.anew.disabled = self.pause.disabled

    def show_events(self, events: list[Any]) -> None:
        """Draw the ring after these events; do nothing before the first ``ChainChanged``."""
        if not any(isinstance(e, ChainChanged) for e in events):
            return
        with self.lock:
            if self.view is None:
                self.view = SharedRingPlayer(events)
            else:
                self.view.load_events(events)
            self.place.children = [self.view]

    def static_views(self) -> list[SharedRingPlayer]:
        """Return the ring of a finished run."""
        return [SharedRingPlayer(self.run_to_end())]

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
