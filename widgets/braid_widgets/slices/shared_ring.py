"""The ring of a shared join: which ages of each stream every host holds, in which logical slices,
how much, and for which queries.

A function of events alone: ``frames`` folds them, ``SharedRing`` shows them, live or recorded, and
is its own static twin. Source: Wang 2008, chapters 19 (logical slices, Lemma 9) and 21 (hosts).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple, TypedDict

from braid.core.events import BatchCommitted, QueryAdded, QueryRemoved, RunStarted
from braid.core.history import LiveBlocks
from braid.core.spans import text
from braid.papers.slices.events import ChainFilled, ChainSet

from braid_widgets.base.columns import Columns
from braid_widgets.base.film import MOST, Film, bundle, pictures
from braid_widgets.base.words import origin


class Piece(NamedTuple):
    """The part of a logical slice that a host holds: ages in microseconds, the slice's number from
    the youngest, tuples.
    """

    stream: int
    host: int
    first: int
    last: int
    slice: int
    rows: int


class SharedPiece(NamedTuple):
    """A piece as it is drawn: ages in words, the share of the stream's fullest piece, the queries
    that it serves.
    """

    stream: int
    host: int
    ages: str
    rows: int
    share: float
    queries: list[str]


class SharedStretch(TypedDict):
    """The ages of a stream that a host holds, in words; ``head``: the youngest are among them."""

    stream: int
    host: int
    ages: str
    head: bool


class SharedUse(NamedTuple):
    """How much of a host's stretch of a stream a query uses, from 0 to 1."""

    stream: int
    host: int
    share: float


class SharedQuery(TypedDict):
    """A query with its windows and selections in words; ``used`` is by age, young to old."""

    name: str
    windows: str
    where: str
    used: Columns[SharedUse]


class SharedFrame(TypedDict):
    """The shared ring after a batch: ``stored`` tuples by host and stream, their ``mean`` by host,
    ``live`` ones by stream.
    """

    title: str
    note: str
    batch: str
    hosts: int
    streams: list[str]
    pieces: Columns[SharedPiece]
    stretches: list[SharedStretch]
    stored: list[list[int]]
    mean: float
    live: list[int]
    queries: list[SharedQuery]
    probed: int
    sent: int


@dataclass
class SharedScene:
    """What is to be seen of a shared ring: fold events into it, in order, with ``apply``.

    ``chains`` are by stream; ``blocks`` are live, ``slices`` maps them to
    the slice that it lies in.
    """

    start: RunStarted | None = None
    last: BatchCommitted | None = None
    queries: dict[str, QueryAdded] = field(default_factory=dict)
    chains: dict[int, ChainSet] = field(default_factory=dict)
    blocks: LiveBlocks = field(default_factory=LiveBlocks)
    slices: dict[int, int] = field(default_factory=dict)

    def apply(self, event: Any) -> None:
        """Fold one event in. Kinds that have nothing to show here are passed over."""
        if isinstance(event, RunStarted):
            self.start = event
        elif isinstance(event, QueryAdded):
            self.queries[event.name] = event
        elif isinstance(event, QueryRemoved):
            self.queries.pop(event.name, None)
        elif isinstance(event, ChainSet):
            self.chains[event.stream] = event
        elif isinstance(event, ChainFilled):
            self.slices |= {id: k for k, ids in enumerate(event.blocks) for id in ids}
        elif isinstance(event, BatchCommitted):
            self._commit(event)

    def _commit(self, event: BatchCommitted) -> None:
        self.blocks.commit(event)
        self.slices = {id: k for id, k in self.slices.items() if id in self.blocks}
        self.last = event

    def pieces(self) -> list[Piece]:
        """By stream and age, from the youngest. What waits for the next batch to move on counts
        where it lies.
        """
        found = []
        for stream, chain in sorted(self.chains.items()):
            held = self._held(stream)
            for (first, _), (last, host) in pairwise([(0, -1), *chain.nodes]):
                cuts = [first, *(e for e in chain.ends if first < e < last), last]
                mine = [(a, b, sum(e <= a for e in chain.ends)) for a, b in pairwise(cuts)]
                rows = _shared_out(held.get(host, {}), [number for *_, number in mine])
                found += [
                    Piece(stream, host, a, b, number, n)
                    for (a, b, number), n in zip(mine, rows, strict=True)
                ]
        return found

    def _held(self, stream: int) -> dict[int, dict[int, int]]:
        """Tuples by host and slice."""
        found: dict[int, dict[int, int]] = {}
        for b in (b for b in self.blocks.values() if b.stream == stream):
            at, number = found.setdefault(b.hosts[0], {}), self.slices.get(b.id, 0)
            at[number] = at.get(number, 0) + b.rows
        return found


def _shared_out(held: dict[int, int], numbers: list[int]) -> list[int]:
    """Tuples by slice, for the slices that a host should have: what is of another one counts to the
    nearest.
    """
    rows = dict.fromkeys(numbers, 0)
    for number, n in held.items():
        rows[min(numbers, key=lambda own: abs(own - number))] += n
    return [rows[number] for number in numbers]


