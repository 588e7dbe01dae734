"""One world: a run, its drivers, their faults, and the invariants at the end."""

from __future__ import annotations

import errno
import gc
import os
import random
import traceback
from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from functools import cached_property
from math import inf
from pathlib import Path
from typing import Any
from unittest.mock import patch

from braid.execution import thread_executor
from braid.storage import block_readers, log_checkpointer
from braid.storage import object_store as buckets
from braid.storage.static_input_copy import InputSnapshot
from braid.storage.table_input import TableInput
from braid.util.clock_and_threads import replace_environment, replace_workers
from braid.util.file_system import replace_file_system

from world import invariants
from world.disk import SimulatedDisk
from world.drivers import Driver, Killed, PerDriver, current
from world.fate import COMMITTED, Fate, Step
from world.files import Files
from world.hub_scenario import HubScenario
from world.process import SimulatedEnvironment, SimulatedWorkers
from world.scenario import Scenario, scenario
from world.sink import TransactionalSink, Wrong
from world.source import repeating
from world.store import LostAnswer, ObjectStore, SimulatedBucket, failing

RUN = "/run"
URL = "world://run"
_WRITES = ("write", "append", "close", "create", "link", "mkdir", "replace", "put")
_STEPS_A_BATCH = 1000
"""Number of steps per batch above which there is no progress."""
_MOST_DRIVERS = 12
_EVER = 1_000_000
"""More steps than any world has."""
_SLEEPS = ((10, 0), (100, 0), (_EVER, 1), (_EVER, 2), (_EVER, 3), (_EVER, 4), (_EVER, 0))
"""Limits of a driver's sleep.

They are steps of its successor, and entries that the successor adds to the log; the first of these
records its start. The sleep ends at the first limit, or at the successor's end.
"""
_ROLL_UP = 3
"""Number of commits that are rolled up at once, small enough for short runs."""


@dataclass(frozen=True)
class Verdict:
    """How a world ended: ``wrong`` is empty if everything is right."""

    seed: int
    scenario: Scenario | HubScenario
    wrong: str
    trace: list[str]
    drivers: int
    faults: tuple[str, ...]
    how: str = ""
    """The traceback of the error, if there is one."""

    def __str__(self) -> str:
        last = "\n".join(f"  {line}" for line in self.trace[-60:])
        return (
            f"world {self.seed}: {self.wrong or 'as it must be'}\n{self.scenario}\n"
            f"faults: {', '.join(self.faults) or 'none'}\n{self.how}the last steps:\n{last}"
        )


