"""A run of another process in a browser, which follows it and can show any batch meanwhile."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from braid.core.event_jsonl import read_events
from braid.core.run_events import BatchCommitted
from braid_lab.common.recordings import write_events
from braid_widgets.cockpit import server
from playwright.sync_api import Browser, expect

EVENTS = read_events(Path(__file__).parents[2] / "data" / "recordings" / "fluct.jsonl")
ENDS = [k + 1 for k, e in enumerate(EVENTS) if isinstance(e, BatchCommitted)]
SOON = 60_000


@dataclass
class Running:
    """A run that the test advances batch by batch."""

    file: Path
    done: int = 0

    def on(self, batches: int) -> None:
        """Continue until this number of batches is finished."""
        last = len(EVENTS) if batches == len(ENDS) else ENDS[batches - 1]
        write_events(self.file, EVENTS[self.done : last], append=self.done > 0)
        self.done = last


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[Running, str]]:
    run = Running(tmp_path / "events.jsonl")
    run.on(5)
    made, address = server.make_server(tmp_path)
    thread = threading.Thread(target=made.serve_forever, args=(0.05,))
    thread.start()
    yield run, address
    made.shutdown()
    thread.join()
    made.server_close()


@pytest.mark.parametrize(("width", "scheme"), [(1400, "dark"), (420, "light")])
def test_a_run_is_followed_and_scrubbed_while_it_goes_on(
    served: tuple[Running, str], browser: Browser, width: int, scheme: Any
) -> None:
    run, address = served
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page, wrong = context.new_page(), []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.goto(address)
    cockpit, state = page.locator(".braid-cockpit"), page.locator(".braid-state")
    expect(cockpit).to_have_attribute("data-batch", "5")
    expect(state).to_have_text("● live")
    expect(page.get_by_text(re.compile(r"lag \d"))).to_be_visible()
    run.on(10)
    expect(cockpit).to_have_attribute("data-batch", "10", timeout=SOON)
    page.get_by_role("button", name="back", exact=True).click()
    run.on(15)
    expect(page.locator(".braid-where")).to_have_text("batch 9 of 48")
    expect(page.get_by_label("position")).to_have_attribute("max", "48")
    expect(cockpit).to_have_attribute("data-batch", "9")
    page.get_by_role("button", name="Back to now").click()
    expect(cockpit).to_have_attribute("data-batch", "15")
    page.route("**/more?*", lambda route: route.abort())
    expect(state).to_have_text("not connected")
    page.unroute("**/more?*")
    expect(state).to_have_text("● live")
    page.evaluate("window.requestAnimationFrame = () => 1")  # batches come faster than they move
    run.on(16)
    expect(cockpit).to_have_attribute("data-batch", "16")
    run.on(len(ENDS))
    expect(state).to_have_text("ended", timeout=SOON)
    expect(page.get_by_text(re.compile(r"lag \d"))).not_to_be_visible()
    expect(cockpit).to_have_attribute("data-batch", str(len(ENDS)))
    expect(page.get_by_role("button", name="Back to now")).not_to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= width, "nothing is cut off"
    assert wrong == []
    context.close()
