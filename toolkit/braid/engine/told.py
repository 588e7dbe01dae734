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

from braid.core.jsonl import event_of, line_of
from braid.engine import durable, head
from braid.engine.disk import disk
from braid.engine.durable import Damaged, unchecked
from braid.engine.head import Head

_STRIDE = 256
"""Every so many events, where the next begins in the file is kept."""
_CHUNK = 1 << 20


class Archive(NamedTuple):
    """The first ``events`` of the file: its first ``bytes``, their crc32, and where every so
    many begin.
    """

    events: int
    bytes: int
    crc: int
    starts: list[int]


def extend_archive(archive: Archive, lines: Sequence[bytes]) -> Archive:
    """Return an archive that has these lines after its own."""
    events, size, starts = archive.events, archive.bytes, [*archive.starts]
    for line in lines:
        if events % _STRIDE == 0:
            starts.append(size)
        events, size = events + 1, size + len(line)
    return Archive(events, size, zlib.crc32(b"".join(lines), archive.crc), starts)


class End(NamedTuple):
    """The end of some events: their number, their bytes and their crc32."""

    events: int
    bytes: int
    crc: int


class Told:
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
        check_driver: Callable[[], None] = unchecked,
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
    def count(self) -> int:
        """How many there are."""
        return self._count

    @property
    def size(self) -> int:
        """How many bytes they have."""
        return self._size

    @property
    def end(self) -> End:
        """Where the next begins."""
        return End(self._count, self._size, self._crc)

    def look(self, archive: Archive, and_cut: bool = False) -> None:
        """Take these events of the file for all; ``and_cut``: remove the others. Raises Damaged
        when it does not have them.
        """
        try:
            with self._opened() as (file, first):
                size = disk().size(self.path) + first.gone
                whole = first.end <= archive.bytes <= size
                if and_cut and whole and size > archive.bytes:
                    self._rewrite([], file, 0, archive.bytes - first.gone, True)
        except FileNotFoundError:
            whole = False
        if not whole:
            raise Damaged(f"{self.path} is missing or damaged: it had {archive.bytes} bytes")
        self._count, self._size, self._starts = archive.events, archive.bytes, [*archive.starts]
        self._crc, self._gone = archive.crc, first.gone
        self._last.clear()
        self._filled = False

    def begin(self, opening: Sequence[Any]) -> None:
        """Begin with these events, and no others."""
        with self._changing:
            durable.put(self.path, b"", False, check=self.check_driver)
            self._count = self._size = self._crc = self._gone = 0
            self._starts = []
            self._last.clear()
            self._filled = True
            self.append(opening)
            self.opening = len(opening)

    def _fill(self) -> None:
        """Have as many of the last in memory as there may be, if that has not been."""
        if not self._filled:
            self._filled = True
            there, first = len(self._last), max(0, self._count - (self._last.maxlen or 0))
            with self._opened() as (_, begin):
                first = max(first, begin.first if begin.dropped else 0)
            more = self.since(first)[: -there or None]
            self._last.extendleft(more[::-1])

    def append(self, happened: Sequence[Any]) -> None:
        """Tell more: first here, as the file may be out of reach."""
        lines = [*map(line_of, happened)]
        with self._changing:
            size = self._size
            self._last.extend(happened)
            self._note(lines)
            self.check_driver()
            if self.mend is not None and not self._has(size):
                self.mend()
                self._note(lines)
            disk().append(self.path, b"".join(lines))

    def _has(self, size: int) -> bool:
        """Whether the file has as many bytes as were written."""
        return disk().exists(self.path) and disk().size(self.path) == size - self._gone

    def again(self, told: Sequence[bytes | msgspec.Raw]) -> None:
        """Tell more, as it has been written down elsewhere; it is decoded when it is asked for."""
        with self._changing:
            self._last.clear()
            self._filled = False
            lines = [bytes(each) + b"\n" for each in told]
            self._note(lines)
            disk().append(self.path, b"".join(lines))

    def _note(self, lines: Sequence[bytes]) -> None:
        for line in lines:
            if self._count % _STRIDE == 0:
                self._starts.append(self._size)
            self._count, self._size = self._count + 1, self._size + len(line)
            self._crc = zlib.crc32(line, self._crc)

    def since(self, first: int) -> list[Any]:
        """The events from number ``first`` on: of those that are no longer kept, what stands in
        their place.
        """
        with self._changing:
            kept = self._count - len(self._last)
            first = max(0, first if first >= 0 else self._count + first)
            older = self._older(first, kept) if first < kept else []
            return older + list(islice(self._last, max(0, first - kept), None))

    def _older(self, first: int, end: int) -> list[Any]:
        """The events between two numbers, of the file."""
        with self._opened() as (file, begin):
            at, start = self._before(begin, max(first, begin.first))
            lines = islice(begin.lines_from(file, start, self._size), max(0, end - at))
            later = map(event_of, islice(lines, max(0, first - at), None))
            return [*begin.between(first, end), *later]

    def _before(self, begin: Head, number: int) -> tuple[int, int]:
        """The number of an event up to this one, and where in the file it is."""
        stride = number // _STRIDE
        if stride * _STRIDE <= begin.first:
            return begin.first, begin.end
        return stride * _STRIDE, self._starts[stride]

    @contextmanager
    def _opened(self) -> Iterator[tuple[IO[bytes], Head]]:
        """The file, and what it begins with: it may be another one the next time."""
        with disk().open(self.path) as file:
            yield file, head.of(file, self.opening)

    def recent(self) -> list[Any]:
        """Those in memory."""
        with self._changing:
            self._fill()
            return list(self._last)

    def of(self, *kinds: type) -> list[Any]:
        """The events of some kinds, in order; no other is decoded."""
        marks = tuple(f'"kind":"{kind.__name__}"'.encode() for kind in kinds)
        with self._changing:
            if kept := self._count - len(self._last):
                with self._opened() as (file, begin):
                    lines = begin.lines_from(file, begin.end, self._size)
                    both = [*begin.lines, *islice(lines, max(0, kept - begin.first))]
                    both = both if begin.first <= kept else both[:kept]
                    older = [event_of(line) for line in both if any(m in line[:64] for m in marks)]
            else:
                older = []
            return older + [e for e in self._last if isinstance(e, kinds)]

    def archive(self, before: Archive | None, count: int, size: int) -> Archive:
        """The first ``count`` events, which have ``size`` bytes; ``before`` has some of them."""
        crc, at = (before.crc, before.bytes) if before else (0, 0)
        with self._opened() as (file, begin):
            if begin.dropped is not None and at < begin.end:
                crc, at = begin.dropped.before, begin.end
            file.seek(at - begin.gone)
            while at < size and (some := file.read(min(_CHUNK, size - at))):
                crc, at = zlib.crc32(some, crc), at + len(some)
        return Archive(count, size, crc, self._starts[: -(-count // _STRIDE)])

    def drop(self, first: int, force: bool) -> bool:
        """Keep the events of batches before ``first`` no longer, once they are a third of what the
        file has: what is kept is written anew, so that readers see the one file or the other,
        whole. Returns whether it was done.
        """
        with self._changing:
            with self._opened() as (file, begin):
                cut = self._end_of(file, begin, first - 1)
                if cut is None or 3 * (cut[1] - begin.end) < self._size - begin.end:
                    return False
                new = begin.without(file, first - 1, *cut)
                end = self._size - begin.gone
                self._rewrite(new.lines, file, cut[1] - begin.gone, end, force)
            self._gone = new.gone
            while self._last and self._count - len(self._last) < new.first:
                self._last.popleft()
            return True

    def _rewrite(
        self, lines: Iterable[bytes], file: IO[bytes], start: int, end: int, force: bool
    ) -> None:
        """Have a file of these lines and of what is between two places of this one. In its place,
        and not within it: a driver that has lost the run would cut off what others have told.
        """
        temporary = durable.name_temporary(self.path)
        with disk().open(temporary, "wb") as made:
            made.writelines(lines)
            file.seek(start)
            while start < end and (some := file.read(min(_CHUNK, end - start))):
                made.write(some)
                start += len(some)
        if force:
            durable.sync(temporary)
        self.check_driver()
        disk().replace(temporary, self.path)
        if force:
            durable.sync(self.path.parent)

    def _end_of(self, file: IO[bytes], begin: Head, batch: int) -> tuple[int, int] | None:
        """How many events there are up to the end of a batch, and where that is in the file; None:
        it is not there.
        """

        def is_later(stride: int) -> bool:
            line = next(begin.lines_from(file, self._starts[stride], self._size))
            return head.batch_of(line) > batch

        strides = range(-(-begin.first // _STRIDE), len(self._starts))
        later = strides.start + bisect_left(strides, True, key=is_later)
        count, size = self._before(begin, max(0, later - 1) * _STRIDE)
        for line in begin.lines_from(file, size, self._size):
            count, size = count + 1, size + len(line)
            if head.commits(line) and (found := head.batch_of(line)) >= batch:
                return (count, size) if found == batch else None
        return None

    def check(self, archive: Archive) -> None:
        """Raise Damaged unless the file begins with these events."""
        found = self.archive(None, archive.events, archive.bytes)
        if found.crc != archive.crc:
            raise Damaged(
                f"{self.path} is damaged: its first {archive.bytes} bytes do not have the checksum "
                "of what was written"
            )
