"""Numbers that Elseidy 2014 prints about its figures."""

from __future__ import annotations

from braid_lab.common.printed_numbers import PrintedFigure

GROWTH = {"SHJ": 27.0, "StaticMid": 14.0, "Dynamic": 2.0}
"""Fig. 5a as in section 5.2: MB on a machine for each percent of the input."""

FIG_5A = tuple(
    PrintedFigure(
        "Fig. 5a, section 5.2",
        f"the input load of {name} grows by {mb:g} MB for each percent of the input",
        (0.0, 100.0),
        (0.0, 100 * mb),
        series=name,
    )
    for name, mb in GROWTH.items()
)
FIG_5B = (
    PrintedFigure(
        "Fig. 5b, section 5.2",
        "StaticMid has about 3 to 7 times the input load of Dynamic, in the mean of machines",
        y=(3.0,),
        y_max=(7.0,),
        series="StaticMid",
        measure="Dynamic",
    ),
    PrintedFigure(
        "Fig. 5b, section 5.2",
        "SHJ has up to 13 times the input load of the others",
        y=(13.0,),
        interpretation="of which query and rival, the paper does not say: here all, Dynamic",
        series="SHJ",
        measure="Dynamic",
    ),
)
BY_CHART = {"Fig. 5a": FIG_5A, "Fig. 5b: input load": FIG_5B}
"""By the beginning of the title of our chart."""


def printed_figures(title: str) -> tuple[PrintedFigure, ...]:
    """Return the numbers printed of the first panel of a chart; empty if the text has none."""
    return next((marks for begins, marks in BY_CHART.items() if title.startswith(begins)), ())
