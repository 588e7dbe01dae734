"""The chain in JupyterLab: it steps back and forth, and clicks request splits and merges. No
Spark.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
from braid.core import event_jsonl, run_events
from playwright.sync_api import expect
from unit.test_view_chain import Recorded

SHOWN = """# A recorded chain that can be clicked, and what was clicked
import ipywidgets as W
from braid.core import event_jsonl, run_events
from braid_widgets.slices.chain import ChainPlayer

view, told = ChainPlayer(event_jsonl.read_events("chain.jsonl"), pick=True), W.Label()
view.observe(lambda c: setattr(told, "value", "{act} {stream} {age}".format(**c["new"])), "picked")
W.VBox([view, told])"""


def test_a_click_on_a_boundary_merges_and_one_inside_a_slice_splits(
    lab: Any, opened: Callable[..., Any], tmp_path: Path
) -> None:
    run = Recorded(str(tmp_path / "run"))
    run.some(20)
    start = run.events.pop(
        next(k for k, e in enumerate(run.events) if isinstance(e, run_events.RunStarted))
    )
    event_jsonl.write_events(lab.folder / "chain.jsonl", [start, *run.events])
    kernel = dict(kernelspec=dict(name="python3", display_name="Python 3", language="python"))
    cells = [nbformat.v4.new_code_cell(SHOWN)]
    nbformat.write(
        nbformat.v4.new_notebook(cells=cells, metadata=kernel), lab.folder / "chain.ipynb"
    )
    notebook = opened("chain.ipynb")
    notebook.run_all()
    film, told = notebook.page.locator(".braid[data-seq]"), notebook.page.locator(".widget-label")
    expect(film).to_have_attribute("data-seq", "19", timeout=60_000)

    young, old = (film.locator(f"[data-slice='0:{k}'] rect.edge").bounding_box() for k in (0, 1))
    assert (
        young and old and abs(young["x"] + young["width"] - old["x"]) < 2 and young["y"] == old["y"]
    ), "slices side by side"
    bars = [
        film.locator(f"[data-query='0:{name}'] rect").bounding_box() for name in ("near", "far")
    ]
    assert all(
        b and abs(b["x"] - young["x"]) < 2 and b["y"] > young["y"] + young["height"] for b in bars
    ), "queries below"
    assert abs(bars[0]["x"] + bars[0]["width"] - old["x"]) < 2, "as wide as its window"

    film.locator("[data-merge='0:4']").click()
    expect(told).to_have_text("merge 0 4")
    notebook.page.mouse.click(old["x"] + old["width"] / 2, old["y"] + old["height"] / 4)
    expect(told).to_have_text("split 0 8")
    film.get_by_label("back").click()
    expect(film).to_have_attribute("data-seq", "18")
    assert notebook.errors == []
