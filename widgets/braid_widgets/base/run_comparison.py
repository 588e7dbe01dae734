"""Compare several runs, such as the same input under several placements."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from braid.core.run_events import BatchCommitted

from braid_widgets.base import line_charts
from braid_widgets.base.charts import Chart
from braid_widgets.base.run_view import fold_events


def comparison_table(runs: Mapping[str, Iterable[Any]]) -> pd.DataFrame:
    """Return one row per run.

    - Loads: tuples per host at the end of the run.
    - ``ILF*``: the oracle's optimum.
    - ``median batch (s)`` and the quartiles: NaN for a modelled run.
    - ``max ILF/ILF*``: NaN for a placement without a grid.

    Raises ValueError without runs.
    """
    if not runs:
        raise ValueError("nothing to compare: pass at least one run, as name -> events")
    return pd.DataFrame(
        [_make_run_row(name, list(events)) for name, events in runs.items()]
    ).set_index("run")


def _make_run_row(name: str, events: list[Any]) -> dict[str, Any]:
    scene, nan = fold_events(events), float("nan")
    start, totals, now = scene.start, scene.totals, scene.points[-1] if scene.points else None
    commits = [] if scene.is_modelled else [e for e in events if isinstance(e, BatchCommitted)]
    seconds = [e.seconds_by_phase["total"] for e in commits if "total" in e.seconds_by_phase]
    quartiles = np.quantile(seconds, (0.5, 0.25, 0.75)).tolist() if seconds else [nan] * 3
    return {
        "run": name,
        "placement": start.placement if start else "",
        "clock": start.time_source if start else "",
        "hosts": now.hosts if now else start.hosts if start else 0,
        "tuples in": sum(totals.received),
        "results": nan if scene.is_modelled else totals.results,
        "mean stored per host": now.ilf if now else nan,
        "most stored on a host": now.ilf_max if now else 0,
        "ILF* (oracle)": now.ilf_optimal if now else nan,
        "max ILF/ILF*": totals.ratio_max,
        "tuples sent": totals.sent,
        "MB sent": totals.sent_bytes / 1e6,
        "tuples moved": totals.moved,
        "MB moved": totals.moved_bytes / 1e6,
        "migrations": totals.migrations,
        **dict(zip(SPREAD, quartiles, strict=True)),
    }


SPREAD = ("median batch (s)", "lower quartile (s)", "upper quartile (s)")
_BARS = {
    "mean stored per host": "Stored per host at the end: tuples",
    "most stored on a host": "Stored per host at the end: tuples",
    "tuples sent": "Sent and moved in all: tuples",
    "tuples moved": "Sent and moved in all: tuples",
    SPREAD[0]: "Median batch, quartiles: seconds",
}
"""Columns of the chart, each with its panel."""


def comparison_chart(runs: Mapping[str, Iterable[Any]]) -> Chart:
    """Return a chart of the loads (mean and maximum), tuples sent and moved, and batch times.

    Batch times are shown with quartiles, if they were measured. They show the influence of other
    work on the machine.
    """
    data = comparison_table(runs).reset_index()
    bars = (
        data.melt("run", [*_BARS], "bar").dropna().assign(panel=lambda rows: rows["bar"].map(_BARS))
    )
    middle, low, high = (data.set_index("run")[name] for name in SPREAD)
    spread = pd.DataFrame({"bar": SPREAD[0], "above": high - middle, "below": middle - low})
    kinds = " and ".join(sorted(set(data["clock"]) - {""}))
    chart = line_charts.panel_bar_chart(
        bars.merge(spread.reset_index(), "left", ["run", "bar"]),
        f"Runs compared ({kinds})",
        "run",
        y="value",
        color="bar",
        error_y="above",
        error_y_minus="below",
    )
    return replace(chart, data=data)
