"""Pictures with clickable parts, on pages without a kernel and drawn by a kernel.

They are a shared ring and a chain.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from braid_lab.launches import recorded_runs
from braid_widgets.base.player import Player, read_bundle
from braid_widgets.slices.chain import ChainPlayer
from braid_widgets.slices.shared_ring import SharedRingPlayer
from playwright.sync_api import Browser, Locator, Page, expect


@pytest.fixture
def empty(browser: Browser) -> Iterator[Page]:
    """Yield a narrow page and check at the end that it has no errors."""
    page, wrong = browser.new_page(viewport={"width": 420, "height": 700}), []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    yield page
    page.close()
    assert wrong == []


def open_film(page: Page, file: Path, film: Player) -> None:
    head = '<!doctype html><html lang="en"><meta charset="utf-8">'
    file.write_text(head + film.to_html(), "utf-8")
    page.goto(file.as_uri())


def test_pictures_tell_on_a_click_what_a_slice_held_then(empty: Page, tmp_path: Path) -> None:
    film, told = empty.locator(".braid[data-seq]"), empty.locator(".braid-inspect")
    ring_and_chain(empty, tmp_path, film, told)


def ring_and_chain(page: Page, folder: Path, film: Locator, told: Locator) -> None:
    """Return players of a ring and a chain, which also describe slices, by moment."""
    open_film(
        page,
        folder / "ring.html",
        ring := SharedRingPlayer(recorded_runs.recorded_events("shared_ring")),
    )
    expect(told).to_be_hidden()
    last = len(ring.frames)
    film.locator("[data-query='0:wind']").click()
    expect(told).to_contain_text(f"query wind after batch {last}\n  windows: a 4 h, d 2 h, w 3 h")
    page.keyboard.press("ArrowLeft")
    pieces = ring.frames[-2]["pieces"]
    first = f"ages {pieces['ages'][0]}: {pieces['rows'][0]:,} tuples"
    expect(told).to_contain_text(f"query wind after batch {last - 1}\n")
    expect(told).to_contain_text(f"\n  host {pieces['host'][0]}, {first}")
    slices = film.locator("[data-tells]")
    stop_of_tab(page, slices, film.locator("[data-query='0:wind']"))
    expect(slices.first).to_be_focused()
    page.keyboard.press("Enter")
    expect(told).to_contain_text(f"slice of a on host {pieces['host'][0]} after batch {last - 1}")
    expect(told).to_contain_text(f"{pieces['rows'][0]:,} tuples held, of ")
    expect(told).to_contain_text(f"serves {', '.join(pieces['queries'][0])}")
    slices.nth(1).focus()
    film.get_by_label("back").click()
    expect(slices.nth(1)).to_have_attribute("tabindex", "0")  # the stop stays as the film goes on

    open_film(
        page,
        folder / "chain.html",
        chain := ChainPlayer(recorded_runs.recorded_events("slices"), pick=True),
    )
    expect(film.locator("[data-split], [data-merge]")).to_have_count(0)
    stream = chain.frames[-1]["streams"][0]
    film.locator("[data-tells='0:1'] rect.edge").click()
    expect(told).to_contain_text(f"slice 2 of {stream['name']} after batch {len(chain.frames)}")
    expect(told).to_contain_text(f"{stream['slices'][1]['rows']:,} tuples held, of ")
    page.keyboard.press("ArrowLeft")
    expect(told).to_contain_text(f"after batch {len(chain.frames) - 1}")
    query = stream["queries"][0]["name"]
    film.locator(f"[data-query='0:{query}'] rect").click()
    expect(told).to_contain_text(f"query {query} after batch {len(chain.frames) - 1}")
    expect(told).to_contain_text(
        f"served by 1 of {len(stream['slices'])} slices\n  slice 1, ages 0"
    )


def stop_of_tab(page: Page, parts: Locator, after: Locator) -> None:
    """Check that the parts are one Tab stop before ``after``, and that other keys move between
    them.
    """
    stops = parts.and_(page.locator("[tabindex='0']"))
    expect(stops).to_have_count(1)
    stops.focus()
    page.keyboard.press("End")
    expect(parts.last).to_be_focused()
    page.keyboard.press("ArrowUp")
    before = parts.nth(parts.count() - 2)
    page.keyboard.press("Tab")
    expect(after).to_be_focused()
    page.keyboard.press("Shift+Tab")
    expect(before).to_be_focused()
    for _ in range(2):
        page.keyboard.press("ArrowDown")
    expect(stops).to_have_count(1)


MODEL = """async (source) => {
  const values = { value: "", names: [] }, heard = {};
  window.sent = [];
  window.model = {
    get: (name) => values[name],
    set: (name, value) => { values[name] = value; heard[`change:${name}`]?.(); },
    send: (content) => window.sent.push(content),
    on: (event, call) => { heard[event] = call; },
    off: () => {},
  };
  const url = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
  const { default: widget } = await import(url);
  widget.render({ model: window.model, el: document.body });
}"""
"""Makes a widget draw into the page, with a kernel that only listens."""
PICTURE = "<svg><text y='20' x='9'>late</text><text y='50' x='9'>N1</text><text y='80' x='9'>{}</text></svg>"


def test_names_of_a_picture_are_pressed_with_the_pointer_and_with_keys(empty: Page) -> None:
    empty.goto("about:blank")
    empty.evaluate(MODEL, read_bundle("picture"))
    show = "([name, value]) => window.model.set(name, value)"
    empty.evaluate(show, ["names", ["late", "gates"]])
    empty.evaluate(show, ["value", PICTURE.format("gates")])
    late, gates = (empty.get_by_role("button", name=name) for name in ("late", "gates"))
    expect(empty.get_by_role("button")).to_have_count(2)
    late.click()
    gates.press("Space")
    empty.evaluate(show, ["value", PICTURE.format("gates").replace("'9'", "'30'")])
    expect(gates).to_be_focused()
    empty.keyboard.press("Enter")
    empty.get_by_text("N1").click()
    assert empty.evaluate("window.sent.map(({ clicked }) => clicked)") == ["late", "gates", "gates"]
