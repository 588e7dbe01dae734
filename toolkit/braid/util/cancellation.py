"""Cancel long computations: they check between two pieces of work whether to continue."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

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
