"""The page of a sweep: a table of the runs that ``-p NAME=VALUE,VALUE`` asks for."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from braid.util.durations import UNITS, format_duration

from braid_lab.reports.line_picture import Curve, LinePicture
from braid_lab.reports.page import HEADLINES
from braid_lab.reports.report_figures import Figure
from braid_lab.reports.report_history import ReportRun
from braid_lab.reports.report_style import render_document, render_html_table
from braid_lab.reports.report_summary import render_verdict


def find_varied_names(combinations: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the names with more than one value, in order."""
    return [n for n in combinations[0] if len({repr(c[n]) for c in combinations}) > 1]


def name_run_page(page: Path, values: Mapping[str, Any], varied: Sequence[str]) -> Path:
    """Return the file of one run of a sweep: the page's, with the varied values in its name."""
    parts = [re.sub(r"[^\w.+-]+", "_", f"{name}-{values[name]}") for name in varied]
    return page.with_name("-".join([page.stem, *parts]) + page.suffix)


def render_sweep_page(runs: Sequence[ReportRun], varied: Sequence[str]) -> str:
    """Return the page of a sweep: the answer, a picture if one number varies, and a table."""
    first = runs[0]
    failed = sum(not r.is_as_expected for r in runs)
    checks = f"{failed} of {len(runs)} runs failed" if failed else f"all {len(runs)} runs hold"
    body = (
        f'<p class="braid-report-context"><b>{escape(first.title or first.report)}</b><span>'
        f"a sweep over {escape(' and '.join(varied))} · {checks}</span></p>"
        f"<h1>{escape(make_sweep_answer(runs, varied))}</h1>{_render_picture(runs, varied)}"
        f"<h2>Runs</h2>{_render_table(runs, varied)}"
    )
    return render_document(f"{first.title or first.report}: a sweep", body)


def make_sweep_answer(runs: Sequence[ReportRun], varied: Sequence[str]) -> str:
    """Return where the first figure is best, or its range if neither direction is better."""
    sound = [(r, r.figures[0]) for r in runs if r.figures]
    if not sound:
        return f"{len(runs)} runs over {' and '.join(varied)}."
    figure = sound[0][1]
    values = [f.value for _, f in sound]
    low, high = (Figure(figure.name, v, figure.unit).text for v in (min(values), max(values)))
    if min(values) == max(values):
        return f"{_capitalize_first(figure.name)}: {low}, whatever {' and '.join(varied)} is."
    if not figure.better:
        return f"{_capitalize_first(figure.name)}: from {low} to {high}."
    best = (min if figure.better == "less" else max)(sound, key=lambda pair: pair[1].value)
    where = ", ".join(f"{name} = {best[0].settings[name]}" for name in varied)
    worst, word = (high, "least") if figure.better == "less" else (low, "most")
    return (
        f"{_capitalize_first(figure.name)}: {word} with {where}, {best[1].text}; at worst {worst}."
    )


def _capitalize_first(text: str) -> str:
    return text[:1].upper() + text[1:]


def _render_picture(runs: Sequence[ReportRun], varied: Sequence[str]) -> str:
    """Return the first figure over the varied setting, if that is one ascending number."""
    values = [r.settings[varied[0]] for r in runs]
    numbers = [v for v in values if isinstance(v, int | float) and not isinstance(v, bool)]
    figures = [r.figures[0] for r in runs if r.figures]
    if len(varied) > 1 or not len(numbers) == len(figures) == len(runs):
        return ""
    pairs = sorted(zip(numbers, (f.value for f in figures), strict=True))
    curve = Curve(figures[0].name, tuple(value for _, value in pairs))
    places = tuple(float(place) for place, _ in pairs)
    title = f"{_capitalize_first(figures[0].name)} by {varied[0]}."
    return LinePicture(title, places, (curve,), along=varied[0]).to_html()


def _render_table(runs: Sequence[ReportRun], varied: Sequence[str]) -> str:
    names = list(dict.fromkeys(f.name for r in runs for f in r.figures[:HEADLINES]))
    rows = [
        [
            *(f'<a href="{escape(r.page)}">{escape(str(r.settings[n]))}</a>' for n in varied),
            render_verdict(r),
            *(next((escape(f.text) for f in r.figures if f.name == n), "–") for n in names),
            escape(format_duration(r.seconds * UNITS["second"])),
        ]
        for r in runs
    ]
    header = (*varied, "checks", *names, "took")
    numbers = frozenset({*range(len(varied) + 1, len(header))})
    return render_html_table(header, rows, numbers)
