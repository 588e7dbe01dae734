"""The shared ring's notebook in JupyterLab, without Spark.

It has the panel with its box of queries, and the stepped example.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from braid_lab.workloads.dashboards import DASHBOARDS
from papermill import execute_notebook
from playwright.sync_api import expect

NOTEBOOK = Path(__file__).parents[2] / "notebooks" / "05_shared_ring.ipynb"
CELLS = ("05-01", "05-02", "05-04", "05-06")
SOON = 60_000


def test_queries_are_edited_in_a_box_and_the_example_is_stepped_through(
    lab: Any, opened: Callable[..., Any]
) -> None:
    notebook: Any = execute_notebook(NOTEBOOK, None, {}, prepare_only=True, kernel_name="python3")
    notebook.cells = [c for c in notebook.cells if c.id in CELLS]
    lab.put(notebook, NOTEBOOK.name)
    before = set(lab.processes("java"))
    shown = opened(NOTEBOOK.name)
    page, films = shown.page, shown.page.locator(".braid-live .braid[data-seq]")
    film = films.filter(has_text=re.compile(r"step \d+ of 13"))
    shown.run_all()
    expect(film).to_have_count(1, timeout=SOON)
    expect(page.get_by_role("button", name="Launch on Spark")).to_be_enabled(timeout=SOON)
    ring = page.locator(".braid-live .braid-cockpit[data-seq]")
    ring.press("End")
    expect(ring.locator(".braid-where")).to_contain_text("batch 18")
    expect(ring.locator(".braid-state")).to_have_text("recorded")
    expect(page.get_by_text("A launch takes in about")).to_contain_text("(modelled)")
    texts = "(canvas) => canvas.texts.map((each) => each.text)"
    drawn = ring.locator(".braid-map canvas").evaluate(texts)
    assert {"turnarounds", "wind", "rain", "host 0", "host 3"} <= set(drawn)
    ring.locator(".braid-map").press("Enter")
    said = ring.locator(".braid-side")
    expect(said.locator("h2")).to_contain_text("of a")
    expect(said).to_contain_text("queries that read it")
    queries = page.locator(".braid-live").get_by_role("textbox", name="queries")
    text = queries.input_value()
    lines = text.splitlines()
    assert [line.split(":")[0] for line in lines] == [q.name for q in DASHBOARDS]
    whole = page.viewport_size
    page.set_viewport_size({"width": 420, "height": 800})
    page.evaluate("window.jupyterapp.shell.collapseLeft()")
    wide = page.locator(".braid-panel .widget-gridbox").evaluate("(box) => box.clientWidth")
    assert queries.evaluate("(box) => box.clientWidth") > 0.6 * wide, "a row of its own"
    page.set_viewport_size(whole)
    queries.fill(text.replace(lines[0], "now: a: 3 hours, d: 1 hour"))
    queries.press("Tab")
    expect(page.locator(".braid-refused")).to_have_count(1)
    expect(page.get_by_role("button", name="Launch on Spark")).to_be_disabled()
    expect(page.get_by_role("alert")).to_have_text(
        "query 'now' has windows for a, d; it needs one for each of a, d, w"
    )
    queries.fill(text.replace(lines[0], "now: 3 hours"))
    queries.press("Tab")
    expect(page.get_by_role("alert")).to_have_count(0)

    expect(film).to_contain_text("step 1 of 13")
    for press, now in (("forward", 2), ("forward", 3), ("back", 2)):
        film.get_by_label(press).click()
        expect(film).to_contain_text(f"step {now} of 13")
    expect(film.locator("table")).to_contain_text("T111111–111")
    assert set(lab.processes("java")) <= before and shown.errors == []
