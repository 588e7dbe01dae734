"""The totals of a run as a table."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from statistics import median
from typing import Any

import pandas as pd
from braid.core.batch_history import PHASES

from braid_widgets.base.run_view import RunView, fold_events
from braid_widgets.base.text import MODELLED

COLUMNS = ["figure", "value", "unit"]


def totals_rows(scene: RunView) -> list[tuple[str, float | int, str]]:
    """Return (figure, value, unit) rows of the run so far.

    Times are included only if they were measured; they cover the retained batches.
    """
    t = scene.totals
    names = list(scene.stream_aliases) or [f"stream {k}" for k in range(len(t.received))]
    rows: list[tuple[str, float | int, str]] = [("batches", t.batches, "")]
    rows += [(f"in, {name}", n, "tuples") for name, n in zip(names, t.received, strict=False)]
    if not scene.is_modelled:
        rows.append(("results", t.results, "rows"))
    counted = (
        ("sent to hosts", t.sent, t.sent_bytes),
        ("stored now, with replicas", t.stored, t.stored_bytes),
        ("moved between hosts", t.moved, t.moved_bytes),
    )
    for what, tuples, size in counted:
        rows += [(what, tuples, "tuples"), (what, size, "bytes")]
    rows += [
        ("discarded", t.discarded, "tuples"),
        ("compared", t.compared, "pairs"),
        ("migrations", t.migrations, ""),
    ]
    if t.late:
        rows.append(("late", t.late, "tuples"))
    if t.since:
        rows.append(("sent, moved, discarded, compared, migrations, late: from batch", t.since, ""))
    if t.ratio_max == t.ratio_max:
        rows.append(
            (
                "maximum stored on a host / minimum possible (ILF / ILF*), |R|/|S| within J",
                round(t.ratio_max, 4),
                "ratio",
            )
        )
    if seconds := [p.seconds for p in scene.points if p.seconds == p.seconds]:
        rows.append(("median batch", round(median(seconds), 3), "seconds"))
    if timed := [p.seconds_by_phase for p in scene.points if p.seconds_by_phase]:
        spent = {part: sum(parts[part] for parts in timed) for part in PHASES}
        rows += [(f"seconds, {part}", round(n, 3), "seconds") for part, n in spent.items()]
    return rows


def totals_table(events: Iterable[Any]) -> pd.DataFrame:
    """Return the totals of a run with the columns figure, value and unit."""
    return pd.DataFrame(totals_rows(fold_events(events)), columns=COLUMNS, dtype=object)


def _format_row(row: tuple[str, float | int, str]) -> tuple[str, str, str]:
    what, value, unit = row
    return (what, f"{value / 1e6:,.2f}", "MB") if unit == "bytes" else (what, f"{value:,}", unit)


def totals_html(scene: RunView) -> str:
    """Return the totals as an HTML table; its title marks a modelled run."""
    kind = MODELLED if scene.is_modelled else "measured"
    style = "padding:1px 10px;text-align:right;font-variant-numeric:tabular-nums"
    lines = "".join(
        f'<tr><td style="padding:1px 10px;text-align:left">{escape(what)}</td><td '
        f'style="{style}">{value}</td>'
        f'<td style="padding:1px 10px;text-align:left">{unit}</td></tr>'
        for what, value, unit in map(_format_row, totals_rows(scene))
    )
    caption = (
        '<caption style="text-align:left;font-weight:600;padding:4px 10px">Totals '
        f"({kind})</caption>"
    )
    return (
        '<table style="border-collapse:collapse;font:13px '
        f'system-ui,sans-serif">{caption}{lines}</table>'
    )
