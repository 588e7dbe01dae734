"""Pictures with clickable parts, on pages without a kernel and drawn by a kernel.

They are a chain and a drawing of Python's.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from braid_lab.launches import recorded_runs
from braid_widgets.base.player import Player, read_bundle
from braid_widgets.slices.chain import ChainPlayer
from playwright.sync_api import Browser, Page, expect


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
    page, folder = empty, tmp_path
    film, told = empty.locator(".braid[data-seq]"), empty.locator(".braid-inspect")
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
