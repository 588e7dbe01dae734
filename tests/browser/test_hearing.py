"""Widgets that load later than anywidget waits still receive messages from their kernel."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
from playwright.sync_api import expect

from .conftest import LATE, READY

RECORDINGS = Path(__file__).parents[2] / "data" / "recordings"
MADE = """# Widgets, of which each changes before it can be on the page
import ipywidgets as W
from braid_lab.theta import reference
from braid_widgets.base.stepper import Stepper
from braid_widgets.cockpit.view import Cockpit

cockpit, steps = Cockpit("fluct.jsonl"), Stepper(reference.EXAMPLE)
others = Stepper(reference.EXAMPLE)
display(W.VBox([others, cockpit, steps]))
others.position, steps.position = 1, 2"""
CHANGED = """# Later on
others.position, steps.position = 3, 1
cockpit.mark_stale()"""
HURRIED = """() => {
  const given = AbortSignal.timeout.bind(AbortSignal);
  window.late = 0;
  AbortSignal.timeout = (wait) => {
    if (wait !== 2000) return given(wait);
    const over = new AbortController();
    queueMicrotask(() => { window.late += 1; over.abort(); });
    return over.signal;
  };
  window.inTime = () => { AbortSignal.timeout = given; return window.late; };
}"""
"""Makes anywidget wait for no time instead of two seconds; ``inTime`` undoes it and returns how
often that happened.
"""


def test_widgets_that_were_loaded_late_show_what_they_missed_and_what_comes(
    lab: Any, opened: Callable[..., Any]
) -> None:
    shutil.copy(RECORDINGS / "fluct.jsonl", lab.folder / "fluct.jsonl")
    kernel = dict(kernelspec=dict(name="python3", display_name="Python 3", language="python"))
    cells = [nbformat.v4.new_code_cell(text) for text in (MADE, CHANGED)]
    made = nbformat.v4.new_notebook(cells=cells, metadata=kernel)
    notebook = opened(lab.put(made, "hearing.ipynb"))
    page = notebook.page
    page.wait_for_function(READY)
    late: list[str] = []
    page.on("pageerror", lambda error: late.append(str(error)))
    page.evaluate(HURRIED)
    notebook.run_all()
    films = page.locator(".braid[data-seq]:not(.braid-cockpit)")
    for film, position in enumerate(("3", "1")):
        expect(films.nth(film)).to_have_attribute("data-seq", position)
    expect(page.locator(".braid-state")).to_have_text("earlier run")
    assert page.evaluate("window.inTime()") == 3 and set(late) == {LATE}
    assert notebook.errors == []
