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

FOLDERS = 4
"""A commit forces these folders to disk: those of blocks, new results and the log before its
manifest, and that of the log after it."""


@contextmanager
def made(path: Path, size: int) -> Iterator[int]:
    """A new file of so many bytes, open."""
    at = os.open(path, os.O_CREAT | os.O_WRONLY)
    try:
        os.write(at, b"x" * size)
        yield at
    finally:
        os.close(at)


def fill(folder: Path, names: int) -> Path:
    """Return a folder beside the others that has at least this number of names, of one file."""
    large = folder.parent / ".bare-results"
    large.mkdir(exist_ok=True)
    first = large / "first"
    first.touch()
    for n in range(sum(1 for _ in large.iterdir()), names):
        os.link(first, large / f"{n:06d}")
    return large


def bare(folder: Path, sparks: int = 0, names: int = 0) -> float:
    """Seconds of a commit that does nothing but what it does with files: a manifest that is forced
    to disk and linked, an entry of Spark's log that is moved into place, a file in each of some
    folders that are forced, and files that go. The folders are made beside ``folder``, and stay.
    A result gets its name in a folder that has as many ``names`` as that of the run. ``sparks``
    counts the files that Spark has written, which are forced besides, with their folders.
    """
    large = fill(folder, names)
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
    os.link(folder / ".bare-moved", large / "new")
    for n, each in enumerate(beside):
        with made(each / "file", 300) as file:
            if n >= FOLDERS:
                os.fsync(file)
        durable.sync(each)
    gone = [
        large / "new",
        folder / ".bare-linked",
        folder / ".bare-moved",
        *(each / "file" for each in beside),
    ]
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
