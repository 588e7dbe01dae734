"""Faults of durability, put into the engine, that simulated worlds must find.

Each is a mistake that was made or is easy to make, the last two in placements that move tuples. ``make world-faults`` runs worlds of fixed seeds
with each fault until one fails.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

from braid.batch_sink import BatchSink
from braid.core.run_state import FileChecksum
from braid.papers.hotkeys import block_moves
from braid.papers.hypercube import hypercube
from braid.storage import durable_files
from braid.storage.manifest_log import ManifestLog
from braid.storage.remote_medium import RemoteMedium
from braid.storage.run_store import RunStore
from braid.storage.spark_sink_log import SparkSinkLog
from world.drivers import PerDriver


@dataclass(frozen=True)
class WorldFault:
    """A fault, and the maximum number of worlds until one of them finds it."""

    name: str
    put: Callable[[], AbstractContextManager[Any]]
    worlds: int


class _Depth:
    """The nesting depth of a driver in calls of a certain kind."""

    def __init__(self) -> None:
        self.value = 0


@contextmanager
def _unchecked_within(owner: Any, name: str, first: bool = False) -> Iterator[None]:
    """Skip the check for another driver while a method runs.

    With ``first`` the check is made once before the method.
    """
    depth = PerDriver("unchecked", _Depth)
    real, check = getattr(owner, name), ManifestLog.check_fence

    def method(self: Any, *given: Any, **named: Any) -> Any:
        if first:
            self.log.check_fence()
        depth.find_own().value += 1
        try:
            return real(self, *given, **named)
        finally:
            depth.find_own().value -= 1

    def checked(log: ManifestLog) -> None:
        if not depth.value:
            check(log)

    with patch.object(owner, name, method), patch.object(ManifestLog, "check_fence", checked):
        yield


def _blocks_not_forced() -> AbstractContextManager[Any]:
    real = durable_files.checksum_file

    def seal(path: Path, force: bool) -> FileChecksum:
        return real(path, force and path.parent.name != "blocks")

    return patch.object(durable_files, "checksum_file", seal)


def _commits_not_forced() -> AbstractContextManager[Any]:
    real = durable_files.fsync_path

    def sync(path: Path) -> None:
        if path.name != "commits":
            real(path)

    return patch.object(durable_files, "fsync_path", sync)


def _delivered_too_early() -> AbstractContextManager[Any]:
    real = BatchSink.deliver_until

    def deliver(sink: BatchSink, last: int, stopped: Callable[[], bool]) -> None:
        give = sink.give

        def noted(results: Any, number: int) -> Any:
            sink.store.sink_progress.mark_delivered(number)
            return give(results, number)

        with patch.object(sink, "give", noted):
            real(sink, last, stopped)

    return patch.object(BatchSink, "deliver_until", deliver)


def _rolled_not_forced() -> AbstractContextManager[Any]:
    real = durable_files.write_atomically

    def write(path: Path, body: bytes, force: bool, *given: Any, **named: Any) -> None:
        real(path, body, force and not path.name.startswith("checkpoint-"), *given, **named)

    return patch.object(durable_files, "write_atomically", write)


def _blocks_not_checked() -> AbstractContextManager[Any]:
    real = durable_files.check_file

    def check(path: Path, known: FileChecksum, deep: bool = True) -> None:
        real(path, known, deep and path.parent.name != "blocks")

    return patch.object(durable_files, "check_file", check)


WORLD_FAULTS = [
    WorldFault(
        "old files go without a check", lambda: _unchecked_within(RunStore, "remove_old_files"), 100
    ),
    WorldFault(
        "old files go by a check, then a list",
        lambda: _unchecked_within(RunStore, "remove_old_files", True),
        2_000,
    ),
    WorldFault(
        "unnamed files go without a check",
        lambda: _unchecked_within(RunStore, "remove_unnamed_files"),
        1_000,
    ),
    WorldFault("a manifest comes before its blocks are forced", _blocks_not_forced, 200),
    WorldFault("the folder of commits is not forced", _commits_not_forced, 200),
    WorldFault("sink-progress.json comes before the sink's commit", _delivered_too_early, 100),
    WorldFault(
        "a woken driver cleans Spark's log",
        lambda: _unchecked_within(SparkSinkLog, "remove_unknown"),
        2_000,
    ),
    WorldFault("a roll-up removes entries before it is forced", _rolled_not_forced, 1_000),
    WorldFault("a block is read unchecked after a resume", _blocks_not_checked, 500),
    WorldFault(
        "a lost answer is taken for another driver",
        lambda: patch.object(RemoteMedium, "_is_same_object", lambda medium, name, body: False),
        500,
    ),
    WorldFault(
        "blocks of HotKeys that move are dropped and not copied",
        lambda: patch.object(
            block_moves,
            "_move_block",
            lambda to, block, table: to.drop_replicas(block, block.hosts),
        ),
        200,
    ),
    WorldFault(
        "blocks of a hypercube stay when its shares change",
        lambda: patch.object(hypercube, "move_stored_blocks", lambda *given: None),
        200,
    ),
]
