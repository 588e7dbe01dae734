"""The head of a report: its notebook, whether its checks passed, and differences."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from braid.util.durations import UNITS, format_duration

from braid_lab.reports.report_outcome import Difference, Outcome

STYLE = """<style>
.braid-report-head { font: 14px/1.5 system-ui, sans-serif; margin: 1em 0 2em; padding: 0.8em 1.2em;
  border: 1px solid rgba(128, 128, 128, 0.4); border-left: 6px solid #2f9e44;
  color: var(--jp-content-font-color1, inherit); }
.braid-report-head.failed { border-left-color: #c92a2a; }
.braid-report-head table { border-collapse: collapse; font-size: 13px; }
.braid-report-head :is(th, td) { text-align: left; vertical-align: top; padding: 1px 1.2em 1px 0;
  font-weight: normal; overflow-wrap: anywhere; }
.braid-report-head th { white-space: nowrap; opacity: 0.75; }
.braid-report-head pre { white-space: pre-wrap; }
</style>"""


def format_verdict(found: Outcome) -> str:
    """Return the verdict as a sentence."""
    verdict = found["verdict"]
    checks = (
        f"{verdict['passed']} of {verdict['total']} checks passed"
        if verdict["total"]
        else "nothing to check"
    )
    broken = "" if not verdict["error"] else ", and it was broken off"
    return f"{checks}{broken}"


def render_head(
    found: Outcome, defaults: Mapping[str, Any], last: Outcome | None, compared: bool
) -> str:
    """Return the head as HTML.

    ``compared``: list the differences from ``last``; None: there is no earlier run.
    """
    rows = [
        ("report", f"{found['title'] or found['report']} ({found['report']})"),
        ("parameters", _format_parameters(found["parameters"], defaults)),
        ("made", f"{found['date']}, in {format_duration(found['seconds'] * UNITS['second'])}"),
        ("by", ", ".join(f"{name} {v}" for name, v in found["versions"].items())),
        ("on", found["machine"]),
    ]
    wrong = found["verdict"]["failed"] or found["verdict"]["error"]
    parts = [f"<p><b>{escape(format_verdict(found))}</b></p>", _format_table(rows)]
    if wrong:
        lines = [*found["verdict"]["failed"], found["verdict"]["error"]]
        parts.append(f"<pre>{escape(chr(10).join(filter(None, lines)))}</pre>")
    if compared:
        parts.append(_format_differences(found, last))
    kind = "braid-report-head failed" if wrong else "braid-report-head"
    return f'{STYLE}<section class="{kind}">{"".join(parts)}</section>'


def _format_parameters(values: Mapping[str, Any], defaults: Mapping[str, Any]) -> str:
    parts = []
    for name, value in values.items():
        other = "" if value == defaults.get(name) else f" (not {defaults.get(name)!r})"
        parts.append(f"{name} = {value!r}{other}")
    return ", ".join(parts) or "none"


def _format_differences(found: Outcome, last: Outcome | None) -> str:
    from braid_lab.reports.report_outcome import compare_outcomes

    if last is None:
        return "<p>There is no earlier run to compare with.</p>"
    changed: Sequence[Difference] = compare_outcomes(last, found)
    if not changed:
        return f"<p>As the run of {escape(last['date'])}.</p>"
    head = f"<p>Different from the run of {escape(last['date'])}:</p>"
    return head + _format_table([(what, f"{was} → {now}") for what, was, now in changed])


def _format_table(rows: Iterable[tuple[str, str]]) -> str:
    cells = (f"<tr><th>{escape(a)}</th><td>{escape(b)}</td></tr>" for a, b in rows)
    return f"<table>{''.join(cells)}</table>"
