"""Detect whether a user can press buttons."""

from __future__ import annotations

import os
from typing import Any

from IPython import get_ipython


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
