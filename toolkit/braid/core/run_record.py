"""The record of a run from which its diagnosis is made, and a finding of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from braid.core.run_events import BatchCommitted, RunStarted
from braid.core.step_counts import StepCounts
from braid.util.durations import parse_duration

BATCHES = 20
"""Number of last batches that a rule looks at."""
FEW_TUPLES, FEW_SECONDS = 1_000, 1.0
"""Tuples below which a batch is small, and seconds that are not worth a finding."""
_SKIPPED, _FEWEST = 2, 5
"""First batches of a run, which take longer, and the fewest batches to judge from."""
Level = Literal["fault", "warning", "advice"]


@dataclass(frozen=True)
class Finding:
    """A symptom of a run.

    - ``rule``: its name.
    - ``level``: "warning" if the run is slower or holds more than it needs to, "advice" if that
      costs little.
    - ``sentence``: the symptom, measured.
    - ``remedy``: what to do.
    - ``measured``, ``limit``: the measure, and the limit that it is past.
    - ``seconds``: what the symptom takes in these batches.
    - ``batch``: the batch, from 0, in which it is strongest.
    """

    rule: str
    level: Level
    sentence: str
    remedy: str
    measured: float
    limit: float
    seconds: float = 0.0
    batch: int = 0


@dataclass(frozen=True)
class RunRecord:
    """The record of a run, from its events and its folder.

    - ``start``: settings.
    - ``commits``: last commits, in order.
    - ``windows``: microseconds by stream; None: full history.
    - ``result_files``: files of results by batch.
    - ``source_files``: number and bytes of the files that Spark read for a batch, by batch.
    - ``cores``: processors that the run may use; 0: unknown. ``disk_free``: share of its disk that
      is free; None: see the batches.
    - ``frequent_value``: the most frequent join value, such as "a.k = 42"; empty: unknown.
    - ``versions``: by package, the version that the run was written with and the present one.
    - ``changed_files``: by static stream, the files of its source that have been changed, added or
      removed since the run read them.
    """

    start: RunStarted
    commits: Sequence[BatchCommitted]
    windows: Sequence[int | None] = ()
    result_files: Mapping[int, int] = field(default_factory=dict)
    source_files: Mapping[int, tuple[int, int]] = field(default_factory=dict)
    cores: int = 0
    disk_free: float | None = None
    frequent_value: str = ""
    versions: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    changed_files: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def from_events(cls, start: RunStarted, commits: Sequence[BatchCommitted]) -> RunRecord:
        """Return what events alone say of a run."""
        spans = (start.windows.get(alias, "unbounded") for alias in start.streams)
        windows = [None if w == "unbounded" else parse_duration(w, "window") for w in spans]
        return cls(start, commits, windows=windows, cores=start.cores)

    @cached_property
    def batches(self) -> list[BatchCommitted]:
        """The batches that rules look at."""
        return [c for c in self.commits if c.batch >= _SKIPPED and "total" in c.seconds_by_phase][
            -BATCHES:
        ]

    @property
    def can_be_judged(self) -> bool:
        """Whether there are enough batches."""
        return len(self.batches) >= _FEWEST

    def sum_seconds(self, *phases: str) -> float:
        """Return the seconds of some phases in these batches."""
        return sum(c.seconds_by_phase.get(phase, 0.0) for c in self.batches for phase in phases)

    @cached_property
    def seconds(self) -> float:
        """The seconds of these batches, at least a microsecond."""
        return max(1e-6, self.sum_seconds("total"))

    @cached_property
    def received(self) -> list[int]:
        """The tuples of these batches by stream."""
        return [
            sum(counts) for counts in zip(*(c.received_tuples for c in self.batches), strict=True)
        ]

    @property
    def is_endless(self) -> bool:
        """Whether the number of its batches is unknown."""
        return self.start.planned_batches is None

    @cached_property
    def steps(self) -> list[StepCounts]:
        """The steps of these batches, those of the same access and checks added up."""
        sums: dict[object, StepCounts] = {}
        for step in (step for commit in self.batches for step in commit.step_counts):
            checks = tuple((check.parts, check.reached) for check in step.checks)
            key = (step.joined_streams, step.stream, step.access, step.index_parts, checks)
            sums[key] = sums[key].add(step) if key in sums else step
        return [*sums.values()]

    def name_parts(self, ids: Sequence[int]) -> str:
        """Return parts of the condition by id, as written."""
        parts = self.start.condition_parts
        return " AND ".join(parts[id] for id in ids if id < len(parts))
