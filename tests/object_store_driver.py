"""A driver process for a test to kill.

Usage: ``python object_store_driver.py URL HELD BATCH``. It joins seeded tables in a bucket, creates
the file HELD right before that batch's commit, and waits forever.
"""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from typing import Any

from braid.storage.run_store import RunStore
from braid.stream_join import StreamJoin
from oracle import compute_expected, make_tables
from scatter import Scatter

ON = "a.k = b.k"
STREAMS = make_tables("ab", 60, seed=91, batches=4)
WANTED = compute_expected(STREAMS, ON)


def make_join() -> StreamJoin:
    return StreamJoin(STREAMS, ON, Scatter(), check=True)


def main(url: str, held: str, batch: str) -> None:
    commit = RunStore.commit_batch

    def hold_commit(mirror: RunStore, number: int, *given: Any) -> None:
        if number == int(batch):
            Path(held).touch()
            threading.Event().wait()
        commit(mirror, number, *given)

    RunStore.commit_batch = hold_commit  # type: ignore[method-assign]
    make_join().start(url, batches="batch").awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
