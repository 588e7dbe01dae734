"""Tables of text, such as the claims of a paper."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

import pandas as pd

STYLE = (
    "<style>.braid-listing :is(td, th) { text-align: left !important; white-space: normal "
    "!important; vertical-align: top; }</style>"
)


LONG, WORDY = 24, 150
"""A column with a text of more letters gets so many pixels at least."""


@dataclass(frozen=True)
class Listing:
    """A data frame as a table with its texts to the left, broken into lines. Fractions have
    ``digits`` behind the point; commas stand between thousands.
    """

    data: pd.DataFrame
    digits: int = 0
    caption: str = ""

    def to_html(self) -> str:
        """The table as HTML."""
        rows = self.data.to_html(
            index=False,
            border=0,
            classes="braid-listing",
            na_rep="–",
            float_format=lambda x: f"{x:,.{self.digits}f}",
            formatters={c: "{:,}".format for c in self.data.select_dtypes("integer")},
        ).replace("<table", f'<table style="min-width:{self._least()}px"', 1)
        head = f"<p><b>{escape(self.caption)}</b></p>" if self.caption else ""
        return f'{STYLE}{head}<div style="overflow-x:auto">{rows}</div>'

    def _least(self) -> int:
        """Pixels in which its texts can be read; in a narrower window the table is scrolled."""
        longest = (self.data[c].astype(str).str.len().max() for c in self.data)
        return sum(WORDY if length > LONG else 0 for length in longest)

    def _repr_html_(self) -> str:
        return self.to_html()