def frame(scene: SharedScene) -> SharedFrame:
    """One picture. Raises ValueError when the events are not those of a
    shared run with a batch.
    """
    if scene.start is None or scene.last is None or not scene.chains:
        raise ValueError(
            "these events tell of no shared ring; this view needs a run of SharedJoin, with a "
            "batch or more"
        )
    last, pieces = scene.last, scene.pieces()
    hosts, streams = scene.start.hosts, list(scene.start.streams)
    fullest = [max([1, *(p.rows for p in pieces if p.stream == s)]) for s in range(len(streams))]
    drawn = [
        SharedPiece(
            p.stream,
            p.host,
            f"{text(p.first)} to {text(p.last)}",
            p.rows,
            round(p.rows / fullest[p.stream], 3),
            _served(scene, p),
        )
        for p in pieces
    ]
    stored = [
        [sum(p.rows for p in pieces if (p.host, p.stream) == (h, s)) for s in range(len(streams))]
        for h in range(hosts)
    ]
    return {
        "title": f"batch {last.batch + 1} · shared ring of {' ⋈ '.join(streams)}",
        "note": _note(scene),
        "batch": f"batch {last.batch + 1}",
        "hosts": hosts,
        "streams": streams,
        "pieces": Columns.of(SharedPiece, drawn),
        "stretches": [
            {"stream": s, "host": host, "ages": _between(a, b), "head": a == 0}
            for s, host, a, b in _stretches(scene)
        ],
        "stored": stored,
        "mean": sum(map(sum, stored)) / hosts,
        "live": list(last.live),
        "queries": [
            _query(scene, q)
            for q in sorted(scene.queries.values(), key=lambda q: max(q.windows.values()))
        ],
        "probed": last.all_hosts.probed,
        "sent": last.all_hosts.arrived,
    }


def _stretches(scene: SharedScene) -> list[tuple[int, int, int, int]]:
    """Stream, host, and the ages between which the host holds it."""
    chains = sorted(scene.chains.items())
    return [
        (s, host, a, b)
        for s, chain in chains
        for (a, _), (b, host) in pairwise([(0, -1), *chain.nodes])
    ]


def _between(first: int, last: int) -> str:
    """Two ages, with the unit once where both have it."""
    low, high = text(first), text(last)
    number, _, unit = low.partition(" ")
    same = high.count(" ") == low.count(" ") == 1 and high.endswith(f" {unit}")
    return f"{number}–{high}" if same or not first else f"{low}–{high}"


def _note(scene: SharedScene) -> str:
    assert scene.start is not None and scene.last is not None
    fresh = {c.reason for c in scene.chains.values() if c.batch == scene.last.batch}
    chain = f" · ages shared out anew ({', '.join(sorted(fresh))})" if fresh else ""
    return (
        f"{origin(scene.start)} · {len(scene.queries)} queries · in this batch: "
        f"{scene.last.results:,} results{chain}"
    )


def _served(scene: SharedScene, p: Piece) -> list[str]:
    """The queries that a piece of a slice is there for (Lemma 9)."""
    assert scene.start is not None
    alias = scene.start.streams[p.stream]
    return [q.name for q in scene.queries.values() if q.windows[alias] > p.first]


def _query(scene: SharedScene, q: QueryAdded) -> SharedQuery:
    """A query, and how much of each stretch of ages it uses, from 0 to 1."""
    assert scene.start is not None
    used = []
    for s, host, a, b in _stretches(scene):
        reach = q.windows[scene.start.streams[s]]
        used.append(SharedUse(s, host, round(min(1.0, max(0, reach - a) / (b - a)), 3)))
    where = " AND ".join(f"{alias}: {sql}" for alias, sql in q.where.items() if sql)
    windows = ", ".join(f"{alias} {text(w)}" for alias, w in q.windows.items())
    return {"name": q.name, "windows": windows, "where": where, "used": Columns.of(SharedUse, used)}


def frames(events: Iterable[Any], most: int = MOST) -> list[SharedFrame]:
    """A picture for each committed batch, thinned to ``most``; the last is always there."""
    return pictures(events, SharedScene(), frame, most)


class SharedRing(Film):
    """The ring of a shared run, with Back, Forward, Play and a slider; it opens on the last batch.

    Raises ValueError when the events are not those of a shared run with a committed batch.
    """

    _name, _esm = "shared_ring", bundle("shared_ring")

    def __init__(self, events: Iterable[Any]) -> None:
        super().__init__(frames(events))

    def load(self, events: Iterable[Any]) -> None:
        """Show another run, or the same one as far as it is now; see ``Film.update``."""
        self.update(frames(events))

    def held(self, frame: Mapping[str, Any]) -> dict[str, dict[str, float]]:
        """By stream and host."""
        return {
            name: {f"host {h}": rows[s] for h, rows in enumerate(frame["stored"])}
            for s, name in enumerate(frame["streams"])
        }
