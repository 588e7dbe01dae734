"""Compare several runs, such as the same input under several placements."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from html import escape
from typing import Any

import numpy as np
import pandas as pd
from braid.core.run_events import BatchCommitted

from braid_widgets.base import colors, line_charts
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
    scene = fold_events(events)
    t, now = scene.totals, scene.points[-1] if scene.points else None
    seconds = [
        e.seconds_by_phase["total"]
        for e in events
        if isinstance(e, BatchCommitted) and "total" in e.seconds_by_phase
    ]
    nan = float("nan")
    return {
        "run": name,
        "placement": scene.start.placement if scene.start else "",
        "clock": scene.start.time_source if scene.start else "",
        "hosts": now.hosts if now else (scene.start.hosts if scene.start else 0),
        "tuples in": sum(t.received),
        "results": float("nan") if scene.is_modelled else t.results,
        "mean stored per host": now.ilf if now else nan,
        "most stored on a host": now.ilf_max if now else 0,
        "ILF* (oracle)": now.ilf_optimal if now else nan,
        "max ILF/ILF*": t.ratio_max,
        "tuples sent": t.sent,
        "MB sent": t.sent_bytes / 1e6,
        "tuples moved": t.moved,
        "MB moved": t.moved_bytes / 1e6,
        "migrations": t.migrations,
        **(
            _compute_quartiles(seconds)
            if seconds and not scene.is_modelled
            else dict.fromkeys(SPREAD, nan)
        ),
    }


SPREAD = ("median batch (s)", "lower quartile (s)", "upper quartile (s)")


def _compute_quartiles(seconds: list[float]) -> dict[str, float]:
    """Return the quartiles of a run's batch durations."""
    low, middle, high = np.quantile(seconds, (0.25, 0.5, 0.75))
    return dict(zip(SPREAD, (float(middle), float(low), float(high)), strict=True))


def comparison_html(runs: Mapping[str, Iterable[Any]]) -> str:
    """Return the table as HTML, with the values that all runs share once above it."""
    data = comparison_table(runs).dropna(axis="columns", how="all").rename_axis(index=None)
    kinds = " and ".join(sorted(set(data.pop("clock")) - {""}))
    common = data.columns[data.nunique(dropna=False) == 1] if len(data) > 1 else []
    alike = "".join(f" · {name}: {escape(_format_value(data[name].iloc[0]))}" for name in common)
    styled = data.drop(columns=common).to_html(
        formatters=dict.fromkeys(data, _format_value), na_rep="–", border=0
    )
    title = (
        f'<div style="padding:4px 10px"><b>Runs compared ({escape(kinds)})</b>; loads in '
        f"tuples{alike}</div>"
    )
    return f'<div style="font:13px system-ui,sans-serif;overflow-x:auto">{title}{styled}</div>'


def _format_value(value: float | str) -> str:
    if isinstance(value, str):
        return value
    return f"{value:,.0f}" if abs(value) >= 100 or value == int(value) else f"{value:,.3g}"


_BARS = (
    ("mean stored per host", "Stored per host at the end: tuples", colors.RATIO),
    ("most stored on a host", "Stored per host at the end: tuples", colors.BOUND),
    ("tuples sent", "Sent and moved in all: tuples", colors.THROUGHPUT),
    ("tuples moved", "Sent and moved in all: tuples", colors.MIGRATION),
    (SPREAD[0], "Median batch, quartiles: seconds", colors.RESULTS),
)
"""Columns of the chart, each with its panel and color."""


def comparison_chart(runs: Mapping[str, Iterable[Any]]) -> Chart:
    """Return a chart of the loads (mean and maximum), tuples sent and moved, and batch times.

    Batch times are shown with quartiles, if they were measured. They show the influence of other
    work on the machine.
    """
    data = comparison_table(runs).reset_index()
    middle, low, high = (data[name] for name in SPREAD)
    spread = dict(above=high - middle, below=middle - low)
    bars = pd.concat(
        data[["run"]].assign(
            panel=panel, bar=bar, value=data[bar], **(spread if bar == SPREAD[0] else {})
        )
        for bar, panel, _ in _BARS
        if data[bar].notna().any()
    )
    kinds = " and ".join(sorted(set(data["clock"]) - {""}))
    chart = line_charts.bar_chart(
        bars,
        f"Runs compared ({kinds})",
        "",
        x="run",
        y="value",
        color="bar",
        facet_col="panel",
        labels=dict(run="", panel=""),
        error_y="above",
        error_y_minus="below",
        shades=[shade for *_, shade in _BARS],
        has_own_scales=True,
    )
    return replace(chart, data=data)
