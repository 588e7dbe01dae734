"""Metrics of hosts and batches as tables."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import msgspec

from braid.core.batch_history import PHASE_COLUMNS
from braid.core.run_events import BatchCommitted
from braid.util.row_tables import make_row_table

if TYPE_CHECKING:
    from braid.util.row_tables import RowTable


def metrics_table(commits: Iterable[BatchCommitted], by: str) -> RowTable:
    """Return the metrics of some commits; see ``JoinRun.metrics``."""
    if not isinstance(by, str) or by not in _ROWS:
        raise ValueError(f"metrics are by {by!r}; it must be one of {', '.join(_ROWS)}")
    rows = [row for e in commits for row in _ROWS[by](e)]
    return make_row_table(rows, () if rows else ("batch", "host")[: 2 if by == "host" else 1])


def _make_host_rows(e: BatchCommitted) -> list[dict[str, Any]]:
    dids = map(msgspec.structs.asdict, e.host_metrics)
    return [{"batch": e.batch, "host": h, **metrics} for h, metrics in enumerate(dids)]


def _make_batch_rows(e: BatchCommitted) -> list[dict[str, Any]]:
    totals = e.total_host_metrics
    counts = {
        "received_tuples": sum(e.received_tuples),
        "results": e.results,
        "stored_tuples": totals.stored_tuples,
    }
    how = {
        "compared_pairs": totals.compared_pairs,
        "executor": e.executor,
        "previous_commit_seconds": e.previous_commit_seconds,
    }
    parts = {PHASE_COLUMNS.get(p, f"{p}_seconds"): s for p, s in e.seconds_by_phase.items()}
    return [{"batch": e.batch, **counts, **how, **parts}]


_ROWS = {"host": _make_host_rows, "batch": _make_batch_rows}
