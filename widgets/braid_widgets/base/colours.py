"""The colours that all views share."""

from __future__ import annotations

from colorsys import hls_to_rgb
from functools import cache
from typing import TypedDict

STREAMS = ("#2f6fde", "#d9480f", "#2b8a3e", "#862e9c")
"""One for each stream, in order: R, S, then the others."""

RATIO, SIDES, BOUND = "#2f6fde", "#868e96", "#c92a2a"
MIGRATION, THROUGHPUT, RESULTS = "#f08c00", "#1098ad", "#5c940d"

PARTS = {
    "source": "#868e96",
    "planning": "#862e9c",
    "carriage": "#f08c00",
    "kernels": "#2b8a3e",
    "commit": "#2f6fde",
}
"""Where the seconds of a batch go."""

GOLDEN_ANGLE = 137.507764
LIGHTNESS = (0.62, 0.74, 0.50)


@cache
def host(number: int) -> str:
    """The colour of a host as #rrggbb.

    Hues step by the golden angle and lightness cycles through three levels, so that neighbours in a
    grid (whose numbers differ by 1 or by a power of two) never look alike.
    """
    rgb = hls_to_rgb(number * GOLDEN_ANGLE % 360 / 360, LIGHTNESS[number % 3], 0.62)
    return "#" + "".join(f"{round(255 * c):02x}" for c in rgb)


def stream(index: int) -> str:
    """The colour of a stream by its number; colours repeat."""
    return STREAMS[index % len(STREAMS)]


class Palette(TypedDict):
    """Colours as #rrggbb: of hosts and streams (more of them begin again), and of the time line."""

    hosts: list[str]
    streams: list[str]
    ratio: str
    sides: str
    bound: str
    migration: str
    throughput: str
    results: str


def palette(hosts: int) -> Palette:
    """All colours, for the browser."""
    return {
        "hosts": [host(h) for h in range(hosts)],
        "streams": list(STREAMS),
        "ratio": RATIO,
        "sides": SIDES,
        "bound": BOUND,
        "migration": MIGRATION,
        "throughput": THROUGHPUT,
        "results": RESULTS,
    }
