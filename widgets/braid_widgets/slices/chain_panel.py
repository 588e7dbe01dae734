"""The panel of a shared join: its queries, the modelled cost of sharing, and a run on Spark."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import ipywidgets as W
import pandas as pd

from braid_widgets.base import controls
from braid_widgets.base.query_table import QueryRow, QueryTable
from braid_widgets.base.screen_panel import RunScreen, RunScreenPanel
from braid_widgets.base.text_table import TextTable
from braid_widgets.slices.strategy_charts import strategy_charts


@dataclass(frozen=True)
class StreamSource:
    """Streams that the panel offers, with initial queries and suitable values of controls."""

    label: str
    streams: tuple[str, ...]
    queries: tuple[QueryRow, ...]
    controls: Mapping[str, Any]


SOURCES = {
    "arrivals": StreamSource(
        "synthetic streams r ⋈ s",
        ("r", "s"),
        (
            QueryRow("alarm", "5 seconds"),
            QueryRow("watch", "15 seconds"),
            QueryRow("trend", "30 seconds", "r.u_s < 300000"),
            QueryRow("season", "45 seconds", "r.u_s < 300000", is_active=False),
        ),
        dict(rate=20.0, sigma=0.3, join=0.05),
    ),
    "flights": StreamSource(
        "New York 2013: departures d ⋈ weather w",
        ("d", "w"),
        (
            QueryRow("now", "1 hour"),
            QueryRow("late", "3 hours", "d.delay >= 30"),
            QueryRow("storm", "8 hours", "d.delay >= 30 AND w.wind >= 15"),
            QueryRow("day", "d: 1 hour, w: 24 hours", "d.delay >= 60", is_active=False),
        ),
        dict(rate=0.01, sigma=0.2, join=0.33),
    ),
}


class ChainPanel(RunScreenPanel):
    """The run on a screen, the table of queries, controls, and the modelled cost of sharing.

    - ``launch``: called with the settings, including ``queries`` (the active ones); returns a run
      whose queries can be changed, such as SharedRun.
    - ``screen``: shows a recording until a run is launched.
    - ``defaults``: initial values by control: source, chain, rate, sigma, join, overhead, batches,
      pace.

    On an active run, the table adds and removes queries; the screen changes its slices.
    ``wait_for_changes`` waits for changes of queries. Raises ValueError for a name that is not a
    control.
    """

    run: Any

    def __init__(
        self,
        launch: Callable[[dict[str, Any]], Any],
        screen: RunScreen,
        **defaults: Any,
    ) -> None:
        source = SOURCES[defaults.get("source", "arrivals")]
        self.screen = screen
        self._tables = {name: s.queries for name, s in SOURCES.items()}
        self._changes = ThreadPoolExecutor(1, "braid-changes")
        self.table = QueryTable(source.streams, source.queries, self._apply_table_edit)
        super().__init__(launch, _make_controls(), {**source.controls, **defaults})
        self._source = self.inputs["source"].value
        self.outputs = [W.Output(layout=W.Layout(min_height="360px")) for _ in range(2)]
        self.children = (screen, self.table, *self.children, *self.outputs)
        self.inputs["source"].observe(self._switch_source, "value")
        for name in ("rate", "sigma", "join", "overhead"):
            self.inputs[name].observe(self._draw_costs, "value")
        self._draw_costs()

    def settings(self) -> dict[str, Any]:
        return super().settings() | {"queries": self.table.active_queries}

    def static_views(self) -> list[Any]:
        """Return the active queries and the modelled cost of sharing them."""
        active, chosen = [q for q in self.table.queries if q.is_active], self.requested_settings()
        rows = [(q.name, q.window, q.selection or "every tuple") for q in active]
        queries = pd.DataFrame(rows, columns=["query", "window", "selection"])
        costs = {name: chosen[name] for name in ("rate", "sigma", "join", "overhead")}
        return [
            TextTable(queries),
            *strategy_charts(self.table.active_queries, self.table.streams, **costs),
        ]

    def wait_for_changes(self, timeout: float | None = None) -> None:
        """Wait until the requested changes of the running join are done."""
        self._changes.submit(lambda: None).result(timeout)

    def _is_running(self) -> bool:
        return self.run is not None and self.state in ("running", "paused")

    def _apply_table_edit(self, rows: tuple[QueryRow, ...]) -> None:
        self._draw_costs()
        if self._is_running():
            self._submit_change(lambda run: _serve_queries(run, rows))

    def _submit_change(self, work: Callable[[Any], Any]) -> None:
        """Change the running join, one change at a time; then update the table."""
        run = self.run
        assert run is not None
        self.message.value, self.error = "", None
        self._changes.submit(self._apply_change, run, work)

    def _apply_change(self, run: Any, work: Callable[[Any], Any]) -> None:
        try:
            work(run)
        except Exception as error:
            self.show_error(error)
        with self.lock:
            if run is self.run and run.isActive:
                self.table.set_active(q.name for q in run.queries)
                self._draw_costs()

    def _switch_source(self, change: Any) -> None:
        """Show the queries and controls of another source; keep those of the previous one."""
        self._tables[self._source], self._source = self.table.queries, change["new"]
        source = SOURCES[self._source]
        self.table.load_queries(source.streams, self._tables[self._source])
        for name, value in source.controls.items():
            self.inputs[name].value = value
        self._draw_costs()

    def _draw_costs(self, change: Any = None) -> None:
        """Draw the modelled cost of sharing the queries."""
        chosen = {name: self.inputs[name].value for name in ("rate", "sigma", "join", "overhead")}
        try:
            drawn = [
                c._repr_mimebundle_()
                for c in strategy_charts(self.table.active_queries, self.table.streams, **chosen)
            ]
        except ValueError as error:
            drawn = [{"text/plain": str(error)}, {"text/plain": ""}]
        for output, data in zip(self.outputs, drawn, strict=True):
            output.outputs = ({"output_type": "display_data", "data": data, "metadata": {}},)


def _serve_queries(run: Any, rows: Sequence[QueryRow]) -> None:
    """Make the run serve exactly these queries; an edited query is removed and added again.

    Raises ValueError for a query that the run cannot serve, before any change.
    """
    streams, served = tuple(run.config.streams), {q.name: q for q in run.queries}
    wanted = {q.name: q.to_query(streams).to_arguments(streams) for q in rows if q.is_active}
    new = {name: run.make_query(**what) for name, what in wanted.items()}
    changed = {
        n
        for n in new.keys() & served.keys()
        if (new[n].windows, new[n].selections) != (served[n].windows, served[n].selections)
    }
    for name in (n for n in wanted if n not in served):
        run.add(**wanted[name])
    for name in (n for n in served if n not in wanted or n in changed):
        run.remove(name)
        if name in changed:
            run.add(**wanted[name])


OF = "streams of the queries"


def _make_controls() -> dict[str, Any]:
    kinds = {
        "Mem-Opt (least state)": "memory",
        "CPU-Opt (fewest comparisons)": "cpu",
        "auto": "auto",
    }
    return {
        "source": controls.choice_control(
            "streams", [(s.label, name) for name, s in SOURCES.items()], None, OF
        ),
        "chain": controls.choice_control("chain", kinds, None, "where windows are cut into slices"),
        "rate": controls.float_control(
            "rate (λ, tuples/s)", 0.001, 1000, 20.0, None, "of each stream"
        ),
        "sigma": controls.float_control(
            "selections pass (Sσ)", 0, 1, 0.3, 0.05, "share of the tuples"
        ),
        "join": controls.float_control(
            "pairs that match (S⋈)", 0, 1, 0.05, 0.01, "share of all pairs"
        ),
        "overhead": controls.float_control(
            "cost of a slice (C_sys)", 0, 1000, 2.5, 0.5, "in comparisons per tuple"
        ),
        "batches": controls.batches_control(60),
        "pace": controls.pace_control(0.5),
    }
