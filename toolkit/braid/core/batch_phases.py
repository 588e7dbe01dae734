"""Where the seconds of a batch go."""

from __future__ import annotations

PHASES = ("source", "planning", "transfer", "kernels", "commit")
"""Where the seconds of a batch go: until its tuples have come from the source; compaction and plan;
what carries tuples, partial results and reports to and from the hosts, Spark's own jobs included;
the slowest task of each stage, while its hosts derive, build, probe and write; the next state.
"""

PHASE_COLUMNS = {
    "source": "source_seconds",
    "planning": "planning_seconds",
    "transfer": "transfer_seconds",
    "kernels": "kernel_seconds",
    "commit": "commit_seconds",
    "total": "total_seconds",
}
"""The column of ``JoinRun.metrics`` by phase."""


def split_batch_seconds(
    total: float, source: float, planning: float, kernels: float, commit: float
) -> dict[str, float]:
    """The seconds of a batch by part, and in all: transfer is what the other parts leave."""
    transfer = max(0.0, total - source - planning - kernels - commit)
    parts = dict(zip(PHASES, (source, planning, transfer, kernels, commit), strict=True))
    return parts | {"total": total}
