"""Fold a run's events into the visible state after the last of them."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from braid.core.batch_history import LiveBlocks
from braid.core.plan import Block, ReplicaCopy
from braid.core.run_events import (
    BatchCommitted,
    BatchPlanned,
    EventsTrimmed,
    QueryAdded,
    QueryRemoved,
    RunEnded,
    RunStarted,
)
from braid.core.touch_events import SettingChanged
from braid.papers.theta.run_events import (
    MappingChanged,
    MigrationAdvanced,
    MigrationEnded,
    MigrationStarted,
)
from braid_lab.theta.bounds import ratio_bound_if_applicable

from braid_widgets.base.batch_figures import (
    BatchFigures,
    GroupMapping,
    RunTotals,
    make_batch_figures,
)

Kind = TypeVar("Kind")

HISTORY = 400
"""Number of batches kept for the timeline. Older ones are dropped, so that memory is bounded for an
endless run.
"""


@dataclass
class RunView:
    """The visible state of a run; fold events into it in order with ``apply_event``.

    - ``blocks``: the live blocks.
    - ``joined_keys``: the host that last joined keys [r0, r1) of stream 0 and [s0, s1) of stream 1,
      in the order of time. Memory is bounded by the number of distinct key ranges.
    - ``grids``, ``migrating``: the grid and the number of waiting tuples, by group.
    - ``copies``: [block, source, target] of the last batch; ``moving`` holds those blocks.
    - ``last``: the last committed batch.
    - ``planned``: a plan that is not committed yet.
    - ``changes``: number of batches without a plan or tuples, in which queries or slices changed.
    - ``latest``: the latest event of each kind.
    - ``queries``: the queries of a shared run that are served now.
    - ``first_retained_batch``: the first batch whose events are retained.
    """

    start: RunStarted | None = None
    last: BatchCommitted | None = None
    end: RunEnded | None = None
    blocks: LiveBlocks = field(default_factory=LiveBlocks)
    joined_keys: dict[tuple[int, ...], int] = field(default_factory=dict)
    grids: dict[int, GroupMapping] = field(default_factory=dict)
    migrating: dict[int, int] = field(default_factory=dict)
    copies: list[ReplicaCopy] = field(default_factory=list)
    moving: dict[int, Block] = field(default_factory=dict)
    points: deque[BatchFigures] = field(default_factory=lambda: deque(maxlen=HISTORY))
    totals: RunTotals = field(default_factory=RunTotals)
    planned: BatchPlanned | None = None
    changes: int = 0
    latest: dict[type, Any] = field(default_factory=dict)
    queries: dict[str, QueryAdded] = field(default_factory=dict)
    first_retained_batch: int = 0

    @property
    def is_modelled(self) -> bool:
        """Return whether the run was simulated, not measured."""
        return self.start is not None and self.start.time_source == "modelled"

    @property
    def stream_aliases(self) -> tuple[str, ...]:
        """Return the aliases of the streams; empty before the run has started."""
        return self.start.streams if self.start else ()

    @property
    def input_batches(self) -> int:
        """Return the number of finished batches that had input.

        The others only change queries or slices, or finish a migration after the end of the input.
        """
        done = self.last.batch + 1 - self.changes if self.last else 0
        planned = self.start.planned_batches if self.start else None
        return done if planned is None else min(done, planned)

    @property
    def is_finishing(self) -> bool:
        """Return whether all input is processed while a migration is still running."""
        planned = self.start.planned_batches if self.start else None
        is_read = planned is not None and self.input_batches == planned
        return is_read and bool(self.migrating) and self.end is None

    def apply_event(self, event: Any) -> None:
        """Fold in one event; ignore kinds that change nothing visible."""
        self.latest[type(event)] = event
        match event:
            case RunStarted():
                self.start, self.end = event, None
            case SettingChanged():
                self.start = self.start and event.apply_to_start(self.start)
            case EventsTrimmed():
                self._apply_trim(event)
            case QueryAdded():
                self.queries[event.name] = event
            case QueryRemoved():
                self.queries.pop(event.name, None)
            case BatchPlanned():
                self.planned, self.copies, self.moving = event, [], {}
            case MappingChanged():
                self._update_mapping(event)
            case MigrationStarted():
                self.migrating[event.group] = event.tuples_to_copy
                self.totals = replace(self.totals, migrations=self.totals.migrations + 1)
            case MigrationAdvanced():
                self.migrating[event.group] = event.remaining_tuples
                self.copies += event.copies
                self.moving |= self._get_copied_blocks()
            case MigrationEnded():
                self.migrating.pop(event.group, None)
            case BatchCommitted():
                self._apply_commit(event)
            case RunEnded():
                self.end = event

    def find_latest(self, kind: type[Kind]) -> Kind | None:
        """Return the latest event of a kind, or None."""
        return self.latest.get(kind)

    def _apply_trim(self, event: EventsTrimmed) -> None:
        self.first_retained_batch = event.batch + 1
        self.blocks.clear()
        self.blocks.apply_changes(event.live_blocks)
        self.totals = RunTotals.from_trimmed(event)

    def _update_mapping(self, event: MappingChanged) -> None:
        cells = {h: (row, column) for h, row, column in event.cells}
        before = event.previous_mapping if event.previous_mapping != event.mapping else None
        self.grids[event.group] = GroupMapping(event.mapping, cells, before)

    def _apply_commit(self, event: BatchCommitted) -> None:
        self.blocks.apply_commit(event)
        self.moving |= self._get_copied_blocks()
        if self.planned is not None and self.planned.batch == event.batch:
            self._add_planned_pairs(self.planned)
        self.changes += self.planned is None and not any(event.received_tuples)
        hosts = self.start.hosts if self.start else len(event.host_metrics)
        migrating = bool(self.migrating or self.copies)
        now = make_batch_figures(
            event,
            self.grids,
            max(hosts, len(event.host_metrics)),
            migrating,
            self.is_modelled,
            self._estimate_tuple_sizes(),
        )
        now = replace(now, bound=self._compute_ratio_bound(now))
        self.points.append(now)
        self.totals = self.totals.with_batch(event, now)
        self.last, self.planned = event, None

    def _compute_ratio_bound(self, now: BatchFigures) -> float | None:
        """Return the bound of Theorem 4.1 for this batch; it applies only to the adaptive grid."""
        if self.start is None or self.start.placement != "AdaptiveGrid":
            return None
        before = self.points[-1] if self.points else now
        batch = max(before.received, now.received)
        return ratio_bound_if_applicable(
            batch, min(now.live), self.start.placement_settings.get("epsilon", 1.0)
        )

    def _get_copied_blocks(self) -> dict[int, Block]:
        return {c.block: self.blocks[c.block] for c in self.copies if c.block in self.blocks}

    def _estimate_tuple_sizes(self) -> tuple[float, float]:
        """Return the tuple sizes of streams 0 and 1.

        They are the placement's settings, or else the mean bytes of live tuples.
        """
        sizes = self.start.placement_settings.get("tuple_sizes") if self.start else None
        if sizes:
            return float(sizes[0]), float(sizes[1])
        rows, size = [0, 0], [0, 0]
        for b in self.blocks.values():
            if b.stream < 2:
                rows[b.stream] += b.rows
                size[b.stream] += b.size_bytes
        return (size[0] / rows[0], size[1] / rows[1]) if all(rows) and all(size) else (1.0, 1.0)

    def _add_planned_pairs(self, plan: BatchPlanned) -> None:
        """Add the pairs of streams 0 and 1 that the plan's routes join.

        If several hosts join the same keys, the one with the most pairs is the last.
        """
        rows: Counter[tuple[int, ...]] = Counter()
        for route in (route for route in plan.routes if route.block.id in self.blocks):
            fresh = self.blocks[route.block.id]
            for hop in (hop for path in route.paths for hop in path):
                if fresh.stream + hop.stream != 1:
                    continue
                for host, ids in hop.blocks_by_host.items():
                    for other in (self.blocks[id] for id in ids if id in self.blocks):
                        r, s = (fresh, other) if hop.stream else (other, fresh)
                        rows[*r.key_range, *s.key_range, host] += r.rows * s.rows
        for (*keys, host), _ in sorted(rows.items(), key=lambda item: item[::-1]):
            self.joined_keys.pop(tuple(keys), None)
            self.joined_keys[tuple(keys)] = host


def fold_events(events: Iterable[Any], scene: RunView | None = None) -> RunView:
    """Return the state after these events, starting from an empty state or from ``scene``.

    ``scene`` is modified.
    """
    scene = RunView() if scene is None else scene
    for event in events:
        scene.apply_event(event)
    return scene
