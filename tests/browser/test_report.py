"""A report page follows the reader's choice of light or dark, with readable text on either."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import nbformat
import pandas as pd
import pytest
from braid import Aligned
from braid.core.event_jsonl import read_events
from braid.simulation.simulator import simulate
from braid_lab.launches.recorded_runs import recording_path
from braid_lab.reports.page import PageContent
from braid_lab.reports.report_history import ReportRun
from braid_lab.reports.report_page import render_page
from braid_lab.reports.report_style import LAYOUT_SCRIPT, STYLE, render_document
from braid_lab.reports.report_summary import render_page_top
from braid_lab.reports.run_description import describe_run
from braid_widgets.base import line_charts
from braid_widgets.cockpit.page import static_html
from playwright.sync_api import Browser, Page, expect
from plotly.subplots import make_subplots

COLOURS = """([selector]) => {
  const style = (e) => getComputedStyle(e), text = document.querySelector(selector);
  return [style(document.body).backgroundColor, selector.endsWith("text") ? style(text).fill : style(text).color];
}"""


def luminance(colour: str) -> float:
    """Return the relative luminance of a CSS color such as rgb(17, 17, 17), as defined by WCAG."""
    parts = [int(c) / 255 for c in re.findall(r"\d+", colour)[:3]]
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return sum(weight * c for weight, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def written(folder: Path, *cells: Any) -> str:
    """Return the address of a report of these cells."""
    html = render_page(
        nbformat.v4.new_notebook(cells=[*cells]), "report", folder, STYLE + LAYOUT_SCRIPT
    )
    (file := folder / "report.html").write_text(html, encoding="utf-8")
    return file.as_uri()


def open_folds(report: Page) -> None:
    """Open all sections of a page."""
    report.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")


@pytest.fixture(scope="module")
def short(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A report with a few words, a chart, and a chart of the reader's own."""
    data = pd.DataFrame({"x": [1, 2, 3], "y": [3, 4, 5]})
    chart = line_charts.line_chart(data, "Rows by batch", "rows", x="x", y="y")
    own = make_subplots(1, 2, subplot_titles=["one", "two"])
    own.add_scatter(x=[1, 2], y=[3, 4], row=1, col=1).add_scatter(x=[1, 2], y=[4, 3], row=1, col=2)
    plain = own.to_html(include_plotlyjs=False, full_html=False, div_id="own")
    words, drawn = nbformat.v4.new_markdown_cell("Some words."), nbformat.v4.new_code_cell("")
    html = (chart.to_html(), plain)
    drawn.outputs = [nbformat.v4.new_output("display_data", {"text/html": each}) for each in html]
    return written(tmp_path_factory.mktemp("short"), words, drawn)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read_in_either_scheme(browser: Browser, short: str, scheme: Any) -> None:
    context = browser.new_context(color_scheme=scheme)
    report = context.new_page()
    report.goto(short)
    open_folds(report)
    report.wait_for_selector(".braid-plot text")
    shown = (".braid-chart > b", ".braid-panels p", ".braid-panels span", ".braid-plot text")
    for selector in (".jp-RenderedMarkdown p", *shown):
        ground, text = (luminance(c) for c in report.evaluate(COLOURS, [selector]))
        assert (ground > 0.5) == (scheme == "light"), "the page's ground"
        assert (max(ground, text) + 0.05) / (min(ground, text) + 0.05) >= 3.9, (
            f"the contrast of {selector}"
        )
    context.close()


PAIRS = """() => [...document.querySelectorAll(".braid-pairs")].flatMap((list) =>
  [...list.querySelectorAll("dt")].map((name) =>
    [name.offsetTop === name.nextElementSibling.offsetTop, name.offsetWidth > 100]))"""
