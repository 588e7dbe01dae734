"""The cockpit of an active run whose kernel only listens."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace

import pytest
from braid.core.query import Query
from braid.core.run_events import BatchCommitted
from braid.core.touch_events import HostLost
from braid.run_touches import list_touches
from braid.simulation.simulator import simulate
from braid_lab.launches import recorded_runs
from braid_widgets.base.player import read_bundle
from braid_widgets.cockpit.linked_views import LinkedViews
from braid_widgets.cockpit.view import Cockpit
from playwright.sync_api import Browser, Page, expect
from scatter import Scatter


@pytest.fixture
def empty(browser: Browser) -> Iterator[Page]:
    """Yield a narrow page and check at the end that it has no errors."""
    page, wrong = browser.new_page(viewport={"width": 420, "height": 700}), []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    yield page
    page.close()
    assert wrong == []


MODEL = """async ([source, values]) => {
  const heard = window.heard = {};
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


def test_a_host_of_an_active_run_is_lost_with_the_keys_and_outlined_in_the_map(empty: Page) -> None:
    recorded = recorded_runs.recorded_events("eq5-Dynamic-z1")
    commits = [k for k, event in enumerate(recorded) if isinstance(event, BatchCommitted)]
    *before, last = recorded[: commits[-1] + 1]
    events = [*before, HostLost(last.batch, 0, 4, 40, 800, {1: 30}, 10), last]
    made = Cockpit(events)
    run = SimpleNamespace(lose=None, adjustable_settings={"epsilon": 1.0, "interval": 0.5})
    page = {**made.page, "state": "live", "touches": list_touches(run, last)}
    page["what_if_placements"] = ["StaticGrid"]
    empty.set_viewport_size({"width": 1400, "height": 860})
    empty.set_content(f"<style>{Cockpit._css}</style>")
    empty.evaluate(MODEL, [read_bundle("cockpit"), {"page": page}])
    expect(empty.locator(".braid-why")).to_contain_text("host 0 loses its 40 rows")
    assert empty.evaluate(COUNT_RED) > 50
    empty.locator(".braid-map").press("Enter")
    side, drawer = empty.locator(".braid-side"), empty.locator(".braid-drawer")
    held = last.host_metrics[0].stored_tuples
    expect(side).to_contain_text(f"its {held:,} rows are copied from other hosts, or read")
    side.get_by_role("button", name="Lose this host").press("Enter")
    empty.locator(".braid-cockpit").press("c")
    for label, bad, good in (
        ("Set growth before a new grid", "1.5", "0.25"),
        ("Set seconds between batches", "-1", "2"),
    ):
        field, apply = drawer.get_by_label(label).first, drawer.get_by_role("button", name=label)
        field.fill(bad)
        expect(apply).to_be_disabled()
        field.fill(good)
        field.press("Enter")
    expect(drawer).to_contain_text("Select in the picture a host (Lose this host)")
    empty.set_viewport_size({"width": 900, "height": 860})
    places = [e.bounding_box() or {} for e in (empty.locator(".braid-map"), drawer, side)]
    assert places[0]["x"] + places[0]["width"] <= places[1]["x"] == places[2]["x"]
    assert places[1]["y"] + places[1]["height"] <= places[2]["y"]
    sent = empty.evaluate("window.sent.map(({ touch }) => touch).filter(Boolean)")
    assert [(touch["name"], touch["selected"], touch["value"]) for touch in sent] == [
        ("lose", "host:0", ""),
        ("epsilon", "", "0.25"),
        ("interval", "", "2"),
    ]
    drawer.get_by_label("hosts of the what-if").press("Enter")
    (asked,) = empty.evaluate("window.sent.map(({ what_if }) => what_if).filter(Boolean)")
    assert (asked["placement"], asked["hosts"]) == ("StaticGrid", len(last.host_metrics))


def test_a_host_is_selected_and_lost_where_blocks_are_drawn(empty: Page) -> None:
    *before, last, _ = simulate(Scatter(3), [(3, 2, 4)] * 2, streams=("a", "b", "c"))
    made = Cockpit([*before, HostLost(last.batch, 1, 4, 40, 800, {0: 30}, 10), last])
    touches = list_touches(SimpleNamespace(lose=None, adjustable_settings={}), last)
    values = {"page": {**made.page, "state": "live", "touches": touches}}
    empty.set_content(f"<style>{Cockpit._css}</style>")
    empty.evaluate(MODEL, [read_bundle("cockpit"), values])
    assert empty.evaluate(COUNT_RED) > 50
    named = (
        "[...document.querySelector('.braid-map canvas').texts].find((t) => t.text === 'host 1')"
    )
    place = empty.evaluate(f"(({{ x, y }}) => ({{ x, y }}))({named})")
    empty.locator(".braid-map canvas").click(position=place)
    side = empty.locator(".braid-side")
    expect(side).to_contain_text("Host 1")
    side.get_by_role("button", name="Lose this host").click()
    expect(side.locator(".braid-touch + .braid-touched")).to_have_text("asking…")
    side.get_by_role("button", name="close").click()
    expect(side).to_be_hidden()
    (sent,) = empty.evaluate("window.sent.map(({ touch }) => touch).filter(Boolean)")
    assert sent["selected"] == "host:1"


def test_a_lost_host_of_a_shared_ring_is_named_at_all_it_held(empty: Page) -> None:
    recorded = recorded_runs.recorded_events("shared_ring")
    at = [k for k, event in enumerate(recorded) if isinstance(event, BatchCommitted)][9]
    lost = HostLost(recorded[at].batch, 2, 4, 400, 8000, {}, 400)
    made = Cockpit([*recorded[:at], lost, recorded[at]])
    empty.set_content(f"<style>{Cockpit._css}</style>")
    empty.evaluate(MODEL, [read_bundle("cockpit"), {"page": {**made.page, "state": "live"}}])
    assert empty.evaluate(COUNT_RED) > 50
    texts = "[...document.querySelector('.braid-map canvas').texts].map(({ text }) => text)"
    named = [text for text in empty.evaluate(texts) if text in ("2", "host 2")]
    assert named.count("host 2") >= 1 and len(named) == 3, "where it is narrow, by its number"
    empty.set_viewport_size({"width": 1400, "height": 690})
    pane = empty.locator(".braid-map")
    assert pane.evaluate("(box) => box.scrollHeight <= box.clientHeight"), "twelve queries fit"


HEAR = "(content) => window.heard['msg:custom'](content)"
COUNT_RED = """() => {
  const canvas = document.querySelector(".braid-map canvas");
  const { width, height } = canvas;
  const { data } = canvas.getContext("2d").getImageData(0, 0, width, height);
  let red = 0;
  for (let k = 0; k < data.length; k += 4)
    if (data[k] === 0xb3 && data[k + 1] === 0x26 && data[k + 2] === 0x1e) red += 1;
  return red;
}"""
"""Counts the pixels of the map in the color of a fault."""


def test_slices_of_an_active_run_are_split_and_merged_with_the_keys(empty: Page) -> None:
    empty.goto("about:blank")
    made = Cockpit(recorded_runs.recording_path("slices"))
    config = SimpleNamespace(shed=object(), streams=dict.fromkeys("rs"))
    queries = (Query.parse("watch", "rs", "15 seconds"),)
    store = SimpleNamespace(events=SimpleNamespace(recent_events=list))
    run = SimpleNamespace(split_slice=None, config=config, queries=queries, store=store)
    page = {**made.page, "state": "live", "touches": list_touches(run, None)}
    values = {"page": page}
    empty.set_viewport_size({"width": 1400, "height": 860})
    empty.evaluate(MODEL, [read_bundle("cockpit"), values])
    side, drawer = empty.locator(".braid-side"), empty.locator(".braid-drawer")
    expect(side.get_by_role("button", name="Split at the age")).to_have_count(0)
    empty.locator(".braid-map").press("Enter")
    side.get_by_label("Split at the age").first.fill("7 seconds")
    empty.keyboard.press("Enter")
    side.get_by_role("button", name="Merge with the older slice").click()
    empty.locator(".braid-cockpit").press("c")
    assert empty.evaluate("document.activeElement.value") == "another: r: 15 s, s: 15 s"
    share = drawer.get_by_label("Compare this share of the pairs").first
    for value, allowed in (("3", False), ("0.5", True)):
        share.fill(value)
        apply = drawer.get_by_role("button", name="Compare this share of the pairs")
        expect(apply).to_be_enabled(enabled=allowed)
    share.press("Enter")
    sent = empty.evaluate("window.sent.map(({ touch }) => touch).filter(Boolean)")
    names = [(touch["name"], touch["value"]) for touch in sent]
    assert names == [("split", "7 seconds"), ("merge", ""), ("budget", "0.5")]
    assert sent[0]["selected"].startswith("slice:0:0:") and sent[2]["selected"] == ""
    empty.locator(".braid-map canvas").first.hover()
    answer, last = drawer.locator(".braid-touched"), page["frames"][-1]
    empty.evaluate(HEAR, {"touched": "Asked for; it acts with the next batch."})
    expect(answer).to_have_text("Asked for; it acts with the next batch.")
    share.fill("0.7")
    another = {**page["touches"][0], "name": "another", "label": "Another", "target": ""}
    touches = [another, *page["touches"]]
    empty.evaluate(HEAR, {"more": {**page, "frames": [], "touches": touches}})
    expect(drawer.get_by_role("button", name="Another")).to_have_count(1)
    expect(share).to_have_value("0.7")
    for more in (1, 2):
        expect(answer).not_to_have_text("")
        frame = {**last, "batch": last["batch"] + more, "state_map": {}}
        empty.evaluate(HEAR, {"more": {**page, "frames": [frame]}})
    expect(answer).to_have_text("")
    expect(side).to_contain_text("All hosts")
    expect(side.locator(".braid-touch")).to_have_count(0)


def test_runs_side_by_side_show_one_batch_and_the_shorter_one_its_last(empty: Page) -> None:
    long, short = (list(simulate(Scatter(3), [(3, 2), (9, 4), (5, 5)][:n])) for n in (3, 2))
    views = LinkedViews({"long": long, "short": short})
    empty.set_content(f"<style>{views._css}</style>")
    empty.evaluate(MODEL, [read_bundle("cockpit"), {"page": views.page}])
    cockpit, figures = empty.locator(".braid-cockpit"), empty.locator(".braid-map .braid-strip")
    seen = {}
    for key, batch in (("Home", "1"), ("ArrowRight", "2"), ("End", "3")):
        cockpit.press(key)
        expect(cockpit).to_have_attribute("data-batch", batch)
        seen[batch] = figures.all_inner_texts()
    assert [seen["1"][k] == seen["2"][k] for k in (0, 1)] == [False, False]
    assert [seen["2"][k] == seen["3"][k] for k in (0, 1)] == [False, True]
    views.load_runs({"short": short})
    empty.evaluate("(page) => window.model.set('page', page)", views.page)
    expect(cockpit).to_have_attribute("data-batch", "2")
    expect(figures).to_have_count(1)
