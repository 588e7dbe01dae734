"""One palette: a scheme has one color everywhere, and colors differ for every color vision."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from braid_widgets.base import colors, line_charts

SIGHT = {
    "all": np.eye(3),
    # Viénot, Brettel and Mollon 1999, on linear RGB.
    "no red": np.array([[0.11238, 0.88762, 0], [0.11238, 0.88762, 0], [0.00401, -0.00401, 1]]),
    "no green": np.array([[0.29275, 0.70725, 0], [0.29275, 0.70725, 0], [-0.02234, 0.02234, 1]]),
}


def linear(colour: str) -> np.ndarray:
    """Return the linear RGB of #rrggbb."""
    parts = np.array([int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)])
    return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)


def lab(rgb: np.ndarray) -> np.ndarray:
    """Return the CIE L*a*b* of linear RGB."""
    matrix = [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
    x, y, z = (np.array(matrix) @ np.clip(rgb, 0, 1)) / np.array([0.9505, 1.0, 1.089])
    f = [v ** (1 / 3) if v > 0.008856 else 7.787 * v + 16 / 116 for v in (x, y, z)]
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize("sight", SIGHT)
def test_streams_are_told_apart_by_all_who_look(sight):
    seen = [lab(SIGHT[sight] @ linear(c)) for c in colors.STREAMS[:6]]
    nearest = min(np.linalg.norm(a - b) for a, b in combinations(seen, 2))
    assert nearest > 11, "a difference of 2.3 can just be seen"


def test_the_first_eight_streams_have_colours_of_their_own():
    assert len({*colors.STREAMS}) == 8


def test_a_scheme_has_one_colour_in_all_charts():
    tidy = pd.DataFrame({"x": [1, 1], "y": [2, 3], "scheme": ["CTR", "mine"]})
    wide = pd.DataFrame({"other": [1.0], "CTR": [2.0]}, index=[1])
    seen = {
        line_charts.line_chart(tidy, "t", "u", x="x", y="y", color="scheme")
        .panels[""]
        .data[0]
        .line.color,
        line_charts.bar_chart(tidy, "t", "u", x="x", y="y", color="scheme")
        .panels[""]
        .data[0]
        .marker.color,
        line_charts.panel_chart("t", "x", {"p": wide}).panels["p"].data[1].line.color,
    }
    assert seen == {colors.scheme_color("CTR")}
    chart = line_charts.line_chart(tidy, "t", "u", x="x", y="y", color="scheme")
    first, second = chart.panels[""].data
    assert first.line.color != second.line.color
