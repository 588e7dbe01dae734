"""Write docs/performance.md and its chart from the figures of the programs.

Usage: _page.py [--quick]. Figures of runs with --quick go to a separate page outside the
documentation. It fails if a measure misses its requirement without a stated reason.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from html import escape
from math import log10
from pathlib import Path
from typing import Any

from _common import FIGURES, QUICK_FIGURES
from _reasons import find_reason

DOCS = Path(__file__).parents[1] / "docs"
PROGRAM_ORDER = (
    "spark_builtin",
    "large",
    "small",
    "floor",
    "hosts",
    "multiway",
    "sharing",
    "growth",
    "soak",
    "operations",
    "theta",
    "conditions",
    "kinds",
    "peers",
    "placements",
    "auto",
    "hot_keys",
    "hypercube",
    "shedding",
    "reuse",
    "why",
)
PAGE_HEAD = """# Performance

This page shows how fast Braid is: against Spark's own joins, other engines and earlier versions of
itself, and whether each ratio meets its requirement. Use it to judge a change: run `make bench`,
which writes this page, and compare *found* with *required*.

- Every engine of a program in `benchmarks/` takes the same rows in one run, after a warm-up.
- Seconds of a batch are the median of whole micro-batches, including Spark's own logs and planning.
- A requirement that is missed has its reason beside it, if that was measured.
- Each table states what the program compares and whether it checks that results are equal.
- The name of a modelled figure says so. All other figures are measured or counted.
- Each program's figures come from its last run; date, processor and load are below its tables. The
  load is that of the machine just before the first engine ran.

