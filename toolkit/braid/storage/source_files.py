"""The files of a static source, by which it is seen whether they have changed since."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

MOST_FILES = 1_000
"""Greatest number of files of a source that are recorded."""
SourceFile = tuple[int, int]
"""The length of a file, and the time of its last change in nanoseconds."""


def list_files(paths: Iterable[str]) -> dict[str, SourceFile]:
    """Return length and time of local files by path."""
    stats = ((path, Path(path).stat()) for path in paths)
    return {path: (stat.st_size, stat.st_mtime_ns) for path, stat in stats}


def count_changes(files: Mapping[str, SourceFile]) -> int:
    """Return how many files have changed or gone since, or have come beside them."""
    there = list_files(_find_present_files(files))
    return sum(there.get(path) != (*stat,) for path, stat in files.items()) + len(
        there.keys() - files.keys()
    )


def _find_present_files(files: Iterable[str]) -> Iterator[str]:
    """Yield the files in the same folders with one of their suffixes, as Spark would read them."""
    paths = [Path(path) for path in files]
    suffixes = {path.suffix for path in paths}
    for folder in {path.parent for path in paths}:
        for file in folder.iterdir() if folder.is_dir() else ():
            if file.suffix in suffixes and file.name[0] not in "._" and file.is_file():
                yield str(file)
