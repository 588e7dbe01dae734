"""The picture of a report: curves over batches, laid out by the page at its own width.

Lines are drawn in an SVG that stretches; all texts are elements beside it, so they have one size
and overlap at no width.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from math import floor, isfinite, log10
from typing import Any, Literal

from braid_lab.reports.report_figures import format_number

Role = Literal["main", "baseline", "mean"]
NARROW, LETTER = 300, 6.5
"""Pixels of the plot on a telephone, and of a letter of a label."""


@dataclass(frozen=True, slots=True)
class Curve:
    """A curve with one value for each place of its picture; None: there is none.

    - ``role``: "main" (solid), "baseline" (dashed: what would have been) or "mean" (pale).
    """

    name: str
    values: tuple[float | None, ...]
    role: Role = "main"


@dataclass(frozen=True, slots=True)
class Band:
    """A range of places that is shaded, with a short label."""

    first: float
    last: float
    label: str = ""


@dataclass(frozen=True, slots=True)
class LinePicture:
    """Curves over numbered places.

    - ``title``: what is seen, in a sentence.
    - ``places``: the numbers along, in ascending order, such as those of batches.
    - ``along``: what they number.
    - ``bands``: shaded ranges, such as migrations.
    """

    title: str
    places: tuple[float, ...]
    curves: tuple[Curve, ...]
    bands: tuple[Band, ...] = ()
    along: str = "batch"

    def __post_init__(self) -> None:
        lengths = {len(c.values) for c in self.curves}
        if not self.places or lengths != {len(self.places)}:
            raise ValueError(
                f"the picture {self.title!r} has {len(self.places)} places and curves of "
                f"{sorted(lengths)} values; it takes one value for each place"
            )

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> LinePicture:
        """Return the picture of ``dataclasses.asdict``, after a way through JSON."""
        curves = tuple(Curve(c["name"], tuple(c["values"]), c["role"]) for c in stored["curves"])
        bands = tuple(Band(**b) for b in stored["bands"])
        return cls(stored["title"], tuple(stored["places"]), curves, bands, stored["along"])

    @property
    def scale_top(self) -> float:
        """The end of the scale: the greatest value, or 1 if there is none above 0."""
        values = (v for c in self.curves for v in c.values if v is not None and isfinite(v))
        return max(values, default=0.0) or 1.0

    def to_html(self) -> str:
        """Return the picture as HTML; the style is the report's."""
        step = choose_step(self.scale_top, 4)
        top = max(self.scale_top * 1.04, step)
        legend = "".join(map(_render_legend_entry, self.curves))
        return (
            f'<figure class="braid-report-picture"><figcaption><b>{escape(self.title)}</b>'
            f'<span class="braid-report-legend">{legend}</span></figcaption>'
            f'<div class="braid-report-plot">{"".join(self._render_axes(step, top))}'
            f"{self._render_lines(top)}</div></figure>"
        )

    def _scale_place(self, place: float) -> float:
        """Return a place as a share of the width."""
        first, last = self.places[0], self.places[-1]
        return (place - first) / (last - first) if last > first else 0.5

    def _render_axes(self, step: float, top: float) -> Iterator[str]:
        for k in range(int(top / step) + 1):
            low = 100 * k * step / top
            yield f'<i style="bottom:{low:.2f}%"><u>{format_number(k * step)}</u></i>'
        along = choose_step(self.places[-1] - self.places[0], 6)
        if all(float(place).is_integer() for place in self.places):
            along = max(1.0, along)
        marks = _list_multiples(self.places[0], self.places[-1], along)
        for k, place in enumerate(marks):
            few = ' class="braid-report-few"' if k % 2 else ""
            left = f'style="left:{100 * self._scale_place(place):.2f}%"'
            yield f"<s{few} {left}>{format_number(place)}</s>"
        yield f'<s class="braid-report-along">{escape(self.along)}</s>'
        yield from self._render_bands()

    def _render_bands(self) -> Iterator[str]:
        end = wide_end = -1.0
        for band in self.bands:
            left, right = self._scale_place(band.first), self._scale_place(band.last)
            fits, wide_fits = left >= end, left >= wide_end
            label = escape(band.label) if wide_fits else ""
            few = "" if fits or not label else ' class="braid-report-few"'
            end = left + LETTER * (len(band.label) + 1) / NARROW if fits else end
            wide_end = left + LETTER * (len(band.label) + 1) / 900 if wide_fits else wide_end
            width = max(100 * (right - left), 0.3)
            yield (
                f'<em style="left:{100 * left:.2f}%;width:{width:.2f}%"><b{few}>{label}</b></em>'
            )

    def _render_lines(self, top: float) -> str:
        paths = (
            f'<path class="braid-report-{c.role}" d="{self._make_path(c.values, top)}"/>'
            for c in sorted(self.curves, key=lambda c: c.role == "main")
        )
        return (
            f'<svg viewBox="0 0 100 100" preserveAspectRatio="none" role="img" '
            f'aria-label="{escape(self._describe_curves())}">{"".join(paths)}</svg>'
        )

    def _make_path(self, values: Sequence[float | None], top: float) -> str:
        parts, is_open = list[str](), False
        for place, value in zip(self.places, values, strict=True):
            if value is None or not isfinite(value):
                is_open = False
                continue
            x, y = 100 * self._scale_place(place), 100 - 100 * value / top
            parts.append(f"{'L' if is_open else 'M'}{x:.2f} {y:.2f}")
            is_open = True
        return "".join(parts)

    def _describe_curves(self) -> str:
        ends = (f"{c.name} ends at {format_number(_find_last(c.values))}" for c in self.curves)
        return f"{self.title} {'; '.join(ends)}."


def _render_legend_entry(curve: Curve) -> str:
    return (
        f'<span class="braid-report-{curve.role}"><i></i>{escape(curve.name)}: '
        f"<b>{format_number(_find_last(curve.values))}</b></span>"
    )


def _find_last(values: Iterable[float | None]) -> float:
    return next((v for v in reversed(list(values)) if v is not None), 0.0)


def choose_step(span: float, most: int) -> float:
    """Return a round distance of marks, so that at most ``most`` distances fit into the span."""
    if span <= 0:
        return 1.0
    power = 10.0 ** floor(log10(span / most))
    return next(k * power for k in (1, 2, 2.5, 5, 10) if k * power * most >= span * 0.999)


def _list_multiples(first: float, last: float, step: float) -> Iterator[float]:
    for k in range(int(-(-first // step)), int(last // step) + 1):
        yield k * step
