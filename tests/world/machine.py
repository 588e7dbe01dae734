"""A simulated machine controlled by a test, which sees every step of the engine."""

from __future__ import annotations

import random
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from braid.storage import block_readers
from braid.storage import object_store as buckets
from braid.util.clock_and_threads import replace_environment, replace_workers
from braid.util.file_system import replace_file_system

from world.disk import SimulatedDisk
from world.drivers import Driver, Killed, PerDriver, current
from world.files import Files
from world.process import SimulatedEnvironment, SimulatedWorkers
from world.store import ObjectStore, SimulatedBucket

URL = "world://run"
_READERS = type(block_readers._readers)


class Machine:
    """Files, objects, threads and time, as the engine sees them in ``simulated``.

    - ``before``: called before each operation with its name and path, or URL; it may raise, or
      freeze the calling driver.
    - ``steps``: the finished operations.
    - ``requests``: the kinds and names of requests for objects.
    """

    def __init__(
        self, files: Files | None = None, stores: dict[str, ObjectStore] | None = None
    ) -> None:
        self.files = Files() if files is None else files
        self.stores = defaultdict(ObjectStore) if stores is None else stores
        self.disk = SimulatedDisk(self.files, self.step)
        self.environment = SimulatedEnvironment(random.Random("names"))
        self.steps: list[tuple[str, str]] = []
        self.requests: list[str] = []
        self.before: Callable[[str, str], None] = lambda operation, path: None

    def step(self, operation: str, path: str) -> float:
        """Allow an operation of a live driver; see ``disk.Step``."""
        driver = current()
        if driver is not None and driver.is_killed:
            raise Killed
        self.before(operation, path)
        self.steps.append((operation, path))
        if "://" in path:
            self.requests.append(_request(operation, path))
        self.files.now = self.environment.time
        return 1.0

    def content(self, folder: str = "") -> dict[str, bytes]:
        """Return the content of the files in a folder, or of the objects at a URL, by relative
        name.
        """
        if "://" in folder:
            return dict(self.stores[folder].objects)
        return {
            path.removeprefix(f"{folder}/"): node.content for path, node in self.files.walk(folder)
        }

    @contextmanager
    def simulated(self) -> Iterator[None]:
        """Run the engine on this machine instead of the real one."""
        with ExitStack() as stack:
            for replaced in (
                replace_file_system(self.disk),
                replace_environment(self.environment),
                replace_workers(SimulatedWorkers(random.Random("threads"))),
                patch.object(block_readers, "_readers", PerDriver("readers", _READERS)),
                patch.object(buckets, "ObjectStore", self._open_bucket),
                patch("braid.util.temp_dirs.make_temp_dir", self._make_scratch),
                patch("braid.util.temp_dirs.remove_temp_dir", lambda folder: None),
            ):
                stack.enter_context(replaced)
            stack.callback(buckets.open_object_store.cache_clear)
            buckets.open_object_store.cache_clear()
            yield

    def _open_bucket(self, url: str) -> SimulatedBucket:
        def ask(operation: str, name: str, is_before: bool) -> None:
            if is_before:
                self.step(operation, f"{url}/{name}")

        return SimulatedBucket(self.stores[url], ask, url)

    def _make_scratch(self, name: str) -> Path:
        folder = Path(f"/scratch/{name}-{self.environment.make_token()}")
        self.disk.make_folder(folder)
        return folder


def kill_before(machine: Machine, work: Callable[[], Any], request: int | str) -> None:
    """Run work on a machine until its driver is killed.

    It is killed before its n-th request to a bucket, or before the first one with a prefix.
    """
    driver, count = Driver(0, work), len(machine.requests)

    def kill(operation: str, path: str) -> None:
        if "://" not in path:
            return
        asked = _request(operation, path)
        number = len(machine.requests) - count
        if number == request or (isinstance(request, str) and asked.startswith(request)):
            driver.is_killed = True
            raise Killed

    machine.before = kill
    with machine.simulated():
        driver.wake()
    machine.before = lambda operation, path: None
    if driver.error is not None and not driver.is_killed:
        raise driver.error


def overtake(
    machine: Machine,
    first: Callable[[], Any],
    second: Callable[[], Any],
    is_now: Callable[[str, str], bool],
) -> tuple[str, BaseException | None]:
    """Run the ``first`` work and freeze its driver before a step for which ``is_now`` holds.

    It loses its lock without notice; another driver does the ``second`` work, and then the first
    one wakes. Return the step before which it froze, "" if none, and how it ended.
    """
    one, two, frozen = Driver(0, first), Driver(1, second), list[str]()

    def freeze(operation: str, path: str) -> None:
        if current() is one and not frozen and is_now(operation, path):
            frozen.append(f"{operation} {path}: {_name_callers()}")
            one.freeze()
            if one.is_killed:
                raise Killed

    machine.before = freeze
    try:
        one.wake()
        if frozen:
            machine.disk.locks.clear()
            two.wake()
            if two.error is not None:
                raise two.error
            one.wake()
    finally:
        one.end()
        two.end()
        machine.before = lambda operation, path: None
    return "".join(frozen), one.error


def _name_callers() -> str:
    """Return the functions of the engine that make a step."""
    found, frame = list[str](), sys._getframe(1)
    while frame.f_back is not None:
        frame = frame.f_back
        if "toolkit/braid" in frame.f_code.co_filename:
            found.append(frame.f_code.co_name)
    return " < ".join(found)


def _request(operation: str, path: str) -> str:
    return f"{operation} {path.removeprefix(URL).removeprefix('/')}"
