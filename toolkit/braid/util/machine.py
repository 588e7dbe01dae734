"""What a process may hold and how much it can do at once: how people write it, what there is."""

from __future__ import annotations

import ctypes
import os
import re
from pathlib import Path

from braid.util.validation import read_natural

_UNITS = {"B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_SHARE = 4
"""By default one part of so many of the machine's memory is for a batch."""
_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
"""Where Linux tells what a container may take."""
_QUOTA = Path("/sys/fs/cgroup/cpu.max")
"""Where it tells what time of processors a container may take, of what time."""
_KEPT = (
    (-8, 1),  # M_ARENA_MAX
    (-3, 32 << 20),  # M_MMAP_THRESHOLD
    (-1, 128 << 20),  # M_TRIM_THRESHOLD
)
"""What mallopt(3) is told: one place for all threads, arrays of up to 32 MB in it, and 128 MB at
its end that are kept when they are free."""


def parse_memory_limit(given: str | int | None = None, what: str = "driver_memory") -> int:
    """Bytes, from a number of them or a text as "512 MB"; None: a quarter of what the machine, or
    the container, has. Raises ValueError, with one sentence, for anything else.

    >>> allowed("1.5 GB"), allowed(4096)
    (1500000000, 4096)
    """
    if given is None:
        return machine_memory() // _SHARE
    found = re.fullmatch(r"(\d+(?:\.\d+)?) *([kMGT]?B)?", str(given).strip())
    size = int(float(found[1]) * _UNITS[found[2] or "B"]) if found else 0
    if size < 1:
        raise ValueError(f"{what} is {given!r}; it must be bytes, or a size as '512 MB' or '2 GB'")
    return size


def machine_memory() -> int:
    """The bytes of memory that the machine has, or that a container may take of it."""
    whole = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    told = [file.read_text().strip() for name in _LIMITS if (file := Path(name)).exists()]
    limits = map(read_natural, told)  # "max" is none
    return min([whole, *(limit for limit in limits if limit is not None)])


def available_cores() -> int:
    """The processors that this process may run on, or that a container may take the time of."""
    affinity = getattr(os, "sched_getaffinity", None)  # Linux has it
    some = len(affinity(0)) if affinity else os.cpu_count() or 1
    text, *of = _QUOTA.read_text().split() if _QUOTA.exists() else ["max"]
    taken = read_natural(text)
    return some if taken is None else min(some, max(1, -(-taken // int(of[0]))))


def retain_freed_memory() -> None:
    """Have glibc keep up to 128 MB that a batch has freed for the next one, whichever thread needs
    it. By itself it gives arrays back to the system, which clears each page anew: a quarter of what
    threads take for a batch of 200,000 tuples. Other libraries, and settings that the user has made
    (MALLOC_ARENA_MAX and such), stay as they are.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt and not any(name.startswith(("MALLOC_", "GLIBC_TUNABLES")) for name in os.environ):
        for option, value in _KEPT:
            mallopt(option, value)
