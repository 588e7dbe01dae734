"""Compare several runs, such as the same input under several placements."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from braid.core.run_events import BatchCommitted
from plotly.subplots import make_subplots

from braid_widgets.base import colors
from braid_widgets.base.charts import BELOW, GREY, TEMPLATE, Chart
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


def comparison_chart(runs: Mapping[str, Iterable[Any]]) -> Chart:
    """Return a chart of the loads (mean and maximum), tuples sent and moved, and batch times.

    Batch times are shown with quartiles, if they were measured.
    """
    data = comparison_table(runs)
    timed = bool(data["median batch (s)"].notna().any())
    titles = ["Stored per host at the end", "Sent and moved in all", "Median batch, quartiles"][
        : 2 + timed
    ]
    plot = make_subplots(1, len(titles), subplot_titles=titles)
    bars = [
        ("mean stored per host", colors.RATIO, 1),
        ("most stored on a host", colors.BOUND, 1),
        ("tuples sent", colors.THROUGHPUT, 2),
        ("tuples moved", colors.MIGRATION, 2),
        ("median batch (s)", colors.RESULTS, 3),
    ]
    for column, colour, place in bars[: 4 + timed]:
        bar = go.Bar(x=list(data.index), y=data[column].tolist(), name=column, marker_color=colour)
        if column == SPREAD[0]:
            bar.error_y = _make_error_bars(data)
        plot.add_trace(bar, row=1, col=place)
    for place, unit in enumerate(("tuples", "tuples", "seconds")[: len(titles)], 1):
        plot.update_yaxes(title=unit, row=1, col=place)
    kinds = " and ".join(sorted(set(data["clock"]) - {""}))
    plot.update_layout(
        template=TEMPLATE,
        title=dict(text=f"Runs compared ({kinds})", y=0.97, yanchor="top"),
        height=480,
    )
    plot.update_xaxes(tickangle=-45)
    plot.update_layout(legend=BELOW, margin=dict(t=90, b=150))
    return Chart("compare", plot, data.reset_index())


def _make_error_bars(data: pd.DataFrame) -> dict[str, Any]:
    """Return error bars from quartile to quartile of a run's batches.

    They show the influence of other work on the machine.
    """
    middle, low, high = (data[name] for name in SPREAD)
    return dict(
        array=(high - middle).tolist(),
        arrayminus=(middle - low).tolist(),
        color=GREY,
        thickness=1.5,
        width=4,
    )
