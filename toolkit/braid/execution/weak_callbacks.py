"""Callbacks from Spark that do not keep their owner alive.

Spark's gateway keeps every function it was ever given, and the last exception of each.
"""

from __future__ import annotations

from collections.abc import Callable
from traceback import clear_frames
from typing import Any
from weakref import WeakMethod


def weak_callback(turn: Callable[[Any, int], None]) -> Callable[[Any, int], None]:
    """Return a callback that refers to its owner weakly, so that a finished run can be freed.

    Py4J's callback table keeps the callback. An exception keeps its lines but not the variables of
    its frames. The callback raises RuntimeError if the owner is gone.
    """
    owned = WeakMethod(turn)

    def turned(frame: Any, number: int) -> None:
        owner = owned()
        if owner is None:
            raise RuntimeError(f"micro-batch {number} belongs to a run that no longer exists")
        try:
            owner(frame, number)
        except BaseException as error:
            _clear_exception_frames(error)
            raise
        finally:
            owner = None

    return turned


def _clear_exception_frames(error: BaseException | None) -> None:
    """Clear the variables of the frames that an exception and its causes went through."""
    while error is not None:
        clear_frames(error.__traceback__)
        error = error.__cause__ or error.__context__
