"""The ring of a shared join: which ages of each stream every host holds, and for which queries.

It is a function of events alone: ``make_frames`` folds them, and ``SharedRingPlayer`` shows them,
live or recorded, and as static HTML. Source: Wang 2008, chapters 19 (logical slices, Lemma 9) and
21 (hosts).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any, NamedTuple, TypedDict

from braid.core.run_events import QueryAdded
from braid.util.durations import format_duration

from braid_widgets.base.columnar import Columns
from braid_widgets.base.player import MOST, Player, collect_frames, read_bundle
from braid_widgets.base.text import data_origin
from braid_widgets.slices.query_details import describe_query as serving
from braid_widgets.slices.shared_view_state import SharedViewState, SlicePiece


class SharedPiece(NamedTuple):
    """A piece of a slice on a host.

    - ``ages``: its ages, in words.
    - ``share``: its tuples divided by those of the stream's fullest piece.
    - ``queries``: the queries that it serves.
    """

    stream: int
    host: int
    ages: str
    rows: int
    share: float
    queries: list[str]


class SharedStretch(TypedDict):
    """The ages of a stream that a host holds, in words; ``head``: they include the youngest."""

    stream: int
    host: int
    ages: str
    head: bool


class QueryUse(NamedTuple):
    """The share of a host's ages of a stream that a query uses, from 0 to 1."""

    stream: int
    host: int
    share: float


class SharedQuery(TypedDict):
    """A query with its windows and selections in words; ``used`` is sorted from young to old."""

    name: str
    windows: str
    selections: str
    used: Columns[QueryUse]


class SharedFrame(TypedDict):
    """The shared ring after a ``batch`` (from 1).

    - ``stored``: tuples by host and stream.
    - ``mean``: mean of the stored tuples per host.
    - ``live``: live tuples by stream.
    """

    title: str
    note: str
    batch: int
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


def make_frame(scene: SharedViewState) -> SharedFrame:
    """Return one frame. Raises ValueError if the events are not a shared run's with a batch."""
    if scene.start is None or scene.last is None or not scene.chains:
        raise ValueError(
            "these events tell of no shared ring; this view needs a run of SharedJoin, with a "
            "batch or more"
        )
    last, pieces = scene.last, scene.slice_pieces()
    hosts, streams = scene.start.hosts, list(scene.start.streams)
    fullest = [max([1, *(p.rows for p in pieces if p.stream == s)]) for s in range(len(streams))]
    drawn = [
        SharedPiece(
            p.stream,
            p.host,
            f"{format_duration(p.first)} to {format_duration(p.last)}",
            p.rows,
            round(p.rows / fullest[p.stream], 3),
            _list_served_queries(scene, p),
        )
        for p in pieces
    ]
    stored = [
        [sum(p.rows for p in pieces if (p.host, p.stream) == (h, s)) for s in range(len(streams))]
        for h in range(hosts)
    ]
    return {
        "title": f"batch {last.batch + 1} · shared ring of {' ⋈ '.join(streams)}",
        "note": _format_note(scene),
        "batch": last.batch + 1,
        "hosts": hosts,
        "streams": streams,
        "pieces": Columns.from_records(SharedPiece, drawn),
        "stretches": [
            {"stream": s, "host": host, "ages": _format_age_range(a, b), "head": a == 0}
            for s, host, a, b in _list_age_ranges(scene)
        ],
        "stored": stored,
        "mean": sum(map(sum, stored)) / hosts,
        "live": list(last.live_tuples),
        "queries": [
            _make_shared_query(scene, q)
            for q in sorted(scene.queries.values(), key=lambda q: max(q.windows.values()))
        ],
        "probed": last.total_host_metrics.probes,
        "sent": last.total_host_metrics.received_partials,
    }


def _list_age_ranges(scene: SharedViewState) -> list[tuple[int, int, int, int]]:
    """Return stream, host, and the ages between which the host holds the stream."""
    chains = sorted(scene.chains.items())
    return [
        (s, host, a, b)
        for s, chain in chains
        for (a, _), (b, host) in pairwise([(0, -1), *chain.host_age_ranges])
    ]


def _format_age_range(first: int, last: int) -> str:
    """Return two ages in words; a common unit is written once."""
    low, high = format_duration(first), format_duration(last)
    number, _, unit = low.partition(" ")
    same = high.count(" ") == low.count(" ") == 1 and high.endswith(f" {unit}")
    return f"{number}–{high}" if same or not first else f"{low}–{high}"


def _format_note(scene: SharedViewState) -> str:
    assert scene.start is not None and scene.last is not None
    fresh = {c.reason for c in scene.chains.values() if c.batch == scene.last.batch}
    chain = f" · ages shared out anew ({', '.join(sorted(fresh))})" if fresh else ""
    return (
        f"{data_origin(scene.start)} · {len(scene.queries)} queries · in this batch: "
        f"{scene.last.results:,} results{chain}"
    )


def _list_served_queries(scene: SharedViewState, p: SlicePiece) -> list[str]:
    """Return the queries that a piece of a slice serves. Source: Wang 2008, Lemma 9."""
    assert scene.start is not None
    alias = scene.start.streams[p.stream]
    return [q.name for q in scene.queries.values() if q.windows[alias] > p.first]


def _make_shared_query(scene: SharedViewState, q: QueryAdded) -> SharedQuery:
    """Return a query with the share of each range of ages that it uses, from 0 to 1."""
    assert scene.start is not None
    used = []
    for s, host, a, b in _list_age_ranges(scene):
        reach = q.windows[scene.start.streams[s]]
        used.append(QueryUse(s, host, round(min(1.0, max(0, reach - a) / (b - a)), 3)))
    where = " AND ".join(f"{alias}: {sql}" for alias, sql in q.selections.items() if sql)
    windows = ", ".join(f"{alias} {format_duration(w)}" for alias, w in q.windows.items())
    return {
        "name": q.name,
        "windows": windows,
        "selections": where,
        "used": Columns.from_records(QueryUse, used),
    }


def make_frames(events: Iterable[Any], most: int = MOST) -> list[SharedFrame]:
    """Return a frame per committed batch, thinned to ``most``; the last is always included."""
    return collect_frames(events, SharedViewState(), make_frame, most)


class SharedRingPlayer(Player):
    """The ring of a shared run, with Back, Forward, Play and a slider.

    It opens on the last batch. Raises ValueError if the events are not those of a shared run with a
    committed batch.
    """

    _name, _esm = "shared_ring", read_bundle("shared_ring")

    def __init__(self, events: Iterable[Any]) -> None:
        self.events = list(events)
        super().__init__(make_frames(self.events))

    def load_events(self, events: Iterable[Any]) -> None:
        """Show another run, or new frames of the same run; see ``Player.refresh``."""
        self.events = list(events)
        self.refresh(make_frames(self.events))

    def describe_query(self, query: str, frame: Mapping[str, Any]) -> str:
        """Describe what serves a query after the batch of the frame."""
        return serving(self.events, query, frame["batch"])

    def held_tuples(self, frame: Mapping[str, Any]) -> dict[str, dict[str, float]]:
        """Return the held tuples by stream and host."""
        return {
            name: {f"host {h}": rows[s] for h, rows in enumerate(frame["stored"])}
            for s, name in enumerate(frame["streams"])
        }
