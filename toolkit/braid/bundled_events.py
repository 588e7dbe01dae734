"""Select the events of a run that a bundle has."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from braid.core.event_jsonl import decode_event
from braid.storage.event_log_header import is_commit_line, line_batch, read_header

_MOST_BYTES = 50_000_000


class BundledEvents(NamedTuple):
    """Events of a run as lines of JSON.

    - ``first_batch``: first batch whose events are among them.
    - ``damaged_lines``: lines that were left out, as they are no events.
    """

    lines: list[bytes]
    first_batch: int
    damaged_lines: int


def select_events(file: Path, last: int | None = None) -> BundledEvents:
    """Return the events of ``events.jsonl``, at most 50 MB of them.

    If the oldest are left out, a placeholder with their sums comes before the others.

    ``last``: number of last batches. Default: all.
    """
    lines, damaged = _read_intact_lines(file)
    commits = [n for n, line in enumerate(lines) if is_commit_line(line)]
    cut = _find_cut(lines, commits, last)
    if cut is None:
        first = line_batch(lines[commits[0]]) if commits else 0
        return BundledEvents(lines, first, damaged)
    return BundledEvents(_trim_lines(file, lines, cut), line_batch(lines[cut]) + 1, damaged)


def _read_intact_lines(file: Path) -> tuple[list[bytes], int]:
    """Return the lines that are events, and the number of others; the last may be incomplete."""
    *lines, _ = file.read_bytes().split(b"\n")
    intact = [line + b"\n" for line in lines if _is_event(line)]
    return intact, len(lines) - len(intact)


def _is_event(line: bytes) -> bool:
    try:
        decode_event(line)
    except ValueError:
        return False
    return True


def _find_cut(lines: Sequence[bytes], commits: Sequence[int], last: int | None) -> int | None:
    """Return the line of the last commit to be left out; None: all lines fit."""
    cut = commits[-last - 1] if last is not None and last < len(commits) else None
    size = sum(map(len, lines[0 if cut is None else cut + 1 :]))
    for before, commit in zip([-1, *commits], commits, strict=False):
        if cut is None or commit > cut:
            if size <= _MOST_BYTES or commit == commits[-1]:
                return cut
            size -= sum(map(len, lines[max(before, -1 if cut is None else cut) + 1 : commit + 1]))
            cut = commit
    return cut


def _trim_lines(file: Path, lines: Sequence[bytes], cut: int) -> list[bytes]:
    """Return the lines after a commit, with a placeholder for those up to it."""
    opening = next(n for n, line in enumerate(lines) if line_batch(line) >= 0)
    with open(file, "rb") as events:
        header = read_header(events, opening)
        more = lines[len(header.lines) : cut + 1]
        end = header.logical_end + sum(map(len, more))
        count = header.first_event_number + len(more)
        return [*header.trim(events, line_batch(lines[cut]), count, end).lines, *lines[cut + 1 :]]
