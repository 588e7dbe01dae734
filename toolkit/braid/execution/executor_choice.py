"""Which way a batch goes: in this process, or by Spark's tasks.

A cost model, pure and deterministic: the same batches before, the same choice. A batch takes what
carries it plus what its hosts work. What carries it is a fixed time and a time for each byte, first
as they were measured on a machine of two cores, then times what the last batches of that way have
taken more or less. Work is a time for each byte, as the last batches of that way took it; of a way
not taken yet, what all hosts worked, shared by those that can work at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

from braid.core.batch_report import TaskReport
from braid.core.events import BatchCommitted

COPIES = 4
"""What this process holds of a batch at once, in times its tuples: as they are collected, sorted
into blocks, on their way to a file, and what is found with them. Blocks are made once, however
many hosts and threads there are (see process.py); small ones that are met at once are copied
besides."""

_RECENT = 9
"""Batches of one way that count, the last ones."""
_UNTRIED = 100
"""Batches after which a way that was not taken may be tried again; what it took before does not
count any more then."""
_LOOKED_AT = 3 * _UNTRIED
"""Batches that are looked at, the last ones."""
_UNPACKED = 4.0
"""Bytes of Arrow for a byte that the source announces, before any batch has told: files are
compressed."""
_FIXED = {"process": 0.06, "spark": 0.22}
"""Seconds of a batch without tuples."""
_SHIPPED = 50e-9
"""Seconds that a task of Spark takes to hand a byte on to the next stage."""
_COLLECTED = 10e-9
"""Seconds that a byte takes from Spark to this process."""
_TRANSFERRED = 10e-9
"""Seconds that a byte takes from another machine to this one, besides."""


@dataclass(frozen=True)
class Parallelism:
    """What work can be shared among: ``threads`` of this process, ``slots`` for tasks of Spark,
    which are ``local`` when they are on this machine too. ``memory`` is what this process may hold
    of a batch, in bytes.
    """

    threads: int
    slots: int
    is_local: bool
    memory: int

    @property
    def collect_limit_bytes(self) -> int:
        """Bytes of tuples that this process may collect."""
        return self.memory // COPIES

    @property
    def describe(self) -> str:
        """What seconds depend on, in words: those of another machine tell nothing of this one."""
        return f"{self.threads} threads, {self.slots} {'' if self.is_local else 'remote '}slots"


class ExecutorChoice(NamedTuple):
    """The way of a batch, and why in words."""

    executor: str
    reason: str


class ExecutionResult(NamedTuple):
    """The reports of all tasks of a batch; which way it went, and why; the bytes that its source
    ``announced`` before it was read (0: not asked, or none), and those that ``came`` at least when
    there were too many; and the machine that the way was chosen for (empty: it was not chosen).
    """

    reports: list[TaskReport]
    choice: ExecutorChoice
    announced_bytes: int = 0
    received_bytes: int = 0
    parallelism: str = ""


class BatchTiming(NamedTuple):
    """What a committed batch tells: its way; the bytes of its tuples, and those that its source
    ``announced`` (0: none); its seconds, of them those of the ``kernels`` (see core.seconds); what
    all its hosts worked, added up; how many tasks shared that; and on which machine.
    """

    executor: str
    bytes: int
    announced_bytes: int
    seconds: float
    kernel_seconds: float
    work: float
    tasks: int = 1
    parallelism: str = ""


def recent_timings(events: Sequence[object]) -> list[BatchTiming]:
    """The last batches among these events that had tuples and a way."""
    told = (
        BatchTiming(
            e.executor,
            e.source_bytes or sum(e.received_bytes),
            e.announced_bytes,
            e.seconds_by_phase.get("total", 0.0),
            e.seconds_by_phase.get("kernels", 0.0),
            sum(did.seconds for did in e.host_metrics),
            e.task_count,
            e.parallelism,
        )
        for e in reversed(events)
        if isinstance(e, BatchCommitted)
        and e.executor
        and (e.source_bytes or sum(e.received_bytes))
    )
    return [*islice(told, _LOOKED_AT)][::-1]


def expected_bytes(before: Sequence[BatchTiming], announced: int) -> int:
    """The bytes of tuples that a batch will have. A source that announces nothing is taken to give
    as much as it lately gave at most.
    """
    recent = before[-_RECENT:]
    if not announced:
        return max((p.bytes for p in recent), default=0)
    ratios = [p.bytes / p.announced_bytes for p in recent if p.announced_bytes]
    return round(announced * max(ratios, default=_UNPACKED))


def choose_executor(
    before: Sequence[BatchTiming],
    announced: int,
    hosts: int,
    machine: Parallelism,
    derived: int = 0,
) -> ExecutorChoice:
    """The way of the next batch, on so many hosts; ``announced`` are the bytes that its source
    announces (0: it does not), ``derived`` those of stored blocks that are made anew.
    """
    size = expected_bytes(before, announced)
    if size + derived > machine.collect_limit_bytes:
        return ExecutorChoice("spark", driver_memory_excess(size, machine, derived))
    model = _Model([p for p in before if p.parallelism == machine.describe], size, hosts, machine)
    here, there = model.expected_seconds("process"), model.expected_seconds("spark")
    best, other = ("process", "spark") if here <= there else ("spark", "process")
    why = f"{format_megabytes(size)} expected: {here:.2f} s in this process, {there:.2f} s on Spark"
    if model.should_retry_other(best):
        return ExecutorChoice(other, f"{why}; tried again after {_UNTRIED} batches")
    return ExecutorChoice(best, why)


def driver_memory_excess(size: int, machine: Parallelism, derived: int = 0) -> str:
    """Why a batch of so many bytes, with so many of state, does not go through this process."""
    state = f" and {format_megabytes(derived)} of state" if derived else ""
    return (
        f"{format_megabytes(size)} of tuples{state} take "
        f"{format_megabytes((size + derived) * COPIES)} here; the "
        f"driver may hold {format_megabytes(machine.memory)}"
    )


def format_megabytes(size: int) -> str:
    """Bytes as people read them."""
    return f"{size / 1e6:,.3g} MB" if size < 1e9 else f"{size / 1e9:,.3g} GB"


@dataclass(frozen=True)
class _Model:
    """What a batch of ``size`` bytes takes, learned from those ``before`` it."""

    before: Sequence[BatchTiming]
    size: int
    hosts: int
    machine: Parallelism

    def expected_seconds(self, way: str) -> float:
        """What a batch is expected to take on a way; one that was never taken is as slow as the
        other one is.
        """
        pace = (
            self._transfer_slowdown(way)
            or self._transfer_slowdown("process" if way == "spark" else "spark")
            or 1.0
        )
        return pace * self._transfer_seconds(way, self.size) + self._kernel_seconds(way)

    def should_retry_other(self, best: str) -> bool:
        """Whether the other way should be tried again, which has long not been taken. Spark: where
        most of the time is work, which threads of one process may share badly. This process: where
        it would be faster, if it were as it was first measured and shared work well.
        """
        if [p.executor for p in self.before[-_UNTRIED:]] != [best] * _UNTRIED:
            return False
        if best == "process":
            return 2 * self._kernel_seconds(best) > self.expected_seconds(best)
        return self._transfer_seconds("process", self.size) + self._even_work_seconds(
            "process"
        ) < self.expected_seconds(best)

    def _recent_batches(self, way: str) -> list[BatchTiming]:
        """The last batches of a way, but those long before the very last."""
        at = [n for n, p in enumerate(self.before) if p.executor == way][-_RECENT:]
        return [self.before[n] for n in at if n >= at[-1] - _UNTRIED]

    def _transfer_slowdown(self, way: str) -> float | None:
        """How many times longer carriage took than it was first measured to."""
        carried = (
            (p.seconds - p.kernel_seconds) / self._transfer_seconds(way, p.bytes)
            for p in self._recent_batches(way)
        )
        return _lower_median(carried)

    def _transfer_seconds(self, way: str, size: int) -> float:
        if way == "spark":
            return _FIXED[way] + size * _SHIPPED / self.machine.slots
        return _FIXED[way] + size * (_COLLECTED + (not self.machine.is_local) * _TRANSFERRED)

    def _kernel_seconds(self, way: str) -> float:
        taken = _lower_median(
            p.kernel_seconds * self._parallel_fraction(p) / p.bytes
            for p in self._recent_batches(way)
        )
        return self._even_work_seconds(way) if taken is None else taken * self.size

    def _parallel_fraction(self, p: BatchTiming) -> float:
        """What is left of a batch's time for work once it is not done on one thread any more, which
        a small one is before its work is known.
        """
        return (
            1 / self._count_parallel_hosts("process")
            if p.executor == "process" and p.tasks == 1
            else 1.0
        )

    def _even_work_seconds(self, way: str) -> float:
        """What work takes when the tasks of a way share it evenly."""
        work = _lower_median(p.work / p.bytes for p in self.before[-_RECENT:]) or 0.0
        return work / self._count_parallel_hosts(way) * self.size

    def _count_parallel_hosts(self, way: str) -> int:
        slots = self.machine.threads if way == "process" else self.machine.slots
        return max(1, min(self.hosts, slots))


def _lower_median(numbers: Iterable[float]) -> float | None:
    """The lower median, so that one cold batch of two does not count; None of none."""
    rising = sorted(numbers)
    return rising[(len(rising) - 1) // 2] if rising else None
