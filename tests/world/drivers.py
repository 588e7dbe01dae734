"""Drivers that take turns: each is a thread that runs only while it has the baton.

Every request of a driver to the world (a file, an object, a worker's time) is a **step**. At a step
the world may let the driver continue, freeze it, kill it, or cut the power. A killed driver does
nothing more: each later step raises too, also in ``finally``.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any


class Killed(BaseException):
    """Raised in a driver that was killed, at any point."""


class Driver:
    """A process of the simulated world, which does ``work`` when it is woken.

    ``is_alive`` is True until it is killed or ends; ``error`` is the error that ended it, or None.
    """

    def __init__(self, number: int, work: Callable[[], Any]) -> None:
        self.number, self._work = number, work
        self.is_killed, self.has_ended = False, False
        self.result: Any = None
        self.error: BaseException | None = None
        self.own: dict[str, Any] = {}
        """Values that each process has in place of a module's value, by name."""
        self._mine, self._others = threading.Semaphore(0), threading.Semaphore(0)
        self._thread = threading.Thread(target=self._live, name=f"driver-{number}", daemon=True)
        self._is_started = False

    def __str__(self) -> str:
        return f"driver {self.number}"

    @property
    def is_alive(self) -> bool:
        return not self.is_killed and not self.has_ended

    def wake(self) -> None:
        """Give the driver the baton, and wait until it returns it."""
        if not self._is_started:
            self._is_started = True
            self._thread.start()
        self._mine.release()
        self._others.acquire()

    def freeze(self) -> None:
        """Return the baton until woken again. Called by the driver itself."""
        self._others.release()
        self._mine.acquire()

    def end(self) -> None:
        """Kill the driver and wait for the end of its thread."""
        self.is_killed = True
        if self._is_started and not self.has_ended:
            self.wake()

    def _live(self) -> None:
        self._mine.acquire()
        _current.driver = self
        try:
            if not self.is_killed:
                self.result = self._work()
        except BaseException as error:
            self.error = error
        finally:
            self.has_ended = True
            self._others.release()


class _Current(threading.local):
    driver: Driver | None = None


_current = _Current()


def current() -> Driver | None:
    """Return the driver whose thread this is; None outside of all drivers."""
    return _current.driver


class PerDriver:
    """A placeholder for a module's value that each process has a copy of."""

    def __init__(self, name: str, make: Callable[[], Any]) -> None:
        self._name, self._make, self._outside = name, make, make()

    def __getattr__(self, attribute: str) -> Any:
        return getattr(self.find_own(), attribute)

    def find_own(self) -> Any:
        """Return the value of the calling driver."""
        if (driver := current()) is None:
            return self._outside
        if self._name not in driver.own:
            driver.own[self._name] = self._make()
        return driver.own[self._name]
