"""The index of a folder of reports: a card for each, and its runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from html import escape
from pathlib import Path
from urllib.parse import quote

from braid_lab.reports.report_history import (
    SUFFIX,
    ReportRun,
    compare_with_earlier,
    list_figure_values,
    read_history,
    select_equal_settings,
    write_atomically,
)
from braid_lab.reports.report_style import render_document, render_folded_section, render_sparkline
from braid_lab.reports.report_summary import render_change, render_runs_table, render_verdict

SHOWN_RUNS = 30
"""Maximum number of runs of a report in the index."""


def write_report_index(folder: Path) -> Path:
    """Write ``index.html`` into a folder of reports and return its path.

    Raises ValueError if the folder has no history of a report, or one that cannot be read.
    """
    files = sorted(folder.glob(f"*{SUFFIX}"))
    if not files:
        raise ValueError(
            f"{folder} has no history of a report (NAME{SUFFIX}); `braid report NAME -o "
            f"{folder}/NAME.html` writes one"
        )
    histories = [h for file in files if (h := _link_pages(folder, read_history(file)))]
    write_atomically(folder / "index.html", render_index_page(sorted(histories, key=_rank_report)))
    return folder / "index.html"


def _rank_report(runs: Sequence[ReportRun]) -> tuple[bool, bool, str]:
    """Return the place of a report in the index: those that failed first, then those worse."""
    return (runs[-1].is_as_expected, not _is_worse(runs), runs[-1].title)


def _is_worse(runs: Sequence[ReportRun]) -> bool:
    return any(c.tone == "bad" for c in compare_with_earlier(runs[-1], runs[:-1]).values())


def _link_pages(folder: Path, runs: Sequence[ReportRun]) -> list[ReportRun]:
    """Return the runs; only the last run of a page that is still there is linked to it."""
    newest = {run.page: k for k, run in enumerate(runs)}
    return [
        r if newest[r.page] == k and (folder / r.page).exists() else replace(r, page="")
        for k, r in enumerate(runs)
    ]


def render_index_page(histories: Sequence[Sequence[ReportRun]]) -> str:
    """Return the index of reports, each given by its runs, the oldest first."""
    reports = _format_count(len(histories), "report")
    runs = _format_count(sum(map(len, histories)), "run")
    cards = "".join(map(_render_card, histories))
    body = (
        f'<p class="braid-report-context"><b>Reports</b><span>{reports}, {runs}</span></p>'
        f"<h1>{escape(make_index_heading(histories))}</h1>"
        f'<div class="braid-report-cards">{cards}</div><h2>Runs</h2>'
        f"{''.join(map(_render_runs, histories))}"
    )
    return render_document("Reports", body)


def _format_count(number: int, what: str) -> str:
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


def make_index_heading(histories: Sequence[Sequence[ReportRun]]) -> str:
    """Return the answer of all reports: whether their checks hold, and which are worse."""
    last = [runs[-1] for runs in histories]
    failing = [r.title or r.report for r in last if not r.is_as_expected]
    worse = [runs[-1].title or runs[-1].report for runs in histories if _is_worse(runs)]
    if failing:
        count = f"{len(failing)} of {_format_count(len(last), 'report')} failed"
        return f"{count}: {_join_report_names(failing)}."
    holds = f"All {len(last)} reports hold." if len(last) > 1 else "The report holds."
    return f"{holds} {_format_worse_reports(worse)}".strip()


def _format_worse_reports(worse: Sequence[str]) -> str:
    if not worse:
        return ""
    return f"Worse than usual: {_join_report_names(worse)}."


def _join_report_names(names: Sequence[str]) -> str:
    shown = ", ".join(names[:2])
    return shown if len(names) <= 2 else f"{shown} and {len(names) - 2} more"


def _render_card(runs: Sequence[ReportRun]) -> str:
    run = runs[-1]
    equal = select_equal_settings(runs, run.settings)
    figure = run.figures[0] if run.figures else None
    changes = compare_with_earlier(run, runs[:-1])
    worst = sorted(changes.values(), key=lambda c: (c.tone != "bad", not c.is_change))
    course = render_sparkline(list_figure_values(equal, figure.name)[-8:]) if figure else ""
    target = quote(run.page) if run.page else f"#{quote(run.report)}"
    text = f"{escape(figure.text)} {escape(figure.name)}" if figure else ""
    return (
        f'<a class="braid-report-card" href="{target}"><div><b>{escape(run.title or run.report)}'
        f"</b>{render_change(worst[0] if worst else None)}</div><span>{escape(run.answer)}</span>"
        f"<div>{render_verdict(run)}<span>{text}</span></div>{course}</a>"
    )


def _render_runs(runs: Sequence[ReportRun]) -> str:
    """Return the newest runs of a report; a setting that differs among them has a column."""
    shown = list(runs[-SHOWN_RUNS:])
    varied = [
        name for name in shown[-1].settings if len({repr(r.settings.get(name)) for r in shown}) > 1
    ]
    title = shown[-1].title or shown[-1].report
    table = f'<div id="{escape(shown[-1].report)}">{render_runs_table(shown, varied)}</div>'
    return render_folded_section(
        title, f"last {len(shown)} of {_format_count(len(runs), 'run')}", table
    )
