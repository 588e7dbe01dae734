"""A small run written by hand: two hosts and one migration from (2, 1) to (1, 2).

It has four tuples of R and ten of S.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from braid.core.batch_history import LiveBlocks, split_batch_seconds
from braid.core.batch_report import HostMetrics
from braid.core.plan import Block, Derivation, Hop, ReplicaCopy, Route
from braid.core.run_events import (
    BatchCommitted,
    BatchPlanned,
    EventsTrimmed,
    QueryAdded,
    RunEnded,
    RunStarted,
)
from braid.papers.slices.run_events import ChainChanged
from braid.papers.theta.run_events import (
    Cell,
    MappingChanged,
    MigrationAdvanced,
    MigrationEnded,
    MigrationStarted,
)
from braid_widgets.base.run_view import RunView, fold_events
from braid_widgets.cockpit.decision_flags import Decision, FlagCollector
from braid_widgets.cockpit.verdict import Verdict, VerdictTracker


def make_start(
    batches: int | None = 3,
    placement: str = "AdaptiveGrid",
    hosts: int = 2,
    clock: str = "measured",
) -> RunStarted:
    return RunStarted(("r", "s"), "r.x < s.y", {}, placement, {}, hosts, hosts, batches, clock)


def make_commit(
    batch: int,
    received: Sequence[int],
    total: Sequence[int],
    blocks: Iterable[Block] = (),
    dropped: Sequence[int] = (),
    stored: Sequence[int] = (),
    moved: Sequence[int] = (),
    hosts: int = 2,
) -> BatchCommitted:
    """Return a commit in which every host gets every tuple, and a tuple has 9 bytes."""
    n = sum(received)
    did = (
        HostMetrics(n, 9 * n, held, 9 * held, came, 9 * came)
        for held, came in zip(stored or [0] * hosts, moved or [0] * hosts, strict=True)
    )
    return BatchCommitted(
        batch,
        tuple(received),
        tuple(total),
        tuple(total),
        7,
        split_batch_seconds(0.5, source=0.1, planning=0.01, kernels=0.2, commit=0.09),
        tuple(blocks),
        tuple(dropped),
        tuple(did),
    )


def make_route(
    block: Block,
    *paths: Mapping[int, tuple[int, ...]],
    fresh: bool = True,
    owed: Sequence[int] = (),
) -> Route:
    """Return a route of one hop, to the blocks of the other stream by host, for each path."""
    hops = tuple((Hop(1 - block.stream, probes),) for probes in paths)
    return Route(block, hops, tuple(owed), fresh)


R0, R1 = Block(0, 0, (0, 1), 0, (0,), 2, 18), Block(1, 0, (1, 2), 0, (1,), 2, 18)
S0, S1 = Block(2, 1, (0, 1), 0, (0, 1), 3, 27), Block(3, 1, (1, 2), 0, (0, 1), 3, 27)
LATE_S0, LATE_S1 = Block(4, 1, (0, 1), 1, (0,), 2, 18), Block(5, 1, (1, 2), 1, (1,), 2, 18)
R0_BOTH, R1_BOTH = R0.with_hosts((0, 1)), R1.with_hosts((0, 1))

MIGRATION: list[Any] = [
    make_start(),
    BatchPlanned(
        0,
        (
            make_route(R0),
            make_route(R1),
            make_route(S0, {0: (0,), 1: (1,)}),
            make_route(S1, {0: (0,), 1: (1,)}),
        ),
    ),
    MappingChanged(0, 0, (2, 1), (2, 1), (Cell(0, 0, 0), Cell(1, 1, 0)), (0, 0)),
    make_commit(0, [4, 6], [4, 6], [R0, R1, S0, S1], stored=[8, 8]),
    BatchPlanned(
        1,
        (make_route(LATE_S0, {0: (0,)}, owed=[1]), make_route(LATE_S1, {1: (0, 1)})),
        (Derivation(R0_BOTH, (0,), {1: 0}),),
        {2: (1,), 3: (0,)},
    ),
    MappingChanged(1, 0, (2, 1), (1, 2), (Cell(0, 0, 0), Cell(1, 0, 1)), (4, 10)),
    MigrationStarted(1, 0, 4, 6),
    MigrationAdvanced(1, 0, (ReplicaCopy(0, 0, 1),), 2, 2),
    make_commit(
        1,
        [0, 4],
        [4, 10],
        [R0_BOTH, S0.with_hosts((0,)), S1.with_hosts((1,)), LATE_S0, LATE_S1],
        stored=[7, 9],
        moved=[0, 2],
    ),
    BatchPlanned(
        2, (make_route(R1_BOTH, {0: (4,)}, fresh=False),), (Derivation(R1_BOTH, (1,), {0: 1}),)
    ),
    MigrationAdvanced(2, 0, (ReplicaCopy(1, 1, 0),), 2, 0),
    MigrationEnded(2, 0),
    make_commit(2, [0, 0], [4, 10], [R1_BOTH], stored=[9, 9], moved=[2, 0]),
    RunEnded(2, "completed"),
]


def list_rows(columns):
    """Return the columns of a frame as tuples."""
    return list(zip(*columns.values(), strict=True))


def list_scenes(events: Sequence[Any]) -> list[RunView]:
    """Return the view state after each batch; the last one has also ended."""
    ends = [k + 1 for k, e in enumerate(events) if isinstance(e, BatchCommitted)]
    return [fold_events(events[:end]) for end in (*ends[:-1], len(events))]


def list_retained(events: Sequence[Any], batch: int) -> list[Any]:
    """Return the events of a shared run after a batch (from 0), with those retained from before.

    Retained are the run's start, its queries, and the last chain of each stream.
    """
    last = next(k for k, e in enumerate(events) if getattr(e, "batch", -1) > batch)
    blocks, chains = LiveBlocks(), {}
    for event in events[:last]:
        if isinstance(event, BatchCommitted):
            blocks.apply_commit(event)
        elif isinstance(event, ChainChanged):
            chains[event.stream] = event
    first = [e for e in events[:last] if isinstance(e, RunStarted | QueryAdded)]
    stay = list(chains.values())
    number = last - len(first) - len(stay)
    gone = EventsTrimmed(
        batch, number, len(stay), 0, 0, 0, 0, tuple(blocks.values()), (), HostMetrics(), {}
    )
    return [*first, gone, *stay, *events[last:]]


def collect_decisions(events: Iterable[Any]) -> list[Decision]:
    """Return all decisions of a run, in order."""
    deciding = FlagCollector()
    return [decision for event in events for decision in deciding.apply_event(event)]


def list_documented_columns(call: Any) -> list[set[str]]:
    """Return the columns that each list of a docstring names, before the colons of its items."""
    lists = (p for p in str(inspect.getdoc(call)).split("\n\n") if p.startswith("- "))
    heads = [[item.partition(":")[0] for item in re.split(r"\n(?=- )", each)] for each in lists]
    return [{*re.findall(r"``(\w+)``", " ".join(each))} for each in heads]


def judge_pace(events: Iterable[Any]) -> Verdict:
    """Return the verdict after these events."""
    tracker = VerdictTracker(scene := RunView())
    for event in events:
        scene.apply_event(event)
        tracker.apply_event(event)
    return tracker.verdict
