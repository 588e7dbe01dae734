"""Render objects as small HTML tables for notebooks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape


def render_html_table(title: str, rows: Iterable[Sequence[str]]) -> str:
    """Return rows as a small HTML table with a title. All text is escaped.

    >>> render_html_table("a < b", [("<i>",)])
    '<b>a &lt; b</b><table><tr><td style="text-align: left">&lt;i&gt;</td></tr></table>'
    """
    # JupyterLab aligns the cells of tables right, as numbers are.
    lines = (
        "".join(f'<td style="text-align: left">{escape(cell)}</td>' for cell in row) for row in rows
    )
    cells = "".join(f"<tr>{line}</tr>" for line in lines)
    return f"<b>{escape(title)}</b><table>{cells}</table>"
