"""A recorded run as one page: it plays without a network and looks as expected."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from braid.core import event_jsonl
from braid_widgets.base import colors
from braid_widgets.cockpit.page import recorded_page, save_run_page
from playwright.sync_api import Browser, Page, expect

RECORDING = Path(__file__).parents[2] / "data" / "recordings" / "fluct.jsonl"
WIDTH = 1000
PAGE = recorded_page(event_jsonl.read_events(RECORDING))
BOXES = """(canvas, [colours, left, right]) => {
  const c = canvas.getContext("2d"), w = canvas.width, data = c.getImageData(0, 0, w, canvas.height).data, found = {};
  for (let y = 0; y < canvas.height; y++) for (let x = Math.round(left * w); x < right * w; x++) {
    const i = 4 * (y * w + x), hex = "#" + [0, 1, 2].map(k => data[i + k].toString(16).padStart(2, "0")).join("");
    const host = data[i + 3] === 255 ? colours.indexOf(hex) : -1;
    if (host < 0) continue;
    const b = found[host] ??= [y, y, x, x];
    b[0] = Math.min(b[0], y); b[1] = Math.max(b[1], y); b[2] = Math.min(b[2], x); b[3] = Math.max(b[3], x);
  }
  return found;
}"""
BLANK = """(canvas) => {
  const c = canvas.getContext("2d"), blank = (x) => c.getImageData(x, 0, 1, canvas.height).data.every(v => v === 0);
  return [blank(0), blank(canvas.width - 1)];
}"""


@pytest.fixture
def replay(browser: Browser, tmp_path: Path) -> Iterator[Page]:
    """The page of a recorded run, 1000 pixels wide, with all other requests blocked."""
    context = browser.new_context(viewport={"width": WIDTH, "height": 900}, reduced_motion="reduce")
    context.set_offline(True)
    page, wrong = context.new_page(), []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on(
        "request",
        lambda request: None if request.url.startswith("file:") else wrong.append(request.url),
    )
    page.goto(save_run_page(RECORDING, tmp_path / "replay.html").as_uri())
    yield page
    context.close()
    assert wrong == []


def at(page: Page, batch: int) -> None:
    """Go to a batch (from 1) with the slider."""
    page.locator("input[type=range]").fill(str(batch - 1))
    expect(page.locator(".braid")).to_have_attribute("data-batch", str(batch))


def test_it_plays_offline(replay: Page) -> None:
    cockpit, play = replay.locator(".braid"), replay.get_by_role("button", name="Play")
    last = len(PAGE["frames"])
    expect(cockpit).to_have_attribute("data-batch", str(last))
    expect(replay.locator(".braid-state")).to_have_text("recorded")
    pictures = {replay.locator(".braid-map canvas").screenshot()}
    for batch in (1, last // 2):
        at(replay, batch)
        expect(replay.locator(".braid-title")).to_contain_text(f"batch {batch} of {last} ")
        pictures.add(replay.locator(".braid-map canvas").screenshot())
    assert len(pictures) == 3
    at(replay, last - 1)
    play.click()
    expect(cockpit).to_have_attribute("data-batch", str(last))
    expect(play).to_be_visible()


def test_a_decision_is_told_where_it_was_taken_and_leads_there(replay: Page) -> None:
    flag = PAGE["annotations"][-1]
    here = replay.locator(".braid-why button.here")
    expect(here).to_have_text(flag["text"])
    at(replay, PAGE["annotations"][1]["batch"])
    expect(here).to_have_text(PAGE["annotations"][1]["text"])
    replay.locator(".braid-why button").last.click()
    expect(replay.locator(".braid")).to_have_attribute("data-batch", str(flag["batch"]))
    replay.keyboard.press("ArrowLeft")
    expect(replay.locator(".braid")).to_have_attribute("data-batch", str(flag["batch"] - 1))


def test_the_time_line_says_values_seeks_on_a_click_and_zooms_on_a_drag(replay: Page) -> None:
    canvas, cockpit = replay.locator(".braid-lines canvas"), replay.locator(".braid")
    box = canvas.bounding_box()
    assert box is not None
    left, right, y = box["x"] + 46, box["x"] + box["width"] - 48, box["y"] + 60
    place = left + (right - left) * (23 - 1) / 47
    replay.mouse.move(place, y)
    expect(replay.locator(".braid-lines .braid-tip")).to_contain_text("batch 23\nILF / ILF*: 1")
    replay.mouse.move(place, box["y"] + 8)
    expect(replay.locator(".braid-lines .braid-tip")).to_have_text(PAGE["annotations"][-1]["text"])
    replay.mouse.click(place, y)
    expect(cockpit).to_have_attribute("data-batch", "23")
    replay.mouse.move(left, y)
    replay.mouse.down()
    replay.mouse.move(place, y, steps=4)
    replay.mouse.up()
    whole = replay.get_by_role("button", name="All batches (now 1 to 23)")
    expect(whole).to_be_visible()
    replay.mouse.click(right, y)
    expect(cockpit).to_have_attribute("data-batch", "23")
    whole.click()
    replay.mouse.click(right, y)
    expect(cockpit).to_have_attribute("data-batch", "48")


@pytest.mark.parametrize("batch", [1, 48])
def test_the_matrix_is_to_scale_with_row_0_on_top_and_nothing_is_cut_off(
    replay: Page, batch: int
) -> None:
    at(replay, batch)
    shown = PAGE["frames"][batch - 1]["state_map"]["grid"]
    groups = shown["hosts"]["groups"][0]
    cells = list(zip(*(groups["cells"][name] for name in ("host", "row", "column")), strict=True))
    canvas = replay.locator(".braid-map canvas")
    found = canvas.evaluate(BOXES, [[colors.host_color(h) for h, _, _ in sorted(cells)], 0, 0.5])
    boxes = {int(host): box for host, box in found.items()}
    top, bottom, left, right = (
        pick(box[k] for box in boxes.values()) for k, pick in enumerate((min, max, min, max))
    )
    tall, wide = bottom - top + 2, right - left + 2  # cells have a pale rim
    rows, columns = shown["matrix"]["rows"]
    most = max(max(f["state_map"]["grid"]["matrix"]["rows"]) for f in PAGE["frames"])
    full = max(wide / (columns / most), tall / (rows / most)) if batch == 48 else None
    if batch == 48:  # before, a side is shorter than what can be seen
        assert tall / wide == pytest.approx(rows / columns, rel=0.06)
        assert full is not None and tall == pytest.approx(full * rows / most, rel=0.06)
    n, m = groups["n"], groups["m"]
    seen = [cell for cell in cells if cell[0] in boxes]
    assert len(seen) > len(cells) * 0.9 if batch == 48 else seen
    for host, row, column in seen:
        y0, y1, x0, x1 = boxes[host]
        assert (y0 + y1) / 2 == pytest.approx(top + (row + 0.5) * tall / n, abs=4), host
        assert (x0 + x1) / 2 == pytest.approx(left + (column + 0.5) * wide / m, abs=4), host
    assert canvas.evaluate(BLANK) == [True, True]
    assert replay.evaluate("document.documentElement.scrollWidth") <= WIDTH
