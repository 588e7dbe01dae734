"""Choose the executor of a batch: threads of this process or tasks of Spark.

The cost model is pure and deterministic: equal past batches give equal choices. The time of a batch
is transfer plus work. Transfer is a fixed time plus a time per byte, as measured on a machine of
two cores, times the slowdown of the executor's recent batches. Work is a time per byte, measured in
the executor's recent batches. For an unused executor, the total work of all hosts is divided by its
parallelism.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

from braid.core.batch_report import TaskReport
from braid.core.run_events import BatchCommitted
from braid.util.machine import format_bytes

COPIES = 4
"""Bytes that this process holds during a batch, as a multiple of the bytes of its tuples.

They are: tuples as collected, tuples sorted into blocks, blocks on their way to a file, and
results. Blocks are made once for all hosts and threads (see ``thread_executor``). Small blocks that
are probed together are copied in addition.
"""

_RECENT = 9
"""Recent batches of one executor that count."""
_UNTRIED = 100
"""Batches after which an unused executor may be tried again.

Its earlier batches then no longer count.
"""
_LOOKED_AT = 3 * _UNTRIED
"""Recent batches that are considered."""
_UNPACKED = 4.0
"""Arrow bytes per announced byte, before any batch was measured. Files are compressed."""
_FIXED = {"process": 0.06, "spark": 0.22}
"""Seconds of a batch without tuples."""
_SHIPPED = 50e-9
"""Seconds per byte that a Spark task takes to hand data to the next stage."""
_COLLECTED = 10e-9
"""Seconds per byte from Spark to this process."""
_TRANSFERRED = 10e-9
"""Additional seconds per byte from another machine to this one."""


@dataclass(frozen=True)
class Parallelism:
    """Parallelism available to a batch.

    - ``threads``: threads of this process.
    - ``slots``: concurrent tasks of Spark.
    - ``is_local``: whether the slots are on this machine.
    - ``memory``: bytes that this process may hold of a batch.
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
        """Description of the machine. Measurements compare only if it is equal."""
        return f"{self.threads} threads, {self.slots} {'' if self.is_local else 'remote '}slots"


class ExecutorChoice(NamedTuple):
    """Executor of a batch, and the reason in words."""

    executor: str
    reason: str


class ExecutionResult(NamedTuple):
    """Result of executing a batch.

    - ``reports``: reports of all tasks.
    - ``choice``: executor, and the reason.
    - ``announced_bytes``: bytes that the source announced; 0: unknown.
    - ``received_bytes``: bytes received before the batch exceeded the limit; 0: it did not.
    - ``parallelism``: description of the machine; empty: the executor was fixed.
    """

    reports: list[TaskReport]
    choice: ExecutorChoice
    announced_bytes: int = 0
    received_bytes: int = 0
    parallelism: str = ""


class BatchTiming(NamedTuple):
    """Measurements of a committed batch.

    - ``executor``: executor that ran it.
    - ``bytes``: bytes of its tuples.
    - ``announced_bytes``: bytes that its source announced; 0: unknown.
    - ``seconds``, ``kernel_seconds``: total time, and the part spent in the tasks.
    - ``work``: seconds of all hosts, added up.
    - ``tasks``: number of tasks.
    - ``parallelism``: description of the machine.
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
    """Return measurements of the recent batches that had tuples and an executor."""
    timings = (
        BatchTiming(
            e.executor,
            e.source_bytes or sum(e.received_bytes),
            e.announced_bytes,
            e.seconds_by_phase.get("total", 0.0),
            e.seconds_by_phase.get("kernels", 0.0),
            sum(metrics.seconds for metrics in e.host_metrics),
            e.task_count,
            e.parallelism,
        )
        for e in reversed(events)
        if isinstance(e, BatchCommitted)
        and e.executor
        and (e.source_bytes or sum(e.received_bytes))
    )
    return [*islice(timings, _LOOKED_AT)][::-1]


def expected_bytes(before: Sequence[BatchTiming], announced: int) -> int:
    """Return the expected bytes of a batch's tuples.

    If the source announces nothing, the largest recent batch is expected.
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
    """Return the executor of the next batch.

    - ``announced``: bytes that the source announces; 0: unknown.
    - ``hosts``: number of hosts with work.
    - ``derived``: bytes of stored blocks from which new ones are derived.
    """
    size = expected_bytes(before, announced)
    if size + derived > machine.collect_limit_bytes:
        return ExecutorChoice("spark", driver_memory_excess(size, machine, derived))
    model = _Model([p for p in before if p.parallelism == machine.describe], size, hosts, machine)
    here, there = model.expected_seconds("process"), model.expected_seconds("spark")
    best, other = ("process", "spark") if here <= there else ("spark", "process")
    why = f"{format_bytes(size)} expected: {here:.2f} s in this process, {there:.2f} s on Spark"
    if model.should_retry_other(best):
        return ExecutorChoice(other, f"{why}; tried again after {_UNTRIED} batches")
    return ExecutorChoice(best, why)


