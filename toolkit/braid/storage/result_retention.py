"""Retention of a run's results: all of them, or by age or size."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from braid.storage.log_entries import CompactedResults
from braid.util.durations import parse_duration
from braid.util.machine import parse_memory_limit
from braid.util.validation import format_value

_SIZE = re.compile(r"\s*\d+(\.\d+)? *[kMGT]?B\s*")


class RetentionPolicy(NamedTuple):
    """Limit of retained results: ``max_age`` in microseconds or ``max_bytes``; None: no limit."""

    max_age: int | None = None
    max_bytes: int | None = None


def parse_retention(given: Any, name: str = "keep") -> RetentionPolicy | None:
    """Parse a duration or a size; None: there is no limit. Raises ValueError if invalid.

    ``name``: of the argument.

    >>> parse_retention("1 day")
    RetentionPolicy(max_age=86400000000, max_bytes=None)
    >>> parse_retention("2 GB")
    RetentionPolicy(max_age=None, max_bytes=2000000000)
    """
    if given is None:
        return None
    try:
        if isinstance(given, str) and _SIZE.fullmatch(given):
            return RetentionPolicy(max_bytes=parse_memory_limit(given, name))
        return RetentionPolicy(max_age=parse_duration(given, name))
    except ValueError:
        raise ValueError(
            f"{name} is {format_value(given)}; it must be a span as '30 days', or a size as '10 GB'"
        ) from None


def count_expired_groups(
    keep: RetentionPolicy, merged: Sequence[CompactedResults], later: int, now: int, promised: int
) -> int:
    """Return how many of the first groups of compacted batches have expired.

    - ``later``: bytes of the batches after the groups.
    - ``now``: microseconds since 1970.
    - ``promised``: first batch that must be retained. The last group is retained too.
    """
    sizes = [group.bytes for group in merged]
    for n, group in enumerate(merged[:-1]):
        young = keep.max_age is not None and now - group.time <= keep.max_age
        small = keep.max_bytes is not None and sum(sizes[n:]) + later <= keep.max_bytes
        if young or small or group.end_batch > promised:
            return n
    return max(0, len(merged) - 1)
