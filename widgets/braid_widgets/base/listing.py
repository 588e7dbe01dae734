"""Tables of text, such as the claims of a paper."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

import pandas as pd

STYLE = (
    "<style>.braid-listing :is(td, th) { text-align: left !important; white-space: normal "
    "!important; vertical-align: top; }</style>"
)


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
        )
        head = f"<p><b>{escape(self.caption)}</b></p>" if self.caption else ""
        return f'{STYLE}{head}<div style="overflow-x:auto">{rows}</div>'

    def _repr_html_(self) -> str:
        return self.to_html()
