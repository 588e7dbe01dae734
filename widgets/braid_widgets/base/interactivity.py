"""Detect whether a user can press buttons, and preload the charts' JavaScript.

This module imports almost nothing, because it runs while a notebook imports the rest.
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
"""Seconds until the empty chart is removed. By then the browser has started to load plotly.js."""


def is_headless() -> bool:
    """Return whether the notebook runs without a user.

    True with BRAID_HEADLESS=1, as in a report, and if a program such as papermill runs the cells
    and accepts no input; never with BRAID_HEADLESS=0.
    """
    setting, request = os.environ.get("BRAID_HEADLESS", ""), _get_kernel_request()
    if setting or request is None:
        return setting not in ("", "0")
    return request["content"].get("allow_stdin") is False


def execute_request() -> dict[str, Any] | None:
    """Return the request that runs the current cell; None if nobody could press a button.

    Nobody can in a report, outside a kernel, and if the requester accepts no input.
    """
    request = None if is_headless() else _get_kernel_request()
    return request if request and request["content"].get("allow_stdin") else None


def _get_kernel_request() -> dict[str, Any] | None:
    """Return the kernel's last request, from a cell or a widget; None outside a kernel."""
    kernel = getattr(get_ipython(), "kernel", None)
    return (kernel.get_parent("shell") or None) if kernel else None


def preload_charts() -> None:
    """Make the browser load plotly.js while the kernel still imports, which saves a second or two.

    The empty chart that triggers the load is then replaced by an invisible script. The script
    resizes the notebook's charts to their width, with and without a kernel.
    """
    if execute_request() is None:
        return
    chart = {"application/vnd.plotly.v1+json": _NO_CHART}
    place: Any = display(chart, raw=True, display_id=True)  # type: ignore[no-untyped-call]
    gone = threading.Timer(_GONE, lambda: place.update(HTML(resize_script())))  # type: ignore[no-untyped-call]
    gone.daemon = True
    gone.start()


def resize_script() -> str:
    """Return a script that resizes the charts of its document to their width."""
    script = Path(__file__).parents[1] / "static" / "charts.js"
    return f'<script type="module">{script.read_text(encoding="utf-8")}</script>'
