"""The panels of load diffusion and of the ring in JupyterLab, simulated without Spark."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import nbformat
from papermill import execute_notebook
from playwright.sync_api import expect

ROOT = Path(__file__).parents[2]
DIFFUSION, RING = "02_load_diffusion.ipynb", "03_psp_ring.ipynb"
SOON = 60_000
PLOT = ".jp-OutputArea .braid-chart:visible"
FITTED = """() => {
  const places = [...document.querySelectorAll(".jp-Notebook .braid-plot")].filter((e) => e.checkVisibility());
  return places.length > 0 && places.every(
    (place) => place.querySelector(".main-svg")?.clientWidth === place.clientWidth);
}"""
"""Returns whether the figures of charts are drawn as wide as their places."""


LONG = """(label) => {
  label.textContent = "running · batch 10 of 12 (83%) · 579 tuples/s · 20 s left, and more";
  return label.scrollWidth <= label.clientWidth && label.scrollHeight <= label.clientHeight;
}"""
"""Returns whether a long state text of a panel is fully visible."""

BELOW = """(below) => {
  const [first, second] = [...document.querySelectorAll(".jp-OutputArea .braid-panels figcaption")]
    .filter((e) => e.checkVisibility()).map((e) => e.getBoundingClientRect());
  return second !== undefined && second.top > first.bottom + 100 === below;
}"""
"""Returns whether the second panel of the front chart is below the first."""


def prepared(lab: Any, name: str, cells: Sequence[str], settings: dict[str, Any]) -> str:
    """Return a copy of the notebook with small settings and these cells only."""
    notebook: Any = execute_notebook(
        ROOT / "notebooks" / name, None, settings, prepare_only=True, kernel_name="python3"
    )
    notebook.cells = [
        c
        for c in notebook.cells
        if c.id in cells or "injected-parameters" in c.metadata.get("tags", [])
    ]
    return str(lab.put(notebook, name))


def test_load_diffusion_simulates_and_draws_what_the_controls_say(
    lab: Any, opened: Callable[..., Any]
) -> None:
    before = set(lab.processes("java"))
    notebook = opened(
        prepared(lab, DIFFUSION, ("02-01", "02-02", "02-04"), dict(hosts=6, window=5.0))
    )
    page = notebook.page
    notebook.run_all()
    note, title = (
        page.locator(".braid-live .braid-note"),
        page.locator(".braid-live .braid-map .braid-caption b").first,
    )
    expect(note).to_contain_text("Aligned, 6 hosts", timeout=SOON)
    expect(title).to_contain_text("Segments of the master")
    page.get_by_label("placement", exact=True).select_option("CTR")
    expect(note).to_contain_text("Coordinated, 6 hosts", timeout=SOON)
    expect(title).to_contain_text("Segments of all streams")
    texts = page.locator(".braid-live .braid-map canvas").first.evaluate(
        "(canvas) => canvas.texts.map((each) => each.text)"
    )
    assert "host 5" in texts and any(text.startswith("hops of ") for text in texts)
    assert set(lab.processes("java")) <= before and notebook.errors == []


def test_the_ring_follows_its_controls_and_steps_forwards_and_backwards(
    lab: Any, opened: Callable[..., Any]
) -> None:
    before = set(lab.processes("java"))
    notebook = opened(
        prepared(lab, RING, ("03-01", "03-02", "03-04", "03-09"), dict(seconds=12.0, resize=0))
    )
    page, films = notebook.page, notebook.page.locator(".braid-live .braid[data-seq]")
    notebook.run_all()
    expect(films).to_have_count(2, timeout=SOON)
    ring, steps = films.first, films.last
    ring.press("End")
    expect(ring).to_have_attribute("data-seq", "11")
    ring.get_by_label("back").click()
    expect(ring).to_have_attribute("data-seq", "10")
    expect(ring.locator(".braid-where")).to_have_text("batch 11 of 12")
    ring.press("ArrowRight")
    expect(ring).to_have_attribute("data-seq", "11")

    note, scale = ring.locator(".braid-note"), ring.locator(".braid-map .braid-caption span").first
    page.get_by_label("form").select_option("PSP (basic)")
    page.get_by_label("nodes (N)").fill("4")
    page.get_by_label("nodes (N)").press("Tab")
    expect(scale).to_have_text("4 nodes in ring order")
    expect(note).to_contain_text("Ring, 4 nodes")
    page.get_by_label("nodes (N)").fill("1")
    page.get_by_label("nodes (N)").press("Tab")
    expect(scale).to_have_text("1 node in ring order")
    page.get_by_label("rates").fill("fast")
    page.get_by_label("rates").press("Tab")
    expect(page.get_by_role("alert")).to_have_text(
        "rates are 'fast'; give one number, or 3 with commas between, one for each stream"
    )

    expect(steps).to_contain_text("step 1 of 38")
    for press, now in (("forward", 2), ("forward", 3), ("back", 2)):
        steps.get_by_label(press).click()
        expect(steps).to_contain_text(f"step {now} of 38")
    assert set(lab.processes("java")) <= before and notebook.errors == []


def test_panels_stand_below_each_other_in_a_narrow_notebook(
    lab: Any, opened: Callable[..., Any]
) -> None:
    cells = ("04-01", "04-02", "04-02b", "04-06")
    notebook = opened(prepared(lab, "04_state_slices.ipynb", cells, dict(overhead=1.0)))
    page = notebook.page
    notebook.run_all()
    title = page.locator(f"{PLOT} figcaption").nth(1)
    expect(title).to_have_text("comparisons per second", timeout=SOON)
    page.wait_for_function(BELOW, arg=False, timeout=60_000)
    page.evaluate("window.jupyterapp.commands.execute('application:toggle-left-area')")
    page.set_viewport_size({"width": 420, "height": 1000})
    page.wait_for_function(BELOW, arg=True, timeout=60_000)
    page.wait_for_function(FITTED, timeout=60_000)
    assert page.locator(".braid-panel .widget-hbox > .widget-label").evaluate(LONG), (
        "no text is cut"
    )
    page.set_viewport_size({"width": 1400, "height": 1000})
    page.wait_for_function(BELOW, arg=False, timeout=60_000)
    assert notebook.errors == []


CONTROLS = f"""
import sys

