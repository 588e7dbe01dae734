"""What Wang 2008, part I, prints of its figures as numbers."""

from __future__ import annotations

from braid.papers.kit.printed import Printed

FIG_8_1 = (
    Printed(
        "Fig. 8.1, section 8.2",
        "state slices need 20 % to 30 % less memory than the others",
        y=(0.7,),
        top=(0.8,),
        series="state-slice",
        of="pull-up",
        reading="than which, the paper does not say: here pull-up",
    ),
)
FIG_8_2 = (
    Printed(
        "Fig. 8.2(f), section 8.2",
        "with a large join selectivity and fast streams the gain reaches 40 %",
        x=(80.0,),
        y=(1.4,),
        series="state-slice",
        of="partition",
        reading="of which rate and rival, the paper does not say: here 80 tuples/s, partition",
    ),
)
