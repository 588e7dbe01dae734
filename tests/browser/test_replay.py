"""A recorded run as one page: it plays without a network, and looks as it should."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from braid_widgets.base import colours
from braid_widgets.base.recording import Recording
from braid_widgets.theta import stage
from playwright.sync_api import Browser, Page, expect

RECORDING = Path(__file__).parents[2] / "data" / "recordings" / "fluct.jsonl"
WIDTH = 1000
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
    """The page of a recorded run, 1000 pixels wide, where every request but that for the page
    itself fails.
    """
    context = browser.new_context(viewport={"width": WIDTH, "height": 900}, reduced_motion="reduce")
    context.set_offline(True)
    page, wrong = context.new_page(), []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on(
        "request",
        lambda request: None if request.url.startswith("file:") else wrong.append(request.url),
    )
    page.goto(stage.save(RECORDING, tmp_path / "replay.html").as_uri())
    yield page
    context.close()
    assert wrong == []


def test_it_plays_offline(replay: Page) -> None:
    recording, picture, slider = (
        Recording(RECORDING),
        replay.locator(".braid"),
        replay.locator("input[type=range]"),
    )
    last = len(recording) - 1
    expect(picture).to_have_attribute("data-seq", str(last))
    hashes = {picture.get_attribute("data-hash")}
    for position in (0, last // 2):
        slider.fill(str(position))
        expect(picture).to_have_attribute("data-seq", str(position))
        hashes.add(picture.get_attribute("data-hash"))
    assert len(hashes) == 3
    slider.fill(str(last - 1))
    replay.get_by_role("button", name="Play").click()
    expect(picture).to_have_attribute("data-seq", str(last))
    expect(replay.get_by_role("button", name="Play")).to_be_visible()


def test_the_matrix_is_square_with_row_0_on_top_and_nothing_is_cut_off(replay: Page) -> None:
    replay.locator("input[type=range]").fill("0")
    expect(replay.locator(".braid")).to_have_attribute("data-seq", "0")
    grid = Recording(RECORDING).at(0).grids[0]
    canvas = replay.locator("canvas")
    found = canvas.evaluate(BOXES, [[colours.host(h) for h in grid.cells], 0, 0.5])
    boxes = {int(host): box for host, box in found.items()}
    assert boxes.keys() == grid.cells.keys()
    top, bottom, left, right = (
        pick(box[k] for box in boxes.values()) for k, pick in enumerate((min, max, min, max))
    )
    size = bottom - top
    assert size > 350 and abs(right - left - size) <= 2
    n, m = grid.mapping
    for host, (row, column) in grid.cells.items():
        y0, y1, x0, x1 = boxes[host]
        wanted = (
            top + row * size / n,
            top + (row + 1) * size / n,
            left + column * size / m,
            left + (column + 1) * size / m,
        )
        assert (y0, y1, x0, x1) == pytest.approx(wanted, abs=4), host
    assert canvas.evaluate(BLANK) == [True, True]
    assert replay.evaluate("document.documentElement.scrollWidth") <= WIDTH
