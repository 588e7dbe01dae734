"""The top of a report's page: the answer, figures, picture and findings; the rest is folded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any
from urllib.parse import quote

from braid.util.durations import UNITS, format_duration

from braid_lab.reports.page import FINDINGS, HEADLINES, PageContent
from braid_lab.reports.report_figures import RECENT, Change, Figure
from braid_lab.reports.report_history import (
    ReportRun,
    compare_with_earlier,
    describe_changes,
    list_figure_values,
    select_equal_settings,
)
from braid_lab.reports.report_outcome import Outcome
from braid_lab.reports.report_style import (
    LAYOUT_SCRIPT,
    STYLE,
    render_folded_section,
    render_html_table,
    render_sparkline,
)

SHOWN_RUNS = 12
"""Maximum number of earlier runs on a page."""


def format_verdict(run: ReportRun) -> str:
    """Return the verdict as a sentence."""
    checks = f"{run.passed} of {run.total} checks passed" if run.total else "nothing to check"
    met = len(run.expectations) - len(run.unmet)
    expected = f", {met} of {len(run.expectations)} expectations met" if run.expectations else ""
    return f"{checks}{expected}{', and it was broken off' if run.error else ''}"


def make_heading(run: ReportRun, content: PageContent) -> str:
    """Return the heading: the answer if all checks and expectations hold, else their verdict."""
    if content.answer and run.is_as_expected:
        return content.answer
    verdict = "the report broke off" if run.error and not run.failed else run.verdict
    return f"{verdict[:1].upper()}{verdict[1:]}."


def render_page_top(
    outcome: Outcome,
    run: ReportRun,
    content: PageContent,
    defaults: Mapping[str, Any],
    earlier: Sequence[ReportRun],
) -> str:
    """Return everything above a page's own cells as HTML.

    - ``run``: this run as the history has it; ``earlier``: those before it.
    - ``defaults``: the notebook's own parameters.
    """
    changes = compare_with_earlier(run, earlier)
    equal = select_equal_settings(earlier, run.settings)
    parts = [
        STYLE + LAYOUT_SCRIPT,
        _render_context(run, defaults, len(equal)),
        f"<h1>{escape(make_heading(run, content))}</h1>",
        _render_alarm(outcome, run, content),
        _render_cards(content.figures[:HEADLINES], changes, equal),
        content.picture.to_html() if content.picture else "",
        _render_findings(content, outcome, describe_changes(run, earlier)),
        "<h2>Everything behind it</h2>",
        *_render_folds(outcome, run, content, defaults, earlier),
    ]
    return f'<div class="braid-report">{"".join(parts)}</div>'


def _render_context(run: ReportRun, defaults: Mapping[str, Any], earlier: int) -> str:
    changed = [f"{n} = {v}" for n, v in run.settings.items() if v != defaults.get(n)]
    when = run.time.replace("T", ", ").partition("+")[0] + " UTC"
    count = f"{earlier + 1} runs with these settings" if earlier else "first run of these settings"
    return (
        f'<p class="braid-report-context"><b>{escape(run.title or run.report)}</b>'
        f"<span>{escape(' · '.join([when, *(changed or ['default settings'])]))} · "
        f'<a href="#braid-report-runs">{count}</a></span></p>'
    )


def _render_alarm(outcome: Outcome, run: ReportRun, content: PageContent) -> str:
    """Return what failed, and the answer, which then is no heading."""
    verdict = outcome["verdict"]
    failed = [*verdict["failed"], *filter(None, [verdict["error"]]), *run.unmet.values()]
    if not failed:
        return ""
    lead = f'<p class="braid-report-lead">{escape(content.answer)}</p>' if content.answer else ""
    return f'<div class="braid-report-alarm">{escape(chr(10).join(failed))}</div>{lead}'


def _render_cards(
    figures: Sequence[Figure], changes: Mapping[str, Change], equal: Sequence[ReportRun]
) -> str:
    cards = "".join(_render_card(f, changes.get(f.name), equal) for f in figures)
    return f'<div class="braid-report-cards">{cards}</div>' if cards else ""


def _render_card(figure: Figure, change: Change | None, equal: Sequence[ReportRun]) -> str:
    before = list_figure_values(equal, figure.name)
    last = f" · last run {Figure(figure.name, before[-1], figure.unit).text}" if before else ""
    return (
        f'<div class="braid-report-card"><div><strong>{escape(figure.text)}</strong>'
        f"{render_change(change)}</div><span>{escape(figure.name)}{escape(last)}</span></div>"
    )


def render_change(change: Change | None) -> str:
    """Return a change as a few colored words with an arrow."""
    if change is None:
        return ""
    arrow = ("▲ " if change.rises else "▼ ") if change.is_change else ""
    return (
        f'<small class="braid-report-{change.tone or "same"}">{arrow}{escape(change.text)}</small>'
    )


def _render_findings(content: PageContent, outcome: Outcome, changes: Sequence[str]) -> str:
    findings = [*content.findings[:FINDINGS], *_find_claims(outcome["claims"])]
    if changes:
        shown = [c if len(c) <= 160 else f"{c[:159]}…" for c in changes[:3]]
        findings.append(("Different from earlier runs.", " ".join(shown)))
    body = "".join(
        f'<p class="braid-report-found"><b>{escape(headline)}</b> {escape(text)}</p>'
        for headline, text in findings
    )
    return f"<h2>Findings</h2>{body}" if body else ""


def _find_claims(claims: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    """Yield a finding on the paper's claims, with those that do not hold."""
    tried = [c for c in claims if c["holds"] != "not tried"]
    if not tried:
        return
    count = Counter(c["holds"] for c in tried)
    read = f", {count['under reading']} in one reading" if count["under reading"] else ""
    headline = f"Of {len(tried)} claims tested, {count['yes']} hold{read}."
    broken = [
        f"{c['source']}: {_shorten_text(c['statement'])}" for c in tried if c["holds"] == "no"
    ]
    rest = len(broken) - 2
    more = f" {rest} more {'does' if rest == 1 else 'do'} not." if rest > 0 else ""
    yield headline, f"These do not: {'; '.join(broken[:2])}.{more}" if broken else ""


