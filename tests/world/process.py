"""Simulated time, names and threads of a driver's process."""

from __future__ import annotations

import random
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any

from braid.util.clock_and_threads import Environment, WorkerThreads

from world.drivers import current

_TICK = 1e-4
"""Seconds by which the clock advances at each reading."""


class SimulatedEnvironment(Environment):
    """Time that advances when it is read, and names drawn from a seed."""

    def __init__(self, draw: random.Random) -> None:
        self.draw, self.time = draw, 1_700_000_000.0

    def read_clock(self) -> float:
        self.time += _TICK
        return self.time

    def read_time(self) -> float:
        return self.read_clock()

    def wait_seconds(self, seconds: float) -> None:
        self.time += seconds

    def make_token(self) -> str:
        return f"{self.draw.getrandbits(32):08x}"

    def find_host_name(self) -> str:
        return "world"

    def find_process_id(self) -> int:
        driver = current()
        return 0 if driver is None else driver.number


class _Later(Future[Any]):
    """Work of another thread, done at once or when its result is awaited."""

    def __init__(self, work: Callable[[], Any], is_late: bool) -> None:
        super().__init__()
        self._work: Callable[[], Any] | None = work
        if not is_late:
            self._do()

    def _do(self) -> None:
        work, self._work = self._work, None
        if work is not None:
            try:
                self.set_result(work())
            except BaseException as error:
                self.set_exception(error)

    def result(self, timeout: float | None = None) -> Any:
        self._do()
        return super().result(timeout)

    def exception(self, timeout: float | None = None) -> BaseException | None:
        self._do()
        return super().exception(timeout)


class _Pool(Executor):
    def __init__(self, draw: random.Random, may_be_late: bool) -> None:
        self._draw, self._may_be_late = draw, may_be_late

    def submit(self, work: Any, /, *given: Any, **named: Any) -> Future[Any]:
        is_late = self._may_be_late and self._draw.random() < 0.5
        return _Later(lambda: work(*given, **named), is_late)


class _Ended:
    """A thread that has ended."""

    def join(self, timeout: float | None = None) -> None:
        """Return at once."""

    def is_alive(self) -> bool:
        return False


class SimulatedWorkers(WorkerThreads):
    """Threads whose work is done by the driver that starts them.

    Work of a shared pool is done at once, or only when its result is requested, as on a slow disk.
    """

    def __init__(self, draw: random.Random) -> None:
        self.draw = draw

    def share_pool(self, name: str, most: int) -> Executor:
        return _Pool(self.draw, True)

    def open_pool(self, name: str, most: int) -> Executor:
        return _Pool(self.draw, False)

    def start_thread(self, name: str, work: Callable[[], None]) -> Any:
        work()
        return _Ended()
