"""The cached runs of Wang 2008, Fig. 16.2 to 16.5.

They are all runs that notebook 03 asks for with ``full``, and those with the book's 3, 5, 7 and 9
streams.

``python -m braid_lab.psp.cached_runs --minutes 4`` adds missing runs to the table, one after the
other, and stops after the minutes. Everything in the table is modelled.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import chain

from braid_lab.common.result_cache import (
    Outcome,
    ResultCache,
    fingerprint_outcomes,
    run_cache_command,
)
from braid_lab.psp.experiments import JOINS, RingSetting
from braid_lab.psp.scheme_comparison import compare_schemes, competitors, count_scheme

LENGTHS, WAYS, SIGMAS, SEEDS = (4, 8, 12, 16), (3, 5, 7, 9), (0.05, 0.1, 0.5), (0, 1, 2)
CACHED_SETTING = RingSetting(seconds=60.0)
COUNTS = ("stored", "sent", "hops", *(f"{c} {join}" for join in JOINS for c in ("busy", "uneven")))


def run_key(scheme: str, nodes: int, setting: RingSetting) -> str:
    """Return the cache key of a run: its scheme and all that its counts depend on."""
    of = {"nodes": nodes} | {
        name: getattr(setting, name)
        for name in ("streams", "rate", "window", "sigma", "seconds", "step", "seed")
    }
    return f"{scheme}: {'; '.join(f'{k}={v:g}' for k, v in of.items())}"


_SHORT = RingSetting(seconds=14.0, sigma=0.05)


def _fingerprint_code() -> str:
    """Return the digest of short runs, and of the schemes at every length.

    Some of the runs are rings with more than two nodes in half of the ring.
    """
    runs = ((name, n, m) for n, m in ((4, 3), (4, 4), (6, 3)) for name in competitors(n, _SHORT))
    counts = (count_scheme(name, n, replace(_SHORT, streams=m)) for name, n, m in runs)
    schemes = ({repr(s): n} for n in LENGTHS for s in competitors(n, _SHORT).values())
    return fingerprint_outcomes(chain(counts, schemes))


def _count_scheme(scheme: str, nodes: int, setting: RingSetting) -> Outcome:
    return count_scheme(scheme, nodes, setting)


CACHE = ResultCache("wang2008-contest.csv", COUNTS, _fingerprint_code, run_key, _count_scheme)


def requested_runs() -> dict[str, Callable[[], Outcome]]:
    """Return all runs of the table, by key, those with the fewest streams first."""
    return CACHE.list_requests(
        lambda source: compare_schemes(LENGTHS, WAYS, SIGMAS, SEEDS, CACHED_SETTING, source)
    )


if __name__ == "__main__":
    run_cache_command(CACHE, requested_runs(), __doc__)
