"""What hosts and batches did, as tables."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
import pandas as pd

from braid.core.events import BatchCommitted


def metrics(commits: Iterable[BatchCommitted], by: str) -> pd.DataFrame:
    """See ``JoinRun.metrics``."""
    if not isinstance(by, str) or by not in _ROWS:
        raise ValueError(f"metrics are by {by!r}; it must be one of {', '.join(_ROWS)}")
    rows = [row for e in commits for row in _ROWS[by](e)]
    return pd.DataFrame(rows or {"batch": [], **({"host": []} if by == "host" else {})})


def _by_host(e: BatchCommitted) -> list[dict[str, Any]]:
    dids = map(msgspec.structs.asdict, e.hosts)
    return [{"batch": e.batch, "host": h, **did} for h, did in enumerate(dids)]


def _by_batch(e: BatchCommitted) -> list[dict[str, Any]]:
    did = e.all_hosts
    counts = {"received": sum(e.received), "results": e.results, "stored": did.stored}
    how = {"compared": did.compared, "executor": e.executor, "last_commit": e.last_commit}
    return [{"batch": e.batch, **counts, **how, **e.seconds}]


_ROWS = {"host": _by_host, "batch": _by_batch}
