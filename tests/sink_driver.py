"""A join whose sink may end the process. Run as a script, it dies in batch 2."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from runpy import run_path

import pyarrow as pa
from braid import StreamJoin
from braid.papers.baselines.centralized import Centralized

EXAMPLES = Path(__file__).parents[1] / "docs/examples"
ROWS = 30


def make_streams() -> dict[str, pa.Table]:
    """Return orders and payments in six batches."""
    batch = [n // 5 for n in range(ROWS)]
    orders = {"id": [*range(ROWS)], "batch": batch}
    payments = {"order_id": [n // 2 for n in range(ROWS)], "amount": [*range(ROWS)], "batch": batch}
    return {"o": pa.table(orders), "p": pa.table(payments)}


def run_join(path: Path, sink: Callable[[pa.Table, int], None]) -> None:
    """Run the join to its end, or resume it."""
    join = StreamJoin(make_streams(), "o.id = p.order_id", Centralized())
    join.start(path, batches="batch", foreachBatch=sink, durability="process").awaitTermination()


class DeadlyRows:
    """Results that end the process when they are read."""

    def to_pylist(self) -> None:
        os._exit(9)


def _run_and_die(folder: Path, name: str, target: str) -> None:
    """End this process in batch 2."""

    own = EXAMPLES / f"sink_{name.removeprefix('into_')}.py"
    sink = run_path(str(own if own.exists() else EXAMPLES / "sinks.py"))[name]

    def die_after_write(results: pa.Table, batch: int) -> None:
        is_inside = batch == 2 and name == "into_postgres"
        sink(DeadlyRows() if is_inside else results, batch, target)
        if batch == 2:
            os._exit(9)

    run_join(folder, die_after_write)


if __name__ == "__main__":
    _run_and_die(Path(sys.argv[1]), *sys.argv[2:])
