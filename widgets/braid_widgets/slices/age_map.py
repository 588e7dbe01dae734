"""The state map of shared slices: rows of each stream by age, and the queries that read them."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping
from typing import Any, NamedTuple, TypedDict

from braid.core.run_events import BatchCommitted, BatchQueryResults
from braid.papers.slices.run_events import ChainChanged

from braid_widgets.base.columnar import Columns
from braid_widgets.base.key_figures import KeyFigure
from braid_widgets.base.run_view import HISTORY, RunView
from braid_widgets.base.state_maps import StateMap
from braid_widgets.base.track_records import Track, make_series, make_track
from braid_widgets.slices.shared_view_state import SharedViewState, SlicePiece


class AgeQuery(NamedTuple):
    """A query: its windows by stream in microseconds, its results so far and in this batch, and its
    selections as SQL.
    """

    name: str
    windows: list[int]
    results: int
    batch_results: int
    selection: str


class AgesFrame(TypedDict):
    """Rows by age and host after a batch.

    - ``rows``, ``received``: by stream, rows held, and rows of this batch.
    - ``hosts``: number of hosts that share the slices.
    - ``scale_max``: rows of a full slice. Frames shown together use the maximum.
    """

    streams: list[str]
    rows: list[int]
    received: list[int]
    hosts: int
    pieces: Columns[SlicePiece]
    queries: Columns[AgeQuery]
    scale_max: int


class AgeMap(StateMap):
    """The state map of a chain of slices on one host, or of a ring of them on several."""

    name = "ages"
    shown_kinds = (ChainChanged,)

    def __init__(self, scene: RunView) -> None:
        super().__init__(scene)
        self.view = SharedViewState()
        self._totals: Counter[str] = Counter()
        self._results: deque[tuple[int, Mapping[str, int]]] = deque(maxlen=HISTORY)

    def apply_event(self, event: Any) -> None:
        self.view.apply_event(event)
        if isinstance(event, BatchQueryResults):
            self._totals.update(event.results_by_query)
        results = self._find_batch_results() if isinstance(event, BatchCommitted) else None
        if results is not None:
            self._results.append((self.last.batch + 1, results))

    def make_key_figure(self) -> KeyFigure:
        return KeyFigure(
            "queries, one state", str(len(self.scene.queries)), "served after the batch"
        )

    def make_tracks(self) -> list[Track]:
        """Return the rows of each stream, on one host, and the results of each query."""
        is_alone = self.scene.start is None or self.scene.start.hosts == 1
        return [*([self._make_rows_track()] if is_alone else []), *self._make_query_tracks()]

    def _make_rows_track(self) -> Track:
        points = self.scene.points
        batches = [p.batch + 1 for p in points]
        series = [make_series("all", "mean", batches, [sum(p.live) for p in points])]
        for k, stream in enumerate(self.scene.stream_aliases):
            series.append(make_series(stream, f"stream{k}", batches, [p.live[k] for p in points]))
        return make_track("rows in windows", "lines", "rows", series, None)

    def _make_query_tracks(self) -> list[Track]:
        """Return the track of the queries served now; none if the events do not count by query."""
        if not self._results:
            return []
        batches = [batch for batch, _ in self._results]
        series = []
        for query in self._list_queries():
            results = [counts.get(query.name, 0) for _, counts in self._results]
            series.append(make_series(f"query:{query.name}", "row", batches, results))
        return [make_track("results by query", "heat", "results", series, None)]

    def make_frame(self) -> AgesFrame:
        pieces = self.view.slice_pieces()
        return {
            "streams": list(self.scene.stream_aliases),
            "rows": list(self.last.live_tuples),
            "received": list(self.last.received_tuples),
            "hosts": len({piece.host for piece in pieces}),
            "pieces": Columns.from_records(SlicePiece, pieces),
            "queries": Columns.from_records(AgeQuery, self._list_queries()),
            "scale_max": max((piece.rows for piece in pieces), default=0),
        }

    def _list_queries(self) -> list[AgeQuery]:
        """Return the queries, the one with the shortest window first."""
        counts = self._find_batch_results() or {}
        queries = [
            AgeQuery(
                name,
                [query.windows.get(s, 0) for s in self.scene.stream_aliases],
                self._totals[name],
                counts.get(name, 0),
                " AND ".join(filter(None, query.selections.values())),
            )
            for name, query in self.scene.queries.items()
        ]
        return sorted(queries, key=lambda query: (max(query.windows, default=0), query.name))

    def _find_batch_results(self) -> Mapping[str, int] | None:
        """Return the results by query in the last batch; None if the events do not count them."""
        counted = self.scene.find_latest(BatchQueryResults)
        return counted.results_by_query if counted and counted.batch == self.last.batch else None
