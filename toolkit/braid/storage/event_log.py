"""What a run has told: all events that are kept in a file, the last ones in memory.

Numbers of events, and places in the file, are those that they would have if all were kept. Where
the first ones are not, a line stands in their place (``EventsDropped``), after those that open the
run, and then come the ones of them that last (head.py).
"""

from __future__ import annotations

import threading
import zlib
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import IO, Any, NamedTuple

import msgspec

from braid.core.event_io import decode_event, encode_event
from braid.storage import durable_files, event_log_head
from braid.storage.durable_files import DamagedRunError, skip_check
from braid.storage.event_log_head import EventLogHeader
from braid.util.file_system import current_file_system

_STRIDE = 256
"""Every so many events, where the next begins in the file is kept."""
_CHUNK = 1 << 20


class EventPrefix(NamedTuple):
    """The first ``events`` of the file: its first ``bytes``, their crc32, and where every so
    many begin.
    """

    event_count: int
    size_bytes: int
    crc32: int
    offsets: list[int]


def extend_archive(archive: EventPrefix, lines: Sequence[bytes]) -> EventPrefix:
    """Return an archive that has these lines after its own."""
    events, size, starts = archive.event_count, archive.size_bytes, [*archive.offsets]
    for line in lines:
        if events % _STRIDE == 0:
            starts.append(size)
        events, size = events + 1, size + len(line)
    return EventPrefix(events, size, zlib.crc32(b"".join(lines), archive.crc32), starts)


class EventLogEnd(NamedTuple):
    """The end of some events: their number, their bytes and their crc32."""

    event_count: int
    size_bytes: int
    crc32: int


