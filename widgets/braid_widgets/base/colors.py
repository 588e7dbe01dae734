"""The colors shared by all views."""

from __future__ import annotations

from colorsys import hls_to_rgb
from functools import cache

STREAMS = (
    "#0072b2",
    "#d55e00",
    "#009e73",
    "#cc79a7",
    "#e69f00",
    "#56b4e9",
    "#7f3c8d",
    "#6b6b6b",
)
"""The color of each stream, in order: R, S, then the others. Source: the palette of Okabe and Ito,
which is distinguishable with any color vision.
"""

SCHEMES = {
    "Dynamic": 0,
    "AdaptiveGrid": 0,
    "StaticMid": 1,
    "StaticGrid": 1,
    "StaticOpt": 2,
    "SHJ": 3,
    "HashPartition": 3,
    "ATR": 0,
    "CTR": 1,
    "ATR-unoptimized": 5,
    "CTR-unoptimized": 4,
    "Semantics-unaware": 6,
    "Centralized": 7,
    "PSP": 2,
    "PSP-I": 4,
    "PSP-D": 3,
}
"""The index into ``STREAMS`` of a scheme's color, by the paper's name for it. A scheme has the same
color in all charts.
"""

RATIO, SIDES, BOUND = "#2f6fde", "#868e96", "#c92a2a"
MIGRATION, THROUGHPUT, RESULTS = "#f08c00", "#1098ad", "#5c940d"

GOLDEN_ANGLE = 137.507764
LIGHTNESS = (0.62, 0.74, 0.50)


@cache
def host_color(number: int) -> str:
    """Return the color of a host as #rrggbb.

    Hues step by the golden angle and lightness cycles through three levels, so that neighbors in a
    grid (whose numbers differ by 1 or by a power of two) never look alike.
    """
    rgb = hls_to_rgb(number * GOLDEN_ANGLE % 360 / 360, LIGHTNESS[number % 3], 0.62)
    return "#" + "".join(f"{round(255 * c):02x}" for c in rgb)


def scheme_color(name: str, place: int = 0) -> str:
    """Return the color of a scheme; an unknown scheme gets the color of its ``place``."""
    return STREAMS[SCHEMES.get(name, place) % len(STREAMS)]
