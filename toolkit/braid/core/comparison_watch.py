"""Watch how many pairs a join compares for a result, and report a condition that compares many."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from logging import WARNING

from braid.core.run_events import Event, EventContext
from braid.core.step_counts import ComparisonHistory, RecentPairs, StepCounts

_BATCHES = 10
"""Number of recent batches over which pairs and matches are summed."""
_PAIRS_PER_MATCH = 100
"""Pairs compared for a match above which a condition is reported, and again at each tenfold."""
_FEWEST_PAIRS = 1_000_000
"""Fewer pairs are not reported: they take less than a second."""


@dataclass(frozen=True, slots=True)
class ManyComparisons(Event):
    """A condition that compares many pairs for a match.

    - ``condition``: its parts, as written.
    - ``access``: how candidate pairs are found.
    - ``compared_pairs``, ``matches``: of the last ten batches.
    """

    level = WARNING
    retention_key = ()

    batch: int
    condition: str
    access: str
    compared_pairs: int
    matches: int

    @property
    def sentence(self) -> str:
        """The report in a few words."""
        pairs = self.compared_pairs // max(1, self.matches)
        return f"compares {pairs:,} pairs for a match in {self.condition} ({self.access})"

    def describe_decision(self, moment: EventContext) -> str:
        return self.sentence


def describe_comparisons(batches: Sequence[Sequence[StepCounts]], parts: Sequence[str]) -> str:
    """Return a sentence if the last of these batches compared many pairs for a match; else "".

    ``parts``: conjuncts of the condition, by id.
    """
    history, reports = ComparisonHistory(), tuple[ManyComparisons, ...]()
    for number, steps in enumerate(batches[-_BATCHES:]):
        history, reports = watch_comparisons(history._replace(level=0), number, steps, parts)
    return reports[0].sentence if reports else ""


def watch_comparisons(
    history: ComparisonHistory, batch: int, steps: Sequence[StepCounts], parts: Sequence[str]
) -> tuple[ComparisonHistory, tuple[ManyComparisons, ...]]:
    """Return the history after a batch, and the report if the join now compares too many pairs.

    ``parts``: conjuncts of the condition, by id. Without matches, one is assumed.
    """
    pairs, matches = sum(s.candidate_pairs for s in steps), sum(s.matches for s in steps)
    recent = (*history.recent, RecentPairs(pairs, matches))[-_BATCHES:]
    compared, matched = (sum(each) for each in zip(*recent, strict=True))
    level = _count_levels(compared, matched)
    if level <= history.level:
        return ComparisonHistory(recent, history.level), ()
    worst = max(steps, key=lambda step: step.candidate_pairs - step.matches, default=None)
    ids = () if worst is None else sorted({id for ids in worst.part_ids for id in ids})
    text = " AND ".join(parts[id] for id in ids if id < len(parts))
    access = "all pairs" if worst is None else worst.access
    report = ManyComparisons(batch, text, access, compared, matched)
    return ComparisonHistory(recent, level), (report,)


def _count_levels(compared: int, matched: int) -> int:
    """Return 0 for few pairs for a match, 1 from the limit on, and one more at each tenfold."""
    limit, level = _PAIRS_PER_MATCH * max(1, matched), 0
    while compared > max(limit, _FEWEST_PAIRS):
        limit, level = 10 * limit, level + 1
    return level
