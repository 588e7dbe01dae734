"""What a file of events begins with: the events that open the run, and, where those of its first
batches are no longer kept, what stands in their place.
"""

from __future__ import annotations

import re
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import IO, Any

import msgspec

from braid.core import events
from braid.core.clocks import Irregular
from braid.core.events import BatchCommitted, EventsDropped
from braid.core.history import LiveBlocks
from braid.core.jsonl import event_of, kinds, to_dict
from braid.core.plan import Block
from braid.core.report import HostDid
from braid.engine import durable
from braid.engine.durable import Damaged

_KIND = re.compile(rb'"kind":"(\w+)"')


class _Numbered(msgspec.Struct):
    batch: int = -1


class _Committed(msgspec.Struct):
    """What of a commit is summed up."""

    results: int
    blocks: tuple[Block, ...]
    dropped: tuple[int, ...]
    hosts: tuple[HostDid, ...] = ()
    late: tuple[int, ...] = ()


class _Sums:
    """What events say in all that are no longer kept, after those that were ``dropped`` before."""

    def __init__(self, dropped: EventsDropped | None) -> None:
        self.blocks, self.did, self.results = LiveBlocks(), HostDid(), 0
        self.irregular, self._kinds = Irregular(), Counter[str]()
        if dropped is not None:
            self.blocks.change(dropped.blocks)
            self.results = dropped.results
            self.did.add(dropped.did)
            self._kinds.update(dropped.kinds)
            self.irregular = Irregular(dropped.late)

    def add(self, line: bytes) -> None:
        """One more."""
        self._kinds[_kind(line)] += 1
        if commits(line):
            batch = msgspec.json.decode(line, type=_Committed)
            self.blocks.change(batch.blocks, batch.dropped)
            self.results += batch.results
            self.irregular = self.irregular.plus(Irregular(batch.late))
            for did in batch.hosts:
                self.did.add(did)

    def kinds(self, stay: Iterable[bytes]) -> dict[str, int]:
        """How many of each kind there were, but for those that ``stay``."""
        self._kinds.subtract(map(_kind, stay))
        return dict(+self._kinds)


@dataclass(frozen=True)
class Head:
    """The first ``lines``: of ``opening`` events, and then, where some are ``dropped``, one that
    says so and those that last. What follows begins at a place that is ``end`` if all were kept,
    with event number ``first``.
    """

    lines: list[bytes]
    opening: int
    dropped: EventsDropped | None

    @property
    def first(self) -> int:
        """The number of the first event that follows."""
        gone = 0 if self.dropped is None else self.dropped.events - 1
        return len(self.lines) + gone

    @property
    def end(self) -> int:
        """Where that begins, if all were kept."""
        return sum(map(len, self.lines)) if self.dropped is None else self.dropped.bytes

    @property
    def gone(self) -> int:
        """The bytes that the file lacks of all."""
        return self.end - sum(map(len, self.lines))

    def lines_from(self, file: IO[bytes], start: int, end: int) -> Iterator[bytes]:
        """The lines between two places."""
        file.seek(start - self.gone)
        while start < end and (line := file.readline()):
            start += len(line)
            yield line

    def between(self, first: int, end: int) -> Iterator[Any]:
        """The events between two numbers, as far as they are here."""
        number = 0
        for event in map(event_of, self.lines):
            after = number + events.numbers([event])
            if first < after and number < end:
                if isinstance(event, EventsDropped):
                    event = replace(event, events=after - max(first, number))
                yield event
            number = after

    def without(self, file: IO[bytes], batch: int, count: int, end: int) -> Head:
        """The head of a file without the events of the batches up to this one, which have ``count``
        events and come to their ``end`` there.
        """
        old, sums, lasting = self.dropped, _Sums(self.dropped), _Lasting()
        crc = old.before if old else zlib.crc32(b"".join(self.lines))
        for line in self.lines[self.opening + 1 :]:
            sums.add(line)
            lasting.add(line)
        for line in self.lines_from(file, self.end, end):
            crc = zlib.crc32(line, crc)
            sums.add(line)
            lasting.add(line)
        opening, stay = self.lines[: self.opening], lasting.lines
        dropped = EventsDropped(
            batch,
            count - len(opening) - len(stay),
            len(stay),
            end,
            crc,
            zlib.crc32(b"".join(opening + stay)),
            sums.results,
            tuple(sums.blocks.values()),
            sums.irregular.late,
            msgspec.structs.replace(sums.did, stored=0, stored_bytes=0),
            sums.kinds(stay),
        )
        line = durable.sealed(to_dict(dropped)) + b"\n"
        return Head([*opening, line, *stay], len(opening), dropped)


def of(file: IO[bytes], opening: int) -> Head:
    """What a file begins with, after ``opening`` events. Raises Damaged where it is not whole."""
    lines = [line for line in (file.readline() for _ in range(opening + 1)) if line]
    if len(lines) <= opening or _kind(lines[opening]) != EventsDropped.__name__:
        return Head(lines[:opening], opening, None)
    if not durable.whole(lines[opening].rstrip(b"\n")):
        raise Damaged(f"{file.name} is damaged: what stands for events that are gone is not whole")
    dropped: EventsDropped = event_of(lines[opening])
    stay = [file.readline() for _ in range(dropped.stay)]
    if zlib.crc32(b"".join([*lines[:opening], *stay])) != dropped.head:
        raise Damaged(f"{file.name} is damaged: its first lines do not have their checksum")
    return Head([*lines, *stay], opening, dropped)


class _Lasting:
    """Of events, the lines of those that last."""

    def __init__(self) -> None:
        self._kinds = {n: kind for n, kind in kinds().items() if kind.lasting is not None}
        self._last = dict[tuple[Any, ...], bytes]()

    @property
    def lines(self) -> list[bytes]:
        """In order."""
        return [*self._last.values()]

    def add(self, line: bytes) -> None:
        """One more event, which may stand in for one before, or undo it."""
        if (kind := self._kinds.get(_kind(line))) is None:
            return
        event = event_of(line)
        values = tuple(getattr(event, name) for name in kind.lasting or ())
        undone = [key for key in self._last if key[:2] == (kind.undoes, *values[:1])]
        if undone:
            del self._last[undone[-1]]
        else:
            key = kind.__name__, *values
            self._last.pop(key, None)
            self._last[key] = line


def _kind(line: bytes) -> str:
    found = _KIND.search(line[:64])
    return found[1].decode() if found else ""


def commits(line: bytes) -> bool:
    """Whether a line is the last of a batch."""
    return _kind(line) == BatchCommitted.__name__


def batch_of(line: bytes) -> int:
    """The batch of the event in a line; -1: it has none."""
    return msgspec.json.decode(line, type=_Numbered).batch
