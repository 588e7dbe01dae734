"""Load shedding's panel in JupyterLab, and a change of the budget of the running join.

The join is of tables, in the kernel, so nothing waits for Spark.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
from papermill import execute_notebook
from playwright.sync_api import expect

NOTEBOOK = Path(__file__).parents[2] / "notebooks" / "06_load_shedding.ipynb"
CELLS = ("06-01", "06-02", "06-04")
SMALL = dict(kappa=0.8, window=3.0, rate=40.0, seconds=9.0, fraction=0.5)
SOON = 60_000
OF_TABLES = """
import tempfile
from braid import Centralized, StreamJoin

def start_from_controls(chosen, batches):
    sets = shedding_runs.sets_from_controls(**{**chosen, "seconds": 180.0})
    windows = dict.fromkeys("nm", f"{sets.window:g} seconds")
    shed = shedding_runs.make_shedder(**chosen)
    join = StreamJoin(sets.make_tables(), sets.condition, Centralized(), windows, "ts", shed=shed)
    return join.start(tempfile.mkdtemp() + "/run", batches="batch", pace=1.0)

shedding_runs.start_from_controls = start_from_controls
"""


def test_the_drawer_changes_the_budget_of_the_join_that_runs(
    lab: Any, opened: Callable[..., Any]
) -> None:
    notebook: Any = execute_notebook(
        NOTEBOOK, None, SMALL, prepare_only=True, kernel_name="python3"
    )
    notebook.cells = [
        c
        for c in notebook.cells
        if c.id in CELLS or "injected-parameters" in c.metadata.get("tags", [])
    ]
    notebook.cells.insert(-1, nbformat.v4.new_code_cell(OF_TABLES))
    lab.put(notebook, NOTEBOOK.name)
    before = set(lab.processes("java"))
    shown = opened(NOTEBOOK.name)
    page = shown.page
    state = page.locator(".braid-live .braid-state")
    title = page.locator(".braid-live .braid-map .braid-caption b").first
    shown.run_all()
    expect(state).to_have_text("modelled", timeout=SOON)
    expect(title).to_contain_text("50 % of the work", timeout=SOON)
    texts = page.locator(".braid-live .braid-map canvas").evaluate(
        "(canvas) => canvas.texts.length"
    )
    assert texts >= 8, "bars with their shares"
    page.get_by_role("button", name="Launch on Spark").click()
    expect(state).to_contain_text("live", timeout=SOON)
    page.get_by_role("button", name="Controls, what if").click()
    share = page.locator(".braid-live .braid-drawer").get_by_label("Compare this share").first
    share.fill("0.02")
    share.press("Enter")
    expect(title).to_contain_text(re.compile(r"^[23] % of the (work|pairs)"), timeout=SOON)
    page.get_by_role("button", name="Stop").click()
    expect(page.get_by_role("button", name="Launch on Spark")).to_be_enabled(timeout=SOON)
    expect(page.get_by_role("alert")).to_have_count(0)
    assert set(lab.processes("java")) <= before and shown.errors == []
