"""Measure the cockpit in Chromium: frames a second, time to paint, first motion, first own batch.

A recording of 64 hosts plays in a page of 1400 x 900 pixels, without a graphics card. A frame is a
call of the browser's animation clock; its paint is the work of the page in it. First picture and
first motion are counted from opening the page. The own run is a join of two tables in this process,
warm, which another page follows; it counts from ``start`` until its first batch is drawn. Minutes
of play are simulated: the page's clock is a fake one, which fires every frame; then its elements
and its heap, after a collection, are compared with those after the first half minute. Until then
the browser compiles the page's functions, whose code counts as heap. Figures mean little on a busy
machine; the load is that at the start.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from _common import Measure, make_scratch_folder, parse_arguments, write_figures
from braid import AdaptiveGrid, StreamJoin
from braid_lab.launches.recorded_runs import recording_path
from braid_widgets.cockpit.page import save_run_page
from braid_widgets.cockpit.server import make_server
from playwright.sync_api import Browser, Page, sync_playwright

CHROMIUM = "/usr/bin/chromium"
SWITCHES = ["--headless", "--no-sandbox", "--disable-gpu"]
SIZE = {"width": 1400, "height": 900}
DRAWN_COCKPIT = ".braid-cockpit[data-batch]"
FRAME_TIMER = """() => {
  const given = requestAnimationFrame.bind(window);
  window.paints = []; window.starts = [];
  window.requestAnimationFrame = (call) => given((now) => {
    const began = performance.now();
    call(now);
    window.paints.push(performance.now() - began);
    window.starts.push(now);
  });
}"""
"""Keeps the start of each animation frame and the milliseconds that the page spends in it."""
MAP_WATCHER = """() => {
  const look = () => {
    const canvas = document.querySelector(".braid-map canvas");
    if (canvas?.width) {
      const pixels = canvas.toDataURL();
      window.first ??= performance.now();
      window.pixels ??= pixels;
      if (pixels !== window.pixels) { window.moved = performance.now(); return; }
    }
    setTimeout(look, 5);
  };
  look();
}"""
"""Keeps when the map is drawn first, and when it changes first."""


def main() -> None:
    args = parse_arguments(__doc__ or "", {"minutes": 1, "rounds": 1}, minutes=10, rounds=5)
    with make_scratch_folder() as folder, sync_playwright() as playwright:
        path = save_run_page(recording_path("fluct"), folder / "fluct.html")
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=SWITCHES)
        opening_times = [measure_opening(browser, path) for _ in range(args.rounds)]
        frames = measure_frames(browser, path)
        own_run_seconds = [
            measure_own_run(browser, folder / f"run{n}") for n in range(args.rounds + 1)
        ][1:]
        growth = measure_growth(browser, path, args.minutes)
        browser.close()
    first, moved = (float(np.median(column)) for column in zip(*opening_times, strict=True))
    measures = [
        Measure("cockpit, frames a second, 64 hosts", frames["frames a second"], None, 58),
        Measure("cockpit, 99 % of paints, ms", frames["paint, 99 %, ms"], None, 16, most=True),
        Measure("cockpit, seconds to the first motion", moved, None, 1, most=True),
        Measure(
            "cockpit, seconds to the first own batch", max(own_run_seconds), None, 3, most=True
        ),
        Measure("cockpit, heap after play / before", growth["heap, ratio"], None, 1.2, most=True),
        Measure("cockpit, elements after play / before", growth["elements, ratio"], 1, most=True),
    ]
    times = {
        "first picture, s": first,
        "first motion, s": moved,
        "first own batch, s": max(own_run_seconds),
    }
    figures = pd.DataFrame([frames | times | growth]).round(3).T.reset_index()
    figures.columns = pd.Index(["figure", "value"])
    write_figures(args, {"The recording fluct, 64 hosts, 48 batches": figures}, measures)


@contextmanager
def open_page(browser: Browser, *scripts: str) -> Iterator[Page]:
    """Yield an empty page in which these functions run before those of each document."""
    page = browser.new_page(viewport=SIZE)  # type: ignore[arg-type]
    for script in scripts:
        page.add_init_script(f"({script})()")
    try:
        yield page
    finally:
        page.close()


def measure_opening(browser: Browser, path: Path) -> tuple[float, float]:
    """Return seconds from opening a recording to its first picture and to its first motion."""
    with open_page(browser, MAP_WATCHER) as page:
        page.goto(path.as_uri())
        page.wait_for_function("window.moved")
        first, moved = page.evaluate("[window.first, window.moved]")
    return first / 1000, moved / 1000


def measure_frames(browser: Browser, path: Path) -> dict[str, float]:
    """Return frames a second and milliseconds of paint while a recording plays to its end."""
    with open_page(browser, FRAME_TIMER) as page:
        page.goto(path.as_uri())
        page.locator(DRAWN_COCKPIT).press("Home")
        page.evaluate("window.paints.length = window.starts.length = 0")
        page.locator(DRAWN_COCKPIT).press(" ")
        page.wait_for_function(
            "document.querySelector('.braid-go').textContent.includes('Play')", timeout=180_000
        )
        paints, starts = page.evaluate("[window.paints, window.starts]")
    seconds = (starts[-1] - starts[0]) / 1000
    return {
        "seconds of play": seconds,
        "frames a second": (len(starts) - 1) / seconds,
        "paint, median, ms": float(np.median(paints)),
        "paint, 99 %, ms": float(np.quantile(paints, 0.99)),
    }


def measure_own_run(browser: Browser, folder: Path) -> float:
    """Return seconds from the start of a join of tables until a page shows its first batch."""
    rows = pa.table({"k": np.arange(20_000) % 997})
    join = StreamJoin({"a": rows, "b": rows}, "a.k = b.k", AdaptiveGrid(16))
    with open_page(browser) as page:
        began = time.perf_counter()
        run = join.start(str(folder), batches=10, pace=0.5)
        server, address = make_server(folder)
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        page.goto(address)
        page.wait_for_selector(DRAWN_COCKPIT)
        taken = time.perf_counter() - began
    run.stop()
    server.shutdown()
    thread.join()
    server.server_close()
    return taken


def measure_growth(browser: Browser, path: Path, minutes: int) -> dict[str, float]:
    """Return the elements and the heap of a page after ``minutes`` of play on a fake clock."""
    with open_page(browser) as page:
        page.clock.install()
        page.goto(path.as_uri())
        page.clock.run_for(1000)
        opened = measure_page_size(page)
        sizes = []
        for _ in range(2 * minutes):
            page.locator(DRAWN_COCKPIT).press("Home")
            page.locator(DRAWN_COCKPIT).press(" ")
            page.clock.run_for(30_000)
            page.locator(DRAWN_COCKPIT).press("Home")
            sizes.append(measure_page_size(page))
    before, *_, after = sizes
    return {
        "minutes of play, simulated": minutes,
        "elements": after["elements"],
        "elements, ratio": after["elements"] / before["elements"],
        "heap, MB": after["heap"] / 1e6,
        "heap, ratio": after["heap"] / before["heap"],
        "heap, ratio to the first second": after["heap"] / opened["heap"],
    }


def measure_page_size(page: Page) -> dict[str, Any]:
    """Return the elements of the cockpit, and bytes of the page's heap after a collection."""
    session = page.context.new_cdp_session(page)
    session.send("HeapProfiler.collectGarbage")
    heap = session.send("Runtime.getHeapUsage")["usedSize"]
    session.detach()
    elements = page.evaluate("document.querySelectorAll('.braid-cockpit *').length")
    return {"elements": elements, "heap": heap}


if __name__ == "__main__":
    main()
