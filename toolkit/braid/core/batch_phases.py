"""The phases of a batch and their durations."""

from __future__ import annotations

PHASES = ("source", "planning", "transfer", "kernels", "commit")
"""Phases of a batch, in order.

- "source": until the tuples have arrived from the source.
- "planning": compaction and plan.
- "transfer": tuples, partial results and reports to and from the hosts, including Spark's jobs.
- "kernels": the slowest task of each stage, while its hosts derive, build, probe and write.
- "commit": computing the next state.
"""

PHASE_COLUMNS = {
    "source": "source_seconds",
    "planning": "planning_seconds",
    "transfer": "transfer_seconds",
    "kernels": "kernel_seconds",
    "commit": "commit_seconds",
    "total": "total_seconds",
}
"""Column of ``JoinRun.metrics`` by phase."""


def split_batch_seconds(
    total: float, source: float, planning: float, kernels: float, commit: float
) -> dict[str, float]:
    """Return the seconds of a batch by phase, and "total". "transfer" is the remainder."""
    transfer = max(0.0, total - source - planning - kernels - commit)
    parts = dict(zip(PHASES, (source, planning, transfer, kernels, commit), strict=True))
    return parts | {"total": total}
