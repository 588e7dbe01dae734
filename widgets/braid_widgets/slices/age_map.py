"""The state map of shared slices: rows of each stream by age, and the queries that read them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from typing import Any, NamedTuple, TypedDict

from braid.core.run_events import BatchQueryResults, RunStarted
from braid.papers.slices.run_events import ChainChanged

from braid_widgets.base.columnar import Columns
from braid_widgets.base.run_view import RunView
from braid_widgets.base.state_maps import StateMap
from braid_widgets.slices.shared_view_state import SharedViewState, SlicePiece


class AgeQuery(NamedTuple):
    """A query: its windows by stream in microseconds, and its results so far and in this batch."""

    name: str
    windows: list[int]
    results: int
    batch_results: int


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

    def __init__(self, scene: RunView) -> None:
        super().__init__(scene)
        self.own = SharedViewState()
        self._totals: Counter[str] = Counter()
        self._latest: BatchQueryResults | None = None

    @classmethod
    def can_show(cls, start: RunStarted, kinds: Collection[type]) -> bool:
        return ChainChanged in kinds

    def apply_event(self, event: Any) -> None:
        self.own.apply_event(event)
        if isinstance(event, BatchQueryResults):
            self._latest = event
            self._totals.update(event.results_by_query)

    def make_frame(self) -> AgesFrame:
        """Return the frame after the last commit."""
        last, pieces = self.own.last, self.own.slice_pieces()
        return {
            "streams": list(self.scene.stream_aliases),
            "rows": list(last.live_tuples) if last else [],
            "received": list(last.received_tuples) if last else [],
            "hosts": len({piece.host for piece in pieces}),
            "pieces": Columns.from_records(SlicePiece, pieces),
            "queries": Columns.from_records(AgeQuery, self._list_queries()),
            "scale_max": max((piece.rows for piece in pieces), default=0),
        }

    def _list_queries(self) -> list[AgeQuery]:
        """Return the queries, the one with the shortest window first."""
        latest = self._latest if self._is_of_last_batch() else None
        counts = latest.results_by_query if latest else {}
        queries = [
            AgeQuery(
                name,
                [query.windows.get(s, 0) for s in self.scene.stream_aliases],
                self._totals[name],
                counts.get(name, 0),
            )
            for name, query in self.own.queries.items()
        ]
        return sorted(queries, key=lambda query: (max(query.windows, default=0), query.name))

    def _is_of_last_batch(self) -> bool:
        last = self.own.last
        return last is not None and self._latest is not None and self._latest.batch == last.batch
