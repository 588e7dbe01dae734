"""The notebook in JupyterLab: it opens on a recorded run, launches a live one and stays responsive.

Saved and opened without its kernel, it still shows its pictures.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
import pytest
from papermill import execute_notebook
from playwright.sync_api import expect

ROOT = Path(__file__).parents[2]
NAME = "01_adaptive_theta_join.ipynb"
SETTINGS = {"scale": 0.01, "batches": 8, "hosts": 4, "pace": 2.0}
PICTURE = ".braid-live .braid-cockpit[data-batch]"
BUSY = "import pathlib, time; [time.sleep(0.1) for _ in iter(pathlib.Path('seen').exists, True)]"
PROBE = 'print("the panel is", panel.state)'
PLAIN = 'watch(recorded_runs.recording_path("shared_ring"))'
"""A cell that shows a recording without a panel."""
SAYS = """() => getComputedStyle(document.querySelector(".braid-live .braid-acts"), "::after").content"""
"""The text of the launch button after its name."""
OVERFLOW = """(root) => {
  const box = root.getBoundingClientRect(), area = root.closest(".jp-OutputArea-output").getBoundingClientRect();
  return [root.scrollWidth > root.clientWidth, box.left < area.left, box.right > area.right + 1];
}"""


def prepared(lab: Any) -> str:
    """Return a copy of the notebook with small settings and three more cells.

    One below the panel shows a recording, one runs during the join, and one keeps the kernel busy.
    """
    notebook: Any = execute_notebook(
        ROOT / "notebooks" / NAME, None, SETTINGS, prepare_only=True, kernel_name="python3"
    )
    panel = next(
        k for k, c in enumerate(notebook.cells) if re.search(r"display_panel\(\s*panel", c.source)
    )
    notebook.cells.insert(panel + 1, nbformat.v4.new_code_cell(PLAIN, id="plain"))
    notebook.cells.append(nbformat.v4.new_code_cell(PROBE, id="probe"))
    notebook.cells.append(nbformat.v4.new_code_cell(BUSY, id="busy"))
    return str(lab.put(notebook, NAME))


def test_it_opens_on_a_recorded_run_and_launch_replaces_it_by_a_live_one(
    lab: Any, opened: Callable[..., Any]
) -> None:
    notebook = opened(prepared(lab), width=1000)
    page, title = notebook.page, notebook.page.locator(".braid-live .braid-where").first
    notebook.run_all()
    page.wait_for_selector(PICTURE, timeout=60_000)
    notebook.done(probe := notebook.cell(PROBE))
    assert lab.processes("java") == [], "a recorded run needs no Spark"

    launch = page.locator("button", has_text=re.compile(r"^\s*Launch on Spark$"))
    page.wait_for_function(f"() => ({SAYS})().includes('the kernel is busy')", timeout=60_000)
    (lab.folder / "seen").touch()
    notebook.done(notebook.cell(BUSY))
    page.wait_for_function(f"() => ({SAYS})() === 'none'", timeout=60_000)

    picture = page.locator(PICTURE).first
    assert picture.evaluate(OVERFLOW) == [False] * 3, "nothing is cut off at a width of 1000"
    recorded = picture.screenshot()
    state = page.locator(".braid-live .braid-state").first
    expect(state).to_have_text("recorded")
    expect(title).to_contain_text("of 48")
    launch.click()
    expect(title).to_contain_text(re.compile(r"batch [2-8] of 8"), timeout=160_000)
    expect(state).to_have_text("● live")
    # Else the run may end before the batch is looked at.
    page.locator("button", has_text=re.compile(r"^\s*Pause$")).first.click()
    resume = page.locator("button", has_text=re.compile(r"^\s*Resume$")).first
    expect(resume).to_be_visible()
    assert lab.processes("java")
    expect(state).to_have_text("❚❚ paused")
    seen, first = int(picture.get_attribute("data-batch") or 0), picture.screenshot()
    assert first != recorded

    page.locator(".braid-live .braid-controls button", has_text="◀").first.press("Enter")
    back = picture.get_by_role("button", name="Back to now")
    expect(back).to_be_visible()
    stayed = picture.get_attribute("data-batch")
    resume.press("Enter")
    expect(page.locator(".jp-Notebook-ExecutionIndicator").first).to_have_attribute(
        "data-status", "idle"
    )
    probe.locator(".cm-content").click()
    page.keyboard.press("Shift+Enter")
    expect(probe.locator(".jp-OutputArea-output")).to_have_text(
        re.compile("the panel is (running|completed)"), timeout=60_000
    )
    expect(page.locator(".braid-live .braid-note").first).to_contain_text(
        "completed", timeout=160_000
    )
    assert picture.get_attribute("data-batch") == stayed, "who looks at a batch stays there"
    picture.get_by_label("position").fill("8")
    expect(title).to_contain_text("batch 8 of 8")
    assert picture.screenshot() != first and int(stayed or 0) >= seen - 1
    expect(page.locator(".widget-label", has_text="ended").first).to_be_visible()
    fallback = page.locator(".braid-fallback .braid-cockpit").first
    expect(fallback).to_have_attribute("data-batch", "8", timeout=60_000)
    expect(fallback).not_to_be_visible()
    recording = notebook.cell(PLAIN).locator(".braid-fallback .braid-cockpit")
    batches = re.compile(r"batch (\d+) of \1$")
    reported = recording.locator(".braid-where").first
    expect(reported).to_have_text(batches, timeout=60_000)
    expect(recording).not_to_be_visible()
    page.evaluate("window.jupyterapp.commands.execute('docmanager:save')")
    expect(page.locator(".jp-mod-dirty")).to_have_count(0, timeout=60_000)
    lab.end_sessions()
    page.reload()
    expect(fallback).to_have_attribute("data-batch", "8", timeout=60_000)
    expect(fallback).to_be_visible()
    expect(page.locator(".braid-fallback .braid-where").first).to_contain_text("batch 8 of 8")
    recording.scroll_into_view_if_needed(timeout=60_000)
    expect(recording).to_be_visible()
    expect(reported).to_have_text(batches)
    notebook.ready()  # cells are drawn anew when it is
    # By a key: of a mouse that is pressed while cells above still grow, no click comes.
    recording.locator(".braid-controls button", has_text="◀").first.press("Enter")
    expect(reported).not_to_have_text(batches)
    expect(page.get_by_text("model not found").filter(visible=True)).to_have_count(0)
    assert [text for text in notebook.errors if "model not found" not in text] == []


WATCH = """() => {
  const began = performance.now();
  window.seen = { first: null, away: 0 };
  const look = () => {
    const root = document.querySelector(".braid-live .braid-cockpit[data-batch]");
    const frame = document.querySelector(".jp-Notebook")?.getBoundingClientRect();
    if (root && frame) {
      const { top } = root.getBoundingClientRect(), now = performance.now() - began;
      window.seen.first ??= now;
      const inside = top > frame.top - 40 && top < frame.top + 160;
      if (!inside && now > window.seen.first + 1000) window.seen.away += 1;
      const pixels = root.querySelector("canvas").toDataURL();
      window.seen.picture ??= pixels;
      if (pixels !== window.seen.picture) window.seen.moved ??= now;
    }
    requestAnimationFrame(look);
  };
  look();
}"""


@pytest.mark.parametrize("name", ["08_cockpit"])
def test_run_all_ends_with_the_first_picture_in_the_window_and_it_moves(
    lab: Any, opened: Callable[..., Any], name: str
) -> None:
    source: Any = nbformat.read(ROOT / "notebooks" / f"{name}.ipynb", 4)
    notebook = opened(lab.put(source, f"{name}.ipynb"), width=1400)
    page = notebook.page
    page.evaluate(WATCH)
    notebook.run_all()
    page.wait_for_function("() => window.ran")
    page.wait_for_function(
        "() => window.seen.moved && performance.now() > window.seen.moved + 2500"
    )
    seen = page.evaluate("window.seen")
    assert seen["away"] == 0, "the picture stays in the window"
    assert seen["moved"] - seen["first"] < 1000
    assert notebook.errors == []
