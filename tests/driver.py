"""A driver for a test to kill: ``python driver.py FOLDER start|resume [BATCH [EXECUTOR [FRACTION
[MASTER]]]]``.

It joins seeded streams, a fraction of all pairs when one is given. Given a batch, it makes the file
FOLDER.held right before that batch's commit, and waits for ever.
"""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path
from typing import Any

from braid.engine.store import Store
from braid.join import StreamJoin
from braid.papers.shedding.shed import Shed
from braid.spark_session import session
from oracle import frames, tables
from scatter import Scatter

ON = "abs(a.n - b.n) <= 30 AND b.k <> a.k"
WINDOWS = {"a": 300, "b": 250}
STREAMS = tables("ab", {"a": 300, "b": 400}, seed=31, batches=8)


def hold(folder: str, batch: int) -> None:
    commit = Store.commit

    def held(store: Store, number: int, *given: Any) -> None:
        if number == batch:
            Path(f"{folder}.held").touch()
            threading.Event().wait()
        commit(store, number, *given)

    Store.commit = held  # type: ignore[method-assign]


def main(
    folder: str, verb: str, batch: str = "", way: str = "spark", part: str = "", url: str = ""
) -> None:
    if batch:
        hold(folder, int(batch))
    alike = {"spark_executor_extraJavaOptions": os.environ.get("SPARK_SUBMIT_OPTS", "")}
    streams = frames(session(cores=2, master=url or None, **alike), STREAMS)
    if verb == "start":
        windows = {a: f"{w} seconds" for a, w in WINDOWS.items()}
        shed = Shed(fraction=float(part)) if part else None
        join = StreamJoin(
            streams, ON, Scatter(), windows, time="ts", check=True, executor=way, shed=shed
        )
        run = join.start(folder, batches="batch")
    else:
        run = StreamJoin.resume(folder, streams, executor=way)
    run.awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
