"""Make docs/fluct.webp, the picture of the README: a recorded run while its grid of hosts changes.

The project's own replay draws it. The recording's digest is in its XMP, so that a test can refuse
the picture of another recording.

.venv/bin/python docs/picture.py
"""

from __future__ import annotations

import hashlib
import io
import shutil
import tempfile
from pathlib import Path

from braid_lab.launches import recorded_runs
from braid_widgets.cockpit.page import save_run_page
from PIL import Image
from playwright.sync_api import Page, expect, sync_playwright

HERE = Path(__file__).parent
RECORDING = recorded_runs.recording_path("fluct")
SWITCHES = ["--headless", "--no-sandbox", "--disable-gpu"]
SIZE = (1180, 760)
HOLD_MS, LAST_HOLD_MS = 520, 2500  # milliseconds that a batch, and the last one, is shown
FIRST_BATCH = 25  # a batch in the middle of the largest migration: what is seen where nothing plays
LAST_BATCH = 40  # the migration is over; more batches would make the file larger than 0.6 MB


def take_screenshots(page_file: Path, positions: range) -> list[Image.Image]:
    """Return the replay's pictures at these batches."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=SWITCHES
        )
        context = browser.new_context(
            viewport={"width": SIZE[0], "height": SIZE[1]}, reduced_motion="reduce"
        )
        page = context.new_page()
        page.goto(page_file.as_uri())
        images = [_take_screenshot(page, position) for position in positions]
        browser.close()
    return images


def _take_screenshot(page: Page, position: int) -> Image.Image:
    """Return the picture at a batch."""
    page.get_by_label("position").fill(str(position + 1))
    expect(page.locator(".braid")).to_have_attribute("data-seq", str(position))
    return Image.open(io.BytesIO(page.screenshot())).convert("RGB")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        page = save_run_page(RECORDING, Path(folder) / "replay.html")
        frames = take_screenshots(page, range(FIRST_BATCH - 1, LAST_BATCH))
    durations = [HOLD_MS] * (len(frames) - 1) + [LAST_HOLD_MS]
    target = HERE / "fluct.webp"
    frames[0].save(
        target,
        save_all=True,
        append_images=frames[1:],
        duration=durations,
        loop=0,
        quality=62,
        method=6,
        xmp=hashlib.sha256(RECORDING.read_bytes()).hexdigest().encode(),
    )
    print(f"{target}: {len(frames)} frames, {target.stat().st_size / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
