"""Whether there is somebody who looks and can press a button; and what is made ready for them while
a notebook imports the rest, so this module imports hardly anything.
"""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

from IPython import get_ipython
from IPython.display import HTML, display

_NO_CHART: dict[str, Any] = {
    "data": [],
    "layout": {"width": 10, "height": 10, "xaxis": {"visible": False}, "yaxis": {"visible": False}},
}
_GONE = 1.0
"""Seconds until the empty chart is taken away: when the browser has begun to load what draws it."""


def is_headless() -> bool:
    """Whether the notebook drives itself: with BRAID_HEADLESS=1, as in a report, and where a
    program runs its cells and takes no input, as papermill; never with BRAID_HEADLESS=0.
    """
    told, request = os.environ.get("BRAID_HEADLESS", ""), _get_kernel_request()
    if told or request is None:
        return told not in ("", "0")
    return request["content"].get("allow_stdin") is False


def execute_request() -> dict[str, Any] | None:
    """The request to run the cell that is being run; None where nobody could press a button: in a
    report, outside of a kernel, and where the one who asks takes no input.
    """
    request = None if is_headless() else _get_kernel_request()
    return request if request and request["content"].get("allow_stdin") else None


def _get_kernel_request() -> dict[str, Any] | None:
    """The last one of the kernel, to run a cell or of a widget; None outside of a kernel."""
    kernel = getattr(get_ipython(), "kernel", None)
    return (kernel.get_parent("shell") or None) if kernel else None


def preload_charts() -> None:
    """Have the browser load what draws charts, which takes it a second or two, while the kernel
    still imports. In place of the empty chart that does it comes a script, of which nothing is
    seen: it draws the notebook's charts as wide as they are, with a kernel and without.
    """
    if execute_request() is None:
        return
    chart = {"application/vnd.plotly.v1+json": _NO_CHART}
    place: Any = display(chart, raw=True, display_id=True)  # type: ignore[no-untyped-call]
    gone = threading.Timer(_GONE, lambda: place.update(HTML(resize_script())))  # type: ignore[no-untyped-call]
    gone.daemon = True
    gone.start()


def resize_script() -> str:
    """A script that draws the charts of its document as wide as they are."""
    script = Path(__file__).parents[1] / "static" / "charts.js"
    return f'<script type="module">{script.read_text(encoding="utf-8")}</script>'
