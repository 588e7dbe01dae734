"""Process-wide values that a test can replace."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

T = TypeVar("T")


class Replaceable(Generic[T]):
    """A process-wide value that can be replaced temporarily.

    >>> colour = Replaceable("red")
    >>> with colour.replace_meanwhile("blue"):
    ...     colour.get_current()
    'blue'
    >>> colour.get_current()
    'red'
    """

    def __init__(self, value: T) -> None:
        self._value = value

    def get_current(self) -> T:
        """Return the current value."""
        return self._value

    @contextmanager
    def replace_meanwhile(self, by: T) -> Iterator[T]:
        """Replace the value for all code of this process inside the context."""
        before, self._value = self._value, by
        try:
            yield by
        finally:
            self._value = before
