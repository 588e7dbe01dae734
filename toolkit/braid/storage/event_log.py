"""Log of a run's events: retained events are in a file, recent ones also in memory.

Event numbers and file offsets are those of the complete log. If the first events were trimmed, a
placeholder (``EventsTrimmed``) follows the opening events of the run. After it come the trimmed
events that must be retained (see ``event_log_header``).
"""

from __future__ import annotations

import threading
import zlib
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any, NamedTuple

import msgspec

from braid.core.event_jsonl import decode_event, encode_event
from braid.errors import DamagedRunError
from braid.storage import durable_files, event_log_header
from braid.storage.durable_files import skip_check
from braid.storage.event_log_header import EventLogHeader
from braid.util.file_system import current_file_system

_STRIDE = 256
"""Number of events between two indexed file offsets."""
_CHUNK = 1 << 20


class EventPrefix(NamedTuple):
    """First events of the log: their number, bytes and crc32, and every ``_STRIDE``-th offset."""

    event_count: int
    size_bytes: int
    crc32: int
    offsets: list[int]


class EventLogEnd(NamedTuple):
    """End of a log's events: their number, bytes and crc32."""

    event_count: int
    size_bytes: int
    crc32: int


class EventLog:
    """Event log of a run. Thread-safe.

    ``begin_log`` or ``open_prefix`` opens it. Until then, reading, appending and trimming raise
    RuntimeError: the file may have events that the log has not read.

    - ``path``: file of the log.
    - ``most``: recent events to hold in memory.
    - ``opening``: number of events before those of the first batch.
    - ``check_driver``: raises FencedError if another driver has taken over the run.
    - ``mend``: rewrites the log if another driver that was suspended after its check has changed
      the file.
    """

    def __init__(
        self,
        path: Path,
        most: int = 1024,
        opening: int = 0,
        check_driver: Callable[[], None] = skip_check,
        mend: Callable[[], None] | None = None,
    ) -> None:
        self.path, self.opening = path, opening
        self.check_driver, self.mend = check_driver, mend
        self._last: deque[Any] = deque(maxlen=most)
        self._count = self._size = self._crc = self._gone = 0
        self._starts: list[int] = []
        self._filled, self._is_open = True, False
        self._changing = threading.RLock()

    def _check_open(self) -> None:
        if not self._is_open:
            raise RuntimeError(f"the event log {self.path} is used before it was opened")

    @property
    def event_count(self) -> int:
        """Number of events, trimmed ones included."""
        self._check_open()
        return self._count

    @property
    def size_bytes(self) -> int:
        """Bytes of all events, trimmed ones included."""
        self._check_open()
        return self._size

    @property
    def end(self) -> EventLogEnd:
        """End of the log, at which the next event begins."""
        self._check_open()
        return EventLogEnd(self._count, self._size, self._crc)

    def open_prefix(self, archive: EventPrefix, and_cut: bool = False) -> None:
        """Open the log with the events of ``archive``. ``and_cut``: remove events after them.

        Raises DamagedRunError if the file does not hold these events.
        """
        try:
            with self._open_with_header() as (file, first):
                size = current_file_system().read_size(self.path) + first.trimmed_bytes
                is_complete = first.logical_end <= archive.size_bytes <= size
                if and_cut and is_complete and size > archive.size_bytes:
                    self._rewrite_log([], file, 0, archive.size_bytes - first.trimmed_bytes, True)
        except FileNotFoundError:
            is_complete = False
        if not is_complete:
            raise DamagedRunError(
                f"{self.path} is missing or damaged: it had {archive.size_bytes} bytes"
            )
        self._count, self._size, self._starts = (
            archive.event_count,
            archive.size_bytes,
            [*archive.offsets],
        )
        self._crc, self._gone = archive.crc32, first.trimmed_bytes
        self._last.clear()
        self._filled, self._is_open = False, True

    def begin_log(self, opening: Sequence[Any]) -> None:
        """Start a new log with these events."""
        with self._changing:
            durable_files.write_atomically(self.path, b"", False, check=self.check_driver)
            self._count = self._size = self._crc = self._gone = 0
            self._starts = []
            self._last.clear()
            self._filled = self._is_open = True
            self.append_events(opening)
            self.opening = len(opening)

    def _load_recent_events(self) -> None:
        """Load recent events into memory, unless that has been done."""
        if not self._filled:
            self._filled = True
            there, first = len(self._last), max(0, self._count - (self._last.maxlen or 0))
            with self._open_with_header() as (_, begin):
                first = max(first, begin.first_event_number if begin.trimmed else 0)
            more = self.read_since(first)[: -there or None]
            self._last.extendleft(more[::-1])

    def append_events(self, happened: Sequence[Any]) -> None:
        """Append events, first in memory, since the file may be unreachable."""
        self._check_open()
        lines = [*map(encode_event, happened)]
        with self._changing:
            size = self._size
            self._last.extend(happened)
            self._index_lines(lines)
            self.check_driver()
            if self.mend is not None and not self._has_prefix(size):
                self.mend()
                self._index_lines(lines)
            current_file_system().append_bytes(self.path, b"".join(lines))

    def _has_prefix(self, size: int) -> bool:
        """Return whether the file has the number of bytes that were written."""
        return (
            current_file_system().exists(self.path)
            and current_file_system().read_size(self.path) == size - self._gone
        )

    def append_encoded(self, encoded: Sequence[bytes | msgspec.Raw]) -> None:
        """Append encoded events. They are decoded on demand."""
        self._check_open()
        with self._changing:
            self._last.clear()
            self._filled = False
            lines = [bytes(each) + b"\n" for each in encoded]
            self._index_lines(lines)
            current_file_system().append_bytes(self.path, b"".join(lines))

    def _index_lines(self, lines: Sequence[bytes]) -> None:
        for line in lines:
            if self._count % _STRIDE == 0:
                self._starts.append(self._size)
            self._count, self._size = self._count + 1, self._size + len(line)
            self._crc = zlib.crc32(line, self._crc)

    def read_since(self, first: int) -> list[Any]:
        """Return the events from number ``first`` on. A placeholder replaces trimmed events."""
        self._check_open()
        with self._changing:
            stored = self._count - len(self._last)
            first = max(0, first if first >= 0 else self._count + first)
            older = self._read_events_between(first, stored) if first < stored else []
            return older + list(islice(self._last, max(0, first - stored), None))

    def _read_events_between(self, first: int, end: int) -> list[Any]:
        """Return the events between two numbers, read from the file."""
        with self._open_with_header() as (file, begin):
            lines = self._read_lines_between(file, begin, first, end)
            decoded = (decode_event(line, self.path) for line in lines)
            return [*begin.read_events(first, end), *decoded]

    def _read_lines_between(
        self, file: IO[bytes], begin: EventLogHeader, first: int, end: int
    ) -> Iterator[bytes]:
        """Return the lines of events between two numbers that follow the header."""
        at, start = self._find_indexed_event(begin, max(first, begin.first_event_number))
        lines = islice(begin.read_lines(file, start, self._size), max(0, end - at))
        return islice(lines, max(0, first - at), None)

    def _find_indexed_event(self, begin: EventLogHeader, number: int) -> tuple[int, int]:
        """Return the number and file offset of an indexed event at or before this number."""
        stride = number // _STRIDE
        if stride * _STRIDE <= begin.first_event_number:
            return begin.first_event_number, begin.logical_end
        return stride * _STRIDE, self._starts[stride]

    @contextmanager
    def _open_with_header(self) -> Iterator[tuple[IO[bytes], EventLogHeader]]:
        """Open the file and read its header. The file may be replaced between two calls."""
        with current_file_system().open_file(self.path) as file:
            yield file, event_log_header.read_header(file, self.opening)

    def recent_events(self) -> list[Any]:
        """Return the events in memory."""
        self._check_open()
        with self._changing:
            self._load_recent_events()
            return list(self._last)

    def events_of_type(self, *kinds: type, first: int = 0) -> list[Any]:
        """Return the events of some types, in order. Other events are neither decoded nor kept.

        ``first``: number of an event before which events may be left out.
        """
        self._check_open()
        with self._changing:
            stored = self._count - len(self._last)
            older = self._read_events_of_type(kinds, first, stored) if first < stored else []
            latest = islice(self._last, max(0, first - stored), None)
            return older + [e for e in latest if isinstance(e, kinds)]

    def _read_events_of_type(self, kinds: Sequence[type], first: int, end: int) -> list[Any]:
        """Return events of some types up to number ``end``, read from the file line by line."""
        marks = tuple(f'"type":"{kind.__name__}"'.encode() for kind in kinds)
        with self._open_with_header() as (file, begin):
            header = begin.lines if begin.first_event_number <= end else begin.lines[:end]
            if first >= begin.first_event_number:
                header = []
            lines = chain(header, self._read_lines_between(file, begin, first, end))
            matching = (line for line in lines if any(mark in line[:64] for mark in marks))
            return [decode_event(line, self.path) for line in matching]

    def describe_prefix(self, before: EventPrefix | None, count: int, size: int) -> EventPrefix:
        """Return the first ``count`` events of ``size`` bytes as a prefix extending ``before``."""
        crc, at = (before.crc32, before.size_bytes) if before else (0, 0)
        with self._open_with_header() as (file, begin):
            if begin.trimmed is not None and at < begin.logical_end:
                crc, at = begin.trimmed.trimmed_crc32, begin.logical_end
            file.seek(at - begin.trimmed_bytes)
            while at < size and (some := file.read(min(_CHUNK, size - at))):
                crc, at = zlib.crc32(some, crc), at + len(some)
        return EventPrefix(count, size, crc, self._starts[: -(-count // _STRIDE)])

    def try_trim(self, first: int, force: bool) -> bool:
        """Trim the events of batches before ``first`` once they are a third of the file.

        The file is replaced atomically. Returns whether events were trimmed.
        """
        self._check_open()
        with self._changing:
            with self._open_with_header() as (file, begin):
                cut = self._find_batch_end(file, begin, first - 1)
                if cut is None or 3 * (cut[1] - begin.logical_end) < self._size - begin.logical_end:
                    return False
                new = begin.trim(file, first - 1, *cut)
                end = self._size - begin.trimmed_bytes
                self._rewrite_log(new.lines, file, cut[1] - begin.trimmed_bytes, end, force)
            self._gone = new.trimmed_bytes
            while self._last and self._count - len(self._last) < new.first_event_number:
                self._last.popleft()
            return True

    def _rewrite_log(
        self, lines: Iterable[bytes], file: IO[bytes], start: int, end: int, force: bool
    ) -> None:
        """Replace the file by these lines and the bytes between two offsets of the current file.

        The file is replaced, not changed in place: a driver that has lost the run would otherwise
        truncate events of the next one.
        """
        temporary = durable_files.name_temporary(self.path)
        with current_file_system().open_file(temporary, "wb") as rewritten:
            rewritten.writelines(lines)
            file.seek(start)
            while start < end and (some := file.read(min(_CHUNK, end - start))):
                rewritten.write(some)
                start += len(some)
        if force:
            durable_files.fsync_path(temporary)
        self.check_driver()
        current_file_system().replace_file(temporary, self.path)
        if force:
            durable_files.fsync_path(self.path.parent)

    def _find_batch_end(
        self, file: IO[bytes], begin: EventLogHeader, batch: int
    ) -> tuple[int, int] | None:
        """Return the number of events up to the end of a batch and its offset; None: not found."""

        def is_later(stride: int) -> bool:
            line = next(begin.read_lines(file, self._starts[stride], self._size))
            return event_log_header.line_batch(line) > batch

        strides = range(-(-begin.first_event_number // _STRIDE), len(self._starts))
        later = strides.start + bisect_left(strides, True, key=is_later)
        count, size = self._find_indexed_event(begin, max(0, later - 1) * _STRIDE)
        for line in begin.read_lines(file, size, self._size):
            count, size = count + 1, size + len(line)
            if (
                event_log_header.is_commit_line(line)
                and (line_batch := event_log_header.line_batch(line)) >= batch
            ):
                return (count, size) if line_batch == batch else None
        return None

    def check_prefix(self, archive: EventPrefix) -> None:
        """Raise DamagedRunError unless the file begins with these events."""
        prefix = self.describe_prefix(None, archive.event_count, archive.size_bytes)
        if prefix.crc32 != archive.crc32:
            raise DamagedRunError(
                f"{self.path} is damaged: its first {archive.size_bytes} bytes do not have the "
                "checksum of what was written"
            )
