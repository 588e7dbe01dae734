"""Where the seconds of a batch go."""

from __future__ import annotations

PHASES = ("source", "planning", "carriage", "kernels", "commit")
"""Where the seconds of a batch go: until its tuples have come from the source; compaction and plan;
what carries tuples, partial results and reports to and from the hosts, Spark's own jobs included;
the slowest task of each stage, while its hosts derive, build, probe and write; the next state.
"""


def split_batch_seconds(
    total: float, source: float, planning: float, kernels: float, commit: float
) -> dict[str, float]:
    """The seconds of a batch by part, and in all: carriage is what the other parts leave."""
    carriage = max(0.0, total - source - planning - kernels - commit)
    parts = dict(zip(PHASES, (source, planning, carriage, kernels, commit), strict=True))
    return parts | {"total": total}
