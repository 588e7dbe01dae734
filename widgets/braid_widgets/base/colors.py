"""The colors shared by all views."""

from __future__ import annotations

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

MIGRATION = "#f08c00"


def scheme_color(name: str, place: int = 0) -> str:
    """Return the color of a scheme; an unknown scheme gets the color of its ``place``."""
    return STREAMS[SCHEMES.get(name, place) % len(STREAMS)]
