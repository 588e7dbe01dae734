"""Medium of a run's files: a folder, or a bucket with a local cache.

Files have the names of the run's layout, as ``commits/000012.json`` (see ``run_files``).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Protocol
from urllib.parse import unquote, urlsplit

from braid.core.run_state import FileChecksum
from braid.errors import DamagedRunError
from braid.storage import durable_files
from braid.storage.durable_files import Durability, skip_check
from braid.util.file_system import current_file_system


class RunMedium(Protocol):
    """Medium of one run, shared by the parts of its store.

    - ``folder``: folder in which this process works on the run.
    - ``url``: URL of the run's bucket; "": the folder is the run, and not a cache of it.
    - ``where``: folder or URL, for users.
    - ``force``: whether files of the folder are forced to disk.
    - ``fence``: raises FencedError if another driver has taken over the run.
    - ``new_results``: folder in which tasks leave result files until their batch is committed.
    """

    folder: Path
    url: str
    where: str
    force: bool
    fence: Callable[[], None]
    new_results: str

    def check_driver(self) -> None:
        """Raise FencedError if another driver may write to the folder."""

    def put_new(self, name: str, body: bytes) -> None:
        """Write a file atomically. Raises FileExistsError if another driver has written it."""

    def put_file(self, name: str, body: bytes) -> None:
        """Write or replace a file atomically."""

    def put_unique(self, name: str, body: bytes) -> None:
        """Write a file whose name no other driver uses, and that nothing names yet."""

    def has_file(self, name: str) -> bool:
        """Return whether a file exists, after bringing it into the folder."""

    def fetch_file(self, name: str) -> Path:
        """Return the path of a file, after bringing it into the folder if it is not there."""

    def remove_file(self, name: str) -> None:
        """Remove a file that nothing names any more, if it exists."""

    def find_foreign_file(self) -> str | None:
        """Return the name of a file of a medium without a run; None: it is empty."""

    def find_faults(self, files: Mapping[str, FileChecksum]) -> Iterator[tuple[str, str]]:
        """Yield the names of files that are missing or differ in length, with the fault."""


def make_lost_start_error(where: str) -> RuntimeError:
    """Return the error of a driver that is not the first to begin a run."""
    return RuntimeError(f"another driver has begun the run in {where} meanwhile; this one stops")


class LocalMedium:
    """Folder that holds a run. Each driver checks that it still has the run before it writes.

    Raises ValueError if the path is not on this machine.
    """

    url, new_results = "", "staging"

    def __init__(self, path: str | Path, durability: Durability = "power") -> None:
        self.folder = _parse_local_path(path)
        self.where = str(self.folder)
        self.force = durable_files.check_durability(durability) == "power"
        self.fence: Callable[[], None] = skip_check

    def check_driver(self) -> None:
        """Raise FencedError if another driver has taken over the run."""
        self.fence()

    def put_new(self, name: str, body: bytes) -> None:
        """Write a file atomically. Raises FileExistsError if it exists."""
        durable_files.write_atomically(self.folder / name, body, self.force, new=True)

    def put_file(self, name: str, body: bytes) -> None:
        """Write or replace a file atomically. Raises FencedError."""
        durable_files.write_atomically(self.folder / name, body, self.force, check=self.fence)

    def put_unique(self, name: str, body: bytes) -> None:
        """Write a file. A power cut may leave a part of it, which nothing names."""
        current_file_system().write_file(self.folder / name, body, self.force)

    def has_file(self, name: str) -> bool:
        """Return whether a file exists."""
        return current_file_system().exists(self.folder / name)

    def fetch_file(self, name: str) -> Path:
        """Return the path of a file, which may be missing."""
        return self.folder / name

    def remove_file(self, name: str) -> None:
        """Remove a file, if it exists."""
        current_file_system().remove_file(self.folder / name, missing_ok=True)

    def find_foreign_file(self) -> str | None:
        """Return the name of some file that is not hidden; None: there is none."""
        file = next(durable_files.list_files_below(self.folder, "[!.]*"), None)
        return None if file is None else file.relative_to(self.folder).as_posix()

    def find_faults(self, files: Mapping[str, FileChecksum]) -> Iterator[tuple[str, str]]:
        """Yield the names of files that are missing or differ in length, with the fault."""
        for name, checksum in files.items():
            try:
                durable_files.check_file(self.folder / name, checksum, deep=False)
            except DamagedRunError as damaged:
                yield name, str(damaged)


def _parse_local_path(path: str | Path) -> Path:
    """Return the folder of a path or a ``file://`` URL. Raises ValueError for another URL."""
    text = str(path)
    if re.match(r"file:/", text):
        return Path(unquote(urlsplit(text).path)).absolute()
    if re.match(r"[A-Za-z][\w+.-]+:/", text):
        raise ValueError(
            f"{text} is not a folder on this machine; a run needs one that the driver and all "
            "workers share, as a path or file://"
        )
    return Path(path).absolute()