def _shorten_text(text: str, most: int = 90) -> str:
    return text.rstrip(".") if len(text) <= most else f"{text[: most - 1]}…"


def _render_folds(
    outcome: Outcome,
    run: ReportRun,
    content: PageContent,
    defaults: Mapping[str, Any],
    earlier: Sequence[ReportRun],
) -> Iterator[str]:
    yield render_folded_section("Checks", run.verdict, _render_checks(outcome, run))
    if content.diagnosis:
        title, _, lines = content.diagnosis.partition("\n")
        yield render_folded_section("Diagnosis", title, f"<pre>{escape(lines)}</pre>")
    runs = [*select_equal_settings(earlier, run.settings), run][-SHOWN_RUNS:]
    yield render_folded_section(
        "Runs with these settings", f"{len(runs)} shown", _render_runs(runs)
    )
    if len(content.figures) > HEADLINES:
        rows = [[escape(f.name), escape(f.text)] for f in content.figures]
        yield render_folded_section(
            "All figures", "", render_html_table(("figure", "value"), rows, frozenset({1}))
        )
    yield render_folded_section("Settings and versions", "", _render_settings(outcome, defaults))


def _render_checks(outcome: Outcome, run: ReportRun) -> str:
    rows = [
        [
            escape(f"{c['paper']}, {c['source']}"),
            escape(c["statement"]),
            escape(c["result"]),
            _render_claim_verdict(c["holds"]),
        ]
        for c in outcome["claims"]
    ]
    cells = [
        ["", escape(title), "", _render_claim_verdict(held)] for title, held in outcome["asserted"]
    ]
    cells += [
        ["--expect", escape(text), escape(reason), _render_claim_verdict("no" if reason else "yes")]
        for text, reason in run.expectations
    ]
    if not rows and not cells:
        return "<p>This notebook checks nothing.</p>"
    return render_html_table(("source", "statement", "result", "holds"), rows + cells, frozenset())


def _render_claim_verdict(holds: str) -> str:
    tone = {"yes": "good", "no": "bad"}.get(holds, "same")
    return f'<span class="braid-report-{tone}">{escape(holds)}</span>'


def _render_runs(runs: Sequence[ReportRun]) -> str:
    table = render_runs_table(runs)
    return f'<div id="braid-report-runs">{table}</div>'


def render_runs_table(runs: Sequence[ReportRun], extra: Sequence[str] = ()) -> str:
    """Return runs as a table, the newest first; ``extra`` names settings that have a column.

    A run is linked to its page by the page's name.
    """
    names = [f.name for f in runs[-1].figures[:HEADLINES]] if runs else []
    header = ("run", *extra, "checks", *names, "last runs", "took")
    rows = [
        [
            f'<a href="{quote(r.page)}">{escape(format_time(r.time))}</a>'
            if r.page
            else escape(format_time(r.time)),
            *(escape(str(r.settings.get(name, "–"))) for name in extra),
            render_verdict(r),
            *(next((escape(f.text) for f in r.figures if f.name == n), "–") for n in names),
            _render_course(runs[: k + 1], names),
            escape(format_duration(r.seconds * UNITS["second"])),
        ]
        for k, r in reversed(list(enumerate(runs)))
    ]
    first = 2 + len(extra)
    numbers = frozenset({*range(first, first + len(names)), len(header) - 1})
    return render_html_table(header, rows, numbers)


def _render_course(runs: Sequence[ReportRun], names: Sequence[str]) -> str:
    """Return the course of the first figure up to the last run, over runs of its settings."""
    equal = select_equal_settings(runs, runs[-1].settings)
    return render_sparkline(list_figure_values(equal, names[0])[-RECENT:]) if names else ""


def render_verdict(run: ReportRun) -> str:
    """Return the verdict of a run's checks in its color."""
    tone = ("good" if run.total or run.expectations else "same") if run.is_as_expected else "bad"
    return f'<span class="braid-report-{tone}">{escape(run.verdict)}</span>'


def format_time(time: str) -> str:
    """Return a time of a history for readers: date, hours and minutes."""
    return time.replace("T", " ")[:16]


def _render_settings(outcome: Outcome, defaults: Mapping[str, Any]) -> str:
    rows = [
        [escape(n), escape(repr(v)) + _format_default(v, defaults.get(n))]
        for n, v in outcome["parameters"].items()
    ]
    took = format_duration(outcome["seconds"] * UNITS["second"])
    rows += [
        ["took", escape(took)],
        ["versions", escape(", ".join(f"{n} {v}" for n, v in outcome["versions"].items()))],
        ["machine", escape(outcome["machine"])],
    ]
    return render_html_table(("setting", "value"), rows, frozenset())


def _format_default(value: Any, default: Any) -> str:
    return "" if value == default else escape(f" (default {default!r})")
