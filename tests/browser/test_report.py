"""A report page follows the reader's choice of light or dark, and its text can be read on
either.
"""

from __future__ import annotations

import re
from pathlib import Path

import nbformat
import pytest
from braid import Aligned
from braid.model.simulate import simulate
from braid.reports.page import page
from braid_widgets.diffusion import segments
from playwright.sync_api import Browser

COLOURS = """([selector]) => {
  const style = (e) => getComputedStyle(e), text = document.querySelector(selector);
  return [style(document.body).backgroundColor, selector.startsWith("text") ? style(text).fill : style(text).color];
}"""


def luminance(colour: str) -> float:
    """Relative luminance of a CSS colour such as rgb(17, 17, 17), as WCAG defines it."""
    parts = [int(c) / 255 for c in re.findall(r"\d+", colour)[:3]]
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return sum(weight * c for weight, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read_in_either_scheme(browser: Browser, tmp_path: Path, scheme: str) -> None:
    chart = segments.figure(simulate(Aligned(3), [(3, 4, 5)] * 4, windows=(2, 2, 2)))
    shown = nbformat.v4.new_output("display_data", {"text/html": chart.to_html()})
    cells = [
        nbformat.v4.new_markdown_cell("Some words."),
        nbformat.v4.new_code_cell("", outputs=[shown]),
    ]
    (tmp_path / "report.html").write_text(
        page(nbformat.v4.new_notebook(cells=cells), "report", tmp_path), encoding="utf-8"
    )
    context = browser.new_context(color_scheme=scheme)  # type: ignore[arg-type]
    report = context.new_page()
    report.goto((tmp_path / "report.html").as_uri())
    report.wait_for_selector("text.gtitle")
    for selector in (".jp-RenderedMarkdown p", "text.gtitle", "text.xtitle", "text.ytitle"):
        ground, text = (luminance(c) for c in report.evaluate(COLOURS, [selector]))
        assert (ground > 0.5) == (scheme == "light"), "the page's ground"
        assert (max(ground, text) + 0.05) / (min(ground, text) + 0.05) >= 3.9, (
            f"the contrast of {selector}"
        )
    context.close()
