"""Simulate another placement on the input of a run, reconstructed from its events.

The result is modelled, and the same for the same events.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from braid.core.batch_history import LiveBlocks
from braid.core.placement import Placement, placement_names, placements_for
from braid.core.plan import Block
from braid.core.plan_sentences import format_count
from braid.core.run_events import BatchCommitted, EventsTrimmed, QueryAdded, RunStarted
from braid.papers.hotkeys.run_events import SpreadChanged
from braid.simulation.simulator import simulate
from braid.util.durations import parse_duration

RECENT = 10
"""Number of batches whose mean predicts later ones."""
_LEAST = 1e-6
"""Seconds between two batches at least."""
_SIZED = ("hosts", "n", "m", "max_hosts", "resize", "cluster", "weights", "capacity")
"""Settings that depend on the number of hosts."""


@dataclass(frozen=True, slots=True)
class BaselineCurve:
    """The simulated load of a placement that was not run.

    - ``batch``: batch numbers, from 0.
    - ``max_host_tuples``: by batch, tuples on its fullest host.
    """

    name: str
    batch: tuple[int, ...]
    max_host_tuples: tuple[int, ...]

    def compare(self, run: BatchCommitted) -> str:
        """Return the rows on the fullest host beside those of the run's last batch, in words."""
        held = max((host.stored_tuples for host in run.host_metrics), default=0)
        rows = dict(zip(self.batch, self.max_host_tuples, strict=True)).get(run.batch, 0)
        change = f"{rows / held - 1:+.0%} beside" if held else "beside"
        return (
            f"{self.name}, modelled: {rows:,} rows on the fullest host after batch "
            f"{run.batch + 1}, {change} the {held:,} of this run; dashed in the time line"
        )


class RunInput(NamedTuple):
    """The input of a run, reconstructed from its events.

    - ``held_tuples``: by stream, tuples held after a batch.
    - ``received_tuples``: by later batch and stream, new tuples.
    - ``seconds``: event time of each batch. The first entry is for the held tuples.
    - ``sizes``: by stream, bytes of a tuple.
    """

    held_tuples: tuple[int, ...]
    received_tuples: list[tuple[int, ...]]
    seconds: list[float]
    sizes: list[int]


def comparable_placements(start: RunStarted) -> dict[str, str]:
    """Return the labels of the placements that could have joined the streams of a run, by name.

    Those that hash a join value are among them if the run has one, as far as its start tells. A
    hub, which has no placement, has none.
    """
    if start.placement not in placement_names():
        return {}
    is_hashed = Placement.class_by_name(start.placement).routing_key_source == "join"
    parts = (re.fullmatch(r"(\w+)\.\w+ = (\w+)\.\w+", part) for part in start.condition_parts)
    is_linked = any(part and part[1] != part[2] for part in parts) and len(start.streams) == 2
    kinds = placements_for(len(start.streams), equality=is_hashed or is_linked)
    joins = {n: kind for n, kind in kinds.items() if kind.routing_key_source in ("tuple", "join")}
    return {name: kind.label for name, kind in joins.items()}


