"""Key figures with names, as in the strips above views."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import NamedTuple

from braid_widgets.base.player import read_styles

RECENT = 10
"""Number of latest batches over which a rate is measured."""


class KeyFigure(NamedTuple):
    """One figure: its name, its value with the unit, and a tooltip with its exact definition."""

    name: str
    value: str
    tooltip: str


def render_strip(facts: Iterable[KeyFigure]) -> str:
    """Return figures side by side as HTML; the tooltip of each explains it."""
    shown = "".join(
        f'<div class="braid-fact" title="{escape(f.tooltip)}"><b>{escape(f.value)}</b>'
        f"<span>{escape(f.name)}</span></div>"
        for f in facts
    )
    style = f"<style>{read_styles('stage.css', 'cockpit.css')}</style>"
    return f'{style}<div class="braid"><div class="braid-strip">{shown}</div></div>'
