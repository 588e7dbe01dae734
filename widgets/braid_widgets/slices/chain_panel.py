"""The panel of a shared join: its queries, the modelled cost of sharing, and a run on Spark.

Clicks on the run's chain split and merge slices.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol

import ipywidgets as W
import pandas as pd
from braid.papers.slices.run_events import ChainChanged

from braid_widgets.base import controls
from braid_widgets.base.launcher import PICTURE, ControllableRun, LaunchPanel
from braid_widgets.base.live_updates import RunFollower
from braid_widgets.base.query_table import QueryRow, QueryTable
from braid_widgets.base.text_table import TextTable
from braid_widgets.slices.chain import ChainPlayer
from braid_widgets.slices.strategy_charts import strategy_charts

EMPTY = "<i>Launch on Spark, and the chain is drawn here as it fills.</i>"
RECORDED = "<i>A recorded run. Launch on Spark, and yours is drawn here as it fills.</i>"
BY_HAND = "given"
"""The option of the control ``chain`` after slices were split or merged by hand. The next launch
uses Mem-Opt.
"""


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


class ControllableSharedRun(ControllableRun, Protocol):
    """A run whose queries and slices can be changed, such as SharedRun."""

    config: Any

    @property
    def queries(self) -> Sequence[Any]:
        """Return the queries that the run serves now."""

    def make_query(self, name: str, windows: Mapping[str, str], where: Mapping[str, str]) -> Any:
        """Return a query without adding it. Raises ValueError if the run cannot serve it."""

    def add(self, name: str, windows: Mapping[str, str], where: Mapping[str, str]) -> None:
        """Add a query from the next batch on."""

    def remove(self, name: str) -> None:
        """Remove a query from the next batch on."""

    def split_slice(self, age: str, stream: str) -> None:
        """Split the slice of a stream at an age."""

    def merge_slices(self, age: str, stream: str) -> None:
        """Merge the two slices of a stream that meet at an age."""

    def rebalance(self, chain: str) -> None:
        """Choose the chain again: "memory", "cpu" or "auto"."""


class ChainPanel(LaunchPanel):
    """The table of queries, controls, the modelled cost of sharing, and a run on Spark.

    - ``launch``: called with the settings, including ``queries`` (the active ones); returns the
      run.
    - ``defaults``: initial values by control: source, chain, rate, sigma, join, overhead, batches,
      pace.
    - ``recorded``: events shown until a run is launched.

    On an active run, the table adds and removes queries, a click on a boundary of the chain merges
    two slices, a click inside a slice splits it, and the control ``chain`` chooses the chain again.
    ``wait_for_changes`` waits for such changes. Raises ValueError for a name that is not a control.
    """

    run: ControllableSharedRun | None

    def __init__(
        self,
        launch: Callable[[dict[str, Any]], ControllableSharedRun],
        recorded: Iterable[Any] = (),
        **defaults: Any,
    ) -> None:
        source = SOURCES[defaults.get("source", "arrivals")]
        self.film: ChainPlayer | None = None
        self._tables = {name: s.queries for name, s in SOURCES.items()}
        self._changes = ThreadPoolExecutor(1, "braid-changes")
        self.table = QueryTable(source.streams, source.queries, self._apply_table_edit)
        super().__init__(launch, _make_controls(), {**source.controls, **defaults})
        self._source = self.inputs["source"].value
        self.events = list(recorded)
        self.place = W.VBox([W.HTML(RECORDED if self.events else EMPTY)])
        self.place.add_class(PICTURE)
        self.outputs = [W.Output(layout=W.Layout(min_height="360px")) for _ in range(2)]
        style, grid, *bars = self.children
        self.children = (style, self.table, grid, *bars, self.place, *self.outputs)
        self.inputs["source"].observe(self._switch_source, "value")
        self.inputs["chain"].observe(self._rebalance_chain, "value")
        for name in ("rate", "sigma", "join", "overhead"):
            self.inputs[name].observe(self._draw_costs, "value")
        self._draw_costs()
        if self.events:
            self.place.children = (*self.place.children, ChainPlayer(self.events))

    def applies_while_running(self, control: Any) -> bool:
        """Return True for the control ``chain``."""
        return control is self.inputs["chain"]

    def settings(self) -> dict[str, Any]:
        chosen = super().settings()
        kind = "memory" if chosen["chain"] == BY_HAND else chosen["chain"]
        return chosen | {"chain": kind, "queries": self.table.active_queries}

    def follow_run(self, run: Any) -> RunFollower:
        self._tell_chain(self.launched["chain"])
        return super().follow_run(run)

    def show_events(self, events: list[Any]) -> None:
        """Draw the chain after these events; do nothing before the first ``ChainChanged``."""
        if not any(isinstance(e, ChainChanged) for e in events):
            return
        with self.lock:
            if self.film is None:
                self.film = ChainPlayer(events, pick=True)
                self.film.observe(self._handle_pick, "picked")
                self.place.children = [self.film]
            else:
                self.film.load_events(events)

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

    def _apply_table_edit(self, asked: tuple[QueryRow, ...]) -> None:
        self._draw_costs()
        if self._is_running():
            self._submit_change(lambda run: _serve_queries(run, asked))

    def _tell_chain(self, kind: str) -> None:
        """Show the kind of the current chain without choosing it again."""
        self.inputs["chain"].unobserve(self._rebalance_chain, "value")
        self.inputs["chain"].value = kind
        self.inputs["chain"].observe(self._rebalance_chain, "value")

    def _rebalance_chain(self, change: Any) -> None:
        if self._is_running() and change["new"] != BY_HAND:
            self._submit_change(lambda run: run.rebalance(change["new"]))

    def _handle_pick(self, change: Any) -> None:
        pick = change["new"]
        if not self._is_running():
            self.show_error(
                RuntimeError("no run is going on whose slices could be changed; launch one")
            )
            return
        age = f"{pick['age']} microseconds"
        self._submit_change(lambda run: self._change_slices(run, pick["act"], age, pick["stream"]))

    def _change_slices(self, run: ControllableSharedRun, act: str, age: str, stream: int) -> None:
        getattr(run, {"merge": "merge_slices", "split": "split_slice"}[act])(
            age, list(run.config.streams)[stream]
        )
        self._tell_chain(BY_HAND)

    def _submit_change(self, work: Callable[[ControllableSharedRun], Any]) -> None:
        """Change the running join, one change at a time; then update the table."""
        run = self.run
        assert run is not None
        self.message.value, self.error = "", None
        self._changes.submit(self._apply_change, run, work)

    def _apply_change(
        self, run: ControllableSharedRun, work: Callable[[ControllableSharedRun], Any]
    ) -> None:
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


def _serve_queries(run: ControllableSharedRun, asked: Sequence[QueryRow]) -> None:
    """Make the run serve exactly these queries; an edited query is removed and added again.

    Raises ValueError for a query that the run cannot serve, before any change.
    """
    streams, served = tuple(run.config.streams), {q.name: q for q in run.queries}
    wanted = {q.name: q.to_query(streams).to_arguments(streams) for q in asked if q.is_active}
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
        "by hand": BY_HAND,
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
