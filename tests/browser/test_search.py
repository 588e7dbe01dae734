"""The documentation's search works in pages that are opened from a file."""

from __future__ import annotations

from pathlib import Path
from shutil import copyfile

from playwright.sync_api import Browser

ROOT = Path(__file__).parents[2]
PAGE = """<!doctype html><body><script src="iframe-worker.js"></script><script>
const worker = new Worker("echo.js");
worker.addEventListener("message", (e) => { document.title = e.data; });
worker.postMessage("first");
worker.postMessage("hot keys");
</script></body>"""
ECHO = "self.addEventListener('message', (e) => postMessage(e.data + ' found'));"


def test_a_worker_answers_in_a_page_that_is_opened_from_a_file(
    browser: Browser, tmp_path: Path
) -> None:
    """Browsers refuse it a worker; the search of the site is one."""
    copyfile(ROOT / "docs" / "iframe-worker.js", tmp_path / "iframe-worker.js")
    (tmp_path / "echo.js").write_text(ECHO)
    (tmp_path / "page.html").write_text(PAGE)
    page = browser.new_page()
    page.goto((tmp_path / "page.html").as_uri())
    page.wait_for_function("document.title === 'hot keys found'", timeout=5000)
    page.close()
