"""A tally of the pairs of a probe step, and of those that each of its checks keeps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from braid.condition.condition_parts import (
    ConditionPart,
    describe_access,
    find_access_parts,
    find_condition_parts,
    find_residual_parts,
)
from braid.condition.predicate import ProbeStep
from braid.core.step_counts import CheckCounts, StepCounts


@dataclass
class CheckTally:
    """Pairs before and after a check, and the seconds that it took if it is a residual."""

    pairs_in: int = 0
    pairs_out: int = 0
    seconds: float = 0.0


@dataclass
class StepTally:
    """Counts of one step in one task.

    - ``conditions``, ``residuals``: tallies of the checks of ``step``, in order.
    """

    step: ProbeStep
    rows: int = 0
    candidate_pairs: int = 0
    matches: int = 0
    seconds: float = 0.0
    conditions: list[CheckTally] = field(default_factory=list)
    residuals: list[CheckTally] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.conditions = [CheckTally() for _ in self.step.conditions]
        self.residuals = [CheckTally() for _ in self.step.residuals]

    def make_step_counts(
        self, joined: frozenset[int], parts: Sequence[ConditionPart]
    ) -> StepCounts:
        """Return the counts; ``joined``: the streams joined before the step."""
        conditions = (find_condition_parts(parts, [c]) for c in self.step.conditions)
        residuals = (find_residual_parts(parts, r) for r in self.step.residuals)
        checks = [
            CheckCounts(ids, reached, tally.pairs_in, tally.pairs_out, tally.seconds)
            for reached, streams, tallies in (
                ("check", conditions, self.conditions),
                ("residual", residuals, self.residuals),
            )
            for ids, tally in zip(streams, tallies, strict=True)
        ]
        return StepCounts(
            tuple(sorted(joined)),
            self.step.stream,
            describe_access(self.step.access_path),
            find_access_parts(parts, self.step.access_path),
            self.rows,
            self.candidate_pairs,
            self.matches,
            self.seconds,
            tuple(checks),
        )
