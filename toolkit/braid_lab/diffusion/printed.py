"""Numbers that Gu 2007 prints about its figures."""

from __future__ import annotations

from braid_lab.common.printed_numbers import PrintedFigure

TENS_OF_MICROSECONDS = (
    PrintedFigure(
        "Fig. 9, 10, section 5",
        "a tuple is routed in tens of microseconds",
        y=(10.0,),
        y_max=(100.0,),
    ),
)
FIG_13 = (
    PrintedFigure(
        "Fig. 13, section 5", "ATR is ahead for two and three streams, CTR for more", (3.0, 4.0)
    ),
)
EXPERIMENTS = {"13": FIG_13}
"""By figure; the text has no number for 11, 12 and 14 to 16."""
