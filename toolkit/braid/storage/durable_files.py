"""Write files atomically, with checksums that reveal damage, and force them to disk."""

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
from braid.errors import DamagedRunError
from braid.util.clock_and_threads import current_environment, current_workers
from braid.util.file_system import current_file_system

T = TypeVar("T")
Durability = Literal["power", "process"]
"""What a commit survives. "power": a power cut; "process": the end of the process only."""
_DURABILITIES = ("power", "process")

_MOST_THREADS = 32
"""Most files that are forced to disk concurrently."""
_TEMPORARY = re.compile(r"\..+\.[0-9a-f]{8}")
_TRAILING_CHECKSUM = re.compile(rb',"crc":"([0-9a-f]{8})"}$')
_NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)


def check_durability(durability: str) -> str:
    """Return the durability. Raises ValueError if it is unknown."""
    if durability not in _DURABILITIES:
        raise ValueError(
            f"durability is {durability!r}; it must be one of {', '.join(_DURABILITIES)}"
        )
    return durability


def fsync_path(path: Path) -> None:
    """Force a file, or the names in a folder, to disk."""
    current_file_system().force_to_disk(path)


def checksum_file(path: Path, force: bool) -> FileChecksum:
    """Return the checksum of a file. ``force``: force the file to disk first."""
    return FileChecksum(*current_file_system().compute_checksum(path, force))


def run_in_background(work: Callable[[], T]) -> Future[T]:
    """Run a function on another thread. Return its future."""
    return current_workers().share_pool("braid-disk", _MOST_THREADS).submit(work)


def check_file(path: Path, expected: FileChecksum, deep: bool = True) -> None:
    """Raise DamagedRunError unless a file matches its checksum.

    Not ``deep``: compare lengths only.
    """
    try:
        size = current_file_system().read_size(path)
        actual = checksum_file(path, False) if deep and size == expected.size_bytes else expected
    except FileNotFoundError:
        raise DamagedRunError(f"{path} is missing") from None
    _compare_checksums(
        path, actual if size == expected.size_bytes else FileChecksum(size, 0), expected
    )


def read_verified(path: Path, expected: FileChecksum) -> bytes:
    """Return a file's content. Raises DamagedRunError unless it matches its checksum."""
    try:
        body = current_file_system().read_file(path)
    except FileNotFoundError:
        raise DamagedRunError(f"{path} is missing") from None
    _compare_checksums(path, FileChecksum(len(body), zlib.crc32(body)), expected)
    return body


def _compare_checksums(path: Path, actual: FileChecksum, expected: FileChecksum) -> None:
    if actual.size_bytes != expected.size_bytes:
        raise DamagedRunError(
            f"{path} is damaged: it has {actual.size_bytes} bytes, "
            f"{expected.size_bytes} were written"
        )
    if actual != expected:
        raise DamagedRunError(
            f"{path} is damaged: its checksum is {actual.crc32:08x}, that of what was written "
            f"{expected.crc32:08x}"
        )


def name_temporary(path: Path) -> Path:
    """Return a unique temporary name for a file that gets its final name when it is complete."""
    return path.with_name(f".{path.name}.{current_environment().make_token()}")


def is_temporary(name: str) -> bool:
    """Return whether a name is that of a temporary file."""
    return _TEMPORARY.fullmatch(name) is not None


def skip_check() -> None:
    """Do nothing. Stands in for the check of a driver that cannot lose its run."""


def write_atomically(
    path: Path,
    body: bytes,
    force: bool,
    new: bool = False,
    check: Callable[[], None] = skip_check,
) -> None:
    """Write a file atomically. ``force``: it also survives a power cut.

    ``check`` is called before the file becomes visible, and raises FencedError if another driver
    has taken over the run. A driver that takes over later first removes temporary files, so a
    driver that was suspended after its check replaces nothing.

    ``new``: raise FileExistsError if the file exists. If several drivers write it at once, one
    succeeds.
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
            f"the file system of {path.parent} has no hard links, which commits need; use a folder "
            "on one that has"
        ) from None
    finally:
        # A driver that takes over removes it too.
        current_file_system().remove_file(temporary, missing_ok=True)


def remove_temporary_files(folders: Iterable[Path], check: Callable[[], None]) -> None:
    """Remove temporary files from folders, left there by drivers that were killed or suspended.

    Calls ``check`` after listing the files and before removing them.
    """
    left = [file for folder in folders for file in current_file_system().find_files(folder, ".*")]
    check()
    for file in left:
        if is_temporary(file.name):
            current_file_system().remove_file(file, missing_ok=True)


def list_files_below(folder: Path, pattern: str = "*") -> Iterator[Path]:
    """Yield the files in a folder at any depth, if all names match a shell pattern."""
    for path in current_file_system().find_files(folder, pattern):
        if current_file_system().is_folder(path):
            yield from list_files_below(path, pattern)
        else:
            yield path


def encode_checksummed(value: Any) -> bytes:
    """Return an object as JSON whose last field is the crc32 of everything before it."""
    body = value if isinstance(value, bytes) else msgspec.json.encode(value)
    return body[:-1] + b',"crc":"%08x"}' % zlib.crc32(body[:-1])


def read_checksum(body: bytes) -> str:
    """Return the crc32 at the end of a checksummed object."""
    return body[-10:-2].decode()


def read_checksummed(path: Path, what: str) -> bytes:
    """Return the checksummed object in a file.

    ``what``: description for errors. Raises DamagedRunError if the file is missing or damaged,
    ValueError if it has another version.
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
    """Return whether a checksummed object is intact."""
    checksum = _TRAILING_CHECKSUM.search(body[-20:])
    return checksum is not None and int(checksum[1], 16) == zlib.crc32(body[: -len(checksum[0])])


class _Versioned(msgspec.Struct):
    format_version: Any = None


def _decode_version(body: bytes) -> Any:
    return msgspec.json.decode(body, type=_Versioned).format_version


def _check_other(body: bytes, what: str) -> None:
    """Raise ValueError if an object has another version, whose checksum may differ in form."""
    try:
        version = _decode_version(body)
    except (msgspec.DecodeError, AttributeError, UnicodeDecodeError):
        return
    check_version(version, what)