def driver_memory_excess(size: int, machine: Parallelism, derived: int = 0) -> str:
    """Return why a batch does not run in this process.

    ``size``: bytes of its tuples. ``derived``: bytes of its state.
    """
    state = f" and {format_bytes(derived)} of state" if derived else ""
    return (
        f"{format_bytes(size)} of tuples{state} take "
        f"{format_bytes((size + derived) * COPIES)} here; the "
        f"driver may hold {format_bytes(machine.memory)}"
    )


@dataclass(frozen=True)
class _Model:
    """Predicted times of a batch of ``size`` bytes, from those ``before`` it."""

    before: Sequence[BatchTiming]
    size: int
    hosts: int
    machine: Parallelism

    def expected_seconds(self, way: str) -> float:
        """Return the seconds that a batch is expected to take.

        An executor without measurements is assumed to have the slowdown of the other.
        """
        pace = (
            self._transfer_slowdown(way)
            or self._transfer_slowdown("process" if way == "spark" else "spark")
            or 1.0
        )
        return pace * self._transfer_seconds(way, self.size) + self._kernel_seconds(way)

    def should_retry_other(self, best: str) -> bool:
        """Return whether the executor that has long been unused should be tried again.

        Spark is tried if work is most of the time, since threads of one process may share it badly.
        This process is tried if it would be faster at its first measured speed with evenly shared
        work.
        """
        if [p.executor for p in self.before[-_UNTRIED:]] != [best] * _UNTRIED:
            return False
        if best == "process":
            return 2 * self._kernel_seconds(best) > self.expected_seconds(best)
        return self._transfer_seconds("process", self.size) + self._even_work_seconds(
            "process"
        ) < self.expected_seconds(best)

    def _recent_batches(self, way: str) -> list[BatchTiming]:
        """Return the recent batches of an executor, except those long before its latest."""
        at = [n for n, p in enumerate(self.before) if p.executor == way][-_RECENT:]
        return [self.before[n] for n in at if n >= at[-1] - _UNTRIED]

    def _transfer_slowdown(self, way: str) -> float | None:
        """Return the slowdown of transfer relative to the first measurement; None if unknown."""
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
        """Return the share of a batch's time that work takes with several threads.

        A small batch runs on one thread until its work is known.
        """
        return (
            1 / self._count_parallel_hosts("process")
            if p.executor == "process" and p.tasks == 1
            else 1.0
        )

    def _even_work_seconds(self, way: str) -> float:
        """Return the seconds of work if the tasks share it evenly."""
        work = _lower_median(p.work / p.bytes for p in self.before[-_RECENT:]) or 0.0
        return work / self._count_parallel_hosts(way) * self.size

    def _count_parallel_hosts(self, way: str) -> int:
        slots = self.machine.threads if way == "process" else self.machine.slots
        return max(1, min(self.hosts, slots))


def _lower_median(numbers: Iterable[float]) -> float | None:
    """Return the lower median, which ignores one cold batch of two; None: no numbers."""
    rising = sorted(numbers)
    return rising[(len(rising) - 1) // 2] if rising else None
