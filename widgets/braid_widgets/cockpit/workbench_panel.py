"""The workbench: all settings of a join of two streams, simulated at once and run on Spark.

It also shows the line of code with the same settings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from html import escape
from typing import Any, ClassVar

import ipywidgets as W

from braid_widgets.base.controls import (
    BATCHES,
    HOSTS,
    PACE,
    PLACED,
    WORDY,
    Row,
    list_placements,
    make_control,
)
from braid_widgets.base.launcher import Launch
from braid_widgets.base.screen_panel import Rows, ScreenPanel, Simulate
from braid_widgets.cockpit.linked_views import LinkedViews
from braid_widgets.cockpit.view import Cockpit

Beside = Iterable[tuple[str, list[Any]]]
DATA = "a generated workload; two files, a.csv,b.parquet; or a recording (.jsonl)"
CONDITION = "Spark SQL over a.column and b.column"
WINDOW = "how long a tuple can be joined; 0: forever"
SKEW = "Zipf parameter of k in generated streams"


class WorkbenchPanel(ScreenPanel):
    """A panel with all settings of a join of two streams.

    - ``write``: returns the line of code for the settings.
    - ``made_up``: names of generated streams.
    - ``rivals``: yields, for the settings, up to three (name, events) pairs, shown beside the
      simulated run. They are simulated with it, and canceled with it if a control changes.
    - ``modelled``, ``others``: the settings of the simulated run, and the rivals beside it by name.
    """

    starts = "preparing the streams…"
    rows: ClassVar[Rows] = {
        "window": Row("window (s; 0: all)", 0.0, (0, 10**6), WINDOW, 1),
        "placement": Row("placement", "AdaptiveGrid", list_placements, PLACED),
        "hosts": HOSTS,
        "batches": BATCHES._replace(value=24, takes=(2, 400)),
        "rate": Row("tuples a batch", 200, (1, 25_000), "of each stream, approximately"),
        "shed": Row("pairs processed (r)", 1.0, (0.01, 1), "below 1: some pairs are shed", 0.05),
        "skew": Row("skew of keys (z)", 0.0, (0, 4), SKEW, 0.1),
        "pace": PACE,
    }

    def __init__(
        self,
        launch: Launch,
        screen: Cockpit,
        simulate: Simulate,
        write: Callable[[dict[str, Any]], str],
        made_up: tuple[str, ...],
        rivals: Callable[[dict[str, Any]], Beside] = lambda settings: (),
        **defaults: Any,
    ) -> None:
        self.write, self.rivals = write, rivals
        self.text, self.side = W.HTML(), W.VBox()
        super().__init__(launch, screen, simulate, self._make_rows(made_up), **defaults)
        self.start.description = "Launch for real"
        self.children = (*self.children, self.text, self.side)

    def _make_rows(self, made_up: tuple[str, ...]) -> Rows:
        """Return the table with what is typed before it."""
        source = make_control(Row("data", made_up[0], None, DATA))
        source.options = made_up
        condition = make_control(Row("condition", "a.k = b.k", None, CONDITION))
        for wordy in (source, condition):
            wordy.add_class(WORDY)
        return {"data": source, "on": condition, **self.rows}

    def show_events(self, events: list[Any]) -> None:
        """Show a simulated run, and its rivals beside it."""
        runs = {self.modelled["placement"]: events, **self.others} if self.others else {}
        super().show_events(events)
        with self.lock:
            self.text.value = f"<code>board={escape(repr(self.write(self.modelled)))}</code>"
            if self.side.children and runs:
                self.side.children[0].load_runs(runs)
            else:
                self.side.children = [LinkedViews(runs)] if runs else []

    def _simulate_events(self, settings: dict[str, Any]) -> list[Any]:
        events, others = super()._simulate_events(settings), {}
        for name, happened in self.rivals(settings):
            self._raise_if_superseded()
            others[name] = happened
        self.modelled, self.others = settings, others
        return events

    def static_views(self) -> list[Any]:
        """Return the simulated run, and its rivals beside it."""
        return [*super().static_views(), *self.side.children]
