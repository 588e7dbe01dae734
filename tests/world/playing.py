"""Run many worlds on all cores."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from itertools import chain
from multiprocessing import get_context
from typing import Any

from world.hub_world import HubWorld
from world.world import Verdict, World

_TOGETHER = 10
"""Number of seeds per task of a process."""
_HUB_EVERY = 5
"""One in this number of worlds has a hub, the others a run."""


def play(seed: int) -> Verdict:
    """Run the world of a seed from its beginning to its end."""
    return (World if seed % _HUB_EVERY else HubWorld)(seed).play()


def played(
    seeds: Sequence[int], cores: int | None = None, fault: int | None = None
) -> Iterator[Verdict]:
    """Return the verdicts on worlds by their seeds, in order, run on this number of cores.

    ``fault`` is the number of a fault that is put into the engine.
    """
    cores = cores or os.cpu_count() or 1
    if cores == 1:
        with _put(fault):
            yield from map(_play_seed, seeds)
        return
    parts = [seeds[at : at + _TOGETHER] for at in range(0, len(seeds), _TOGETHER)]
    with get_context("forkserver").Pool(cores) as pool:
        yield from chain.from_iterable(pool.imap(partial(_part, fault=fault), parts))


def _part(seeds: Sequence[int], fault: int | None) -> list[Verdict]:
    logging.disable(logging.CRITICAL)
    with _put(fault):
        return [*map(_play_seed, seeds)]


def _put(fault: int | None) -> AbstractContextManager[Any]:
    """Put a fault into the engine, if one is given."""
    if fault is None:
        return nullcontext()
    from mutations.world import WORLD_FAULTS

    return WORLD_FAULTS[fault].put()


def _play_seed(seed: int) -> Verdict:
    """Return a verdict, without the trace of a correct world."""
    verdict = play(seed)
    if not verdict.wrong:
        verdict.trace.clear()
    return verdict


def play_worlds(first: int, count: int) -> int:
    """Run some worlds, print those that failed, and return their number."""
    began, wrong = time.perf_counter(), 0
    for verdict in played(range(first, first + count)):
        if verdict.wrong:
            wrong += 1
            print(verdict, flush=True)
    seconds = time.perf_counter() - began
    print(f"{count} worlds, {wrong} of them wrong, {count / seconds:.1f} a second")
    return wrong
