"""Values that a whole process uses, and that a test may exchange for others."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

T = TypeVar("T")


class Replaceable(Generic[T]):
    """A value of which a process has one.

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
        """Return the value in use."""
        return self._value

    @contextmanager
    def replace_meanwhile(self, by: T) -> Iterator[T]:
        """Have all code of this process use another value meanwhile."""
        before, self._value = self._value, by
        try:
            yield by
        finally:
            self._value = before
