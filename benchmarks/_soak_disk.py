"""What the file system takes for the files of a commit, by itself.

It may take longer for the same as a run goes on, whatever Braid does: ext4 without a journal, for
every file that it makes, goes over those that were removed in the last minutes.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from time import perf_counter

from braid.engine import durable

FOLDERS = 5
"""So many times a commit forces a folder to disk: those of blocks, results, new results and the log
before its manifest, and that of the log after it."""


@contextmanager
def made(path: Path, size: int) -> Iterator[int]:
    """A new file of so many bytes, open."""
    at = os.open(path, os.O_CREAT | os.O_WRONLY)
    try:
        os.write(at, b"x" * size)
        yield at
    finally:
        os.close(at)


def bare(folder: Path, sparks: int = 0) -> float:
    """Seconds of a commit that does nothing but what it does with files: a manifest that is forced
    to disk and linked, an entry of Spark's log that is moved into place, a file in each of some
    folders that are forced, and files that go. The folders are made beside ``folder``, and stay.
    ``sparks``: so many files that Spark has written, and their folders, are forced besides.
    """
    entry, log = folder / ".bare", folder / ".bare-log"
    beside = [folder.parent / f".bare-{n}" for n in range(FOLDERS + sparks)]
    for each in beside:
        each.mkdir(exist_ok=True)
    began = perf_counter()
    with made(entry, 3000) as file:
        os.fsync(file)
    os.link(entry, folder / ".bare-linked")
    entry.unlink()
    with made(log, 300):
        pass
    log.rename(folder / ".bare-moved")
    for n, each in enumerate(beside):
        with made(each / "file", 300) as file:
            if n >= FOLDERS:
                os.fsync(file)
        durable.sync(each)
    gone = [folder / ".bare-linked", folder / ".bare-moved", *(each / "file" for each in beside)]
    for each in gone:
        each.unlink()
    return perf_counter() - began


def shares(commits: Sequence[float], pairs: Sequence[tuple[float, float]]) -> dict[str, float]:
    """Milliseconds of a commit, of its files alone, and what is left: medians, that one of the
    differences of ``pairs`` (seconds of a commit, and of a bare one right after it).
    """
    return {
        "ms a commit": 1000 * median(commits),
        "of it files": 1000 * median(bare for _, bare in pairs),
        "ms a commit, but for its files": 1000 * median(commit - bare for commit, bare in pairs),
    }
