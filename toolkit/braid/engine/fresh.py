"""Fresh blocks: the rows of a batch, sorted and cut by the plan's routes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from braid.core.clocks import Spread, needs_spread
from braid.core.columns import ROUTING, TIME
from braid.core.environment import environment
from braid.core.plan import Block, Route
from braid.core.state import Address
from braid.engine.files import BlockFiles
from braid.engine.wire import Batch
from braid.local import views
from braid.local.build import build
from braid.local.harvest import kinds
from braid.local.order import order_of
from braid.local.rows import Rows, nbytes, rows_at
from braid.local.spread import describe_times

Counts = dict[int, dict[int, int]]
"""By stream: how often each value came."""


class Fresh(NamedTuple):
    """A fresh block: the ``hosts`` that store it or probe with it, its rows, the bytes of its
    tuples, where it is stored, if it is, its late tuples, the spread of its event times, if a clock
    needs it, and the seconds that each host worked on it.
    """

    block: Block
    hosts: Collection[int]
    rows: Rows
    size: int
    address: Address | None
    late: int
    spread: Spread | None = None
    seconds: float = 0.0


class Cutter:
    """Cuts what came into fresh blocks and writes them, with tuples counted by routing key, which
    in a run for many queries tells how long each is of use, and by type (``kinds``), in a run that
    sheds load by utility (``typed``).
    """

    def __init__(self, batch: Batch, files: BlockFiles, typed: bool) -> None:
        self.batch, self.files, self.typed = batch, files, typed
        self.key_counts: Counts = {}
        self.kinds: Counts = {}

    def cut(
        self,
        arrived: dict[int, list[pa.RecordBatch]],
        routes: Sequence[Route],
        serves: Callable[[int], bool],
    ) -> list[Fresh]:
        """Make the fresh blocks of these routes for the hosts that it serves, here or in other
        tasks: sorted once, and written once.
        """
        found: list[Fresh] = []
        for s, batches in arrived.items():
            began = environment().clock()
            whole = batches[0] if len(batches) == 1 else pa.concat_batches(batches)
            made = [self._fresh(*each, serves) for each in self._split(whole, s, routes)]
            seconds = environment().clock() - began
            came = sum(f.rows.batch.num_rows * len([*filter(serves, f.hosts)]) for f in made)
            found += [f._replace(seconds=seconds / came * f.rows.batch.num_rows) for f in made]
        return found

    def _split(
        self, whole: pa.RecordBatch, stream: int, routes: Sequence[Route]
    ) -> Iterator[tuple[Route, pa.RecordBatch]]:
        """The rows of the fresh block of each route of a stream, sorted by the first index: they
        are copied once, and every block is a view of them.
        """
        routes = [r for r in routes if r.block.stream == stream]
        if not routes:
            return
        number = np.full(
            self.batch.space.end, len(routes), np.int16 if len(routes) < 1 << 15 else int
        )
        for n, route in enumerate(routes):
            number[slice(*route.block.keys)] = n
        block = number[whole.column(ROUTING).to_numpy()]
        ends = np.cumsum(np.bincount(block, minlength=len(routes)))[: len(routes)]
        key = whole.column(self.batch.spec.predicate.indexes(stream)[0])
        key = key.to_numpy(zero_copy_only=False)
        if ends[-1] < len(block):
            at = np.flatnonzero(block < len(routes))
            order = at[order_of(key[at], block[at])]
        else:
            order = order_of(key, block)
        rows = views.whole(rows_at(views.shorn(whole, self.batch.spec.echoes(stream)), order))
        for route, first, last in zip(routes, [0, *ends], ends, strict=False):
            if first < last:
                yield route, rows.slice(first, last - first)

    def _fresh(self, route: Route, part: pa.RecordBatch, serves: Callable[[int], bool]) -> Fresh:
        """The fresh block of these rows, written when a host that is served stores it: hosts share
        the file.
        """
        block = route.block
        rows = Rows(build(part, self.batch.spec.predicate.indexes(block.stream), ordered=True))
        if serves(block.hosts[0]):
            self._trace(rows, block.stream)
        address, late, spread = None, 0, None
        if any(map(serves, block.hosts)):
            address = self.files.write(block.stream, rows.batch)
            late = self._late(rows, block.stream)
            spread = self._spread(rows, block.stream)
        return Fresh(block, route.hosts(), rows, nbytes(part), address, late, spread)

    def _trace(self, rows: Rows, stream: int) -> None:
        if self.batch.bitmaps is not None:
            _tally(self.key_counts.setdefault(stream, {}), rows.numpy(ROUTING))
        if self.typed:
            _tally(self.kinds.setdefault(stream, {}), kinds(rows))

    def _late(self, rows: Rows, stream: int) -> int:
        """Rows behind what the other streams' stored tuples were kept for: they may have missed
        partners.
        """
        bounds = [
            h
            for s, (h, w) in enumerate(
                zip(self.batch.watermarks, self.batch.spec.windows, strict=True)
            )
            if s != stream and h is not None and w is not None
        ]
        return int(np.count_nonzero(rows.numpy(TIME) < max(bounds))) if bounds else 0

    def _spread(self, rows: Rows, stream: int) -> Spread | None:
        """The event times of a block, where their span does not suffice for the stream's clock."""
        ahead = self.batch.ahead
        at = self.batch.clocks[stream] if self.batch.clocks else None
        if ahead is None or not needs_spread(rows.span(), at, ahead):
            return None
        return describe_times(rows.numpy(TIME), at, ahead)


def _tally(counts: dict[int, int], values: np.ndarray) -> None:
    """Count how often each value is there."""
    for value, n in zip(*(each.tolist() for each in np.unique_counts(values)), strict=True):
        counts[value] = counts.get(value, 0) + n
