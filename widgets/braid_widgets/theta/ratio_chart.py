"""ILF/ILF* with its bound, |R|/|S| and measured rates, batch by batch.

Source: Elseidy 2014, figure 5k.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pandas as pd
from braid.core.batch_history import PHASES
from braid.core.run_events import BatchCommitted

from braid_widgets.base.batch_figures import BatchFigures
from braid_widgets.base.charts import Chart
from braid_widgets.base.line_charts import panel_chart
from braid_widgets.base.run_view import RunView
from braid_widgets.base.text import data_origin

CAP = 2.0
"""Maximum of the ratio axis. Before both streams flow, the ratio of a mapping can be as large
as J.
"""


def ratio_table(events: Iterable[Any]) -> pd.DataFrame:
    """Return one row per batch of a run of any length: all of ``BatchFigures``, with phases, ratios
    and rates as columns.
    """
    return _fold_batches(events)[1]


def _fold_batches(events: Iterable[Any]) -> tuple[RunView, pd.DataFrame]:
    """Return the state at the end of a run, and its table."""
    scene, rows = RunView(), []
    columns = [name for name in BatchFigures.__dataclass_fields__ if name != "seconds_by_phase"]
    for event in events:
        scene.apply_event(event)
        if isinstance(event, BatchCommitted):
            now = scene.points[-1]
            rows.append({c: getattr(now, c) for c in columns} | dict(now.seconds_by_phase))
    data = pd.DataFrame(rows, columns=[*columns, *PHASES])
    seconds = data["seconds"].where(data["seconds"] > 0)
    return scene, data.assign(
        stored_ratio=data["ilf_max"] / data["ilf_optimal"].where(data["ilf_optimal"] > 0),
        rows_per_second=data["received"] / seconds,
        results_per_second=data["results"] / seconds,
    )


def ratio_chart(events: Iterable[Any]) -> Chart:
    """Return the ratio of each batch, its bound in Theorem 4.1, and the ratio of the streams.

    Rates are included only if they were measured.
    """
    scene, table = _fold_batches(events)
    data = table.set_index(table["batch"] + 1)
    is_gridded = bool(data["ilf_mapping"].notna().any())
    name = "ILF / ILF*" if is_gridded else "most stored / ILF*"
    ratios = pd.DataFrame({name: data["ratio" if is_gridded else "stored_ratio"]})
    if data["bound"].notna().any():
        ratios["bound"] = data["bound"].astype(float)
    r, s = [*scene.stream_aliases[:2], "R", "S"][:2]
    sizes = data["live"].map(lambda n: n[0] / n[1] if len(n) > 1 and n[1] else float("nan"))
    panels = {name: ratios, f"|{r}| / |{s}|": sizes.astype(float).to_frame(f"|{r}| / |{s}|")}
    if not scene.is_modelled:
        rates = data[["rows_per_second", "results_per_second"]]
        panels["per second"] = rates.set_axis(["tuples in", "results"], axis=1)
    origin = data_origin(scene.start) if scene.start else "no run"
    chart = panel_chart(f"How even the load is ({origin})", "batch", panels)
    if is_gridded:
        highest = ratios.clip(upper=CAP / 1.02).max().max() * 1.02
        chart.panels[name].update_yaxes(range=[0.98, max(1.3, highest)])
    return replace(chart, data=table)
