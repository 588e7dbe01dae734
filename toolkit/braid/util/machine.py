"""Memory and processors of this machine, and memory limits as users write them."""

from __future__ import annotations

import ctypes
import os
import re
from pathlib import Path

from braid.util.validation import read_natural

_UNITS = {"B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_SHARE = 4
"""Default limit of a batch: the machine's memory divided by this."""
_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
"""Files with a container's memory limit on Linux."""
_QUOTA = Path("/sys/fs/cgroup/cpu.max")
"""File with a container's quota of processor time on Linux, and its period."""
_MALLOC_OPTIONS = (
    (-8, 1),  # M_ARENA_MAX
    (-3, 32 << 20),  # M_MMAP_THRESHOLD
    (-1, 128 << 20),  # M_TRIM_THRESHOLD
)
"""Options of mallopt(3): one arena for all threads, arrays up to 32 MB allocated in it, and up to
128 MB kept at its end when free.
"""


def parse_memory_limit(given: str | int | None = None, what: str = "driver_memory") -> int:
    """Return bytes from a number or a text such as "512 MB".

    None: a quarter of the memory of the machine or container.

    Raises ValueError for anything else.

    >>> parse_memory_limit("1.5 GB"), parse_memory_limit(4096)
    (1500000000, 4096)
    """
    if given is None:
        return machine_memory() // _SHARE
    match = re.fullmatch(r"(\d+(?:\.\d+)?) *([kMGT]?B)?", str(given).strip())
    size = int(float(match[1]) * _UNITS[match[2] or "B"]) if match else 0
    if size < 1:
        raise ValueError(f"{what} is {given!r}; it must be bytes, or a size as '512 MB' or '2 GB'")
    return size


def format_bytes(size: int) -> str:
    """Return bytes as text with a unit.

    >>> format_bytes(92), format_bytes(3_400), format_bytes(1_500_000_000)
    ('92 B', '3.4 kB', '1.5 GB')
    """
    unit = next(unit for unit in reversed(_UNITS) if size >= _UNITS[unit] or unit == "B")
    return f"{size / _UNITS[unit]:,.3g} {unit}"


def machine_memory() -> int:
    """Return the bytes of memory of the machine, or the container's limit if it is lower."""
    physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    texts = [file.read_text().strip() for name in _LIMITS if (file := Path(name)).exists()]
    limits = map(read_natural, texts)  # "max" means no limit
    return min([physical, *(limit for limit in limits if limit is not None)])


def available_cores() -> int:
    """Return the number of processors that this process may use.

    A container's quota may lower it.
    """
    affinity = getattr(os, "sched_getaffinity", None)  # Linux only
    some = len(affinity(0)) if affinity else os.cpu_count() or 1
    text, *of = _QUOTA.read_text().split() if _QUOTA.exists() else ["max"]
    taken = read_natural(text)
    return some if taken is None else min(some, max(1, -(-taken // int(of[0]))))


def retain_freed_memory() -> None:
    """Have glibc keep up to 128 MB of a batch's freed memory for the next one, for any thread.

    By default it returns arrays to the system, which clears each page again: a quarter of the
    threads' time for a batch of 200,000 tuples. Other allocators and the user's settings
    (MALLOC_ARENA_MAX and such) are unchanged.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt and not any(name.startswith(("MALLOC_", "GLIBC_TUNABLES")) for name in os.environ):
        for option, value in _MALLOC_OPTIONS:
            mallopt(option, value)
