"""A method that Spark calls without keeping its owner: Spark's gateway keeps every function that it
was ever given, and the last exception of each.
"""

from __future__ import annotations

from collections.abc import Callable
from traceback import clear_frames
from typing import Any
from weakref import WeakMethod


def weak_callback(turn: Callable[[Any, int], None]) -> Callable[[Any, int], None]:
    """What calls a bound method, as long as its owner is there: who has ended, and is asked for
    nothing more, is not kept with all that it holds. An exception keeps its lines, not what the
    frames held. Raises RuntimeError where the owner is gone.
    """
    owned = WeakMethod(turn)

    def turned(frame: Any, number: int) -> None:
        found = owned()
        if found is None:
            raise RuntimeError(f"micro-batch {number} is of a run that is gone")
        try:
            found(frame, number)
        except BaseException as error:
            _clear_exception_frames(error)
            raise
        finally:
            found = None

    return turned


def _clear_exception_frames(error: BaseException | None) -> None:
    """Have an exception, and what led to it, hold nothing of the frames that it went through."""
    while error is not None:
        clear_frames(error.__traceback__)
        error = error.__cause__ or error.__context__
