"""Drivers that fall asleep at any change of files, and wake up when others have gone on."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from braid.core.work import Workers, replaced_workers
from braid.engine.disk import Disk, replaced_disk
from braid.engine.durable import is_temporary
from braid.engine.lock import Lock
from braid.engine.log import ours

CHANGES = ("append", "link", "names", "replace", "rmtree", "sink", "truncate", "unlink", "write")


class AtOnce(Executor):
    """Does work when it is asked to."""

    def submit(self, work: Callable[..., Any], /, *given: Any, **named: Any) -> Future[Any]:
        done: Future[Any] = Future()
        try:
            done.set_result(work(*given, **named))
        except BaseException as error:
            done.set_exception(error)
        return done


class NoThreads(Workers):
    """Has all work done by the thread that asks for it, so that changes come in one order."""

    def shared(self, name: str, most: int) -> Executor:
        return AtOnce()

    def pool(self, name: str, most: int) -> Executor:
        return AtOnce()

    def start(self, name: str, work: Callable[[], None]) -> threading.Thread:
        work()
        thread = threading.Thread()
        thread.start()
        return thread


class Sleeping(Disk):
    """The real file system, below ``folder``. Changes are counted while ``counts`` says so; before
    number ``at``, or the first of a name that begins so, the driver sleeps while ``meanwhile`` goes
    on.
    """

    def __init__(
        self,
        folder: Path,
        at: int | str,
        meanwhile: Callable[[], None],
        counts: Callable[[], bool],
    ) -> None:
        self.folder, self.at, self.meanwhile, self.counts = folder, at, meanwhile, counts
        self.count, self.asleep, self.slept_at = 0, False, ""

    def change(self, name: str, path: Path) -> None:
        """Count a change that is about to be made."""
        if self.asleep or self.slept_at or not path.is_relative_to(self.folder):
            return
        if not self.counts():
            return
        told = f"{name} {path.relative_to(self.folder)}"
        if self.count == self.at or (isinstance(self.at, str) and told.startswith(self.at)):
            self.asleep, self.slept_at = True, f"{told}: {_who()}"
            try:
                self.meanwhile()
            finally:
                self.asleep = False
        self.count += 1


def _who() -> str:
    """The functions of the engine that make a change."""
    found, frame = list[str](), sys._getframe(1)
    while frame.f_back is not None:
        frame = frame.f_back
        if "braid/engine" in frame.f_code.co_filename:
            found.append(frame.f_code.co_name)
    return " < ".join(found)


def _counted(name: str) -> Callable[..., Any]:
    def change(disk: Sleeping, *given: Any, **named: Any) -> Any:
        paths = [g for g in given if isinstance(g, str | Path)]
        disk.change(name, Path(paths[-1]))
        return getattr(Disk, name)(disk, *given, **named)

    return change


for _name in CHANGES:
    setattr(Sleeping, _name, _counted(_name))


@contextmanager
def sleeping(disk: Sleeping) -> Iterator[Sleeping]:
    """Meanwhile all drivers use this disk and no threads of their own, and no lock tells them that
    it is lost, as on a file system that has none.
    """
    real, Lock.check = Lock.check, lambda lock: None  # type: ignore[method-assign]
    try:
        with replaced_disk(disk), replaced_workers(NoThreads()):
            yield disk
    finally:
        Lock.check = real  # type: ignore[method-assign]


def named(folder: Path) -> dict[str, bytes]:
    """The files of a run, but for those that no manifest can name yet."""
    found = [f for f in folder.rglob("*") if f.is_file() and not is_temporary(f.name)]
    names = {f.relative_to(folder).as_posix(): f for f in found if f.name != ".lock"}
    return {n: f.read_bytes() for n, f in names.items() if not _may_be_left(n)}


def _may_be_left(name: str) -> bool:
    """Whether a driver may leave a file of this name that nothing names: the next one removes it."""
    return name.startswith(("blocks/", "new/", "commits/state-")) and ours(name.split("/")[1])
