"""Control the thread that splits a run's input."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from braid.core.run_state import FileChecksum
from braid.storage.staged_input import StagedStream, write_stream
from braid.storage.static_input_copy import InputSnapshot
from oracle import wait_until


@contextmanager
def hooked_splitter(before: Callable[[Path, int], None]) -> Iterator[None]:
    """Call ``before`` with the input's folder and the micro-batch number before its first file is
    cut.
    """
    real, begun = StagedStream.write_micro_batch, set[tuple[Path, int]]()

    def write_hooked(stream: StagedStream, number: int, force: bool) -> FileChecksum:
        if (turn := (stream.folder.parent, number)) not in begun:
            begun.add(turn)
            before(*turn)
        return real(stream, number, force)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(StagedStream, "write_micro_batch", write_hooked)
        yield


class SplitterGate:
    """Blocks the splitting before a micro-batch until it is released or the run ends."""

    def __init__(self, number: int) -> None:
        self.number, self.reached, self.gone = number, threading.Event(), threading.Event()

    def __call__(self, folder: Path, number: int) -> None:
        if number == self.number:
            self.reached.set()
            wait_until(self.gone.is_set, "leave to cut on")

    @contextmanager
    def on(self) -> Iterator[None]:
        """Block the splitting inside the ``with`` block."""
        real = InputSnapshot.request_stop

        def release_and_stop(copied: InputSnapshot) -> None:
            real(copied)
            self.gone.set()

        with hooked_splitter(self), pytest.MonkeyPatch.context() as patch:
            patch.setattr(InputSnapshot, "request_stop", release_and_stop)
            yield


def fail_at(number: int) -> Callable[[Path, int], None]:
    """Return a hook that raises "disk full" at a micro-batch."""

    def raise_disk_full(folder: Path, at: int) -> None:
        if at == number:
            raise OSError(28, "No space left on device")

    return raise_disk_full


def stage_streams(folder: Path, streams: Mapping[str, pa.Table]) -> None:
    """Write streams as a run of Spark does that is going to split them. ``batch``: see oracle."""
    for alias, rows in streams.items():
        numbers = rows["batch"].to_numpy()
        count = 1 + max(int(each["batch"].to_numpy().max()) for each in streams.values())
        write_stream(rows.drop_columns(["batch"]), numbers, count, folder, alias)


def split_input(folder: Path) -> InputSnapshot:
    """Write everything to a folder, as files of micro-batches."""
    copied = InputSnapshot(folder)
    copied.write_checksums(False)
    copied.split_all(False)
    return copied


def list_input(run: Path) -> dict[str, Any]:
    """Return the contents of a run's input: whole streams, and the numbers of split files by
    stream.
    """
    folder = run / "input"
    cut = {
        f.name: [int(p.stem) for p in sorted(f.glob("*.parquet")) if p.stat().st_size]
        for f in folder.iterdir()
        if f.is_dir()
    }
    return {"whole": sorted(f.stem for f in folder.glob("*.arrow")), "cut": cut}


def list_threads() -> list[str]:
    """Return the names of splitting threads."""
    return [t.name for t in threading.enumerate() if t.name == "braid-input"]
