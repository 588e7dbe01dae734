"""Long computations that somebody may give up: between two pieces of work they ask whether to go
on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_ASKED: ContextVar[Callable[[], object] | None] = ContextVar("braid-leaving", default=None)


@contextmanager
def cancellable(check: Callable[[], object]) -> Iterator[None]:
    """Have what is computed here, in this thread, call this between two pieces of work; what it
    raises ends the computation.
    """
    token = _ASKED.set(check)
    try:
        yield
    finally:
        _ASKED.reset(token)


def check_cancelled() -> None:
    """Between two pieces of work: raises what whoever waits raises to give the work up."""
    if (check := _ASKED.get()) is not None:
        check()
