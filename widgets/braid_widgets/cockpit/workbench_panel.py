"""The workbench: all settings of a join of two streams, simulated at once and run on Spark.

It also shows the line of code with the same settings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from html import escape
from typing import Any

import ipywidgets as W
from braid.core.placement import placements_for

from braid_widgets.base import controls
from braid_widgets.base.interactivity import is_headless
from braid_widgets.base.launcher import Launch
from braid_widgets.base.screen_panel import ScreenPanel
from braid_widgets.base.simulation_panel import Simulate
from braid_widgets.cockpit.linked_views import LinkedViews
from braid_widgets.cockpit.view import Cockpit

Beside = Iterable[tuple[str, list[Any]]]


class WorkbenchPanel(ScreenPanel):
    """A panel with all settings of a join of two streams.

    - ``screen``: shows the run.
    - ``write``: returns the line of code for the settings.
    - ``made_up``: names of generated streams.
    - ``defaults``: initial values by control, as of ``WorkbenchSettings``.
    - ``rivals``: yields, for the settings, up to three (name, events) pairs, shown beside the
      simulated run. They are simulated with it, and canceled with it if a control changes.
    """

    starts = "preparing the streams…"

    def __init__(
        self,
        simulate: Simulate,
        launch: Launch,
        write: Callable[[dict[str, Any]], str],
        screen: Cockpit,
        made_up: tuple[str, ...],
        rivals: Callable[[dict[str, Any]], Beside] = lambda settings: (),
        **defaults: Any,
    ) -> None:
        self.write, self.rivals = write, rivals
        self.text, self.side = W.HTML(), W.VBox()
        super().__init__(simulate, launch, screen, _make_controls(made_up), defaults)
        self.start.description = "Launch for real"
        self.children = (*self.children, self.text, self.side)
        self.modelled = self.settings()
        """The settings of the run that is passed to ``show_events``."""
        self.others = {} if is_headless() else dict(rivals(self.modelled))
        """The rivals beside it, by name."""
        self.show_events(self.events)

    def show_events(self, events: list[Any]) -> None:
        """Show a simulated run."""
        runs = _collect_runs(self.modelled, events, self.others)
        with self.lock:
            self.events = events
            line = escape(repr(self.write(self.modelled)))
            self.text.value = f"<code>board={line}</code>"
            self.screen.load_run(events)
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
        """Return the simulated run, and the real one if there is one."""
        settings = self.requested_settings()
        events = list(self.simulate(settings))
        self.screen.load_run(events)
        runs = _collect_runs(settings, events, dict(self.rivals(settings)))
        return [self.screen, *([LinkedViews(runs)] if runs else [])]


def _collect_runs(
    settings: dict[str, Any], events: list[Any], others: dict[str, list[Any]]
) -> dict[str, list[Any]]:
    """Return the simulated run and its rivals by name; empty without rivals."""
    return {settings["placement"]: events, **others} if others else {}


def _make_controls(made_up: tuple[str, ...]) -> dict[str, Any]:
    choose = W.Combobox(
        description="data",
        options=made_up,
        value=made_up[0],
        continuous_update=False,
        tooltip="a generated workload; two files, a.csv,b.parquet; or a recording (.jsonl)",
        style={"description_width": "130px"},
        layout=W.Layout(width="auto"),
    )
    on = controls.text_control("condition", "a.k = b.k", "Spark SQL over a.column and b.column")
    for wordy in (choose, on):
        wordy.add_class(controls.WORDY)
    placements = [(kind.label, name) for name, kind in placements_for(2).items()]
    return {
        "data": choose,
        "on": on,
        "window": controls.float_control(
            "window (s; 0: all)", 0, 10**6, 0, 1, "how long a tuple can be joined; 0: forever"
        ),
        "placement": controls.choice_control(
            "placement", placements, "AdaptiveGrid", controls.PLACED
        ),
        "hosts": controls.int_control("hosts (J)", 1, 256, 16, "logical hosts that share the join"),
        "batches": controls.int_control(
            "micro-batches", 2, 400, 24, "steps in which the input arrives"
        ),
        "rate": controls.int_control(
            "tuples a batch", 1, 25_000, 200, "of each stream, approximately"
        ),
        "shed": controls.float_control(
            "pairs processed (r)", 0.01, 1, 1, 0.05, "below 1: some pairs are shed"
        ),
        "skew": controls.float_control(
            "skew of keys (z)", 0, 4, 0, 0.1, "Zipf parameter of k in generated streams"
        ),
        "pace": controls.float_control(
            "seconds a batch", 0, 60, 0, 0.1, "least, of a real run: leaves time to change it"
        ),
    }
