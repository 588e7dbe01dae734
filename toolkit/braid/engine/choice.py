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
from typing import NamedTuple

from braid.core.events import BatchCommitted
from braid.core.report import Report

COPIES = 4
"""What this process holds of a batch at once, in times its tuples: as they are collected, sorted
into blocks, on their way to a file, and what is found with them."""

_RECENT = 9
"""Batches of one way that count, the last ones."""
_UNTRIED = 100
"""Batches after which a way that was not taken may be tried again."""
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
class Machine:
    """What work can be shared among: ``threads`` of this process, ``slots`` for tasks of Spark,
    which are ``local`` when they are on this machine too. ``memory`` is what this process may hold
    of a batch, in bytes.
    """

    threads: int
    slots: int
    local: bool
    memory: int

    @property
    def most(self) -> int:
        """Bytes of tuples that this process may collect."""
        return self.memory // COPIES


class Choice(NamedTuple):
    """The way of a batch, and why in words."""

    way: str
    why: str


class Executed(NamedTuple):
    """The reports of all tasks of a batch; which way it went, and why; and the bytes that its
    source ``announced`` before it was read (0: not asked, or none).
    """

    reports: list[Report]
    choice: Choice
    announced: int = 0


class Past(NamedTuple):
    """What a committed batch tells: its way; the bytes of its tuples, and those that its source
    ``announced`` (0: none); its seconds, of them those of the ``kernels`` (see events.PARTS); and
    what all its hosts worked, added up.
    """

    way: str
    bytes: int
    announced: int
    seconds: float
    kernels: float
    work: float


def past(events: Iterable[object]) -> list[Past]:
    """The batches among these events that had tuples and a way."""
    return [
        Past(
            e.executor,
            sum(e.received_bytes),
            e.announced,
            e.seconds.get("total", 0.0),
            e.seconds.get("kernels", 0.0),
            sum(did.seconds for did in e.hosts),
        )
        for e in events
        if isinstance(e, BatchCommitted) and e.executor and sum(e.received_bytes)
    ]


def expected(before: Sequence[Past], announced: int) -> int:
    """The bytes of tuples that a batch will have. A source that announces nothing is taken to give
    as much as it lately gave at most.
    """
    recent = before[-_RECENT:]
    if not announced:
        return max((p.bytes for p in recent), default=0)
    ratios = [p.bytes / p.announced for p in recent if p.announced]
    return round(announced * max(ratios, default=_UNPACKED))


def choose(before: Sequence[Past], announced: int, hosts: int, machine: Machine) -> Choice:
    """The way of the next batch, on so many hosts; ``announced`` are the bytes that its source
    announces (0: it does not).
    """
    size = expected(before, announced)
    if size > machine.most:
        return Choice("spark", over(size, machine))
    model = _Model(before, size, hosts, machine)
    here, there = model.seconds("process"), model.seconds("spark")
    why = f"{megabytes(size)} expected: {here:.2f} s in this process, {there:.2f} s on Spark"
    if model.doubts(here):
        return Choice("spark", f"{why}; tried again after {_UNTRIED} batches")
    return Choice("process" if here <= there else "spark", why)


def over(size: int, machine: Machine) -> str:
    """Why a batch of so many bytes does not go through this process."""
    return (
        f"{megabytes(size)} of tuples take {megabytes(size * COPIES)} here; the driver may hold "
        f"{megabytes(machine.memory)}"
    )


def megabytes(size: int) -> str:
    """Bytes as people read them."""
    return f"{size / 1e6:,.3g} MB" if size < 1e9 else f"{size / 1e9:,.3g} GB"


@dataclass(frozen=True)
class _Model:
    """What a batch of ``size`` bytes takes, learned from those ``before`` it."""

    before: Sequence[Past]
    size: int
    hosts: int
    machine: Machine

    def seconds(self, way: str) -> float:
        """What a batch is expected to take on a way; one that was never taken is as slow as the
        other one is.
        """
        pace = self._pace(way) or self._pace("process" if way == "spark" else "spark") or 1.0
        return pace * self._carriage(way, self.size) + self._kernels(way)

    def doubts(self, here: float) -> bool:
        """Whether Spark should be tried again: most of the time is work, which threads of one
        process may share badly, and Spark has long not been asked.
        """
        ways = [p.way for p in self.before[-_UNTRIED:]]
        return len(ways) == _UNTRIED and "spark" not in ways and 2 * self._kernels("process") > here

    def _of(self, way: str) -> list[Past]:
        return [p for p in self.before if p.way == way][-_RECENT:]

    def _pace(self, way: str) -> float | None:
        """How many times longer carriage took than it was first measured to."""
        carried = ((p.seconds - p.kernels) / self._carriage(way, p.bytes) for p in self._of(way))
        return _middle(carried)

    def _carriage(self, way: str, size: int) -> float:
        if way == "spark":
            return _FIXED[way] + size * _SHIPPED / self.machine.slots
        return _FIXED[way] + size * (_COLLECTED + (not self.machine.local) * _TRANSFERRED)

    def _kernels(self, way: str) -> float:
        taken = _middle(p.kernels / p.bytes for p in self._of(way))
        if taken is None:
            slots = self.machine.threads if way == "process" else self.machine.slots
            work = _middle(p.work / p.bytes for p in self.before[-_RECENT:]) or 0.0
            taken = work / max(1, min(self.hosts, slots))
        return taken * self.size


def _middle(numbers: Iterable[float]) -> float | None:
    """The lower median, so that one cold batch of two does not count; None of none."""
    rising = sorted(numbers)
    return rising[(len(rising) - 1) // 2] if rising else None
