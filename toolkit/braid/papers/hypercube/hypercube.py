"""The hypercube: several streams with equalities on different columns, joined in one hop.

Each chain of columns that the condition makes equal is a dimension; the hosts are the cells of a
hypercube. A tuple is hashed on the dimensions of its stream and stored on all cells along the
others, so every result is made on one host. How many parts each dimension has, its *share*, follows
from measured rates, and changes while the join runs: one share grows and another one shrinks by the
same factor.

Source: Afrati and Ullman, "Optimizing Joins in a Map-Reduce Environment", EDBT 2010.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Self

from braid.core.facts import Facts
from braid.core.key_boxes import KeyBoxes, Shares
from braid.core.placement import Placement
from braid.core.plan import KeySpace, Plan
from braid.core.plan_builder import PlanBuilder
from braid.papers.hypercube.cells import (
    CubeCells,
    exchange_hosts,
    make_cell_routes,
    move_stored_blocks,
)
from braid.papers.hypercube.run_events import SharesChosen
from braid.papers.hypercube.shares import (
    Dimensions,
    choose_cube_size,
    count_received_tuples,
    exchange_factor,
    find_best_shares,
    list_exchanges,
    list_stream_dimensions,
)
from braid.util.validation import check_int

LEAST_HOSTS, MOST_HOSTS = 4, 1024
MOST_DIMENSIONS = 6
"""Maximum number of dimensions; all factorizations of the number of hosts are tried."""
MEMORY = 4
"""Batches that the mean of the rates covers."""


@dataclass(frozen=True)
class HyperCubeState:
    """The state of the hypercube after a batch.

    - ``rates``: mean tuples a batch, by stream; recent batches weigh most.
    - ``layouts``: shares by layout of the routing keys; empty if no block has such keys.
    - ``layout``: the layout of the batch.
    - ``hosts``: host by cell.
    - ``exchange``: the change that the next batch makes: the dimension that grows, the one that
      shrinks, and the factor. Empty: none.
    """

    rates: tuple[float, ...]
    layouts: tuple[tuple[int, ...], ...]
    layout: int
    hosts: tuple[int, ...]
    exchange: tuple[int, ...] = ()

    @property
    def shares(self) -> Shares:
        """The shares of the batch."""
        return self.layouts[self.layout]


@dataclass(frozen=True)
class HyperCube(Placement):
    """Shares: a dimension for each chain of equal columns, a host for each cell, and no hops.

    Parameters
    ----------
    hosts
        Number of hosts, 4 to 1024. If it has few factors, some stay idle.
    dimensions
        By dimension, the numbers of the streams that it links, ascending; at most 6 dimensions. A
        join takes those of its condition; only simulations, which have none, need them.
    threshold
        The shares change if others make hosts receive less than this times as many tuples.

    Supports three streams or more. A stream without an equality is stored on all hosts. Raises
    ValueError for settings out of range, and for a condition without an equality or with too many.
    """

    State = HyperCubeState
    routing_key_source = "equalities"
    label = "HyperCube (Shares)"

    hosts: int
    dimensions: Dimensions = ()
    threshold: float = 0.8

    def __post_init__(self) -> None:
        check_int(self.hosts, "hosts", LEAST_HOSTS, MOST_HOSTS)
        _check_dimensions(self.dimensions)
        if not 0 < self.threshold <= 1:
            raise ValueError(
                f"threshold is {self.threshold}; it must be a number greater than 0, at most 1"
            )

    @classmethod
    def example_instances(cls) -> tuple[Self, ...]:
        return cls(4, ((0, 1), (1, 2)), 1.0), cls(6, ((0, 1), (0, 2)))

    def bind_dimensions(self, dimensions: Dimensions) -> HyperCube:
        return replace(self, dimensions=dimensions)

    @property
    def key_space_size(self) -> int:
        if not self.dimensions:
            return 1
        return self._make_boxes(1 + max(map(max, self.dimensions)), (), 0).size

    def initial_state(self, streams: int) -> HyperCubeState:
        if streams < 3:
            raise ValueError(
                f"HyperCube joins three streams or more; got {streams}; HashPartition joins two on "
                "an equality"
            )
        if not self.dimensions:
            raise ValueError(
                "dimensions is (), as there is no condition; it must name the streams that each "
                "equality links, such as ((0, 1), (1, 2))"
            )
        if wrong := sorted({s for each in self.dimensions for s in each if s >= streams}):
            raise ValueError(f"dimensions name stream {wrong[0]} of {streams} streams")
        size = choose_cube_size(self.hosts, self.dimensions)
        shares = find_best_shares(size, self.dimensions, (1.0,) * streams)
        return HyperCubeState((0.0,) * streams, (shares,), 0, tuple(range(size.cells)))

    def key_space(self, state: HyperCubeState) -> KeySpace:
        boxes = self._make_boxes(len(state.rates), state.layouts, state.layout)
        return KeySpace(self.routing_key_source, boxes.size, boxes.first_key, boxes=boxes)

    def find_recorded_boxes(self, streams: int, events: Iterable[Any], batch: int) -> KeyBoxes:
        layouts, current = dict[int, Shares](), 0
        for event in events:
            if isinstance(event, SharesChosen) and event.batch <= batch:
                layouts[event.layout], current = event.shares, event.layout
        shares = tuple(layouts.get(n, ()) for n in range(1 + max(layouts, default=0)))
        return self._make_boxes(streams, shares, current)

    def plan_batch(self, facts: Facts, state: HyperCubeState) -> Plan:
        return _Planner(self, facts, state).plan_batch()

    def _make_boxes(self, streams: int, layouts: tuple[Shares, ...], current: int) -> KeyBoxes:
        of_streams = list_stream_dimensions(self.dimensions, streams)
        finest = choose_cube_size(self.hosts, self.dimensions).finest
        return KeyBoxes(finest, of_streams, layouts, current)


class _Planner:
    """The planning of one batch: measure rates, change the shares, route, look ahead."""

    def __init__(self, settings: HyperCube, facts: Facts, state: HyperCubeState) -> None:
        self.settings, self.facts, self.before = settings, facts, state
        self.dimensions = settings.dimensions
        self.state = replace(state, rates=_update_rates(state.rates, facts), exchange=())
        self.size = choose_cube_size(settings.hosts, settings.dimensions)
        self.events: list[Any] = []

    def plan_batch(self) -> Plan:
        draft = PlanBuilder(self.facts)
        if self.before.exchange:
            self._exchange_shares()
        cells = CubeCells(self._current_boxes(), self.state.hosts)
        if self.before.exchange:
            move_stored_blocks(draft, cells, self.facts.blocks)
        elif self.facts.batch == 0:
            self._add_event(())
        live = draft.live_blocks()
        routes = make_cell_routes(self._after_moves(draft), cells, live)
        self.state = replace(self.state, exchange=self._choose_exchange())
        pinned = [b.id for b in live] + [r.block.id for r in routes] if self.state.exchange else ()
        return draft.make_plan(routes, self.state, self.events, pinned)

    def _after_moves(self, draft: PlanBuilder) -> Facts:
        """Return the facts with the first id that no piece has."""
        return replace(self.facts, next_id=next(draft.ids))

    def _current_boxes(self) -> KeyBoxes:
        boxes = self.settings.key_space(self.state).boxes
        assert boxes is not None
        return boxes

    def _choose_exchange(self) -> tuple[int, ...]:
        """Return the change of shares that saves most, if others save enough; empty: none."""
        rates, shares = self.state.rates, self.state.shares
        if not any(rates):
            return ()
        now = count_received_tuples(shares, self.dimensions, rates)
        best = find_best_shares(self.size, self.dimensions, rates)
        if count_received_tuples(best, self.dimensions, rates) >= self.settings.threshold * now:
            return ()
        changes = list_exchanges(shares, self.size.finest)
        received, change = min(
            (count_received_tuples(exchange_factor(shares, *c), self.dimensions, rates), c)
            for c in changes
        )
        return change if received < now else ()

    def _exchange_shares(self) -> None:
        """Apply the change that the last batch has announced, under a layout of its own."""
        grows, shrinks, factor = self.before.exchange
        old = self.state.shares
        shares = exchange_factor(old, grows, shrinks, factor)
        layouts = self._drop_unused_layouts()
        free = [n for n, used in enumerate(layouts) if used in ((), shares)]
        layout = layouts.index(shares) if shares in layouts else (*free, len(layouts))[0]
        layouts = [*layouts, ()][: max(len(layouts), layout + 1)]
        layouts[layout] = shares
        hosts = exchange_hosts(self.state.hosts, old, grows, shrinks, factor)
        self.state = replace(self.state, layouts=tuple(layouts), layout=layout, hosts=hosts)
        self._add_event(old)

    def _drop_unused_layouts(self) -> list[Shares]:
        """Return the layouts; those of no block are empty."""
        boxes = self._current_boxes()
        used = {boxes.find_layout(b.key_range) for b in self.facts.blocks}
        return [shares if n in used else () for n, shares in enumerate(self.state.layouts)]

    def _add_event(self, previous: Shares) -> None:
        rates = self.state.rates if any(self.state.rates) else (1.0,) * len(self.state.rates)
        before, after = (
            count_received_tuples(shares, self.dimensions, rates) / sum(rates)
            for shares in (previous or self.state.shares, self.state.shares)
        )
        idle = tuple(range(self.size.cells, self.settings.hosts))
        self.events.append(
            SharesChosen(
                self.facts.batch,
                self.dimensions,
                previous,
                self.state.shares,
                before,
                after,
                idle,
                self.state.hosts,
                self.state.layout,
            )
        )


def _update_rates(rates: tuple[float, ...], facts: Facts) -> tuple[float, ...]:
    """Return the mean tuples a batch; recent batches weigh most."""
    if not facts.batch:
        return rates
    weight = 1 / min(facts.batch, MEMORY)
    return tuple(r + weight * (n - r) for r, n in zip(rates, facts.previous_received, strict=True))


def _check_dimensions(dimensions: Dimensions) -> None:
    if len(dimensions) > MOST_DIMENSIONS:
        raise ValueError(
            f"HyperCube has a dimension for each chain of equal columns, at most "
            f"{MOST_DIMENSIONS}; the condition has {len(dimensions)}"
        )
    for streams in dimensions:
        if len(streams) < 2 or list(streams) != sorted({*streams}) or streams[0] < 0:
            raise ValueError(
                f"a dimension has the streams {streams}; it must have two or more different ones, "
                "ascending"
            )
