"""A join as a service: SIGTERM ends it after the batch that is running, and a restart goes on."""

import signal
import sys
import threading
from pathlib import Path

import pyarrow.parquet as pq
from braid import StreamJoin


def main(orders: str, payments: str, folder: str) -> int:
    """Join two Parquet files into a run's folder, or continue what is there."""
    stopping = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopping.set())
    streams = {"o": pq.read_table(orders), "p": pq.read_table(payments)}
    if (Path(folder) / "run.json").exists():
        run = StreamJoin.resume(folder, streams=streams)
    else:
        run = StreamJoin(streams, "o.id = p.order_id").start(folder, batches="batch")
    while run.isActive and not stopping.is_set():
        run.awaitTermination(timeout=0.5)
    run.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
