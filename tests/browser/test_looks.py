"""No text of the cockpit is cut or overlaps another, in the page and on its canvases, at three widths
and in both themes. No row of a stepper covers another, or the name of a node.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any, Literal

import pytest
from braid import Aligned, Centralized, Coordinated, HotKeys, HyperCube, Ring
from braid.simulation.simulator import simulate
from braid_lab.hotkeys.experiments import SkewSetting, run_skewed_join
from braid_lab.hypercube.experiments import ChainSetting, run_chain_join
from braid_lab.reuse import airport_day
from braid_lab.shedding import runs as shedding_runs
from braid_widgets.base.stepper import Stepper
from braid_widgets.cockpit.page import save_run_page
from playwright.sync_api import Browser
from step_examples import EXAMPLES

CONDITIONS = [f"r.k = {alias}.k AND abs(r.x - {alias}.x) <= 3" for alias in "stuv"]
RECORDINGS = Path(__file__).parents[2] / "data" / "recordings"
FAULTS = """() => {
  const root = document.querySelector(".braid-cockpit"), found = [], texts = [];
  const frame = root.getBoundingClientRect();
  if (root.querySelector(".braid-note").offsetHeight > 40) found.push("tall header");
  const seen = (node) => {
    // What is scrolled out of sight is not cut.
    let box = node;
    for (let e = node.el; e && e !== root.parentElement; e = e.parentElement) {
      const style = getComputedStyle(e), r = e.getBoundingClientRect();
      if (style.visibility === "hidden" || style.display === "none") return undefined;
      if (style.webkitLineClamp !== "none" && box.top >= r.bottom - 2) return undefined;
      const scrolls = /auto|scroll/.test(style.overflowY + style.overflowX);
      if (scrolls && e.scrollHeight > e.clientHeight + 1 && (box.top >= r.bottom - 2 || box.bottom <= r.top + 2)) return undefined;
      if (/hidden|clip/.test(style.overflow) && e !== root && (box.right > r.right + 1 || box.bottom > r.bottom + 1))
        found.push(`cut: ${box.text}`);
      if (scrolls && e.scrollHeight > e.clientHeight + 1) box = {...box, top: Math.max(box.top, r.top), bottom: Math.min(box.bottom, r.bottom)};
    }
    return box;
  };
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode, text = node.textContent.trim();
    if (!text || !node.parentElement.checkVisibility() || node.parentElement.closest("option, .braid-heard")) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    for (const r of range.getClientRects()) {
      const box = seen({ el: node.parentElement, text, left: r.left, right: r.right, top: r.top, bottom: r.bottom });
      if (!box) continue;
      if (box.left < frame.left - 1 || box.right > frame.right + 1 || box.bottom > frame.bottom + 1) found.push(`outside: ${text}`);
      texts.push({ ...box, top: box.top + 3, bottom: box.bottom - 3 });
    }
  }
  for (const canvas of root.querySelectorAll("canvas")) {
    const at = canvas.getBoundingClientRect();
    if (!at.width) continue;
    for (const { x, y, wide, tall, text } of canvas.texts ?? []) {
      if (x < -1 || y < -2 || x + wide > at.width + 1 || y + tall > at.height + 2) found.push(`cut on a canvas: ${text}`);
      texts.push({ text, left: at.left + x, right: at.left + x + wide, top: at.top + y + 1, bottom: at.top + y + tall - 1 });
    }
  }
  texts.forEach((a, k) => {
    for (const b of texts.slice(k + 1)) {
      // A line that ends in an ellipsis has a second box without it.
      if (a.el && a.el === b.el && a.left === b.left && a.top === b.top) continue;
      const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
      const tall = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
      if (wide > 1.5 && tall > 1) found.push(`overlap: ${a.text} | ${b.text}`);
    }
  });
  const open = root.classList.contains("braid-open");
  root.classList.add("braid-open");
  for (const e of root.querySelectorAll(".braid-side, .braid-drawer")) {
    e.style.borderRight = "15px solid"; // as wide as the scroll bar of a desktop, hidden here
    if (e.scrollWidth > e.clientWidth) found.push(`scrolls sideways: ${e.className}`);
    e.style.borderRight = "";
  }
  root.classList.toggle("braid-open", open);
  return [found, texts.length, document.documentElement.scrollWidth, document.documentElement.scrollHeight];
}"""


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return the address of a page with each map."""
    routing = dict(windows=(5.0,) * 3, selectivity=0.1)
    sets = shedding_runs.sets_from_controls(rate=40.0, seconds=14.0)
    skewed = SkewSetting(1.2, True, 4000, 14, 6)
    runs: dict[str, Any] = {
        name: RECORDINGS / f"{name}.jsonl" for name in ("fluct", "eq5-SHJ-z1", "shared_ring")
    }
    runs |= {
        "ring": simulate(Ring(9, resize=((6, 12),)), [(9, 5, 7)] * 12, **routing),
        "routes": simulate(Coordinated(12), [(9, 5, 7)] * 12, **routing),
        "segments": simulate(Aligned(6), [(9, 5, 7)] * 12, **routing),
        "left": simulate(Centralized(), [(9, 5)] * 12, windows=(5.0,) * 2, how="left"),
        "shed": shedding_runs.simulate_shedding(sets, shedding_runs.make_shedder(fraction=0.25)),
        "values": run_skewed_join(HotKeys(6), skewed),
        "cube": run_chain_join(HyperCube(8), ChainSetting((80, 9, 9), (9, 9, 80), 12, 8, 200)),
    }
    start, *later = runs["ring"]
    runs["ring"] = [replace(start, condition=" AND ".join(CONDITIONS)), *later]
    folder = tmp_path_factory.mktemp("pages")
    runs["hub"] = airport_day.play_day(folder / "day", 20, 8).hub_events
    return {n: save_run_page(run, folder / f"{n}.html").as_uri() for n, run in runs.items()}