sys.path.append({str(ROOT / "tests")!r})
from unit.test_controls import MAKERS, make_panel

for panel in map(make_panel, MAKERS):
    panel.start.description = "Launch on Spark"
    display(panel)
print("all are there")
"""
CUT = """(area) => {
  const pen = document.createElement("canvas").getContext("2d");
  const shown = (e) => e.offsetParent !== null;
  const wide = (e) => {
    pen.font = getComputedStyle(e).font;
    return pen.measureText(e.selectedOptions[0]?.textContent ?? "").width > e.clientWidth - 20;
  };
  const texts = [...area.querySelectorAll(".widget-label, button")].filter(shown).filter((e) => e.textContent);
  const cut = texts.filter((e) => e.scrollWidth > e.clientWidth + 1).map((e) => e.textContent);
  const choices = [...area.querySelectorAll("select")].filter(shown).filter(wide);
  const box = area.getBoundingClientRect();
  const out = [...texts, ...choices].filter((e) => e.getBoundingClientRect().right > box.right + 1);
  return [cut, choices.map((e) => e.value), out.map((e) => e.textContent)];
}"""
"""Returns truncated texts of labels, buttons and dropdowns, and elements outside the page."""


def test_no_control_is_cut(lab: Any, opened: Callable[..., Any]) -> None:
    kernel = nbformat.read(ROOT / "notebooks" / RING, as_version=4).metadata
    cell = nbformat.v4.new_code_cell(CONTROLS)
    name = lab.put(nbformat.v4.new_notebook(cells=[cell], metadata=kernel), "controls.ipynb")
    notebook = opened(name, width=900)
    notebook.run_all()
    expect(notebook.page.get_by_text("all are there", exact=True)).to_be_visible(timeout=SOON)
    launch = notebook.page.locator("button", has_text="Launch on Spark")
    expect(launch).to_have_count(7, timeout=SOON)
    area = notebook.page.locator(".jp-Cell-outputArea").filter(has=launch)
    assert area.evaluate(CUT) == [[], [], []]
    assert notebook.errors == []
