"""Header of an event log: the opening events and a summary of trimmed ones."""

from __future__ import annotations

import re
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import IO, Any

import msgspec

from braid.core import run_events
from braid.core.batch_history import LiveBlocks
from braid.core.batch_report import HostMetrics
from braid.core.event_jsonl import decode_event, event_to_dict, event_types
from braid.core.plan import Block
from braid.core.run_events import BatchCommitted, EventsTrimmed
from braid.core.stream_clocks import IrregularCounts
from braid.errors import DamagedRunError
from braid.storage import durable_files

_KIND = re.compile(rb'"type":"(\w+)"')


class _Numbered(msgspec.Struct):
    batch: int = -1


class _Committed(msgspec.Struct):
    """Fields of a commit that the summary needs."""

    results: int
    changed_blocks: tuple[Block, ...]
    dropped_block_ids: tuple[int, ...]
    host_metrics: tuple[HostMetrics, ...] = ()
    late_tuples: tuple[int, ...] = ()


class _Sums:
    """Summary of trimmed events, including those in the earlier placeholder ``dropped``."""

    def __init__(self, dropped: EventsTrimmed | None) -> None:
        self.blocks, self.host_metrics, self.results = LiveBlocks(), HostMetrics(), 0
        self.irregular, self._kinds = IrregularCounts(), Counter[str]()
        if dropped is not None:
            self.blocks.apply_changes(dropped.live_blocks)
            self.results = dropped.results
            self.host_metrics.add_counts(dropped.total_host_metrics)
            self._kinds.update(dropped.event_counts)
            self.irregular = IrregularCounts(dropped.late_tuples)

    def add_event(self, line: bytes) -> None:
        """Add an event."""
        self._kinds[_parse_event_kind(line)] += 1
        if is_commit_line(line):
            batch = msgspec.json.decode(line, type=_Committed)
            self.blocks.apply_changes(batch.changed_blocks, batch.dropped_block_ids)
            self.results += batch.results
            self.irregular = self.irregular.add(IrregularCounts(batch.late_tuples))
            for metrics in batch.host_metrics:
                self.host_metrics.add_counts(metrics)

    def count_by_kind(self, stay: Iterable[bytes]) -> dict[str, int]:
        """Return the number of events by type, without those that ``stay``."""
        self._kinds.subtract(map(_parse_event_kind, stay))
        return dict(+self._kinds)


@dataclass(frozen=True)
class EventLogHeader:
    """First lines of an event log.

    - ``lines``: opening events, then the placeholder and retained events, if some were trimmed.
    - ``opening_events``: number of opening events.
    - ``trimmed``: placeholder of trimmed events; None: none were trimmed.
    """

    lines: list[bytes]
    opening_events: int
    trimmed: EventsTrimmed | None

    @property
    def first_event_number(self) -> int:
        """Number of the first event after the header."""
        gone = 0 if self.trimmed is None else self.trimmed.trimmed_events - 1
        return len(self.lines) + gone

    @property
    def logical_end(self) -> int:
        """Offset at which the header ends in the complete log."""
        return sum(map(len, self.lines)) if self.trimmed is None else self.trimmed.trimmed_bytes

    @property
    def trimmed_bytes(self) -> int:
        """Bytes that trimming has removed."""
        return self.logical_end - sum(map(len, self.lines))

    def read_lines(self, file: IO[bytes], start: int, end: int) -> Iterator[bytes]:
        """Yield the lines between two offsets of the complete log."""
        file.seek(start - self.trimmed_bytes)
        while start < end and (line := file.readline()):
            start += len(line)
            yield line

    def read_events(self, first: int, end: int) -> Iterator[Any]:
        """Yield the header's events between two numbers."""
        number = 0
        for event in map(decode_event, self.lines):
            after = number + run_events.count_event_numbers([event])
            if first < after and number < end:
                if isinstance(event, EventsTrimmed):
                    event = replace(event, trimmed_events=after - max(first, number))
                yield event
            number = after

    def trim(self, file: IO[bytes], batch: int, count: int, end: int) -> EventLogHeader:
        """Return the header after trimming the batches up to this one.

        ``count``, ``end``: number of events up to there, and their offset.
        """
        old, sums, lasting = self.trimmed, _Sums(self.trimmed), _Lasting()
        crc = old.trimmed_crc32 if old else zlib.crc32(b"".join(self.lines))
        for line in self.lines[self.opening_events + 1 :]:
            sums.add_event(line)
            lasting.add_event(line)
        for line in self.read_lines(file, self.logical_end, end):
            crc = zlib.crc32(line, crc)
            sums.add_event(line)
            lasting.add_event(line)
        opening, stay = self.lines[: self.opening_events], lasting.lines
        dropped = EventsTrimmed(
            batch,
            count - len(opening) - len(stay),
            len(stay),
            end,
            crc,
            zlib.crc32(b"".join(opening + stay)),
            sums.results,
            tuple(sums.blocks.values()),
            sums.irregular.late,
            msgspec.structs.replace(sums.host_metrics, stored_tuples=0, stored_bytes=0),
            sums.count_by_kind(stay),
        )
        line = durable_files.encode_checksummed(event_to_dict(dropped)) + b"\n"
        return EventLogHeader([*opening, line, *stay], len(opening), dropped)


def read_header(file: IO[bytes], opening: int) -> EventLogHeader:
    """Read the header of a log with ``opening`` events. Raises DamagedRunError if it is damaged."""
    lines = [line for line in (file.readline() for _ in range(opening + 1)) if line]
    if len(lines) <= opening or _parse_event_kind(lines[opening]) != EventsTrimmed.__name__:
        return EventLogHeader(lines[:opening], opening, None)
    if not durable_files.is_intact(lines[opening].rstrip(b"\n")):
        raise DamagedRunError(
            f"{file.name} is damaged: the summary of trimmed events is not intact"
        )
    dropped: EventsTrimmed = decode_event(lines[opening])
    stay = [file.readline() for _ in range(dropped.retained_events)]
    if zlib.crc32(b"".join([*lines[:opening], *stay])) != dropped.header_crc32:
        raise DamagedRunError(f"{file.name} is damaged: its first lines do not have their checksum")
    return EventLogHeader([*lines, *stay], opening, dropped)


class _Lasting:
    """Lines of the events that must be retained."""

    def __init__(self) -> None:
        self._kinds = {
            n: kind for n, kind in event_types().items() if kind.retention_key is not None
        }
        self._last = dict[tuple[Any, ...], bytes]()

    @property
    def lines(self) -> list[bytes]:
        """Lines in order."""
        return [*self._last.values()]

    def add_event(self, line: bytes) -> None:
        """Add an event. It may replace or cancel an earlier one."""
        if (kind := self._kinds.get(_parse_event_kind(line))) is None:
            return
        event = decode_event(line)
        values = tuple(getattr(event, name) for name in kind.retention_key or ())
        undone = [key for key in self._last if key[:2] == (kind.cancels, *values[:1])]
        if undone:
            del self._last[undone[-1]]
        else:
            key = kind.__name__, *values
            self._last.pop(key, None)
            self._last[key] = line


def _parse_event_kind(line: bytes) -> str:
    match = _KIND.search(line[:64])
    return match[1].decode() if match else ""


def is_commit_line(line: bytes) -> bool:
    """Return whether a line is the last of a batch."""
    return _parse_event_kind(line) == BatchCommitted.__name__


def line_batch(line: bytes) -> int:
    """Return the batch of the event in a line; -1: none."""
    return msgspec.json.decode(line, type=_Numbered).batch
