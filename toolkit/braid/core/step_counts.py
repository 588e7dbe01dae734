"""Counts of probe steps: rows, candidate pairs and matches, and the pairs that each check keeps."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class CheckCounts(NamedTuple):
    """Pairs before and after a check of candidates.

    - ``parts``: parts of the condition that it checks, by id; empty: a window.
    - ``reached``: "check" if keys are compared, "residual" if DuckDB or NumPy evaluates it.
    - ``seconds``: time of a residual; 0 for other checks, whose time is in that of the step.
    """

    parts: tuple[int, ...]
    reached: str
    pairs_in: int
    pairs_out: int
    seconds: float = 0.0

    def add(self, other: CheckCounts) -> CheckCounts:
        """Return the sum of two counts of the same check."""
        pairs_in, pairs_out = self.pairs_in + other.pairs_in, self.pairs_out + other.pairs_out
        seconds = self.seconds + other.seconds
        return CheckCounts(self.parts, self.reached, pairs_in, pairs_out, seconds)


class StepCounts(NamedTuple):
    """Counts of the step from the joined streams to the next one.

    - ``joined_streams``: sorted.
    - ``access``: how candidates are found, as "equality" or "all pairs".
    - ``index_parts``: parts of the condition by which they are found, by id. The number of parts
      stands for the window.
    - ``rows``: tuples or partial results that probed, once for each task.
    - ``seconds``: of all tasks.
    - ``checks``: in the order in which they are made.
    """

    joined_streams: tuple[int, ...]
    stream: int
    access: str
    index_parts: tuple[int, ...]
    rows: int = 0
    candidate_pairs: int = 0
    matches: int = 0
    seconds: float = 0.0
    checks: tuple[CheckCounts, ...] = ()

    @property
    def streams(self) -> frozenset[int]:
        """All streams of the step."""
        return frozenset((*self.joined_streams, self.stream))

    @property
    def part_ids(self) -> tuple[tuple[int, ...], ...]:
        """The parts of the condition that find and check pairs, in order."""
        return (self.index_parts, *(check.parts for check in self.checks))

    @property
    def indexed_pairs(self) -> int:
        """The pairs that all parts of the index together admit; windows may have removed others."""
        return self.checks[0].pairs_in if self.checks else self.matches

    def add(self, other: StepCounts) -> StepCounts:
        """Return the sum of two counts with the same access and checks."""
        return self._replace(
            rows=self.rows + other.rows,
            candidate_pairs=self.candidate_pairs + other.candidate_pairs,
            matches=self.matches + other.matches,
            seconds=self.seconds + other.seconds,
            checks=tuple(a.add(b) for a, b in zip(self.checks, other.checks, strict=True)),
        )


class RecentPairs(NamedTuple):
    """Candidate pairs and matches of one batch."""

    candidate_pairs: int
    matches: int


class ComparisonHistory(NamedTuple):
    """Pairs of recent batches, and the level at which they were reported.

    - ``recent``: the oldest batch first.
    - ``level``: 0: not reported; each level has ten times the pairs for a match.
    """

    recent: tuple[RecentPairs, ...] = ()
    level: int = 0


def sum_step_counts(counts: Iterable[StepCounts]) -> tuple[StepCounts, ...]:
    """Return the sums by step, and by access and checks if these differ, in order of the steps."""
    sums: dict[tuple[object, ...], StepCounts] = {}
    for each in counts:
        key = each.joined_streams, each.stream, each.access, each.part_ids
        sums[key] = sums[key].add(each) if key in sums else each
    return tuple(sorted(sums.values(), key=_order_step))


def _order_step(step: StepCounts) -> tuple[object, ...]:
    """Return the place of a step: one that joins fewer streams comes first."""
    joined = step.joined_streams
    return len(joined), joined, step.stream, str(step.access), step.part_ids
