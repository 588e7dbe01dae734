"""A saved notebook that is opened without its kernel: nothing is blank."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
from nbformat.v4 import new_code_cell, new_notebook
from playwright.sync_api import expect

RECORDING = Path(__file__).parents[2] / "data" / "recordings" / "fluct.jsonl"
SOON = 60_000


def test_a_view_leaves_its_picture_when_the_kernel_is_gone(
    lab: Any, opened: Callable[..., Any]
) -> None:
    source = f"from braid import watch\nwatch({str(RECORDING)!r})"
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    made = new_notebook(cells=[new_code_cell(source)], metadata={"kernelspec": kernel})
    nbformat.write(made, lab.folder / "saved.ipynb")
    notebook = opened("saved.ipynb")
    page = notebook.page
    notebook.run_all()
    alive, twin = page.locator(".braid-live .braid-cockpit"), page.locator(".braid-twin .braid")
    expect(alive).to_have_attribute("data-batch", "48", timeout=SOON)
    expect(twin).to_have_attribute("data-batch", "48", timeout=SOON)
    expect(alive).to_be_visible()
    expect(twin).not_to_be_visible()
    page.evaluate("window.jupyterapp.commands.execute('docmanager:save')")
    expect(page.locator(".jp-mod-dirty")).to_have_count(0, timeout=SOON)
    lab.end_sessions()
    page.goto(f"{lab.address}/lab/tree/notebooks/saved.ipynb?reset&token={lab.token}")
    expect(twin).to_have_attribute("data-batch", "48", timeout=SOON)
    expect(twin).to_be_visible()
    expect(page.get_by_text("model not found")).not_to_be_visible()
