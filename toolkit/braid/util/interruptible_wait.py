"""Waits that can be interrupted."""

from __future__ import annotations

import threading
import time
from math import inf

PART = 0.5
"""How long one part of a wait takes at most, in seconds."""


def wait_interruptibly(event: threading.Event, timeout: float | None = None) -> bool:
    """Wait for an event, at most ``timeout`` seconds, in short parts. Returns whether it came.

    Python sees an interrupt (Ctrl-C, Jupyter's stop button) at the end of a system call. asyncio
    has the system start such calls again, so that one long wait would end before the interrupt is
    seen.
    """
    end = inf if timeout is None else time.monotonic() + timeout
    while not event.wait(max(0.0, min(PART, end - time.monotonic()))):
        if time.monotonic() >= end:
            return event.is_set()
    return True
