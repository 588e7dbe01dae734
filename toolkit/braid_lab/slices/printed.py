"""Numbers that Wang 2008, part I, prints about its figures."""

from __future__ import annotations

from braid_lab.common.printed_numbers import PrintedFigure

FIG_8_1 = (
    PrintedFigure(
        "Fig. 8.1, section 8.2",
        "state slices need 20 % to 30 % less memory than the others",
        y=(0.7,),
        y_max=(0.8,),
        series="state-slice",
        measure="pull-up",
        interpretation="than which, the paper does not say: here pull-up",
    ),
)
FIG_8_2 = (
    PrintedFigure(
        "Fig. 8.2(f), section 8.2",
        "with a large join selectivity and fast streams the gain reaches 40 %",
        x=(80.0,),
        y=(1.4,),
        series="state-slice",
        measure="partition",
        interpretation="of which rate and rival, the paper does not say: here 80 tuples/s, "
        "partition",
    ),
)
