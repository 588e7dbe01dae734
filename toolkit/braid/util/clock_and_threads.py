"""Clock, random names, process identity and threads, in one place.

The engine and the hub use ``current_environment()`` and ``current_workers()`` alone, so that a test
can make them deterministic.
"""

from __future__ import annotations

import os
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Generic, TypeVar

T = TypeVar("T")


class Replaceable(Generic[T]):
    """A process-wide value that can be replaced temporarily.

    >>> color = Replaceable("red")
    >>> with color.replace_meanwhile("blue"):
    ...     color.get_current()
    'blue'
    >>> color.get_current()
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


class Environment:
    """The real environment of this process."""

    def read_clock(self) -> float:
        """Return the seconds of a monotonic clock, to measure durations."""
        return time.perf_counter()

    def read_time(self) -> float:
        """Return the seconds since 1970."""
        return time.time()

    def wait_seconds(self, seconds: float) -> None:
        """Wait for some seconds."""
        time.sleep(seconds)

    def make_token(self) -> str:
        """Return eight random hexadecimal digits, for a unique name."""
        return uuid.uuid4().hex[:8]

    def find_host_name(self) -> str:
        """Return the name of this machine."""
        return socket.gethostname()

    def find_process_id(self) -> int:
        """Return the id of this process."""
        return os.getpid()


_environment = Replaceable(Environment())
current_environment, replace_environment = _environment.get_current, _environment.replace_meanwhile


class WorkerThreads:
    """The threads of this process."""

    def __init__(self) -> None:
        self._shared: dict[str, Executor] = {}
        os.register_at_fork(after_in_child=self._shared.clear)  # a forked process has no threads

    def share_pool(self, name: str, most: int) -> Executor:
        """Return the shared pool of this name, with at most ``most`` threads.

        The pool is kept. Starting a thread takes a millisecond while others compute, and allocators
        retain the memory that a thread needed once.
        """
        if (pool := self._shared.get(name)) is None:
            pool = self._shared.setdefault(name, ThreadPoolExecutor(most, name))
        return pool

    def open_pool(self, name: str, most: int) -> Executor:
        """Return a new pool of at most ``most`` threads. The caller shuts it down."""
        return ThreadPoolExecutor(most, name)

    def start_thread(self, name: str, work: Callable[[], None]) -> threading.Thread:
        """Start a daemon thread that does a piece of work."""
        thread = threading.Thread(target=work, name=name, daemon=True)
        thread.start()
        return thread


_workers = Replaceable(WorkerThreads())
current_workers, replace_workers = _workers.get_current, _workers.replace_meanwhile
