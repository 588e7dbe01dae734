"""Serve the health of run folders over HTTP: ``braid serve``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock
from typing import Any

import msgspec

from braid.batch_histogram import BatchHistogram, HistogramCollector
from braid.health import RunHealth, format_prometheus, read_health

_METRICS = "text/plain; version=0.0.4; charset=utf-8"


def make_health_server(folders: Sequence[Path], port: int = 0) -> ThreadingHTTPServer:
    """Return a server of this machine alone, for run folders that are read at each request.

    - ``/metrics``: Prometheus's text; the label ``run`` is the folder.
    - ``/health``: a JSON object by folder; the status is 503 unless all are healthy.

    Parameters
    ----------
    folders
        Folders of runs or hubs.
    port
        Port on 127.0.0.1. Default: a free one.

    Raises ValueError for a folder without a run that has begun, OSError if the port is taken.
    """
    _read_all(folders)
    histograms = {str(folder): BatchHistogram(folder) for folder in folders}
    handler = partial(_Handler, tuple(folders), histograms, Lock())
    return ThreadingHTTPServer(("127.0.0.1", port), handler)


def _read_all(folders: Sequence[Path]) -> dict[str, RunHealth]:
    return {str(folder): read_health(folder) for folder in folders}


class _Handler(BaseHTTPRequestHandler):
    """Answers one request."""

    def __init__(
        self,
        folders: tuple[Path, ...],
        histograms: Mapping[str, BatchHistogram],
        reading: Lock,
        *arguments: Any,
    ) -> None:
        self._folders, self._histograms, self._reading = folders, histograms, reading
        super().__init__(*arguments)

    def do_GET(self) -> None:
        """Answer with the metrics, the health, or 404. An unreadable folder gives 503."""
        path = self.path.partition("?")[0]
        if path not in ("/metrics", "/health"):
            self._send_text(404, "text/plain", "there are /metrics and /health\n")
            return
        try:
            runs = _read_all(self._folders)
        except ValueError as error:
            self._send_text(503, "text/plain", f"{error}\n")
            return
        if path == "/metrics":
            self._send_text(200, _METRICS, format_prometheus(runs) + self._format_histograms())
            return
        described = {folder: msgspec.json.decode(run.to_json()) for folder, run in runs.items()}
        status = 200 if all(run.is_healthy for run in runs.values()) else 503
        self._send_text(status, "application/json", msgspec.json.encode(described).decode())

    def _format_histograms(self) -> str:
        from prometheus_client import CollectorRegistry, generate_latest

        registry = CollectorRegistry(auto_describe=False)
        with self._reading:
            registry.register(HistogramCollector(self._histograms))
            return generate_latest(registry).decode()

    def _send_text(self, status: int, kind: str, text: str) -> None:
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments: Any) -> None:
        """Print nothing: requests come every few seconds."""
