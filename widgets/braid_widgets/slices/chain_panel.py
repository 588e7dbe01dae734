"""The panel of a shared join: its queries, the modelled cost of sharing, and a run on Spark."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

import ipywidgets as W
import pandas as pd
from braid.core.query import Query

from braid_widgets.base.controls import BATCHES, PACE, QueriesControl, Row
from braid_widgets.base.launcher import Launch
from braid_widgets.base.screen_panel import Rows, RunScreen, ScreenPanel
from braid_widgets.base.text_table import TextTable
from braid_widgets.slices.strategy_charts import strategy_charts


class StreamSource(NamedTuple):
    """Streams that the panel offers, with initial queries and suitable values of controls."""

    label: str
    streams: tuple[str, ...]
    queries: tuple[Query, ...]
    controls: Mapping[str, Any]


_YOUNG, _LATE = {"r": "r.u_s < 300000"}, {"d": "d.delay >= 30"}
SOURCES = {
    "arrivals": StreamSource(
        "synthetic streams r ⋈ s",
        ("r", "s"),
        (
            Query.parse("alarm", "rs", "5 seconds"),
            Query.parse("watch", "rs", "15 seconds"),
            Query.parse("trend", "rs", "30 seconds", _YOUNG),
        ),
        dict(rate=20.0, sigma=0.3, join=0.05),
    ),
    "flights": StreamSource(
        "New York 2013: departures d ⋈ weather w",
        ("d", "w"),
        (
            Query.parse("now", "dw", "1 hour"),
            Query.parse("late", "dw", "3 hours", _LATE),
            Query.parse("storm", "dw", "8 hours", {**_LATE, "w": "w.wind >= 15"}),
        ),
        dict(rate=0.01, sigma=0.2, join=0.33),
    ),
}
COSTS = ("rate", "sigma", "join", "overhead")
"""Controls of the modelled cost of sharing, beside the queries."""


CHAINS = {
    "Mem-Opt (least state)": "memory",
    "CPU-Opt (fewest comparisons)": "cpu",
    "auto": "auto",
}
NAMES = {source.label: name for name, source in SOURCES.items()}
OVERHEAD = "in comparisons per tuple"


class ChainPanel(ScreenPanel):
    """The run on a screen, controls, and the modelled cost of sharing.

    The settings of a launch include ``queries``, and the drawer of the screen changes queries and
    slices of the run. The controls of the cost begin with values that suit the source.
    """

    rows: ClassVar[Rows] = {
        "source": Row("streams", None, NAMES, "streams of the queries"),
        "chain": Row("chain", None, CHAINS, "where windows are cut into slices"),
        "rate": Row("rate (λ, tuples/s)", 20.0, (0.001, 1000), "of each stream"),
        "sigma": Row("selections pass (Sσ)", 0.3, (0, 1), "share of the tuples", 0.05),
        "join": Row("pairs that match (S⋈)", 0.05, (0, 1), "share of all pairs", 0.01),
        "overhead": Row("cost of a slice (C_sys)", 2.5, (0, 1000), OVERHEAD, 0.5),
        "batches": BATCHES._replace(value=60),
        "pace": PACE,
    }

    def __init__(self, launch: Launch, screen: RunScreen, **defaults: Any) -> None:
        self._typed = dict[str, str]()
        source = SOURCES.get(str(defaults.get("source")), SOURCES["arrivals"])
        queries = QueriesControl(source.streams, source.queries)
        rows = {"source": self.rows["source"], "queries": queries, **self.rows}
        super().__init__(launch, screen, rows=rows, **{**source.controls, **defaults})
        self.outputs = [W.Output(layout=W.Layout(min_height="360px")) for _ in range(2)]
        self.children = (*self.children, *self.outputs)
        self.inputs["source"].observe(self._switch_source, "value")
        for name in ("queries", *COSTS):
            self.inputs[name].observe(self._draw_costs, "value")
        self._draw_costs()

    def static_views(self) -> list[Any]:
        """Return the queries and the modelled cost of sharing them."""
        chosen = self.requested_settings()
        rows = [text.split(": ", 1) for text in self.inputs["queries"].format_lines()]
        queries = pd.DataFrame(rows, columns=["query", "window and selection"])
        return [TextTable(queries), *self._make_charts(chosen)]

    def _make_charts(self, chosen: Mapping[str, Any]) -> list[Any]:
        costs = {name: chosen[name] for name in COSTS}
        return strategy_charts(chosen["queries"], self.inputs["queries"].streams, **costs)

    def _switch_source(self, change: Any) -> None:
        """Show the queries and controls of another source; keep the queries of the previous one."""
        box, source = self.inputs["queries"], SOURCES[change["new"]]
        self._typed[change["old"]] = box.value
        box.load_queries(source.streams, source.queries, self._typed.get(change["new"]))
        for name, value in source.controls.items():
            self.inputs[name].value = value

    def _draw_costs(self, change: Any = None) -> None:
        """Draw the modelled cost of sharing the queries."""
        try:
            drawn = [c._repr_mimebundle_() for c in self._make_charts(self.settings())]
        except ValueError as error:
            drawn = [{"text/plain": str(error)}, {"text/plain": ""}]
        for output, data in zip(self.outputs, drawn, strict=True):
            output.outputs = ({"output_type": "display_data", "data": data, "metadata": {}},)
