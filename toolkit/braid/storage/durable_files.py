"""Files that are whole or not there: sealed, so that damage is seen, and forced to disk, so that a
power cut leaves them.
"""

from __future__ import annotations

import errno
import re
import zlib
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any, Literal, TypeVar

import msgspec

from braid.core.run_state import FileChecksum, check_version
from braid.util.environment import current_environment
from braid.util.file_system import current_file_system
from braid.util.worker_threads import current_workers

T = TypeVar("T")
Durability = Literal["power", "process"]
"""What a commit outlives: a cut of the power, or the end of the process alone."""
_DURABILITIES = ("power", "process")

_MOST_THREADS = 32
"""So many files are forced to disk at once."""
_TEMPORARY = re.compile(r"\..+\.[0-9a-f]{8}")
_SEAL = re.compile(rb',"crc":"([0-9a-f]{8})"}$')
_NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)


class DamagedRunError(ValueError):
    """A file of a run is missing, or is not what was written."""


def check_durability(durability: str) -> str:
    """What a commit outlives. Raises ValueError for an unknown one."""
    if durability not in _DURABILITIES:
        raise ValueError(
            f"durability is {durability!r}; it must be one of {', '.join(_DURABILITIES)}"
        )
    return durability


def fsync_path(path: Path) -> None:
    """Force a file, or the names in a folder, to disk."""
    current_file_system().force_to_disk(path)


def checksum_file(path: Path, force: bool) -> FileChecksum:
    """The seal of a file as it is now, on disk if ``force``."""
    return FileChecksum(*current_file_system().compute_checksum(path, force))


def run_in_background(work: Callable[[], T]) -> Future[T]:
    """Do it on another thread, while the caller goes on."""
    return current_workers().share_pool("braid-disk", _MOST_THREADS).submit(work)


def check_file(path: Path, known: FileChecksum, deep: bool = True) -> None:
    """Raise Damaged unless a file has its seal; of its length alone if not ``deep``."""
    try:
        size = current_file_system().read_size(path)
        found = checksum_file(path, False) if deep and size == known.size_bytes else known
    except FileNotFoundError:
        raise DamagedRunError(f"{path} is missing") from None
    if size != known.size_bytes:
        raise DamagedRunError(
            f"{path} is damaged: it has {size} bytes, {known.size_bytes} were written"
        )
    if found != known:
        raise DamagedRunError(
            f"{path} is damaged: its checksum is {found.crc32:08x}, that of what was written "
            f"{known.crc32:08x}"
        )


def name_temporary(path: Path) -> Path:
    """A name that nobody else gives, for what is to have another one when it is whole."""
    return path.with_name(f".{path.name}.{current_environment().make_token()}")


def is_temporary(name: str) -> bool:
    """Whether a file has such a name."""
    return _TEMPORARY.fullmatch(name) is not None


def skip_check() -> None:
    """The check of a driver that nobody can take the run from."""


def write_atomically(
    path: Path,
    body: bytes,
    force: bool,
    new: bool = False,
    check: Callable[[], None] = skip_check,
) -> None:
    """Write a file so that it is there whole or not at all, also after a power cut if ``force``.

    ``check`` is called when all is written and before it is seen, and raises Superseded where
    another driver has the run. One that takes over later removes temporary files first, so a
    driver that sleeps after its check replaces nothing.

    Raises FileExistsError where it is to be ``new`` and is there: of several that write it, one
    does.
    """
    temporary = name_temporary(path)
    current_file_system().write_file(temporary, body, force)
    check()
    if new:
        _link_file(temporary, path)
    else:
        current_file_system().replace_file(temporary, path)
    if force:
        fsync_path(path.parent)


def _link_file(temporary: Path, path: Path) -> None:
    try:
        current_file_system().link_file(temporary, path)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        raise OSError(
            f"the file system of {path.parent} makes no hard links, which commits need; a run "
            "needs a folder where they are made"
        ) from None
    finally:
        current_file_system().remove_file(
            temporary, missing_ok=True
        )  # a driver that takes over removes it too


def remove_files(folders: Iterable[Path], check: Callable[[], None]) -> None:
    """Remove the temporary files in folders, which drivers that were killed, or sleep, have left:
    list, then ``check``, then remove what was listed.
    """
    left = [file for folder in folders for file in current_file_system().find_files(folder, ".*")]
    check()
    for file in left:
        if is_temporary(file.name):
            current_file_system().remove_file(file, missing_ok=True)


def remove_temporary_files(folder: Path, check: Callable[[], None] = skip_check) -> None:
    """Remove the files in a folder, at every depth: list, then ``check``, then remove what was
    listed.
    """
    there = [*list_files_below(folder)]
    check()
    for file in there:
        current_file_system().remove_file(file, missing_ok=True)


def list_files_below(folder: Path, pattern: str = "*") -> Iterator[Path]:
    """The files in a folder, at every depth, where all names match a shell pattern."""
    for path in current_file_system().find_files(folder, pattern):
        if current_file_system().is_folder(path):
            yield from list_files_below(path, pattern)
        else:
            yield path


def encode_checksummed(value: Any) -> bytes:
    """An object as JSON whose last field is the crc32 of all that stands before it."""
    body = value if isinstance(value, bytes) else msgspec.json.encode(value)
    return body[:-1] + b',"crc":"%08x"}' % zlib.crc32(body[:-1])


def read_checksum(body: bytes) -> str:
    """The crc32 that a sealed object ends with."""
    return body[-10:-2].decode()


def read_checksummed(path: Path, what: str) -> bytes:
    """The sealed object in a file. Raises Damaged when it is missing or not what was written, and
    ValueError when ``what`` it is has another version.
    """
    try:
        body = current_file_system().read_file(path)
    except FileNotFoundError:
        raise DamagedRunError(f"{path} is missing") from None
    if not is_intact(body):
        _check_other(body, what)
        raise DamagedRunError(
            f"{path} is damaged: its {len(body)} bytes do not have the checksum of what was written"
        )
    check_version(_decode_version(body), what)
    return body


def is_intact(body: bytes) -> bool:
    """Whether a sealed object is what was written."""
    found = _SEAL.search(body[-20:])
    return found is not None and int(found[1], 16) == zlib.crc32(body[: -len(found[0])])


class _Versioned(msgspec.Struct):
    v: Any = None


def _decode_version(body: bytes) -> Any:
    return msgspec.json.decode(body, type=_Versioned).v


def _check_other(body: bytes, what: str) -> None:
    """Raise ValueError when it is an object of another version, which may be sealed otherwise."""
    try:
        version = _decode_version(body)
    except (msgspec.DecodeError, AttributeError, UnicodeDecodeError):
        return
    check_version(version, what)
