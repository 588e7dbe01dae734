"""The style of report pages: colors and type of the cockpit, light and dark."""

from __future__ import annotations

from html import escape
from pathlib import Path

STYLE = f"<style>{(Path(__file__).parent / 'report.css').read_text(encoding='utf-8')}</style>"
"""The style sheet of a page."""
LAYOUT_SCRIPT = (
    "<script>addEventListener('toggle', () => dispatchEvent(new Event('resize')), true)</script>"
)
"""Charts take the width of their page when it is resized; in a closed section they have none."""


def render_folded_section(title: str, note: str, body: str) -> str:
    """Return a folded section: its title, a few words beside it, and its HTML."""
    aside = f"<span>{escape(note)}</span>" if note else ""
    return (
        f'<details class="braid-report-fold"><summary>{escape(title)}{aside}</summary>'
        f"{body}</details>"
    )


def render_html_table(
    header: tuple[str, ...], rows: list[list[str]], numbers: frozenset[int]
) -> str:
    """Return a table of HTML cells; the columns in ``numbers`` are aligned right."""
    classes = ['class="braid-report-number"' if n in numbers else "" for n in range(len(header))]
    head = "".join(f"<th {c}>{escape(h)}</th>" for c, h in zip(classes, header, strict=True))
    body = "".join(
        f"<tr>{''.join(f'<td {c}>{cell}</td>' for c, cell in zip(classes, row, strict=True))}</tr>"
        for row in rows
    )
    return (
        f'<div class="braid-report-scroll"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def render_document(title: str, body: str) -> str:
    """Return a page of its own, such as an index of reports."""
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="color-scheme" '
        'content="light dark"><meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title>{STYLE}</head>"
        f'<body class="braid-report-body"><main class="braid-report">{body}</main></body></html>\n'
    )


def render_sparkline(values: list[float]) -> str:
    """Return the course of a figure as a small picture; empty for fewer than two values."""
    if len(values) < 2:
        return ""
    low, high = min(values), max(values)
    places = [
        (
            4 + 112 * k / (len(values) - 1),
            26 - 22 * ((v - low) / (high - low) if high > low else 0.5),
        )
        for k, v in enumerate(values)
    ]
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    x, y = places[-1]
    return (
        f'<svg viewBox="0 0 120 30" aria-hidden="true"><polyline points="{points}"/>'
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3"/></svg>'
    )
