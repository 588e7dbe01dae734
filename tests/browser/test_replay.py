"""A recorded run as one page: it plays without a network and looks as expected."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from braid.core import event_jsonl
from braid.core.run_events import BatchCommitted
from braid_widgets.cockpit.page import recorded_page, save_run_page
from playwright.sync_api import Browser, Page, expect

RECORDING = Path(__file__).parents[2] / "data" / "recordings" / "fluct.jsonl"
WIDTH = 1000
EVENTS = event_jsonl.read_events(RECORDING)
PAGE = recorded_page(EVENTS)
LATEST = len(PAGE["frames"]) - 2
"""The last batch with late tuples, where there are some, from 1."""
LABELLED = [flag for flag in PAGE["annotations"] if flag["short"]]


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
    """Go to a batch (from 1) with the time line."""
    page.get_by_label("position").fill(str(batch))
    expect(page.locator(".braid")).to_have_attribute("data-batch", str(batch))


def test_it_plays_offline(replay: Page) -> None:
    cockpit, play = replay.locator(".braid"), replay.get_by_role("button", name="Play")
    last = len(PAGE["frames"])
    largest = max(PAGE["annotations"], key=lambda flag: flag["rows"])
    expect(cockpit).to_have_attribute("data-batch", str(largest["batch"]))
    expect(replay.locator(".braid-state")).to_have_text("recorded")
    pictures = {replay.locator(".braid-map canvas").first.screenshot()}
    for batch in (1, last):
        at(replay, batch)
        expect(replay.locator(".braid-where")).to_have_text(f"batch {batch} of {last}")
        pictures.add(replay.locator(".braid-map canvas").first.screenshot())
    assert len(pictures) == 3
    at(replay, last - 1)
    play.click()
    expect(cockpit).to_have_attribute("data-batch", str(last))
    expect(play).to_be_visible()


def test_a_decision_is_said_whole_where_it_was_taken_and_leads_there(replay: Page) -> None:
    flag, reason = LABELLED[-1], replay.locator(".braid-why")
    at(replay, flag["batch"] + 2)
    expect(reason).to_contain_text(flag["text"].split(": ", 1)[1][1:])
    labels = "(canvas) => canvas.texts.map(({ text }) => text)"
    drawn = replay.locator(".braid-lines canvas").evaluate(labels)
    assert flag["short"] in drawn, "the label at the playhead is always there"
    assert reason.evaluate(
        "e => [e.scrollWidth <= e.clientWidth, e.scrollHeight <= e.clientHeight]"
    ) == [
        True,
        True,
    ]
    at(replay, 1)
    replay.locator(".braid").press("l")
    replay.locator(".braid-decisions button", has_text=flag["text"]).click()
    expect(replay.locator(".braid")).to_have_attribute("data-batch", str(flag["batch"]))
    expect(replay.locator(".braid-decisions button.here")).to_have_text(flag["text"])
    replay.keyboard.press("ArrowLeft")
    expect(replay.locator(".braid")).to_have_attribute("data-batch", str(flag["batch"] - 1))


def test_what_is_wrong_is_listed_in_the_drawer_and_leads_to_its_batch(
    browser: Browser, tmp_path: Path
) -> None:
    late = [replace(e, late_tuples=(0, e.batch * 9)) if is_late(e) else e for e in EVENTS]
    page = browser.new_page(reduced_motion="reduce")
    page.goto(save_run_page(late, tmp_path / "late.html").as_uri())
    at(page, 1)
    page.locator(".braid").press("l")
    symptom = page.locator(".braid-doctor button")
    expect(symptom).to_contain_text("came later than its lateness allows")
    symptom.click()
    expect(page.locator(".braid")).to_have_attribute("data-batch", str(LATEST))
    page.close()


def is_late(event: Any) -> bool:
    return isinstance(event, BatchCommitted) and event.batch < LATEST


def test_a_click_on_the_time_line_goes_to_the_batch_of_its_column(replay: Page) -> None:
    cockpit, box = replay.locator(".braid"), replay.locator(".braid-lines canvas").bounding_box()
    assert box is not None
    for batch in (23, 2, 47):
        x = box["x"] + box["width"] * (batch - 0.5) / 48
        replay.mouse.click(x, box["y"] + 60)
        expect(cockpit).to_have_attribute("data-batch", str(batch))


def test_a_host_is_selected_and_read_by_keys_alone(replay: Page) -> None:
    at(replay, 26)
    replay.locator(".braid").focus()
    keys = ["Home", "f", "f", "F", "End"]
    for key in keys:
        replay.keyboard.press(key)
    expect(replay.locator(".braid")).to_have_attribute("data-batch", "48")
    replay.locator(".braid-map").focus()
    for key in ("Enter", "ArrowRight", "ArrowRight", "ArrowLeft"):
        replay.keyboard.press(key)
    grid = PAGE["frames"][-1]["state_map"]["grid"]
    host = grid["places"]["host"][1]
    expect(replay.locator(".braid-side h2")).to_have_text(f"Host {host}")
    held = replay.locator(".braid-pairs dd").first
    expect(held).to_have_text(f"{grid['stored'][host]:,}")
    label = replay.locator(".braid-map").get_attribute("aria-label") or ""
    assert f"ost {host}" in label, "said to who hears it"
    title = replay.locator(".braid-caption b").first.inner_text()
    expect(replay.get_by_role("img", name=title)).to_be_visible()
    rows = replay.get_by_role("table", name="parts of the picture, batch 48").get_by_role("row")
    assert {*rows.all_inner_texts()} == {
        f"Host {k}: {held:,} rows" for k, held in enumerate(grid["stored"])
    }


def test_all_is_reached_in_a_dozen_keys(replay: Page) -> None:
    keys = ["Tab", " ", " ", "f", "Tab", "Enter", "c", "ArrowDown"]
    for key in keys:
        replay.keyboard.press(key)
    expect(replay.locator(".braid-side h2")).to_contain_text("Host")
    drawer = replay.locator(".braid-drawer")
    expect(drawer.get_by_label("what the rows of colour show")).to_have_value("rows received")
    expect(replay.locator(".braid-labels")).to_contain_text("rows received by host")
    replay.keyboard.press("Escape")
    expect(drawer).to_be_hidden()
    replay.keyboard.press("?")
    expect(drawer).to_contain_text("next decision, and the one before")
    assert len(keys) <= 12


def test_a_link_leads_to_a_moment(replay: Page) -> None:
    replay.evaluate("location.hash = '#b=26&s=host:21&d=1'")
    replay.reload()
    expect(replay.locator(".braid")).to_have_attribute("data-batch", "26")
    expect(replay.locator(".braid-side h2")).to_have_text("Host 21")
    expect(replay.locator(".braid-drawer")).to_be_visible()
    replay.locator(".braid").press("End")
    replay.get_by_role("button", name="Link to this moment").click()
    expect(replay).to_have_url(re.compile(r"#b=48&s=host:21&d=1$"))
    replay.evaluate("location.hash = '#b=999&s=host:64'")
    replay.reload()
    expect(replay.locator(".braid")).to_have_attribute("data-batch", "48")
    expect(replay.locator(".braid-side h2")).to_have_text("All hosts")


def test_the_matrix_is_to_scale_and_its_cells_have_the_hosts_of_the_grid(replay: Page) -> None:
    at(replay, 48)
    grid = PAGE["frames"][-1]["state_map"]["grid"]
    l_rows, o_rows = grid["rows"]
    box = replay.locator(".braid-map canvas").first.bounding_box()
    assert box is not None
    boxes: dict[int, tuple[float, float]] = {}
    scale = replay.locator(".braid-caption span").first.inner_text()
    rows_per_pixel = float(scale.split(" = ")[1].split(" ")[0].replace(",", "")) / 100
    wide, tall = l_rows / rows_per_pixel, o_rows / rows_per_pixel
    left, top = box["x"] + 34 + (box["width"] - 42 - wide) / 2, box["y"] + 30
    for host, row, column in zip(
        *(grid["places"][k] for k in ("host", "row", "column")), strict=True
    ):
        boxes[host] = (
            left + (row + 0.5) * wide / grid["n"],
            top + (column + 0.5) * tall / grid["m"],
        )
    for host in (0, 21, 42, 63):
        replay.mouse.click(*boxes[host])
        expect(replay.locator(".braid-side h2")).to_have_text(f"Host {host}")
    assert replay.evaluate("document.documentElement.scrollWidth") <= WIDTH
