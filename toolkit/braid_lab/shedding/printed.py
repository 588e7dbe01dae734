"""Numbers that Gedik 2007 prints about its figures."""

from __future__ import annotations

from braid_lab.common.printed_numbers import PrintedFigure

FIG_7_PLAIN = (
    PrintedFigure(
        "Fig. 7, section 6.2",
        "without an index about half is dropped at 50 tuples/s and 125 s",
        (50.0,),
        (0.5,),
        series="125.0",
    ),
)
FIG_7_INDEXED = (
    PrintedFigure(
        "Fig. 7, section 6.2",
        "with an index about a quarter is dropped at 100 tuples/s and 625 s",
        (100.0,),
        (0.25,),
        series="625.0",
    ),
)
SKEW = "for which kappa, the paper does not say: here all"
FIG_9 = tuple(
    PrintedFigure(
        "Fig. 9, section 6.3",
        f"rate adaptation gives about {gain:.0%} more than dropping at {rate:g} tuples/s",
        y=(gain,),
        series=f"{rate:g}/s, as it is",
        interpretation=SKEW,
    )
    for rate, gain in ((300.0, 0.5), (500.0, 1.0))
)
FIG_12 = (
    PrintedFigure(
        "Fig. 12, section 6.4",
        "time correlation gives about 50 % more than rate adaptation alone",
        y=(1.5,),
        series="time, as it is",
        measure="partial, as it is",
        interpretation=SKEW,
    ),
    PrintedFigure(
        "Fig. 12, section 6.4",
        "direction gives about 40 % more than that",
        y=(1.4,),
        series="direction, as it is",
        measure="time, as it is",
        interpretation=SKEW,
    ),
)
FIG_15 = (
    PrintedFigure(
        "Fig. 15, section 6.4.1",
        "without an index up to 500 % more than dropping",
        y=(5.0,),
        series="overlap, as it is",
    ),
    PrintedFigure(
        "Fig. 15, section 6.4.1",
        "with an index up to about 100 % more than dropping",
        y=(1.0,),
        series="overlap, indexed, as it is",
    ),
    PrintedFigure(
        "Fig. 15, section 6.4.1",
        "with an index nothing is gained before 300 tuples/s",
        (300.0,),
    ),
)
