"""A browser, a JupyterLab server in a temporary folder, and a notebook in it."""

from __future__ import annotations

import json
import os
import re
import secrets
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import nbformat
import psutil
import pytest
import requests
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Error,
    Locator,
    Page,
    expect,
    sync_playwright,
)
from requests.adapters import HTTPAdapter
from urllib3.util import Retry

ROOT = Path(__file__).parents[2]
SWITCHES = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
MINUTE = 60_000
expect.set_options(timeout=MINUTE)  # its own 5 s are few on a busy machine
READY = """() => {
  const context = window.jupyterapp?.shell.currentWidget?.sessionContext, kernel = context?.session?.kernel;
  return context?.isReady && kernel?.connectionStatus === "connected" && kernel.status === "idle";
}"""
RUN_ALL = """() => {
  window.ran = false;
  window.jupyterapp.commands.execute("notebook:run-all-cells").finally(() => { window.ran = true });
}"""
COLD = """from braid_lab.launches import live_runs
live_runs.warm_up = lambda panel, **few: None"""
LATE = "[anywidget] Failed to initialize model."
"""Message of anywidget if a busy page needs more than two seconds to load a widget. The widget
still draws and receives messages: test_hearing.
"""
STARTED = """() => [...document.querySelectorAll(".jp-CodeCell .jp-InputPrompt")].some(p => /[*\\d]/.test(p.textContent))"""


@pytest.fixture(scope="session")
def browser(chromium: str) -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=SWITCHES)
        yield browser
        browser.close()


@dataclass
class Lab:
    """A running JupyterLab over ``folder``."""

    folder: Path
    address: str
    token: str
    sources: tuple[psutil.Process, ...]
    """The server, and the process from which its kernels are forked."""

    def ask(self, method: str, path: str) -> Any:
        with requests.Session() as session:
            session.mount(
                "http://", HTTPAdapter(max_retries=Retry(40, backoff_factor=0.1, backoff_max=1))
            )
            answer = session.request(
                method,
                f"{self.address}/api/{path}",
                params={"token": self.token},
                timeout=MINUTE / 1000,
            )
        answer.raise_for_status()
        return answer.json() if answer.content else None

    def put(self, notebook: Any, name: str) -> str:
        """Write a notebook whose panel does not start Spark before a launch; return its name."""
        notebook.cells.insert(0, nbformat.v4.new_code_cell(COLD, id="cold"))
        nbformat.write(notebook, self.folder / name)
        return name

    def end_sessions(self) -> None:
        """End all kernels and their child processes."""
        for session in self.ask("GET", "sessions"):
            self.ask("DELETE", f"sessions/{session['id']}")

    def processes(self, name: str) -> list[psutil.Process]:
        """Return processes of that name below the server or its kernels."""
        below = [p for source in self.sources for p in source.children(recursive=True)]
        return [p for p in below if p.name() == name]


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory, forked: tuple[Path, int]) -> Iterator[Lab]:
    home = tmp_path_factory.mktemp("lab")
    (home / "config" / "labconfig").mkdir(parents=True)
    quiet = {"disabledExtensions": {"@jupyterlab/apputils-extension:announcements": True}}
    (home / "config" / "labconfig" / "page_config.json").write_text(json.dumps(quiet))
    (home / "work" / "notebooks").mkdir(parents=True)
    (home / "work" / "data").symlink_to(ROOT / "data")
    port, token = _free_port(), secrets.token_hex(16)
    folders = {
        "JUPYTER_CONFIG_DIR": "config",
        "JUPYTER_DATA_DIR": "data",
        "JUPYTER_RUNTIME_DIR": "run",
        "IPYTHONDIR": "ipython",
    }
    command = [
        sys.executable,
        "-m",
        "jupyterlab",
        "--no-browser",
        "--ip=127.0.0.1",
        f"--port={port}",
        "--ServerApp.port_retries=0",
        f"--IdentityProvider.token={token}",
        "--allow-root",
        "--expose-app-in-browser",
        f"--ServerApp.root_dir={home / 'work'}",
    ]
    environment = {
        **os.environ,
        **{name: str(home / folder) for name, folder in folders.items()},
        "JUPYTER_PREFER_ENV_PATH": "1",
        "JUPYTER_PATH": str(forked[0]),
        "PYTHONPATH": os.pathsep.join(filter(None, (str(home), os.environ.get("PYTHONPATH")))),
    }
    # Of an optional package, which takes the server three seconds to import.
    (home / "rfc3987_syntax.py").write_text("raise ImportError")
    environment.pop("BRAID_HEADLESS", None)
    with (home / "log").open("w") as log:
        server = subprocess.Popen(command, stdout=log, stderr=log, env=environment)
    sources = psutil.Process(server.pid), psutil.Process(forked[1])
    lab = Lab(home / "work" / "notebooks", f"http://127.0.0.1:{port}", token, sources)
    try:
        lab.ask("GET", "status")
        yield lab
    finally:
        if server.poll() is None:
            lab.end_sessions()
            server.terminate()
        server.wait(30)


