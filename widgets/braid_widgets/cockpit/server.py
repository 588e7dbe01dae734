"""Serve the cockpit of another process's run to browsers on this machine."""

from __future__ import annotations

import json
import re
import secrets
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from hmac import compare_digest
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from braid.core.event_jsonl import EventTail
from braid.core.run_events import RunStarted
from braid.util.validation import format_value, read_natural

from braid_widgets.base.player import thin
from braid_widgets.cockpit.frames import CockpitPage, FrameCollector
from braid_widgets.cockpit.page import FRAMES, HEAD, hash_script, page_html

LOOPBACK = "127.0.0.1"
NAMES = (LOOPBACK, "localhost", "::1")
"""Host names that are always this machine."""
_OWN_HOST = re.compile(r"(127\.0\.0\.1|localhost|\[::1\])(:\d+)?", re.IGNORECASE)
"""The host of a request to one of them, with or without a port."""
TIMEOUT = 30
"""Seconds after which a silent connection is closed."""
MOST_CONNECTIONS = 32
_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": (
        f"default-src 'none'; script-src {hash_script()}; style-src 'unsafe-inline'; "
        "img-src data:; connect-src 'self'; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'"
    ),
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
"""Headers of every response. Only the page's own scripts may run, and no other site may frame
it.
"""


class ServedRun:
    """The visible state of a run, read from its folder."""

    def __init__(self, path: str | Path) -> None:
        self.tail, self.gate = EventTail(path), threading.Lock()
        self.track = FrameCollector(is_followed=True)

    def page_since(self, since: int = 0) -> CockpitPage:
        """Return the current page with the frames and hosts of the batches after ``since`` (from
        1).
        """
        with self.gate:
            events = self.tail.read_new()
            if any(isinstance(e, RunStarted) for e in events) and self.track.scene.start:
                self.track = FrameCollector(is_followed=True)
            self.track.apply_events(events)
            page = self.track.make_page(since=since, lag=self.tail.seconds_since_write())
        return {**page, "frames": thin(page["frames"], FRAMES)}


def _make_handler_class(served: ServedRun, token: str) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = TIMEOUT

        def do_GET(self) -> None:
            """Serve the page or its updates if the request has the token.

            The Host header must name this machine. This stops DNS rebinding: a page of another site
            that makes its name point here sends its own name.
            """
            address = urlsplit(self.path)
            query = parse_qs(address.query)
            given = query.get("token", [""])[0]
            if not _OWN_HOST.fullmatch(self.headers.get("Host", "")):
                self._answer(403, "text/plain", f"the host must be one of {', '.join(NAMES)}")
            elif not compare_digest(given.encode(), token.encode()):
                self._answer(403, "text/plain", "the address lacks the token that was printed")
            elif address.path == "/":
                self._answer(200, "text/html", self._page())
            elif address.path == "/more":
                self._more(query.get("since", [""])[0])
            else:
                self._answer(404, "text/plain", "there is / and /more?since=BATCH")

        def _more(self, text: str) -> None:
            since = read_natural(text)
            if since is None:
                message = (
                    f"since is {format_value(text)}; it must be a batch, a whole number, 0 or more"
                )
                self._answer(400, "text/plain", message)
            else:
                self._answer(200, "application/json", json.dumps(served.page_since(since)))

        def _page(self) -> str:
            icon = '<link rel="icon" href="data:,">'  # keeps the browser from requesting one
            head = f"{HEAD}{icon}<title>Braid: a run</title></head><body>"
            return f"{head}{page_html(served.page_since(), f'/more?token={token}')}</body></html>"

        def _answer(self, code: int, kind: str, text: str) -> None:
            body = text.encode()
            self.send_response(code)
            self.send_header("Content-Type", f"{kind}; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def end_headers(self) -> None:
            """Add the headers of every response, including errors."""
            for name, value in _HEADERS.items():
                self.send_header(name, value)
            super().end_headers()

        def log_message(self, *arguments: object) -> None:
            """Log nothing, because requests contain the token."""

    return Handler


class CockpitServer(ThreadingHTTPServer):
    """An HTTP server with a thread per connection and at most ``MOST_CONNECTIONS`` at a time."""

    daemon_threads = True

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler]) -> None:
        self._free = threading.BoundedSemaphore(MOST_CONNECTIONS)
        super().__init__(address, handler)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Serve a connection, or refuse it if there are too many."""
        if not self._free.acquire(blocking=False):
            with suppress(OSError):  # the client may have gone
                request.sendall(b"HTTP/1.0 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n")
            self.shutdown_request(request)
            return
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()


def make_server(path: str | Path, port: int = 0) -> tuple[CockpitServer, str]:
    """Return a server of a run's cockpit on loopback, and its address with the token.

    The server does not serve yet. Every request needs the token. Port 0 chooses a free port.

    Raises ValueError for a path that is neither a run folder nor a recording, and for a hub's;
    OSError if the port is in use.
    """
    token, served = secrets.token_urlsafe(16), ServedRun(path)
    served.page_since()
    server = CockpitServer((LOOPBACK, port), _make_handler_class(served, token))
    return server, f"http://{LOOPBACK}:{server.server_port}/?token={token}"


_print_line = partial(print, flush=True)


def serve_forever(
    path: str | Path, port: int = 0, say: Callable[[str], None] = _print_line
) -> None:
    """Serve until interrupted. Raises the errors of ``make_server``."""
    server, address = make_server(path, port)
    say(f"watch it at {address} (Ctrl+C ends the server, not the run)")
    with server:
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            say("no longer served; the run continues")