"""Whether each name in the inspector is beside its value, and has more than a fifth of the width."""
GROUNDS = """() => [document.body, document.querySelector(".braid-cockpit")].map(
  (each) => getComputedStyle(each).backgroundColor)"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_cockpit_in_a_report_has_its_scheme_and_a_whole_inspector(
    browser: Browser, tmp_path: Path, scheme: Any
) -> None:
    cell = nbformat.v4.new_code_cell("")
    html = static_html(list(simulate(Aligned(3), [(3, 4, 5)] * 4, windows=(2, 2, 2))))
    cell.outputs = [nbformat.v4.new_output("display_data", {"text/html": html})]
    context = browser.new_context(color_scheme=scheme, viewport={"width": 1400, "height": 900})
    report = context.new_page()
    report.goto(written(tmp_path, cell))
    open_folds(report)
    report.wait_for_selector(".braid-cockpit .braid-pairs dt")
    assert [luminance(c) > 0.5 for c in report.evaluate(GROUNDS)] == [scheme == "light"] * 2
    pairs = report.evaluate(PAIRS)
    assert len(pairs) >= 3 and all(map(all, pairs)), pairs
    context.close()


LAID = """(id) => {
  const { layout, style } = document.getElementById(id), { xaxis, xaxis2, yaxis, ...whole } = layout;
  const texts = layout.annotations?.map(({ text, x, y }) => [text, x, y]);
  const places = [xaxis, xaxis2, yaxis].map((axis) => axis?.domain);
  return JSON.stringify([places, texts, whole.legend, whole.margin, whole.height, style.height]);
}"""
"""The layout of a chart, without its width and the range of its axes."""


def test_a_chart_of_the_readers_own_stays_as_it_is_beside_one_of_ours(
    browser: Browser, short: str
) -> None:
    context = browser.new_context(viewport={"width": 1200, "height": 900})
    report = context.new_page()
    report.goto(short)
    open_folds(report)
    report.wait_for_selector("#own .annotation-text")
    ours, own = report.locator(".braid-plot .main-svg").first, report.evaluate(LAID, "own")
    expect(ours).to_be_visible()
    assert (ours.bounding_box() or {})["width"] > 800
    report.set_viewport_size({"width": 420, "height": 900})
    report.wait_for_function(
        "document.querySelector('.braid-plot .main-svg').getBoundingClientRect().right < 420"
    )
    assert report.evaluate(LAID, "own") == own
    context.close()


TEXTS = """() => [...document.querySelectorAll(
  ".main-svg text, .braid-chart :is(b, p, button, span)")].map((e) => {
  const { left, top, right, bottom } = e.getBoundingClientRect();
  return [e.textContent, left, top, right, bottom];
}).filter(([text, left, top, right]) => text && right > left)"""


DRAWN = """() => [...document.querySelectorAll(".braid-plot")].every(
  (place) => place.querySelector(".main-svg")?.clientWidth === place.clientWidth)"""
"""Whether each figure is as wide as its place."""


def overlapping(texts: list[list[Any]]) -> list[tuple[str, str]]:
    """Return texts of a page that overlap by more than a pixel."""
    return [
        (a[0], b[0])
        for k, a in enumerate(texts)
        for b in texts[:k]
        if min(a[3], b[3]) - max(a[1], b[1]) > 1 and min(a[4], b[4]) - max(a[2], b[2]) > 1
    ]


@pytest.fixture(scope="module")
def panels(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A report with a chart of nine panels, and one of four in a row."""
    rows = [
        (x, kind, wide, tall, x * 10)
        for x in range(5)
        for kind in ("one of these", "another one of these", "a third one of these")
        for wide in ("mostly small", "uniform", "mostly large")
        for tall in (0.025, 0.1, 0.4)
    ]
    data = pd.DataFrame(rows, columns=["x", "kind", "windows", "share", "y"])
    look = dict(x="x", y="y", color="kind", facet_col="windows", facet_row="share")
    title = "Results per 1000 comparisons, of the queries together, mean of the seeds (counted)"
    charts = [line_charts.line_chart(data, title, "per 1000", **look)]
    one = (data["kind"] == "one of these") & (data["windows"] == "uniform")
    four = {f"the {k}th panel, which is said at some length": one for k in range(4)}
    axes = (("x", "the number of it"), ("share", "share"), "y")
    charts.append(line_charts.heat_maps(data, "Maps: four in a row", *axes, four, 2, 1))
    cell = nbformat.v4.new_code_cell("")
    shown = [chart.to_html(first) for chart, first in zip(charts, (True, False), strict=True)]
    cell.outputs = [nbformat.v4.new_output("display_data", {"text/html": html}) for html in shown]
    return written(tmp_path_factory.mktemp("panels"), cell)


@pytest.mark.parametrize("width", [420, 900])
def test_texts_of_a_chart_with_many_panels_lie_over_nothing(
    browser: Browser, panels: str, width: int
) -> None:
    context = browser.new_context(viewport={"width": width, "height": 900})
    report = context.new_page()
    report.goto(panels)
    open_folds(report)
    report.wait_for_function(DRAWN)
    texts = report.evaluate(TEXTS)
    assert len(texts) > 100 and overlapping(texts) == []
    assert all(left >= 0 and right <= width for _, left, _, right, _ in texts), "nothing is cut"
    assert report.evaluate("document.documentElement.scrollWidth") <= width
    first = report.locator(".braid-keys > button").first
    curves = report.locator(".braid-plot .scatterlayer .js-line")
    expect(curves).to_have_count(27)
    first.press("Enter")
    expect(curves).to_have_count(18)
    first.press("Enter")
    expect(curves).to_have_count(27)
    context.close()


@pytest.mark.parametrize("width", [1400, 900, 420])
def test_the_top_of_a_page_fits_its_window(browser: Browser, tmp_path: Path, width: int) -> None:
    """The picture ends above 640 px where cards are side by side, and nothing is cut."""
    described = describe_run(read_events(recording_path("fluct")))
    run = ReportRun(
        "grid", "Grid", "2026-11-27", {}, "", 0, 0, (), "", (*described.figures,), 1, "", ""
    )
    content = PageContent(described.answer, described.figures, described.picture)
    outcome = {"verdict": {"failed": [], "error": ""}, "claims": [], "asserted": [], "versions": {}}
    outcome |= {"parameters": {}, "seconds": 1.0, "machine": ""}
    top = render_page_top(outcome, run, content, {}, [run] * 8)
    (file := tmp_path / "top.html").write_text(render_document("Grid", top), encoding="utf-8")
    context = browser.new_context(viewport={"width": width, "height": 900})
    page = context.new_page()
    page.goto(file.as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    box = page.locator(".braid-report-picture").bounding_box()
    assert box and box["y"] + box["height"] <= (720 if width == 420 else 640)
    labels = page.evaluate(LABELS)
    assert len(labels) >= 8 and overlapping(labels) == []
    context.close()


LABELS = """() => [...document.querySelectorAll(".braid-report-plot :is(u, s, b)")].map((e) => {
  const { left, top, right, bottom } = e.getBoundingClientRect();
  return [e.textContent, left, top, right, bottom];
}).filter(([text, left, top, right]) => text && right > left)"""