def _free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


@dataclass
class Notebook:
    """A notebook that is open in the browser; ``errors`` are the errors of its page."""

    page: Page
    errors: list[str] = field(default_factory=list)

    def ready(self) -> None:
        """Wait until the kernel answers."""
        self.page.wait_for_function(READY, timeout=MINUTE)

    def run_all(self) -> None:
        """Run all cells.

        JupyterLab drops a run while it creates the kernel's session; then the cells are run again.
        """
        self.ready()
        started = False
        while not started:
            self.page.evaluate(RUN_ALL)
            self.page.wait_for_function(f"() => window.ran || ({STARTED})()", timeout=MINUTE)
            started = self.page.evaluate(STARTED)

    def cell(self, text: str) -> Locator:
        """Return the code cell whose source contains this text."""
        return self.page.locator(
            ".jp-CodeCell", has=self.page.locator(".jp-InputArea", has_text=text)
        ).first

    def done(self, cell: Locator) -> None:
        """Wait until a cell has finished."""
        expect(cell.locator(".jp-InputPrompt").first).to_have_text(
            re.compile(r"\[\d+\]"), timeout=MINUTE
        )


OPEN = """(path) => window.jupyterapp.commands.execute("docmanager:open", { path })"""
CLOSE = """() => {
  const shell = window.jupyterapp.shell;
  [...shell.widgets("main")].forEach((widget) => widget.dispose());
  shell.expandLeft();
}"""


RELOADED = "() => performance.getEntriesByType('navigation')[0].type === 'reload'"


@pytest.fixture(scope="session")
def kept(browser: Browser) -> Iterator[BrowserContext]:
    """The page of the lab, which stays open, so that JupyterLab is already loaded for the second
    notebook.
    """
    context = browser.new_context()
    yield context
    context.close()


@pytest.fixture
def opened(lab: Lab, kept: BrowserContext) -> Iterator[Callable[..., Notebook]]:
    """Open a notebook of the lab by file name, in a page of this width; one per test.

    A page with an error or without its kernel is closed.
    """
    fresh = not kept.pages
    page = kept.new_page() if fresh else kept.pages[0]
    notebook = Notebook(page)

    def note_console_error(message: ConsoleMessage) -> None:
        if message.type == "error":
            notebook.errors.append(f"{message.location} {message.text}")

    def note_page_error(error: Error) -> None:
        if str(error) != LATE:
            notebook.errors.append(str(error))

    def open_notebook(name: str, width: int = 1400) -> Notebook:
        page.set_viewport_size({"width": width, "height": 1000})
        if fresh:
            page.goto(f"{lab.address}/lab/tree/notebooks/{name}?reset&token={lab.token}")
        else:
            page.evaluate(OPEN, f"notebooks/{name}")
        return notebook

    page.on("console", note_console_error)
    page.on("pageerror", note_page_error)
    yield open_notebook
    page.remove_listener("console", note_console_error)
    page.remove_listener("pageerror", note_page_error)
    if notebook.errors or page.evaluate(RELOADED):
        page.close()
    else:
        page.evaluate(CLOSE)
    lab.end_sessions()
