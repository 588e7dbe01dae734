"""Numbers that Wang 2008, part II, prints about its figures."""

from __future__ import annotations

from braid_lab.common.printed_numbers import PrintedFigure

FIG_16_2 = (
    PrintedFigure(
        "Fig. 16.2(a), section 16.2",
        "small join, selectivity 0.5: the response time grows beyond 14 nodes",
        (14.0,),
    ),
)
