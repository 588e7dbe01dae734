"""Cancel long computations, and waits that can be interrupted."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from math import inf

_ASKED: ContextVar[Callable[[], object] | None] = ContextVar("braid-leaving", default=None)


@contextmanager
def cancellable(check: Callable[[], object]) -> Iterator[None]:
    """Call ``check`` between two pieces of work of this thread.

    An exception from it ends the computation.
    """
    token = _ASKED.set(check)
    try:
        yield
    finally:
        _ASKED.reset(token)


def check_cancelled() -> None:
    """Call the check of ``cancellable``, which raises to end the computation."""
    if (check := _ASKED.get()) is not None:
        check()


PART = 0.5
"""Maximum seconds of one part of a wait."""


def wait_interruptibly(event: threading.Event, timeout: float | None = None) -> None:
    """Wait for an event, at most ``timeout`` seconds.

    The wait consists of short parts. Python handles an interrupt (Ctrl-C, Jupyter's stop button)
    only after a system call. asyncio has the system restart such calls, so one long wait would end
    before the interrupt is handled.
    """
    end = inf if timeout is None else time.monotonic() + timeout
    while not event.wait(max(0.0, min(PART, end - time.monotonic()))):
        if time.monotonic() >= end:
            return
