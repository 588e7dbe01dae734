"""Figures with their names, as strips above views have them."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import NamedTuple

from braid_widgets.base.player import read_styles

RECENT = 10
"""Batches that a rate is taken of, the last ones."""


class KeyFigure(NamedTuple):
    """A figure: its name, its value with the unit, and what exactly it is."""

    name: str
    value: str
    tooltip: str


def render_strip(facts: Iterable[KeyFigure]) -> str:
    """Figures beside each other, as HTML; what each is shows on rest."""
    shown = "".join(
        f'<div class="braid-fact" title="{escape(f.tooltip)}"><b>{escape(f.value)}</b>'
        f"<span>{escape(f.name)}</span></div>"
        for f in facts
    )
    style = f"<style>{read_styles('stage.css', 'cockpit.css')}</style>"
    return f'{style}<div class="braid"><div class="braid-strip">{shown}</div></div>'
