"""The totals of a run, as a table."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from statistics import median
from typing import Any

import pandas as pd
from braid.core.seconds import PARTS

from braid_widgets.base.fold import Scene, fold
from braid_widgets.base.words import MODELLED

COLUMNS = ["figure", "value", "unit"]


def rows(scene: Scene) -> list[tuple[str, float | int, str]]:
    """(what, how much, unit) of the run so far; times only where they were measured, over the
    batches kept.
    """
    t = scene.totals
    names = list(scene.streams) or [f"stream {k}" for k in range(len(t.received))]
    found: list[tuple[str, float | int, str]] = [("batches", t.batches, "")]
    found += [(f"in, {name}", n, "tuples") for name, n in zip(names, t.received, strict=False)]
    if not scene.modelled:
        found.append(("results", t.results, "rows"))
    counted = (
        ("sent to hosts", t.sent, t.sent_bytes),
        ("stored now, with replicas", t.stored, t.stored_bytes),
        ("moved between hosts", t.moved, t.moved_bytes),
    )
    for what, tuples, size in counted:
        found += [(what, tuples, "tuples"), (what, size, "bytes")]
    found += [
        ("discarded", t.discarded, "tuples"),
        ("compared", t.compared, "pairs"),
        ("migrations", t.migrations, ""),
    ]
    if t.late:
        found.append(("late", t.late, "tuples"))
    if t.since:
        found.append(
            ("sent, moved, discarded, compared, migrations, late: from batch", t.since, "")
        )
    if t.ratio_max == t.ratio_max:
        found.append(
            (
                "most that a host stores, over the least possible (ILF / ILF*), |R|/|S| within J",
                round(t.ratio_max, 4),
                "ratio",
            )
        )
    if seconds := [p.seconds for p in scene.points if p.seconds == p.seconds]:
        found.append(("median batch", round(median(seconds), 3), "seconds"))
    if timed := [p.parts for p in scene.points if p.parts]:
        spent = {part: sum(parts[part] for parts in timed) for part in PARTS}
        found += [(f"seconds, {part}", round(n, 3), "seconds") for part, n in spent.items()]
    return found


def table(events: Iterable[Any]) -> pd.DataFrame:
    """The totals of a run: columns figure, value, unit."""
    return pd.DataFrame(rows(fold(events)), columns=COLUMNS, dtype=object)


def _readable(row: tuple[str, float | int, str]) -> tuple[str, str, str]:
    what, value, unit = row
    return (what, f"{value / 1e6:,.2f}", "MB") if unit == "bytes" else (what, f"{value:,}", unit)


def html(scene: Scene) -> str:
    """The totals as an HTML table; its title says so when the run is modelled."""
    kind = MODELLED if scene.modelled else "measured"
    style = "padding:1px 10px;text-align:right;font-variant-numeric:tabular-nums"
    lines = "".join(
        f'<tr><td style="padding:1px 10px;text-align:left">{escape(what)}</td><td '
        f'style="{style}">{value}</td>'
        f'<td style="padding:1px 10px;text-align:left">{unit}</td></tr>'
        for what, value, unit in map(_readable, rows(scene))
    )
    caption = (
        '<caption style="text-align:left;font-weight:600;padding:4px 10px">Totals '
        f"({kind})</caption>"
    )
    return (
        '<table style="border-collapse:collapse;font:13px '
        f'system-ui,sans-serif">{caption}{lines}</table>'
    )
