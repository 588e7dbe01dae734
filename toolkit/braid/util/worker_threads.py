"""Threads, in one place: the engine and the hub start theirs through ``workers()`` alone, so that a
test can have the work done in an order that it chooses.
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
        """Return the pool of this name, which has at most ``most`` threads and is shared. It
        stays: to start a thread takes a millisecond while others compute, and allocators keep for
        each thread the memory that it needed once.
        """
        if (pool := self._shared.get(name)) is None:
            pool = self._shared.setdefault(name, ThreadPoolExecutor(most, name))
        return pool

    def open_pool(self, name: str, most: int) -> Executor:
        """Return a new pool of at most ``most`` threads. The caller shuts it down."""
        return ThreadPoolExecutor(most, name)

    def start_thread(self, name: str, work: Callable[[], None]) -> threading.Thread:
        """Start a thread that does a piece of work; the process does not wait for it at its end."""
        thread = threading.Thread(target=work, name=name, daemon=True)
        thread.start()
        return thread


_current = Replaceable(WorkerThreads())
current_workers, replace_workers = _current.get_current, _current.replace_meanwhile
