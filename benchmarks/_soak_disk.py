"""Measure the time that the file system alone needs for the files of a commit.

This time may grow during a run independently of Braid: for every new file, ext4 without a journal
scans the files removed in the last minutes.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from statistics import mean, median
from threading import get_ident
from time import perf_counter
from typing import Any

from braid.storage import durable_files
from braid.util.file_system import FileSystem


class TimedDisk(FileSystem):
    """A file system that records the calls of one thread.

    It records seconds, calls, names in listed folders, and bytes written. The clock stands still
    during a call; reading it stores the records of the span since the previous reading.
    """

    def __init__(self) -> None:
        self.thread, self.is_inside = get_ident(), False
        self.seconds, self.calls, self.listed, self.written = 0.0, 0, 0, 0
        self.marks: deque[tuple[float, int, int, int]] = deque([(0.0, 0, 0, 0)] * 2, 2)

    def read_clock(self) -> float:
        """Return the seconds that passed outside of file calls."""
        self.marks.append((self.seconds, self.calls, self.listed, self.written))
        return perf_counter() - self.seconds

    def read_last_span(self) -> tuple[float, ...]:
        """Return seconds, calls, names and bytes between the last two readings of the clock."""
        before, after = self.marks
        return tuple(b - a for a, b in zip(before, after, strict=True))

    def __getattribute__(self, name: str) -> Any:
        value = super().__getattribute__(name)
        is_call = name in vars(FileSystem) and not name.startswith("_")
        return partial(self._note_call, value) if is_call else value

    def _note_call(self, call: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        if self.is_inside or get_ident() != self.thread:
            return call(*args, **kwargs)
        self.is_inside, began = True, perf_counter()
        try:
            result = call(*args, **kwargs)
        finally:
            self.is_inside = False
            self.seconds += perf_counter() - began
            self.calls += 1
        self.listed += len(result) if isinstance(result, list) else 0
        self.written += sum(len(a) for a in args if isinstance(a, bytes))
        return result


SYNCED_FOLDERS = 4
"""Number of folders that a commit syncs to disk: those of blocks, new results and the log before
its manifest, and that of the log after it.
"""


@contextmanager
def open_new_file(path: Path, size: int) -> Iterator[int]:
    """Yield a new, open file of this size in bytes."""
    at = os.open(path, os.O_CREAT | os.O_WRONLY)
    try:
        os.write(at, b"x" * size)
        yield at
    finally:
        os.close(at)


MOST_LINKS = 50_000
"""Maximum number of hard links to one file; ext4 allows 65,000."""


def fill_results_folder(folder: Path, name_count: int) -> Path:
    """Return a neighboring folder with at least this number of names, hard links to few files."""
    large = folder.parent / ".bare-results"
    large.mkdir(exist_ok=True)
    for n in range(sum(1 for _ in large.iterdir()), name_count):
        first = large / f"{n - n % MOST_LINKS:06d}"
        if n % MOST_LINKS:
            os.link(first, large / f"{n:06d}")
        else:
            first.touch()
    return large


def time_bare_commit(folder: Path, spark_files: int = 0, name_count: int = 0) -> float:
    """Return the seconds of the file operations of a commit alone.

    They are: a manifest that is synced and linked, an entry of Spark's log that is moved into
    place, a file in each of some synced folders, and removed files. The folders are created beside
    ``folder`` and remain. A result is linked into a folder of at least ``name_count`` names.
    ``spark_files`` is the number of files written by Spark, synced with their folders too.
    """
    large = fill_results_folder(folder, name_count)
    entry, log = folder / ".bare", folder / ".bare-log"
    folders = [folder.parent / f".bare-{n}" for n in range(SYNCED_FOLDERS + spark_files)]
    for each in folders:
        each.mkdir(exist_ok=True)
    began = perf_counter()
    with open_new_file(entry, 3000) as file:
        os.fsync(file)
    os.link(entry, folder / ".bare-linked")
    entry.unlink()
    with open_new_file(log, 300):
        pass
    log.rename(folder / ".bare-moved")
    os.link(folder / ".bare-moved", large / "new")
    for n, each in enumerate(folders):
        with open_new_file(each / "file", 300) as file:
            if n >= SYNCED_FOLDERS:
                os.fsync(file)
        durable_files.fsync_path(each)
    gone = [
        large / "new",
        folder / ".bare-linked",
        folder / ".bare-moved",
        *(each / "file" for each in folders),
    ]
    for each in gone:
        each.unlink()
    return perf_counter() - began


def split_commit_time(
    commits: Sequence[float], pairs: Sequence[tuple[float, float]]
) -> dict[str, float]:
    """Return the milliseconds of a commit, of its files alone, and of the rest, as medians.

    The rest is the median of the differences of ``pairs``: seconds of a commit, and of a bare one
    right after it.
    """
    return {
        "ms a commit": 1000 * median(commits),
        "of it files": 1000 * median(bare for _, bare in pairs),
        "ms a commit, but for its files": 1000 * median(commit - bare for commit, bare in pairs),
    }


def summarize_commits(
    commits: Sequence[float], spans: Sequence[tuple[float, ...]], bares: Sequence[float]
) -> dict[str, float]:
    """Return the cost of a commit by part.

    Medians in milliseconds: without its files, of its files, and of the same files bare. Means:
    calls of the file system, names in listed folders, and kilobytes written.

    - ``commits``: seconds without files.
    - ``spans``: the spans of ``TimedDisk``.
    """
    seconds, calls, names, written = zip(*spans, strict=True)
    return {
        "ms a commit": 1000 * median(c + s for c, s in zip(commits, seconds, strict=True)),
        "of it files": 1000 * median(seconds),
        "the same files bare": 1000 * median(bares),
        "ms a commit, but for its files": 1000 * median(commits),
        "file calls a commit": mean(calls),
        "names listed a commit": mean(names),
        "kB written a commit": mean(written) / 1000,
    }