The machine of the last run:
"""


def read_figures(folder: Path) -> list[dict[str, Any]]:
    """Return the figures of all programs in the order of the page; unknown programs follow by
    name.
    """
    by_name = {file.stem: json.loads(file.read_text()) for file in sorted(folder.glob("*.json"))}
    return [by_name.pop(name) for name in PROGRAM_ORDER if name in by_name] + [*by_name.values()]


def render_page(figures: Sequence[dict[str, Any]]) -> str:
    """Return the page as Markdown."""
    lines = [
        PAGE_HEAD,
        *_render_machine(figures),
        "## Measures",
        "",
        *_render_measures(figures),
        "",
    ]
    programs = {file.stem for file in Path(__file__).parent.glob("[!_]*.py")}
    if missing := sorted(programs - {each["name"] for each in figures}):
        lines += [f"Not measured: {', '.join(missing)}.", ""]
    lines += ["![Found, required and aimed-at ratios](performance.svg)", ""]
    for each in figures:
        lines += [f"## {each['name']}", "", each["about"], ""]
        for title, table in each["tables"].items():
            lines += [
                f"**{escape(title)}**",
                "",
                *_render_table(table["columns"], table["data"]),
                "",
            ]
        lines += [f"{note}\n" for note in each["notes"]]
        settings = ", ".join(f"{k} {v}" for k, v in each["settings"].items())
        ran = f"{each['date']}, {each['machine']['processor']}, {each['minutes']:.1f} minutes, "
        ran += f"load before {each['load']:.1f}"
        lines += [f"*{settings}; {ran}.*", ""]
    return "\n".join(lines)


def _render_machine(figures: Sequence[dict[str, Any]]) -> Iterator[str]:
    last = max(figures, key=lambda each: each["date"])
    yield from _render_table(("", ""), [*last["machine"].items(), ("date", last["date"])])
    yield ""


def _render_measures(figures: Sequence[dict[str, Any]]) -> Iterator[str]:
    rows = [
        (
            m["name"],
            m["value"],
            _format_limit(m, "required"),
            _format_limit(m, "aim"),
            _judge_measure(m),
        )
        for each in figures
        for m in each["measures"]
    ]
    yield from _render_table(("measure", "found", "required", "aim", ""), rows)


def _format_limit(measure: dict[str, Any], limit: str) -> str:
    if measure[limit] is None:
        return "-"
    return f"{'at most ' if measure['most'] else ''}{measure[limit]:g}"


def _judge_measure(measure: dict[str, Any]) -> str:
    """Return the verdict on a measure: the aim, the requirement, or neither."""

    def is_reached(bound: float | None) -> bool:
        if bound is None:
            return False
        value = measure["value"]
        return bool(value <= bound if measure["most"] else value >= bound)

    if measure["required"] is None and measure["aim"] is None:
        return "reported"
    if is_reached(measure["aim"]):
        return "aim reached"
    if measure["required"] is None:
        return "aim missed"
    if is_reached(measure["required"]):
        return "holds"
    reason = find_reason(measure["name"])
    return f"**missed**: {reason}" if reason else "**missed**"


def _list_unexplained(figures: Sequence[dict[str, Any]]) -> list[str]:
    """Return the measures that miss their requirement without a stated reason."""
    measures = [m for each in figures for m in each["measures"]]
    return [m["name"] for m in measures if _judge_measure(m) == "**missed**"]


def _render_table(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> Iterator[str]:
    yield f"| {' | '.join(map(escape, columns))} |"
    yield f"|{'---|' * len(columns)}"
    for row in rows:
        yield f"| {' | '.join(map(_format_cell, row))} |"


def _format_cell(value: Any) -> str:
    if value is None or value != value:
        return ""
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 or value == int(value) else f"{value:.3g}"
    return f"{value:,}" if isinstance(value, int) else str(value).replace("|", "\\|")


WIDTH, ROW_HEIGHT, LEFT_MARGIN, RIGHT_MARGIN = 1000, 26, 480, 80


def draw_chart(figures: Sequence[dict[str, Any]]) -> str:
    """Return the measures as an SVG bar chart on one logarithmic axis of ratios.

    A solid line marks the requirement, a dashed one the aim. A measure of 0 appears only in the
    table.
    """
    shown = [m for each in figures for m in each["measures"] if m["value"] > 0]
    values = [v for m in shown for v in (m["value"], m["required"], m["aim"], 1) if v]
    low, high = log10(min(values)) - 0.05, log10(max(values)) + 0.05
    height = ROW_HEIGHT * len(shown) + 60

    def place_on_axis(value: float) -> float:
        return LEFT_MARGIN + (log10(value) - low) / (high - low) * (
            WIDTH - LEFT_MARGIN - RIGHT_MARGIN
        )

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" '
        'aria-label="Ratios, as in the table above" font-family="system-ui, sans-serif" '
        f'font-size="12"><rect width="{WIDTH}" height="{height}" fill="#ffffff"/>'
    ]
    steps = (1, 2, 5) if high - low < 3 else (1,)
    for tick in (n * 10**e for e in range(-3, 4) for n in steps):
        if low <= log10(tick) <= high:
            x = place_on_axis(tick)
            at = f'x1="{x:.1f}" x2="{x:.1f}" y1="20" y2="{height - 34}"'
            parts.append(f'<line {at} stroke="#dee2e6"/>')
            parts.append(_draw_text(x, height - 18, f"{tick:g}", "middle", "#495057"))
    for n, m in enumerate(shown):
        parts += _draw_bar(m, 24 + n * ROW_HEIGHT, place_on_axis)
    key = "bar: found · line: required · dashed: aim · orange: the less the better"
    parts.append(
        _draw_text(WIDTH / 2, height - 4, f"ratio, logarithmic · {key}", "middle", "#495057")
    )
    return "".join([*parts, "</svg>\n"])


def _draw_bar(measure: dict[str, Any], y: float, place_on_axis: Any) -> Iterator[str]:
    left, right = sorted((place_on_axis(1), place_on_axis(measure["value"])))
    color = "#f08c00" if measure["most"] else "#2f6fde"
    yield _draw_text(LEFT_MARGIN - 8, y + 13, measure["name"], "end", "#212529")
    yield f'<rect x="{left:.1f}" y="{y + 3}" width="{max(1, right - left):.1f}" height="14" '
    yield f'fill="{color}"/>'
    yield _draw_text(WIDTH - 8, y + 14, f"{measure['value']:.3g}", "end", "#212529")
    for what, dash in (("required", ""), ("aim", ' stroke-dasharray="3 2"')):
        if measure[what]:
            x = place_on_axis(measure[what])
            at = f'x1="{x:.1f}" x2="{x:.1f}" y1="{y}" y2="{y + 20}"'
            yield f'<line {at} stroke="#c92a2a" stroke-width="2"{dash}/>'


def _draw_text(x: float, y: float, text: str, anchor: str, color: str) -> str:
    place = f'x="{x:.1f}" y="{y}" text-anchor="{anchor}" fill="{color}"'
    return f"<text {place}>{escape(text)}</text>"


def main() -> None:
    quick = "--quick" in sys.argv
    folder, target = (QUICK_FIGURES, QUICK_FIGURES) if quick else (FIGURES, DOCS)
    figures = read_figures(folder)
    if not figures:
        sys.exit(f"there are no figures in {folder}; run the programs in benchmarks/ first")
    (target / "performance.md").write_text(render_page(figures), encoding="utf-8")
    (target / "performance.svg").write_text(draw_chart(figures), encoding="utf-8")
    print(f"wrote {target / 'performance.md'}: {sum(e['minutes'] for e in figures):.0f} minutes")
    if (unexplained := _list_unexplained(figures)) and not quick:
        sys.exit(f"missed without a reason in _reasons.py: {'; '.join(unexplained)}")


if __name__ == "__main__":
    main()
