"""What another placement would do with what a run was given: simulated on what its events tell."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from braid.core.events import BatchCommitted, EventsDropped, RunStarted
from braid.core.history import LiveBlocks
from braid.core.placement import Placement, offered
from braid.core.plan import Block
from braid.core.spans import micros
from braid.model.simulate import simulate

RECENT = 10
"""Batches whose mean is taken for those to come."""


_SIZED = ("hosts", "n", "m", "max_hosts", "resize", "cluster", "weights", "capacity")
"""Settings that go with a number of hosts."""


@dataclass(frozen=True, slots=True)
class Ghost:
    """A placement that was not run. By batch (from 0): tuples on its fullest host, and copies that
    it sends of what came.
    """

    name: str
    batch: tuple[int, ...]
    fullest: tuple[int, ...]
    sent: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Given:
    """What a run was given: the ``held`` tuples by stream after a batch, those that ``came`` by
    batch later on, how long batches last in seconds of event time (the first is that of what is
    held), bytes of a tuple by stream.
    """

    held: tuple[int, ...]
    came: tuple[tuple[int, ...], ...]
    seconds: tuple[float, ...]
    sizes: tuple[int, ...]


def names(start: RunStarted) -> tuple[str, ...]:
    """The placements that could have joined the streams of a run, by name."""
    return tuple(offered(len(start.streams), equality=False))


def what_if(
    events: Iterable[Any], name: str, hosts: int, since: int = -1, ahead: int = 20
) -> Ghost:
    """Another placement takes over after batch ``since`` (from 0; -1: from the beginning), or after
    the first whose events are kept.

    What is held then comes to it at once, later batches as they came, then ``ahead`` more that are
    like the last ones. Nothing is measured: this is a model of loads. Raises ValueError for a
    placement that cannot join these streams, for hosts that it does not take, for a batch that was
    not, and for a run of windows whose tuples have no event time.
    """
    happened = list(events)
    start = next((e for e in happened if isinstance(e, RunStarted)), None)
    commits = [e for e in happened if isinstance(e, BatchCommitted)]
    if start is None or not commits:
        raise ValueError("nothing has been joined yet, so nothing can be compared")
    if not -1 <= since <= commits[-1].batch:
        raise ValueError(f"there is no batch {since + 1}; this run has had {commits[-1].batch + 1}")
    before = next((e for e in happened if isinstance(e, EventsDropped)), None)
    if before is not None and since <= before.batch:  # nobody knows what came until then
        since = commits[0].batch
    given = facts(start, commits, since, () if before is None else before.blocks)
    placement = made(start, name, hosts)
    counts = [*([given.held] if any(given.held) else []), *given.came]
    counts += [_mean(given.came or (given.held,))] * ahead
    seconds = [*given.seconds[not any(given.held) :], *[given.seconds[-1]] * ahead]
    windows = [_window(start.windows.get(a)) for a in start.streams]
    run = simulate(
        placement,
        counts,
        streams=start.streams,
        windows=windows,
        seconds=seconds,
        tuple_bytes=given.sizes,
    )
    first = since + 1 - any(given.held)
    modelled = [e for e in run if isinstance(e, BatchCommitted)][: len(counts)]
    return Ghost(
        f"{name}({placement.hosts})",
        tuple(first + k for k in range(len(modelled))),
        tuple(max(h.stored for h in e.hosts) for e in modelled),
        tuple(e.all_hosts.received for e in modelled),
    )


def made(start: RunStarted, name: str, hosts: int) -> Placement:
    """A placement by its name, on so many hosts; with the run's settings if it is the run's own.
    Raises ValueError.
    """
    kind = Placement.by_name(name)
    own = start.settings if name == start.placement else {}
    settings = {k: v for k, v in own.items() if k not in _SIZED}
    settings |= {"hosts": hosts} if "hosts" in kind.takes() else {}
    placement = kind.of(settings)
    if not placement.serves(len(start.streams)):
        raise ValueError(f"{name} does not join {len(start.streams)} streams")
    return placement


def facts(
    start: RunStarted, commits: Sequence[BatchCommitted], since: int, left: Iterable[Block] = ()
) -> Given:
    """What a run had after a batch, and was given later; ``left`` are the blocks that it had before
    these commits.
    """
    blocks, held, ends = LiveBlocks(), (0,) * len(start.streams), [0.0]
    sizes = [1] * len(start.streams)
    later = []
    blocks.change(left)
    for event in commits:
        blocks.commit(event)
        for b in event.blocks:
            sizes[b.stream] = max(1, round(b.bytes / b.rows)) if b.rows else sizes[b.stream]
        if event.batch == since:
            held = tuple(event.live)
            ends = [_end(blocks.values())]
            low = min((b.span[0] for b in blocks.values() if b.span), default=0) / 1e6
        elif event.batch > since:
            later.append(tuple(event.received))
            fresh = [b for b in event.blocks if b.batch == event.batch]
            ends.append(max(_end(fresh), ends[-1] + 1e-6))
    if start.windows and ends[-1] == 0.0:
        raise ValueError("the run has windows, and its blocks tell no event time")
    whole = max(ends[0] - low, 1e-6) if any(held) else 1.0
    lasts = [max(b - a, 1e-6) for a, b in pairwise(ends)] if start.windows else [1.0] * len(later)
    return Given(held, tuple(later), (whole, *lasts), tuple(sizes))


def _end(blocks: Iterable[Block]) -> float:
    """The latest event time of blocks, in seconds."""
    return max((b.span[1] for b in blocks if b.span is not None), default=0) / 1e6


def _mean(came: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    recent = [c for c in came if any(c)][-RECENT:] or [tuple(0 for _ in came[-1])]
    return tuple(round(sum(each) / len(recent)) for each in zip(*recent, strict=True))


def _window(text: str | None) -> float | None:
    return None if text is None else micros(text, "window") / 1e6
