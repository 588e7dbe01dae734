"""What a run has told: all events in a file, the last ones in memory."""

from __future__ import annotations

import os
import threading
import zlib
from collections import deque
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from braid.core import events
from braid.engine.durable import Damaged

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


class Told:
    """The events of a run, in ``path``; of the last, ``most`` are in memory. May be asked from any
    thread.
    """

    def __init__(self, path: Path, most: int = 1024) -> None:
        self.path = path
        self._last: deque[Any] = deque(maxlen=most)
        self._count = self._size = 0
        self._starts: list[int] = []
        self._changing = threading.RLock()

    @property
    def count(self) -> int:
        """How many there are."""
        return self._count

    @property
    def size(self) -> int:
        """How many bytes the file has."""
        return self._size

    def look(self, archive: Archive, and_cut: bool = False) -> None:
        """Take these events of the file for all; ``and_cut``: remove the others. Raises Damaged
        when it does not have them.
        """
        if not self.path.exists() or self.path.stat().st_size < archive.bytes:
            raise Damaged(f"{self.path} is missing or damaged: it had {archive.bytes} bytes")
        if and_cut:
            os.truncate(self.path, archive.bytes)
        self._count, self._size, self._starts = archive.events, archive.bytes, [*archive.starts]
        self._last.clear()

    def fill(self) -> None:
        """Have as many of the last in memory as there may be."""
        with self._changing:
            kept = self._count - len(self._last)
            first = max(0, kept - (self._last.maxlen or 0) + len(self._last))
            self._last.extendleft([*self._read(first, kept)][::-1] if first < kept else ())

    def append(self, happened: Sequence[Any]) -> None:
        """Tell more: first here, as the file may be out of reach."""
        self._append(happened, [events.to_dict(e) for e in happened])

    def again(self, told: Sequence[dict[str, Any]]) -> None:
        """Tell more, as it has been written down elsewhere."""
        self._append([events.from_dict(each) for each in told], told)

    def _append(self, happened: Sequence[Any], told: Sequence[dict[str, Any]]) -> None:
        lines = [msgspec.json.encode(each) + b"\n" for each in told]
        with self._changing:
            self._last.extend(happened)
            for line in lines:
                self._note(len(line))
            with open(self.path, "ab") as file:
                file.write(b"".join(lines))

    def _note(self, size: int) -> None:
        if self._count % _STRIDE == 0:
            self._starts.append(self._size)
        self._count, self._size = self._count + 1, self._size + size

    def since(self, first: int) -> list[Any]:
        """The events from number ``first`` on."""
        with self._changing:
            kept = self._count - len(self._last)
            first = max(0, first if first >= 0 else self._count + first)
            older = list(self._read(first, kept)) if first < kept else []
            return older + list(islice(self._last, max(0, first - kept), None))

    def recent(self) -> list[Any]:
        """Those in memory."""
        with self._changing:
            return list(self._last)

    def of(self, *kinds: type) -> list[Any]:
        """The events of some kinds, in order; no other is decoded."""
        marks = tuple(f'"kind":"{kind.__name__}"'.encode() for kind in kinds)
        with self._changing:
            kept = self._count - len(self._last)
            lines = islice(self._lines(0, self._size), kept) if kept else ()
            older = [_event(line) for line in lines if any(m in line[:64] for m in marks)]
            return older + [e for e in self._last if isinstance(e, kinds)]

    def _read(self, first: int, end: int) -> Iterator[Any]:
        start = self._starts[first // _STRIDE]
        lines = self._lines(start, self._size)
        return map(_event, islice(lines, first % _STRIDE, first % _STRIDE + end - first))

    def _lines(self, start: int, end: int) -> Iterator[bytes]:
        """The lines between two places of the file."""
        with open(self.path, "rb") as file:
            file.seek(start)
            while start < end and (line := file.readline()):
                start += len(line)
                yield line

    def archive(self, before: Archive | None, count: int, size: int) -> Archive:
        """The first ``count`` events, which have ``size`` bytes; ``before`` has some of them."""
        crc, at = (before.crc, before.bytes) if before else (0, 0)
        with open(self.path, "rb") as file:
            file.seek(at)
            while at < size and (some := file.read(min(_CHUNK, size - at))):
                crc, at = zlib.crc32(some, crc), at + len(some)
        return Archive(count, size, crc, self._starts[: -(-count // _STRIDE)])

    def check(self, archive: Archive) -> None:
        """Raise Damaged unless the file begins with these events."""
        found = self.archive(None, archive.events, archive.bytes)
        if found.crc != archive.crc:
            raise Damaged(
                f"{self.path} is damaged: its first {archive.bytes} bytes do not have the checksum "
                "of what was written"
            )


def _event(line: bytes) -> Any:
    return events.from_dict(msgspec.json.decode(line))