class World:
    """A scenario in progress. All of its decisions come from its seed."""

    def __init__(self, seed: int) -> None:
        self.scenario: Any = self._draw_scenario(seed)
        self.draw = random.Random(f"{seed} fate")
        self.files, self.objects = Files(), ObjectStore()
        self.disk = SimulatedDisk(self.files, self.step)
        self.environment = SimulatedEnvironment(random.Random(f"{seed} names"))
        self.workers = SimulatedWorkers(random.Random(f"{seed} threads"))
        self.sink = TransactionalSink(self._sink_fails)
        self.trace: list[str] = []
        self.drivers: list[Driver] = []
        self.happened: list[str] = []
        self.announced = -1
        """The last batch that an observer knows to be committed."""
        self.is_calm, self.is_full, self.wants_another = False, 0, False
        self.has_completed = False
        """Whether a driver has reached the end of the run, and no file was lost or damaged
        since.
        """
        s = self.scenario
        self._fate = Fate(self.draw, s.faults, s.most, s.spacing, s.place)
        self._switch, self._commits = 0, 0
        self._steps, self._before = Counter[int](), dict[int, Step]()
        self._excused = set[int]()
        """Drivers with an injected fault, which may fail."""

    def _draw_scenario(self, seed: int) -> Any:
        return scenario(seed)

    # What happens at a step

    def step(self, operation: str, path: str) -> float:
        """Allow an operation of a driver, or not; see ``disk.Step``."""
        driver = current()
        if driver is None:
            return 1.0
        if driver.is_killed:
            raise Killed
        self._count(driver)
        self.files.now = self.environment.time
        if self.is_calm:
            self._note(driver, operation, path)
            return 1.0
        before = self._before.get(driver.number, ("", ""))
        self._before[driver.number] = operation, path
        self._perhaps_switch(driver, before)
        if fault := self._fate.draw_fault(before, (operation, path)):
            return self._happens(driver, fault, operation, path)
        if self.is_full:
            self.is_full -= 1
            if operation in _WRITES:
                return self._no_room(driver, operation, path)
        self._note(driver, operation, path)
        return 1.0

    def _count(self, driver: Driver) -> None:
        self._steps[driver.number] += 1
        if self._steps[driver.number] > _STEPS_A_BATCH * (self.scenario.batches + 2):
            driver.is_killed = True
            raise Wrong(f"{driver} makes no progress")

    def _note(self, driver: Driver, operation: str, path: str, what: str = "") -> None:
        self.trace.append(f"{driver.number} {operation} {path}{what and ' : '}{what}")

    def _happens(self, driver: Driver, fault: str, operation: str, path: str) -> float:
        """Inject a fault at a step."""
        self.happened.append(fault)
        self._note(driver, operation, path, fault)
        if fault == "zombie":
            self._lose_lock()
            self.wants_another = True
            del self._before[driver.number]  # it has not done this yet
            driver.freeze()
            return self.step(operation, path)
        if fault in ("kill", "flip", "cut"):
            torn = self.draw.random() if operation in ("write", "append", "close") else None
            for each in self.drivers if fault != "kill" else [driver]:
                each.is_killed = True
            if torn is not None and fault != "cut":
                self._tear(operation, path, torn)
            raise Killed
        if fault == "lost answer" and operation == "answer":
            raise LostAnswer  # the client tries again, so that is no excuse
        self._excused.add(driver.number)
        if fault == "full":
            self.is_full = self.draw.choice((1, 20, 200))
            return self._no_room(driver, operation, path) if operation in _WRITES else 1.0
        if fault == "lost answer":
            raise failing(path, self.draw.choice((500, 503)))
        raise OSError(errno.EIO, os.strerror(errno.EIO), path)

    def _tear(self, operation: str, path: str, share: float) -> None:
        """Keep only a part of what a killed driver was about to write."""
        node = self.files.find(path)
        if operation == "close" and node is not None:
            node = self.files.file(path)
            self.files.change(node, node.content[: int(share * len(node.content))])

    def _no_room(self, driver: Driver, operation: str, path: str) -> float:
        self._excused.add(driver.number)
        self._note(driver, operation, path, "no room")
        if operation in ("write", "append", "close"):
            return self.draw.random() * 0.999
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)

    def _lose_lock(self) -> None:
        """Lose the lock, as on a file system that does not support it: its file, or only its
        effect.
        """
        self.disk.locks.clear()
        lock = f"{RUN}/.lock"
        if self.draw.random() < 0.5 and self.files.find(lock) is not None:
            self.files.unlink(lock)
        self._switch, self._commits = self.draw.choice(_SLEEPS)

    def _perhaps_switch(self, driver: Driver, before: Step) -> None:
        """Now and then switch to another driver, if there are several."""
        if not self._switch or sum(d.is_alive for d in self.drivers) < 2:
            return
        self._switch -= 1
        if self._commits and any(moment.is_at(before, before) for moment in COMMITTED):
            self._commits -= 1
            self._switch *= self._commits > 0
        if not self._switch:
            self._switch, self._commits = self.draw.choice((3, 30, 300, _EVER)), 0
            driver.freeze()
            if driver.is_killed:
                raise Killed

    def _ask(self, operation: str, name: str, is_before: bool) -> None:
        """Pass a driver's request to the object store."""
        operation = operation if is_before else "answer"
        if self.step(operation, f"{URL}/{name}") < 1:
            raise failing(name, 507)

    def _sink_fails(self, operation: str) -> bool:
        driver = current()
        if self.step(operation, "sink") < 1 or driver is None or self.is_calm:
            return False
        if fails := self.draw.random() < 0.03:
            self._excused.add(driver.number)
            self.trace.append(f"{driver.number} {operation} fails")
        return fails

    # The drivers

    def _spawn(self) -> Driver:
        driver = Driver(len(self.drivers), self._drive)
        self.drivers.append(driver)
        return driver

    def _drive(self) -> Any:
        s = self.scenario
        more = {} if s.keep is None else {"keep": s.keep}
        run = self.join.start(
            RUN if s.place == "folder" else URL,
            batches="batch",
            durability=s.durability,
            foreachBatch=self.sink.give if s.has_sink else None,
            **more,
        )
        run.awaitTermination()
        return run

    def _tell(self, batch: int) -> None:
        self.announced = max(self.announced, batch)

    def play(self) -> Verdict:
        """Run until everything is done, then once more without faults, and check the result."""
        wrong = how = ""
        with self._simulated():
            try:
                self._run()
                self._end()
            except Wrong as found:
                wrong = str(found)
                if found.__cause__ is not None:
                    how = "".join(traceback.format_exception(found.__cause__))
            finally:
                self.is_calm = True
                for driver in self.drivers:
                    driver.end()
        wrong = wrong or self._recompute_answers()
        return Verdict(
            self.scenario.seed,
            self.scenario,
            wrong,
            self.trace,
            len(self.drivers),
            tuple(self.happened),
            how,
        )

    def _run(self) -> None:
        driver = None
        while True:
            if self.wants_another or not any(d.is_alive for d in self.drivers):
                self.wants_another = False
                self.is_calm = len(self.drivers) >= _MOST_DRIVERS
                driver = self._spawn()
            else:
                alive = [d for d in self.drivers if d.is_alive]
                driver = self.draw.choice([d for d in alive if d is not driver] or alive)
            driver.wake()
            self._look_at(driver)
            if not any(d.is_alive for d in self.drivers) and not self.wants_another:
                if self.has_completed:
                    self._check_left()
                if driver.has_ended and driver.error is None:
                    return
                if self.is_calm:
                    return

    def _look_at(self, driver: Driver) -> None:
        """Record how a driver ended, if it did."""
        if driver.has_ended and driver.error is None and not driver.is_killed:
            self.has_completed = True
        if driver.has_ended and driver.error is not None and not driver.is_killed:
            invariants.check_end(self, driver)
        if driver.is_killed and self.happened and self.happened[-1] in ("cut", "flip"):
            for each in self.drivers:
                each.end()
            self.has_completed = False
            {"cut": self._cut, "flip": self._flip}[self.happened[-1]]()
            self.happened[-1] += " done"
        elif driver.is_killed:
            driver.end()

    def _cut(self) -> None:
        self.files.cut(self.draw)
        self._check_promise()

    def _check_promise(self) -> None:
        invariants.check_promise(self)

    def _flip(self) -> None:
        there = dict[str, list[str]]()
        for path, node in self.files.walk():
            if node.content:
                there.setdefault(path.rpartition("/")[0], []).append(path)
        if there:
            path = self.draw.choice(there[self.draw.choice([*there])])
            bit = self.draw.getrandbits(30)
            self.trace.append(f"flip {path} {bit}")
            self.files.flip(path, bit)

    def _end(self) -> None:
        """Perform the last resume, without faults."""
        self.is_calm = True
        driver = self._spawn()
        driver.wake()
        invariants.check_last(self, driver)

    def _check_left(self) -> None:
        invariants.check_left(self)

    def _recompute_answers(self) -> str:
        return invariants.recompute_answers(self)

    def check_all(self, run: Any) -> None:
        """Raise Wrong unless everything is right after the last resume."""
        invariants.check_all(self, run)

    @contextmanager
    def _simulated(self) -> Iterator[None]:
        """Run the engine in this world instead of on the machine."""
        gc.disable()  # so that finalizers run at the same steps each time
        with ExitStack() as stack:
            for replaced in (
                replace_file_system(self.disk),
                replace_environment(self.environment),
                replace_workers(self.workers),
                patch.object(block_readers, "_readers", PerDriver("readers", type(_READERS))),
                patch.object(log_checkpointer, "_EVERY", _ROLL_UP),
                patch.object(thread_executor, "_SHORT", -1.0 if self.scenario.many else inf),
                patch.object(thread_executor, "available_cores", lambda: 2),
                patch.object(buckets, "ObjectStore", self._bucket),
                *map(_unlocked, (InputSnapshot, TableInput)),
                patch("braid.util.temp_dirs.make_temp_dir", self._scratch),
                patch("braid.util.temp_dirs.remove_temp_dir", lambda folder: None),
            ):
                stack.enter_context(replaced)
            buckets.open_object_store.cache_clear()
            self._equip(random.Random(f"{self.scenario.seed} source"))
            yield
        buckets.open_object_store.cache_clear()
        gc.enable()

    def _equip(self, draw: random.Random) -> None:
        self.join = self.scenario.join()
        self.join.run_class = repeating(draw, self._tell)

    def _bucket(self, url: str) -> Any:
        return SimulatedBucket(self.objects, self._ask, url)

    def _scratch(self, name: str) -> Path:
        folder = Path(f"/scratch/{name}-{self.environment.make_token()}")
        self.disk.make_folder(folder)
        return folder


def _unlocked(owner: type) -> AbstractContextManager[Any]:
    """Remove the lock of a class's cached properties.

    In Python 3.11 all objects of a process share it: a driver that is frozen in one would freeze
    the others.
    """
    stack = ExitStack()
    for kept in vars(owner).values():
        if isinstance(kept, cached_property):
            stack.enter_context(patch.object(kept, "lock", nullcontext(), create=True))
    return stack


_READERS = block_readers._readers
