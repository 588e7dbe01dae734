"""Runs of tables with merged results of some batches, and readers of them."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from braid.core.run_state import RunState
from braid.storage import durable_files, log_checkpointer, result_compactor, spark_sink_log
from braid.storage.block_files import read_parquet
from braid.storage.run_store import RunStore
from braid.stream_join import StreamJoin
from oracle import Ids, compute_expected, killed_before, make_tables, result_ids
from scatter import Scatter

ON = "a.k = b.k"
STREAMS = make_tables("ab", 60, seed=97, batches=12)
WANTED = compute_expected(STREAMS, ON)


def whole_run(folder: Path) -> Path:
    """Return a run of twelve batches with nine of them merged."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(log_checkpointer, "_EVERY", 3)
        join = StreamJoin(STREAMS, ON, Scatter(pieces=2), check=True)
        assert join.start(folder, batches="batch", durability="process").awaitTermination()
    return folder


def read_ids(files: list[str]) -> Ids:
    return sum((result_ids(read_parquet(file)) for file in files), Ids())


def list_batch_files(run: Path, first: int, end: int) -> list[str]:
    """Return the files as written by tasks."""
    names = [f for f in sorted(run.glob("results/*.parquet")) if first <= int(f.name[:6]) < end]
    return [str(f) for f in names]


def list_merged(run: Path) -> list[str]:
    return sorted(f.name for f in (run / "compacted").iterdir())


def is_entry(path: str | Path) -> bool:
    """Return whether a path is that of a log entry."""
    return Path(path).parent.name == "commits" and Path(path).stem.isdecimal()


class Killed(OSError):
    """Raised at the point at which the process ends."""


@contextmanager
def killed_at(step: int) -> Iterator[list[str]]:
    """Make all file operations from number ``step`` on fail once a roll-up has begun.

    The link that publishes a log entry is named "commit".
    """
    done = list[str]()

    def wrap_operation(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def run_operation(*given: Any, **named: Any) -> Any:
            if done or name == "merge":
                done.append("commit" if name == "link" and is_entry(given[1]) else name)
                if len(done) > step:
                    raise Killed("killed")
            return real(*given, **named)

        return run_operation

    with pytest.MonkeyPatch.context() as patch:
        real = result_compactor.ResultCompactor.compact
        patch.setattr(result_compactor.ResultCompactor, "compact", wrap_operation("merge", real))
        for name in ("link", "replace", "fsync", "mkdir"):
            patch.setattr(os, name, wrap_operation(name, getattr(os, name)))
        patch.setattr(os, "unlink", wrap_operation("unlink", os.unlink))
        patch.setattr(
            pq.ParquetWriter, "write_table", wrap_operation("write", pq.ParquetWriter.write_table)
        )
        yield done


def kill_before_commit(folder: Path, batch: int, **more: Any) -> dict[str, pa.Table]:
    """Create a run with two more batches that was killed before the commit of one; return its
    streams.
    """
    streams = make_tables("ab", 40, seed=98, batches=batch + 2)
    with killed_before(batch):
        run = StreamJoin(streams, ON, Scatter()).start(folder, batches="batch", **more)
        with pytest.raises(OSError, match="killed"):
            run.awaitTermination()
    return streams


def add_batch(store: RunStore, batch: int) -> None:
    """Commit a batch with one result file."""
    name = f"{batch:06d}-0-0000cafe.parquet"
    pq.write_table(pa.table({"batch": [batch]}), store.published.new / name)
    seals = {name: durable_files.checksum_file(store.published.new / name, False)}
    store.commit_batch(batch, store.states.write_state(RunState(batch)), seals, [])
    store.log_events([])


def read_sink_log(run: Path) -> list[str]:
    """Return the files in Spark's log, as Spark reads it."""
    logs = {int(f.name.partition(".")[0]): f for f in run.glob("results/_spark_metadata/[0-9]*")}
    last = max((n for n, f in logs.items() if f.suffix), default=0)
    lines = [
        line for n in sorted(logs) if n >= last for line in spark_sink_log._read_lines(logs[n])
    ]
    return sorted(Path(json.loads(line)["path"]).name for line in lines)
