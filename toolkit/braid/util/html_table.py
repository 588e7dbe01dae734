"""What objects show of themselves in a notebook: a small table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape


def render_html_table(title: str, rows: Iterable[Sequence[str]]) -> str:
    """Rows as a small HTML table under a title; all text is escaped.

    >>> table("a < b", [("<i>",)])
    '<b>a &lt; b</b><table><tr><td>&lt;i&gt;</td></tr></table>'
    """
    lines = ("".join(f"<td>{escape(cell)}</td>" for cell in row) for row in rows)
    cells = "".join(f"<tr>{line}</tr>" for line in lines)
    return f"<b>{escape(title)}</b><table>{cells}</table>"
