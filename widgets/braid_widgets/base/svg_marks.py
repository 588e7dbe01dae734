"""Lines, points and texts of a chart drawn as SVG. Used by ``svg_chart``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from html import escape
from math import isfinite
from typing import Any

from braid_widgets.base.axes import Axis, as_list, broadcast, strip_markup

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
INK = 'fill="currentColor"'
"""Color of texts: the page's own."""
ROW = 14
"""Height of a line of text, in pixels."""
_SIDES = {"left": (-1, "end"), "center": (0, "middle"), "right": (1, "start")}
"""By text position of a point: the offset, and the end of the text that is next to the point."""


def svg_text(x: float, y: float, text: str, anchor: str = "middle", more: str = "") -> str:
    """Return a text at a position."""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" '
        f"{INK}{more}>{escape(strip_markup(text))}"
        "</text>"
    )


def svg_trace(trace: Any, k: int, x: Axis, y: Axis) -> Iterator[str]:
    """Yield a trace of lines, points and texts; ``k`` is its number in the figure."""
    mode, color = trace.mode or "lines", trace_color(trace, k)
    pairs = zip(as_list(trace.x), as_list(trace.y), strict=False)
    points = [(x.pixel_if_visible(a), y.pixel_if_visible(b)) for a, b in pairs]
    if "lines" in mode and points:
        yield _render_line(trace, points, color)
    sizes = [s / 2 for s in broadcast(trace.marker.size, len(points), 7)]
    if "markers" in mode:
        shades = broadcast(trace.marker.color, len(points), color)
        for (a, b), shade, size in zip(points, shades, sizes, strict=False):
            if isfinite(a) and isfinite(b):
                yield (
                    f'<circle cx="{a:.1f}" cy="{b:.1f}" r="{size:g}" '
                    f'fill="{css_color(shade, color)}"/>'
                )
    if "text" in mode:
        texts = broadcast(trace.text, len(points), "")
        for (a, b), text, size in zip(points, texts, sizes, strict=False):
            if isfinite(a) and isfinite(b) and text:
                yield from _render_label(a, b, text, trace.textposition or "top right", size)


def _render_line(trace: Any, points: Iterable[tuple[float, float]], color: str) -> str:
    dash = ' stroke-dasharray="5 4"' if trace.line.dash not in (None, "solid") else ""
    text = trace.text if isinstance(trace.text, str) else ""
    hover = f"<title>{escape(strip_markup(text))}</title>" if text else ""
    return (
        f'<path d="{_make_path_data(points)}" fill="none" stroke="{trace.line.color or color}" '
        f'stroke-width="{trace.line.width or 1.8:.3g}"{dash}>{hover}</path>'
    )


def _make_path_data(points: Iterable[tuple[float, float]]) -> str:
    """Return lines from point to point, with a gap at a point without a position."""
    words, pen = [], "M"
    for a, b in points:
        if isfinite(a) and isfinite(b):
            words.append(f"{pen}{a:.1f} {b:.1f}")
            pen = "L"
        else:
            pen = "M"
    return "".join(words)


def _render_label(x: float, y: float, text: str, position: str, size: float) -> Iterator[str]:
    """Return the lines of a text beside a point of this radius."""
    lines = re.split(r"<br\s*/?>", text)
    across, along = position.split()
    side, anchor = _SIDES[along]
    first = {
        "top": y - size - 3 - ROW * (len(lines) - 1),
        "middle": y + 4 - ROW * (len(lines) - 1) / 2,
        "bottom": y + size + 12,
    }[across]
    for i, line in enumerate(lines):
        bold = ' font-weight="bold"' if line.startswith("<b>") else ""
        yield svg_text(x + side * (size + 3), first + ROW * i, line, anchor, bold)


def trace_color(trace: Any, k: int) -> str:
    """Return the color of a trace, of its first point, or of its number."""
    looks = (getattr(trace, part, None) for part in ("line", "marker"))
    of = [broadcast(getattr(look, "color", None), 1, None) for look in looks]
    return css_color(
        next((c[0] for c in of if c and c[0] is not None), None), COLOURS[k % len(COLOURS)]
    )


def css_color(shade: Any, other: str) -> str:
    """Return a color that is safe in an attribute; ``other`` for an invalid one."""
    return escape(shade) if isinstance(shade, str) else other
