"""Files that Spark's log of a file sink has after a batch.

Each batch has a file with its lines. At intervals, a file ``N.compact`` has the lines of all
batches: every tenth batch up to 200, every hundredth up to 2,000, and so on, which keeps the writes
proportional. Spark derives the interval from the last two, so the one at which the interval grows
is retained.
"""

from __future__ import annotations

import re
from pathlib import Path

_INTERVAL = 10
"""Spark's default of ``spark.sql.streaming.fileSink.log.compactInterval``."""


def _compact_interval(batch: int) -> int:
    """Return the number of batches between two compact files, at this batch."""
    every = _INTERVAL
    while batch + 1 >= 2 * _INTERVAL * every:
        every *= 10
    return every


def is_compact_batch(batch: int) -> bool:
    """Return whether the log file of a batch has the lines of all batches up to it."""
    return (batch + 1) % _compact_interval(batch) == 0


def last_compact_batch(batch: int) -> int:
    """Return the last batch with a compact file, up to this one; -1: none."""
    every = _compact_interval(batch)
    return (batch + 1) // every * every - 1


def retained_file_names(batch: int) -> set[str]:
    """Return the log files that are retained after a batch.

    They are: those since the second-last compact file, and the compact file at which the interval
    grows.
    """
    every, last = _compact_interval(batch), last_compact_batch(batch)
    compact = {last, last - every, 10 * every - 1}
    plain = {b for b in range(max(0, last - every), batch + 1) if not is_compact_batch(b)}
    return {f"{b}.compact" for b in compact if 0 <= b <= batch} | {str(b) for b in plain}


def required_file_names(batch: int) -> set[str]:
    """Return the retained files that a reader of the log after a batch needs."""
    return retained_file_names(batch) - {str(b) for b in range(last_compact_batch(batch))}


def log_file_name(batch: int) -> str:
    """Return the name of the log file of a batch."""
    return f"{batch}.compact" if is_compact_batch(batch) else f"{batch}"


def is_log_file_name(name: str) -> bool:
    """Return whether a name is that of a log file."""
    return re.fullmatch(r"\d+(\.compact)?", name) is not None


def parse_batch_number(file: Path) -> int:
    """Return the batch of a log file."""
    return int(file.name.partition(".")[0])
