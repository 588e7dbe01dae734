"""Threads, in one place.

The engine and the hub start threads through ``current_workers()`` alone, so that a test can control
the order of their work.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor

from braid.util.replaceable import Replaceable


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


_current = Replaceable(WorkerThreads())
current_workers, replace_workers = _current.get_current, _current.replace_meanwhile