class EventLog:
    """The events of a run, in ``path``, of which ``opening`` come before those of the first batch;
    of the last, ``most`` are in memory. May be asked from any thread.

    ``check_driver`` raises Superseded where another driver has the run. One that slept after its
    check may still have added lines, or cut some off: then ``mend`` tells anew all that was told.
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
        self._filled = True
        self._changing = threading.RLock()

    @property
    def event_count(self) -> int:
        """How many there are."""
        return self._count

    @property
    def size_bytes(self) -> int:
        """How many bytes they have."""
        return self._size

    @property
    def find_end(self) -> EventLogEnd:
        """Where the next begins."""
        return EventLogEnd(self._count, self._size, self._crc)

    def open_prefix(self, archive: EventPrefix, and_cut: bool = False) -> None:
        """Take these events of the file for all; ``and_cut``: remove the others. Raises Damaged
        when it does not have them.
        """
        try:
            with self._open_with_header() as (file, first):
                size = current_file_system().read_size(self.path) + first.trimmed_bytes
                whole = first.logical_end <= archive.size_bytes <= size
                if and_cut and whole and size > archive.size_bytes:
                    self._rewrite_log([], file, 0, archive.size_bytes - first.trimmed_bytes, True)
        except FileNotFoundError:
            whole = False
        if not whole:
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
        self._filled = False

    def begin_log(self, opening: Sequence[Any]) -> None:
        """Begin with these events, and no others."""
        with self._changing:
            durable_files.write_atomically(self.path, b"", False, check=self.check_driver)
            self._count = self._size = self._crc = self._gone = 0
            self._starts = []
            self._last.clear()
            self._filled = True
            self.append_events(opening)
            self.opening = len(opening)

    def _load_recent_events(self) -> None:
        """Have as many of the last in memory as there may be, if that has not been."""
        if not self._filled:
            self._filled = True
            there, first = len(self._last), max(0, self._count - (self._last.maxlen or 0))
            with self._open_with_header() as (_, begin):
                first = max(first, begin.first_event_number if begin.trimmed else 0)
            more = self.read_since(first)[: -there or None]
            self._last.extendleft(more[::-1])

    def append_events(self, happened: Sequence[Any]) -> None:
        """Tell more: first here, as the file may be out of reach."""
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
        """Whether the file has as many bytes as were written."""
        return (
            current_file_system().exists(self.path)
            and current_file_system().read_size(self.path) == size - self._gone
        )

    def append_encoded(self, told: Sequence[bytes | msgspec.Raw]) -> None:
        """Tell more, as it has been written down elsewhere; it is decoded when it is asked for."""
        with self._changing:
            self._last.clear()
            self._filled = False
            lines = [bytes(each) + b"\n" for each in told]
            self._index_lines(lines)
            current_file_system().append_bytes(self.path, b"".join(lines))

    def _index_lines(self, lines: Sequence[bytes]) -> None:
        for line in lines:
            if self._count % _STRIDE == 0:
                self._starts.append(self._size)
            self._count, self._size = self._count + 1, self._size + len(line)
            self._crc = zlib.crc32(line, self._crc)

    def read_since(self, first: int) -> list[Any]:
        """The events from number ``first`` on: of those that are no longer kept, what stands in
        their place.
        """
        with self._changing:
            kept = self._count - len(self._last)
            first = max(0, first if first >= 0 else self._count + first)
            older = self._read_events_between(first, kept) if first < kept else []
            return older + list(islice(self._last, max(0, first - kept), None))

    def _read_events_between(self, first: int, end: int) -> list[Any]:
        """The events between two numbers, of the file."""
        with self._open_with_header() as (file, begin):
            at, start = self._find_indexed_event(begin, max(first, begin.first_event_number))
            lines = islice(begin.read_lines(file, start, self._size), max(0, end - at))
            later = map(decode_event, islice(lines, max(0, first - at), None))
            return [*begin.read_events(first, end), *later]

    def _find_indexed_event(self, begin: EventLogHeader, number: int) -> tuple[int, int]:
        """The number of an event up to this one, and where in the file it is."""
        stride = number // _STRIDE
        if stride * _STRIDE <= begin.first_event_number:
            return begin.first_event_number, begin.logical_end
        return stride * _STRIDE, self._starts[stride]

    @contextmanager
    def _open_with_header(self) -> Iterator[tuple[IO[bytes], EventLogHeader]]:
        """The file, and what it begins with: it may be another one the next time."""
        with current_file_system().open_file(self.path) as file:
            yield file, event_log_head.read_header(file, self.opening)

    def recent_events(self) -> list[Any]:
        """Those in memory."""
        with self._changing:
            self._load_recent_events()
            return list(self._last)

    def events_of_type(self, *kinds: type) -> list[Any]:
        """The events of some kinds, in order; no other is decoded."""
        marks = tuple(f'"type":"{kind.__name__}"'.encode() for kind in kinds)
        with self._changing:
            if kept := self._count - len(self._last):
                with self._open_with_header() as (file, begin):
                    lines = begin.read_lines(file, begin.logical_end, self._size)
                    both = [
                        *begin.line_count,
                        *islice(lines, max(0, kept - begin.first_event_number)),
                    ]
                    both = both if begin.first_event_number <= kept else both[:kept]
                    older = [
                        decode_event(line) for line in both if any(m in line[:64] for m in marks)
                    ]
            else:
                older = []
            return older + [e for e in self._last if isinstance(e, kinds)]

    def describe_prefix(self, before: EventPrefix | None, count: int, size: int) -> EventPrefix:
        """The first ``count`` events, which have ``size`` bytes; ``before`` has some of them."""
        crc, at = (before.crc32, before.size_bytes) if before else (0, 0)
        with self._open_with_header() as (file, begin):
            if begin.trimmed is not None and at < begin.logical_end:
                crc, at = begin.trimmed.trimmed_crc32, begin.logical_end
            file.seek(at - begin.trimmed_bytes)
            while at < size and (some := file.read(min(_CHUNK, size - at))):
                crc, at = zlib.crc32(some, crc), at + len(some)
        return EventPrefix(count, size, crc, self._starts[: -(-count // _STRIDE)])

    def trim(self, first: int, force: bool) -> bool:
        """Keep the events of batches before ``first`` no longer, once they are a third of what the
        file has: what is kept is written anew, so that readers see the one file or the other,
        whole. Returns whether it was done.
        """
        with self._changing:
            with self._open_with_header() as (file, begin):
                cut = self._find_batch_end(file, begin, first - 1)
                if cut is None or 3 * (cut[1] - begin.logical_end) < self._size - begin.logical_end:
                    return False
                new = begin.trim(file, first - 1, *cut)
                end = self._size - begin.trimmed_bytes
                self._rewrite_log(new.line_count, file, cut[1] - begin.trimmed_bytes, end, force)
            self._gone = new.trimmed_bytes
            while self._last and self._count - len(self._last) < new.first_event_number:
                self._last.popleft()
            return True

    def _rewrite_log(
        self, lines: Iterable[bytes], file: IO[bytes], start: int, end: int, force: bool
    ) -> None:
        """Have a file of these lines and of what is between two places of this one. In its place,
        and not within it: a driver that has lost the run would cut off what others have told.
        """
        temporary = durable_files.name_temporary(self.path)
        with current_file_system().open_file(temporary, "wb") as made:
            made.writelines(lines)
            file.seek(start)
            while start < end and (some := file.read(min(_CHUNK, end - start))):
                made.write(some)
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
        """How many events there are up to the end of a batch, and where that is in the file; None:
        it is not there.
        """

        def is_later(stride: int) -> bool:
            line = next(begin.read_lines(file, self._starts[stride], self._size))
            return event_log_head.line_batch(line) > batch

        strides = range(-(-begin.first_event_number // _STRIDE), len(self._starts))
        later = strides.start + bisect_left(strides, True, key=is_later)
        count, size = self._find_indexed_event(begin, max(0, later - 1) * _STRIDE)
        for line in begin.read_lines(file, size, self._size):
            count, size = count + 1, size + len(line)
            if (
                event_log_head.is_commit_line(line)
                and (found := event_log_head.line_batch(line)) >= batch
            ):
                return (count, size) if found == batch else None
        return None

    def check_prefix(self, archive: EventPrefix) -> None:
        """Raise Damaged unless the file begins with these events."""
        found = self.describe_prefix(None, archive.event_count, archive.size_bytes)
        if found.crc32 != archive.crc32:
            raise DamagedRunError(
                f"{self.path} is damaged: its first {archive.size_bytes} bytes do not have the "
                "checksum "
                "of what was written"
            )
