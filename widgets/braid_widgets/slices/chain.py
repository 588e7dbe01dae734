"""The chain of a shared run: slices of each stream, the queries they serve, and tuples that move.

It is a function of events alone: ``make_frames`` folds them, and ``ChainPlayer`` shows them, live
or recorded, and as static HTML. Source of the drawing: Wang 2008, Fig. 5.5 and 7.6.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import sqlglot
import traitlets
from braid.condition.spark_dialect import SparkSql
from braid.core.batch_history import LiveBlocks
from braid.core.run_events import (
    BatchCommitted,
    BatchPlanned,
    EventsTrimmed,
    QueryAdded,
    QueryRemoved,
    RunStarted,
)
from braid.papers.slices.run_events import ChainChanged, SliceContents
from braid.util.durations import format_duration

from braid_widgets.base.player import MOST, Player, collect_frames, read_bundle
from braid_widgets.base.text import data_origin
from braid_widgets.slices.chain_records import ChainFrame, ChainMark, ChainStream
from braid_widgets.slices.query_details import describe_query as serving


@dataclass
class SliceFlow:
    """The flow of one stream's tuples in a batch.

    - ``aged``: tuples moved, by (source, target) slice.
    - ``cut``: tuples dropped by slice, because no query with a longer window needs them.
    - ``expired``: tuples older than every window.
    """

    aged: Counter[tuple[int, int]] = field(default_factory=Counter)
    cut: Counter[int] = field(default_factory=Counter)
    expired: int = 0


@dataclass
class ChainViewState:
    """The visible state of a chain; fold events into it in order with ``apply_event``.

    - ``ends`` (microseconds), ``flows``: by stream.
    - ``slice_tuples``: (stream, slice, rows) by live block.
    - ``changes``: changes of queries and slices since the previous commit, in words.
    """

    start: RunStarted | None = None
    last: BatchCommitted | None = None
    queries: dict[str, QueryAdded] = field(default_factory=dict)
    ends: dict[int, tuple[int, ...]] = field(default_factory=dict)
    slice_tuples: dict[int, tuple[int, int, int]] = field(default_factory=dict)
    flows: dict[int, SliceFlow] = field(default_factory=dict)
    changes: list[str] = field(default_factory=list)
    _filled: dict[int, int] = field(default_factory=dict)
    _sources: dict[int, tuple[int, ...]] | None = None
    _blocks: LiveBlocks = field(default_factory=LiveBlocks)
    _resliced: set[int] = field(default_factory=set)
    _shown: bool = False

    def apply_event(self, event: Any) -> None:
        """Fold in one event; ignore kinds that change nothing visible."""
        self._clear_batch()
        if isinstance(event, RunStarted):
            self.start = event
        elif isinstance(event, EventsTrimmed):
            self._blocks.apply_changes(event.live_blocks)
        elif isinstance(event, QueryAdded):
            self.queries[event.name] = event
            self.changes += [f"query {event.name} comes"] if event.batch >= 0 else []
        elif isinstance(event, QueryRemoved):
            self.queries.pop(event.name, None)
            self.changes.append(f"query {event.name} goes")
        elif isinstance(event, ChainChanged):
            self._set_slice_ends(event)
        elif isinstance(event, SliceContents):
            self._filled |= {id: k for k, ids in enumerate(event.blocks_by_slice) for id in ids}
        elif isinstance(event, BatchPlanned):
            self._sources = {d.block.id: d.source_blocks for d in event.derivations}
        elif isinstance(event, BatchCommitted):
            self._apply_commit(event)

    def _clear_batch(self) -> None:
        """Clear the data of the committed batch."""
        if self._shown:
            self.changes, self._filled, self._sources, self._resliced, self._shown = (
                [],
                {},
                None,
                set(),
                False,
            )

    def _set_slice_ends(self, event: ChainChanged) -> None:
        before, name = (
            self.ends.get(event.stream),
            self.start.streams[event.stream] if self.start else str(event.stream),
        )
        if before is not None and before != event.slice_ends:
            self._resliced.add(event.stream)
            self.changes.append(
                f"{name}: slices end at {', '.join(map(format_duration, event.slice_ends))} now "
                f"({event.reason})"
            )
        self.ends[event.stream] = event.slice_ends

    def _apply_commit(self, event: BatchCommitted) -> None:
        old, held = self.slice_tuples, {}
        self._blocks.apply_commit(event)
        for id, b in self._blocks.items():
            stays = old[id][1] if id in old and self._sources is None else 0
            held[id] = (b.stream, self._filled.get(id, stays), b.rows)
        self.slice_tuples, self.last, self._shown = held, event, True
        self.flows = defaultdict(SliceFlow)
        self._trace_tuple_flows(old)

    def _trace_tuple_flows(self, old: dict[int, tuple[int, int, int]]) -> None:
        """Determine where the tuples of the previous blocks moved."""
        seen = set()
        for id, (stream, place, rows) in self.slice_tuples.items():
            roots = self._find_source_blocks(id, old)
            seen |= set(roots)
            self._record_flow(
                self.flows[stream],
                stream,
                Counter({k: n for k, n in _by_slice(roots, old)}),
                place,
                rows,
            )
        wanted = {root for id in self._sources or () for root in self._find_source_blocks(id, old)}
        for id in old.keys() - seen:
            stream, place, rows = old[id]
            if self._sources is None:
                self.flows[stream].cut[place] += rows
            elif id in wanted:  # dropped on entry to the next slice
                self.flows[stream].cut[min(place + 1, len(self.ends[stream]) - 1)] += rows
            else:
                self.flows[stream].expired += rows

    def _record_flow(
        self, flow: SliceFlow, stream: int, came: Counter[int], place: int, rows: int
    ) -> None:
        lost = came.total() - rows
        if came and lost > 0:
            flow.cut[place] += lost
            came[max(came)] -= lost
        if stream not in self._resliced:
            flow.aged.update({(k, place): n for k, n in came.items() if k != place and n > 0})

    def _find_source_blocks(self, id: int, old: dict[int, Any]) -> list[int]:
        """Return the blocks of the previous batch from which a block is made."""
        if id in old:
            return [id]
        return [
            root
            for source in (self._sources or {}).get(id, ())
            for root in self._find_source_blocks(source, old)
        ]

    @property
    def is_change(self) -> bool:
        """Return whether the last commit only changed queries or slices."""
        return self._shown and self._sources is None

    def count_slice_tuples(self, stream: int) -> list[int]:
        """Return tuples held by slice, youngest first."""
        tuples = [0] * len(self.ends[stream])
        for s, place, rows in self.slice_tuples.values():
            if s == stream:
                tuples[min(place, len(tuples) - 1)] += rows
        return tuples

    def list_served_queries(self, stream: int, begin: int) -> list[str]:
        """Return the queries that a slice starting at this age serves: those with a longer
        window.
        """
        return [
            q.name
            for q in self._sort_queries_by_window(stream)
            if self._get_window(q, stream) > begin
        ]

    def _sort_queries_by_window(self, stream: int) -> list[QueryAdded]:
        return sorted(self.queries.values(), key=lambda q: (self._get_window(q, stream), q.name))

    def _get_window(self, query: QueryAdded, stream: int) -> int:
        assert self.start is not None
        return query.windows[self.start.streams[stream]]

    def queries_by_window(self, stream: int) -> list[tuple[str, int, str]]:
        """Return name, window and selection of the queries, sorted by window."""
        assert self.start is not None
        alias = self.start.streams[stream]
        return [
            (q.name, self._get_window(q, stream), _format_selection(q.selections[alias]))
            for q in self._sort_queries_by_window(stream)
        ]


def _format_selection(where: str | None) -> str:
    """Return a selection without quotes and outer parentheses."""
    return (
        sqlglot.parse_one(where, dialect=SparkSql).unnest().sql(dialect=SparkSql).replace("`", "")
        if where
        else ""
    )


def _by_slice(roots: Iterable[int], old: dict[int, tuple[int, int, int]]) -> list[tuple[int, int]]:
    counts: Counter[int] = Counter()
    for root in roots:
        counts[old[root][1]] += old[root][2]
    return list(counts.items())


def make_frame(scene: ChainViewState, pick: bool = False) -> ChainFrame:
    """Return one frame; with ``pick`` slices are clickable.

    Raises ValueError if the events are not those of a shared run with a committed batch.
    """
    if scene.start is None or scene.last is None or not scene.ends:
        raise ValueError(
            "these events tell of no chain; the chain view needs a run of SharedJoin, with a batch "
            "or more"
        )
    names, streams = scene.start.streams, sorted(scene.ends)
    run = data_origin(scene.start)
    compared = scene.last.total_host_metrics.compared_pairs
    done = f"in this batch: {scene.last.results:,} results, {compared:,} pairs compared"
    if scene.is_change:
        done = "the slices change with the next batch"
    return {
        "title": f"One chain for {len(scene.queries)} queries · {' ⋈ '.join(names)} · batch "
        f"{scene.last.batch + 1}",
        "note": " · ".join([run, *(scene.changes or [done])]),
        "batch": scene.last.batch + 1,
        "pick": pick,
        "streams": [_make_chain_stream(scene, s) for s in streams],
    }


def _make_chain_stream(scene: ChainViewState, s: int) -> ChainStream:
    assert scene.start is not None and scene.last is not None
    ends, queries, flow = scene.ends[s], scene.queries_by_window(s), scene.flows[s]
    held = scene.count_slice_tuples(s)
    begins, most = [0, *ends[:-1]], max(*held, 1)
    return {
        "name": scene.start.streams[s],
        "index": s,
        "received_tuples": scene.last.received_tuples[s],
        "expired": flow.expired,
        "marks": _make_age_marks({0, *ends, *(window for _, window, _ in queries)}),
        "slices": [
            {
                "first": a,
                "last": b,
                "rows": rows,
                "share": round(rows / most, 3),
                "serves": ", ".join(scene.list_served_queries(s, a)) or "no query",
            }
            for a, b, rows in zip(begins, ends, held, strict=True)
        ],
        "aged": [
            {"source": i, "target": j, "rows": rows} for (i, j), rows in sorted(flow.aged.items())
        ],
        "trimmed": [{"slice": k, "rows": rows} for k, rows in sorted(flow.cut.items())],
        "queries": [
            {"name": name, "window": window, "selection": where} for name, window, where in queries
        ],
    }


def _make_age_marks(ages: Iterable[int]) -> list[ChainMark]:
    """Return ages with their text and position from 0 to 1.

    The position is half by age and half by rank, so that every slice is wide enough to be visible.
    """
    rising = sorted(ages)
    last = max(len(rising) - 1, 1)
    return [
        {
            "age": age,
            "text": format_duration(age) if age else "0",
            "place": round((age / rising[-1] + k / last) / 2, 4),
        }
        for k, age in enumerate(rising)
    ]


def make_frames(events: Iterable[Any], pick: bool = False, most: int = MOST) -> list[ChainFrame]:
    """Return a frame per committed batch, thinned to ``most``; the last is always included."""
    scene = ChainViewState()
    return collect_frames(
        events,
        scene,
        lambda now: make_frame(now, pick),
        most,
        lambda commit: bool(scene.ends) or any(commit.total_received_tuples),
    )


class ChainPlayer(Player):
    """The chain of a run, with Back, Forward, Play and a slider; it opens on the last batch.

    With ``pick`` a click on the boundary of two slices, or inside one, sets ``picked``: {"act":
    "merge" or "split", "stream": index, "age": microseconds}, and "n", which differs for each
    click. Raises ValueError if the events are not those of a shared run with a committed batch.
    """

    _name, _esm = "chain", read_bundle("chain")
    picked = traitlets.Dict().tag(sync=True)

    def __init__(self, events: Iterable[Any], pick: bool = False) -> None:
        self.pick, self.events = pick, list(events)
        super().__init__(make_frames(self.events, pick))

    def load_events(self, events: Iterable[Any]) -> None:
        """Show another run, or new frames of the same run; see ``Player.refresh``."""
        self.events = list(events)
        self.refresh(make_frames(self.events, self.pick))

    def describe_query(self, query: str, frame: Mapping[str, Any]) -> str:
        """Describe what serves a query after the batch of the frame."""
        return serving(self.events, query, frame["batch"])

    def static_frame(self, frame: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return a frame without splits and merges; a click on a slice shows its details."""
        return {**frame, "pick": False}

    def held_tuples(self, frame: Mapping[str, Any]) -> dict[str, dict[str, float]]:
        """Return the held tuples by stream and slice."""
        return {
            stream["name"]: {
                f"{stream['name']}, {format_duration(each['first'])} to "
                f"{format_duration(each['last'])}": each["rows"]
                for each in stream["slices"]
            }
            for stream in frame["streams"]
        }