def estimate_value_shares(events: Sequence[Any], placement: Placement) -> list[float]:
    """Return the share of tuples with each join value of a placement that hashes it; else none.

    Frequent values are those that ``HotKeys`` has found, or one that would make a host of
    ``HashPartition`` as busy as the busiest is. All others are taken as equally frequent.
    """
    if placement.routing_key_source != "join":
        return []
    spreads = [e for e in events if isinstance(e, SpreadChanged)]
    frequent = [v.share for v in spreads[-1].spread] if spreads else _find_busy_share(events)
    values = placement.key_space_size // placement.keys_per_value
    shares = np.full(values, (1 - sum(frequent)) / values)
    np.add.at(shares, np.arange(len(frequent)) * values // max(1, len(frequent)), frequent)
    return [float(share) for share in shares]


def _find_busy_share(events: Sequence[Any]) -> list[float]:
    """Return the share of a frequent value that the loads of a hash partition tell; else none."""
    start = next(e for e in events if isinstance(e, RunStarted))
    commits = [e for e in events if isinstance(e, BatchCommitted)][-RECENT:]
    if start.placement != "HashPartition" or start.hosts == 1:
        return []
    received = np.array([[h.received_tuples for h in e.host_metrics] for e in commits]).sum(axis=0)
    excess = received.max() / max(1, received.sum()) - 1 / start.hosts
    return [float(excess / (1 - 1 / start.hosts))] if excess > 0 else []


def simulate_alternative(
    events: Iterable[Any], name: str, hosts: int, since: int = -1, ahead: int = 20
) -> BaselineCurve:
    """Return the load if another placement takes over after batch ``since``.

    The placement receives the held tuples at once, then the later batches as they arrived, then
    ``ahead`` batches like the most recent ones. Nothing is measured; the loads are modelled.

    ``since`` counts from 0; -1: from the beginning. If the events of that batch are trimmed, the
    first batch with events is used.

    Raises ValueError for a placement that does not join these streams, a number of hosts that it
    does not support, an unknown batch, and a run with windows whose tuples have no event time.
    """
    happened = list(events)
    start = next((e for e in happened if isinstance(e, RunStarted)), None)
    commits = [e for e in happened if isinstance(e, BatchCommitted)]
    if start is None or not commits:
        raise ValueError("nothing has been joined yet, so nothing can be compared")
    if not -1 <= since <= commits[-1].batch:
        raise ValueError(f"there is no batch {since + 1}; this run has had {commits[-1].batch + 1}")
    before = next((e for e in happened if isinstance(e, EventsTrimmed)), None)
    if before is not None and since <= before.batch:  # earlier input is unknown
        since = commits[0].batch
    start = _add_windows_of_queries(start, happened)
    given = observed_input(start, commits, since, () if before is None else before.live_blocks)
    placement = make_placement(start, name, hosts)
    shares = estimate_value_shares(happened, placement)
    windows = [start.windows.get(alias) for alias in start.streams]
    is_held = any(given.held_tuples)
    expected = _average_recent_batches(given.received_tuples or [given.held_tuples])
    counts = [*[given.held_tuples] * is_held, *given.received_tuples, *[expected] * ahead]
    run = simulate(
        placement,
        counts,
        streams=start.streams,
        windows=[parse_duration(w, "window") / 1e6 if w else None for w in windows],
        seconds=[*given.seconds[not is_held :], *given.seconds[-1:] * ahead],
        tuple_bytes=given.sizes,
        key_shares=[shares] * len(start.streams) if shares else (),
    )
    modelled = [e for e in run if isinstance(e, BatchCommitted)][: len(counts)]
    first = since + 1 - is_held
    return BaselineCurve(
        f"{placement.label.partition(' (')[0]}, {format_count(placement.hosts, 'host')}",
        tuple(first + k for k in range(len(modelled))),
        tuple(max(h.stored_tuples for h in e.host_metrics) for e in modelled),
    )


def _add_windows_of_queries(start: RunStarted, events: Iterable[Any]) -> RunStarted:
    """Return the start of a run with, if it is shared, the longest window of each stream."""
    spans = [e.windows for e in events if isinstance(e, QueryAdded)]
    bounded = [a for a in start.streams if spans and all(a in windows for windows in spans)]
    longest = {a: f"{max(windows[a] for windows in spans)} microseconds" for a in bounded}
    return replace(start, windows=longest or start.windows)


def make_placement(start: RunStarted, name: str, hosts: int) -> Placement:
    """Return a placement by name, on ``hosts`` hosts.

    It has the run's settings if it is the run's own placement.

    Raises ValueError if it does not support the hosts or the streams.
    """
    kind = Placement.class_by_name(name)
    started_with = start.placement_settings if name == start.placement else {}
    settings = {k: v for k, v in started_with.items() if k not in _SIZED}
    settings |= {"hosts": hosts} if "hosts" in kind.setting_names() else {}
    placement = kind.from_settings(settings)
    if not placement.supports_streams(len(start.streams)):
        raise ValueError(f"{name} does not join {len(start.streams)} streams")
    return placement


def observed_input(
    start: RunStarted, commits: Sequence[BatchCommitted], since: int, left: Iterable[Block] = ()
) -> RunInput:
    """Return the tuples that a run held after a batch, and those that arrived later.

    ``left`` are the blocks that it had before these commits.
    """
    streams = len(start.streams)
    blocks, held, sizes = LiveBlocks(), (0,) * streams, [1] * streams
    begin, ends, later = 0.0, [0.0], list[tuple[int, ...]]()
    blocks.apply_changes(left)
    for event in commits:
        blocks.apply_commit(event)
        for b in (b for b in event.changed_blocks if b.rows):
            sizes[b.stream] = max(1, round(b.size_bytes / b.rows))
        if event.batch == since:
            held = tuple(event.live_tuples)
            begin, ends[0] = _find_time_range(blocks.values())
        elif event.batch > since:
            later.append(tuple(event.received_tuples))
            _, end = _find_time_range(b for b in event.changed_blocks if b.batch == event.batch)
            ends.append(max(end, ends[-1] + _LEAST))
    if start.windows and ends[-1] == 0.0:
        raise ValueError("the run has windows, and its blocks tell no event time")
    span = max(ends[0] - begin, _LEAST) if any(held) else 1.0
    lasts = [max(b - a, _LEAST) for a, b in pairwise(ends)] if start.windows else [1.0] * len(later)
    return RunInput(held, later, [span, *lasts], sizes)


def _find_time_range(blocks: Iterable[Block]) -> tuple[float, float]:
    """Return the earliest and the latest event time of blocks, in seconds; zeros without times."""
    ranges = [b.event_time_range for b in blocks if b.event_time_range is not None] or [(0, 0)]
    return min(low for low, _ in ranges) / 1e6, max(high for _, high in ranges) / 1e6


def _average_recent_batches(received: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    recent = [c for c in received if any(c)][-RECENT:] or [received[-1]]
    return tuple(round(sum(each) / len(recent)) for each in zip(*recent, strict=True))