PAINTED = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
WIDTHS = (1400, 900, 420)
State = tuple[str, Literal["dark", "light"]]
STATES: dict[bool, tuple[State, State]] = {
    True: (("Escape", "dark"), ("Enter", "light")),
    False: (("Escape", "dark"), ("Escape", "light")),
}
"""The keys and themes of a wide and of a narrow page, whose inspector covers the map."""


def test_no_text_is_cut_or_overlaps_another(browser: Browser, pages: dict[str, str]) -> None:
    context = browser.new_context(reduced_motion="reduce")
    page = context.new_page()
    faults: dict[Any, Any] = {}
    for name, address in pages.items():
        page.goto(address)
        last = int(page.get_by_label("position").get_attribute("max") or 0)
        batches = sorted({1, last // 2 + 2, last} if last > 14 else {last // 2 + 2})
        for width, batch in product(WIDTHS, batches):
            page.set_viewport_size({"width": width, "height": 900})
            page.get_by_label("position").fill(str(batch))
            for key, scheme in STATES[width > 420]:
                page.emulate_media(color_scheme=scheme)
                page.locator(".braid-map").press(key)
                page.evaluate(PAINTED)
                found, texts, wide, tall = page.evaluate(FAULTS)
                if found or texts <= 30 or (wide, tall) != (width, 900):
                    faults[name, width, batch, key, scheme] = found or (texts, wide, tall)
    assert faults == {}
    page.set_viewport_size({"width": 1400, "height": 900})
    page.add_style_tag(content=".braid-why { height: 9px; overflow: hidden }")
    assert any("cut: " in fault for fault in page.evaluate(FAULTS)[0]), "what is cut is seen"
    page.add_style_tag(content=".braid-why { margin-left: -120px !important; overflow: visible }")
    assert any("overlap: " in fault for fault in page.evaluate(FAULTS)[0])
    context.close()


COVERED = """() => {
  const slider = document.querySelector("input[type=range]"), found = [];
  const wide = document.documentElement.clientWidth;
  for (let k = 0; k <= slider.max; k += 1) {
    slider.value = k;
    slider.dispatchEvent(new Event("input", { bubbles: true }));
    for (const { firstChild: name } of document.querySelectorAll(".braid-cell h4")) {
      const range = document.createRange();
      let at = 0;
      for (const word of name.data.split(/[ \u200b]/)) {
        range.setStart(name, at);
        range.setEnd(name, (at += word.length));
        if (range.getClientRects().length > 1) found.push(`broken in step ${k + 1}: ${word}`);
        at += 1;
      }
    }
    const marks = [...document.querySelectorAll(".braid-chip, .braid-cell h4, .braid-old i, header > *")]
      .map((node) => [node.textContent, node.getBoundingClientRect()]);
    marks.forEach(([text, a], at) => {
      // Where words find no room, the stage scrolls.
      if (wide > 380 && (a.left < 0 || a.right > wide)) found.push(`outside in step ${k + 1}: ${text}`);
      for (const [other, b] of marks.slice(at + 1))
        if (Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1 && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 1)
          found.push(`covered in step ${k + 1}: ${text} | ${other}`);
    });
  }
  return found;
}"""


def test_no_row_of_a_stepper_covers_another_or_a_name(browser: Browser, tmp_path: Path) -> None:
    context = browser.new_context(reduced_motion="reduce")
    page = context.new_page()
    faults: dict[Any, Any] = {}
    for name, example in EXAMPLES.items():
        file = tmp_path / f"{name}.html"
        file.write_text(f"<meta charset=utf-8>{Stepper(example).to_html()}", "utf-8")
        page.goto(file.as_uri())
        page.wait_for_selector("[data-seq]")
        for width in (1400, 420, 360):
            page.set_viewport_size({"width": width, "height": 900})
            if found := page.evaluate(COVERED):
                faults[name, width] = found
    assert faults == {}
    page.add_style_tag(content=".braid-row { margin-top: -24px }")
    assert any("covered" in fault for fault in page.evaluate(COVERED))
    page.add_style_tag(content=".braid-cell h4 { width: 9px; overflow-wrap: anywhere }")
    assert any("broken" in fault for fault in page.evaluate(COVERED))
    context.close()


TEXTS = """() => Object.fromEntries([...document.querySelectorAll("canvas")].flatMap(
  (canvas) => (canvas.texts ?? []).map((each) => [each.text, each])))"""
SIDE = """() => {
  const canvas = document.querySelector(".braid-map canvas"), dot = canvas.getContext("2d");
  const [wide, tall] = [canvas.width, canvas.height], outer = Math.min(wide - 92, tall - 40) / 2;
  return Array.from({length: 20}, (_, k) => {
    const radius = outer * (0.48 + 0.5 * k / 19), angle = -Math.PI / 2 + 0.02;
    const at = [wide / 2 + radius * Math.cos(angle), tall / 2 + radius * Math.sin(angle)];
    return [...dot.getImageData(...at.map(Math.round), 1, 1).data].join();
  });
}"""
"""The colors along the first side of the first node of a ring."""


def test_texts_stand_at_what_they_name(browser: Browser, pages: dict[str, str]) -> None:
    context = browser.new_context(
        reduced_motion="reduce", viewport={"width": 1400, "height": 900}, device_scale_factor=1
    )
    page = context.new_page()

    def read_texts(name: str, batch: int) -> dict[str, Any]:
        page.goto(pages[name])
        page.get_by_label("position").fill(str(batch))
        page.evaluate(PAINTED)
        note = page.locator(".braid-note").get_attribute("title")
        assert note and page.locator(".braid-state").get_attribute("title") == note
        texts: dict[str, Any] = page.evaluate(TEXTS)
        return texts

    grids = [read_texts("fluct", batch) for batch in (23, 24)]
    stayed = [next(t for t in grid if t.startswith("had the grid stayed")) for grid in grids]
    assert all(grid["part 1"]["x"] < grid["16 of l"]["x"] for grid in grids)
    assert grids[1][stayed[1]]["y"] < grids[0][stayed[0]]["y"], "it rises with its line"
    ages = read_texts("shared_ring", 11)
    assert ages["153"]["tall"] > ages["153"]["wide"], "a thin slice has its number upright"
    ends = [ages[f"{n} results"]["x"] for n in (102, 302, 285, 476)]
    assert ends == sorted(set(ends)), "results stand at the end of the bar of their query"
    shed = read_texts("shed", 9)
    assert {text.split("% ")[1] for text in shed if "% " in text} >= {"found", "expected"}
    for name in ("hub", "ring"):
        read_texts(name, 8)
        assert page.locator(".braid-side h2").inner_text() == "All nodes"
        assert "rows held by node" in page.locator(".braid-labels").inner_text()
    before = page.evaluate(SIDE)
    page.locator(".braid-map").press("Enter")
    page.evaluate(PAINTED)
    assert all(a != b for a, b in zip(before, page.evaluate(SIDE), strict=True)), "all of the side"
    buttons = page.locator(".braid-controls").get_by_role("button")
    page.locator(".braid-map").press("p")
    assert buttons.count() == 3, "to play, and two to step"
    page.locator(".braid-map").press("Escape")
    assert buttons.count() > 3
    context.close()
