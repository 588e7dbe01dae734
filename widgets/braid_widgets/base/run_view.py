"""Fold a run's events into the visible state after the last of them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from braid.core.batch_history import LiveBlocks
from braid.core.plan import Block, ReplicaCopy
from braid.core.run_events import BatchCommitted, BatchPlanned, EventsTrimmed, RunEnded, RunStarted
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
from braid_widgets.base.join_matrix import JoinMatrix
from braid_widgets.base.time_left import TimeLeftEstimator

HISTORY = 400
"""Number of batches kept for the timeline. Older ones are dropped, so that memory is bounded for an
endless run.
"""


@dataclass
class RunView:
    """The visible state of a run; fold events into it in order with ``apply_event``.

    - ``blocks``: the live blocks.
    - ``grids``, ``migrating``: the grid and the number of waiting tuples, by group.
    - ``copies``: [block, source, target] of the last batch; ``moving`` holds those blocks.
    - ``last``: the last committed batch.
    - ``planned``: a plan that is not committed yet.
    - ``changes``: number of batches without a plan or tuples, in which queries or slices changed.
    - ``pace``: estimator of the time between batches.
    - ``first_retained_batch``: the first batch whose events are retained.
    """

    start: RunStarted | None = None
    last: BatchCommitted | None = None
    end: RunEnded | None = None
    blocks: LiveBlocks = field(default_factory=LiveBlocks)
    join_matrix: JoinMatrix = field(default_factory=JoinMatrix)
    grids: dict[int, GroupMapping] = field(default_factory=dict)
    migrating: dict[int, int] = field(default_factory=dict)
    copies: list[ReplicaCopy] = field(default_factory=list)
    moving: dict[int, Block] = field(default_factory=dict)
    points: deque[BatchFigures] = field(default_factory=lambda: deque(maxlen=HISTORY))
    totals: RunTotals = field(default_factory=RunTotals)
    planned: BatchPlanned | None = None
    changes: int = 0
    pace: TimeLeftEstimator | None = None
    first_retained_batch: int = 0

    @property
    def is_modelled(self) -> bool:
        """Return whether the run was simulated, not measured."""
        return self.start is not None and self.start.time_source == "modelled"

    @property
    def stream_aliases(self) -> tuple[str, ...]:
        """Return the aliases of the streams; empty before the run has started."""
        return self.start.streams if self.start else ()

    def apply_event(self, event: Any) -> None:
        """Fold in one event; ignore kinds that change nothing visible."""
        if (handler := _HANDLERS.get(type(event))) is not None:
            handler(self, event)

    def _record_start(self, event: RunStarted) -> None:
        self.start, self.end = event, None
        for axis in (0, 1):
            self.join_matrix.split_axis(axis, (0, event.key_space_size))

    def _change_setting(self, event: SettingChanged) -> None:
        self.start = self.start and event.apply_to_start(self.start)

    def _apply_trim(self, event: EventsTrimmed) -> None:
        self.first_retained_batch = event.batch + 1
        self.blocks.clear()
        self.blocks.apply_changes(event.live_blocks)
        self.totals = RunTotals.from_trimmed(event)
        for axis in (0, 1):
            self.join_matrix.split_axis(
                axis, {key for b in event.live_blocks if b.stream == axis for key in b.key_range}
            )

    def _record_plan(self, event: BatchPlanned) -> None:
        self.planned, self.copies, self.moving = event, [], {}

    def _update_mapping(self, event: MappingChanged) -> None:
        cells = {h: (row, column) for h, row, column in event.cells}
        before = event.previous_mapping if event.previous_mapping != event.mapping else None
        self.grids[event.group] = GroupMapping(event.mapping, cells, before)

    def _start_migration(self, event: MigrationStarted) -> None:
        self.migrating[event.group] = event.tuples_to_copy
        self.totals = replace(self.totals, migrations=self.totals.migrations + 1)

    def _advance_migration(self, event: MigrationAdvanced) -> None:
        self.migrating[event.group] = event.remaining_tuples
        self.copies += event.copies
        self.moving |= self._get_copied_blocks()

    def _end_migration(self, event: MigrationEnded) -> None:
        self.migrating.pop(event.group, None)

    def _apply_commit(self, event: BatchCommitted) -> None:
        self.blocks.apply_commit(event)
        for axis in (0, 1):
            self.join_matrix.split_axis(
                axis, {key for b in event.changed_blocks if b.stream == axis for key in b.key_range}
            )
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
        sizes = (
            self.start.placement_settings.get("sizes")
            if self.start and self.start.placement == "AdaptiveGrid"
            else None
        )
        if sizes:
            return float(sizes[0]), float(sizes[1])
        rows, size = [0, 0], [0, 0]
        for b in self.blocks.values():
            if b.stream < 2:
                rows[b.stream] += b.rows
                size[b.stream] += b.size_bytes
        return (size[0] / rows[0], size[1] / rows[1]) if all(rows) and all(size) else (1.0, 1.0)

    def _add_planned_pairs(self, plan: BatchPlanned) -> None:
        """Add the pairs of streams 0 and 1 that the plan's routes join."""
        fresh_ids: list[int] = []
        other: list[int] = []
        hosts: list[int] = []
        for route in plan.routes:
            id, stream = route.block.id, route.block.stream
            for hop in (hop for path in route.paths for hop in path if stream + hop.stream == 1):
                for host, ids in hop.blocks_by_host.items():
                    fresh_ids += [id] * len(ids)
                    other += ids
                    hosts += [host] * len(ids)
        pairs, boxes, rows = self._make_key_boxes(fresh_ids, other)
        self.join_matrix.add_pairs(boxes, rows, np.array(hosts, dtype=np.int64)[pairs])

    def _make_key_boxes(
        self, first: list[int], second: list[int]
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return which pairs of blocks are live and of streams 0 and 1, with their boxes and pairs.

        A box is [r0, r1, s0, s1) of routing keys; pairs are row pairs.
        """
        ids = np.array(sorted(self.blocks), dtype=np.int64)
        facts = np.array(
            [(b.stream, *b.key_range, b.rows) for b in map(self.blocks.__getitem__, ids.tolist())],
            dtype=np.int64,
        )
        a, b = np.array(first, dtype=np.int64), np.array(second, dtype=np.int64)
        if not len(ids) or not len(a):
            return np.zeros(0, dtype=np.int64), np.zeros((0, 4), dtype=np.int64), np.zeros(0)
        live = np.nonzero(np.isin(a, ids) & np.isin(b, ids))[0]
        x, y = facts[np.searchsorted(ids, a[live])], facts[np.searchsorted(ids, b[live])]
        flip = x[:, 0] == 1
        x[flip], y[flip] = y[flip], x[flip]
        spans_all_keys = (x[:, 0] == 0) & (y[:, 0] == 1)
        x, y = x[spans_all_keys], y[spans_all_keys]
        return (
            live[spans_all_keys],
            np.hstack([x[:, 1:3], y[:, 1:3]]),
            (x[:, 3] * y[:, 3]).astype(float),
        )

    def _record_end(self, event: RunEnded) -> None:
        self.end = event


_HANDLERS: dict[type, Callable[[RunView, Any], None]] = {
    RunStarted: RunView._record_start,
    EventsTrimmed: RunView._apply_trim,
    BatchPlanned: RunView._record_plan,
    MappingChanged: RunView._update_mapping,
    MigrationStarted: RunView._start_migration,
    MigrationAdvanced: RunView._advance_migration,
    MigrationEnded: RunView._end_migration,
    BatchCommitted: RunView._apply_commit,
    RunEnded: RunView._record_end,
    SettingChanged: RunView._change_setting,
}


def fold_events(events: Iterable[Any], scene: RunView | None = None) -> RunView:
    """Return the state after these events, starting from an empty state or from ``scene``.

    ``scene`` is modified.
    """
    scene = RunView() if scene is None else scene
    for event in events:
        scene.apply_event(event)
    return scene
