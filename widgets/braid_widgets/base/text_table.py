"""Tables of text, such as the claims of a paper."""

from __future__ import annotations

import re
from dataclasses import dataclass
from html import escape

import pandas as pd

STYLE = (
    "<style>.braid-listing :is(td, th) { text-align: left !important; white-space: normal "
    "!important; vertical-align: top; }</style>"
)


LONG, WORDY = 24, 150
"""A column with a text of more than ``LONG`` letters is at least ``WORDY`` pixels wide."""


def _format_header(column: object) -> object:
    """Return a column's header in words, followed by how its numbers were obtained."""
    if not isinstance(column, str):
        return column
    return re.sub(r"(?<! /) (counted|measured|modelled)$", r" (\1)", column.replace("_", " "))


@dataclass(frozen=True)
class TextTable:
    """A data frame as a table with left-aligned, wrapped texts.

    Fractions have ``digits`` decimals, by default enough for three significant digits. Thousands
    are separated by commas. A column "cost_modelled" has the header "cost (modelled)".
    """

    data: pd.DataFrame
    digits: int | None = None
    caption: str = ""

    def to_html(self) -> str:
        """Return the table as HTML."""
        formats = {_format_header(c): "{:,}".format for c in self.data.select_dtypes("integer")}
        # A name of the columns index would add a header over an empty column.
        rows = self.data.rename(columns=_format_header).rename_axis(columns=None)
        table = rows.to_html(
            index=False,
            border=0,
            classes="braid-listing",
            na_rep="–",
            float_format=self._format_fraction,
            formatters=formats,
        ).replace("<table", f'<table style="min-width:{self._compute_min_width()}px"', 1)
        head = f"<p><b>{escape(self.caption)}</b></p>" if self.caption else ""
        return f'{STYLE}{head}<div style="overflow-x:auto">{table}</div>'

    def _format_fraction(self, x: float) -> str:
        few = abs(x) < 100 and self.digits is None
        return f"{x:.3g}" if few else f"{x:,.{self.digits or 0}f}"

    def _compute_min_width(self) -> int:
        """Return the minimum readable width in pixels; a narrower window scrolls the table."""
        longest = (self.data[c].astype(str).str.len().max() for c in self.data)
        return sum(WORDY if length > LONG else 0 for length in longest)

    def _repr_html_(self) -> str:
        return self.to_html()
