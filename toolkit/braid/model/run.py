"""A run without tuples, batch by batch: numbers of tuples by routing key stand for them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from braid.core import step
from braid.core.cluster import REFERENCE_MIPS, Costs, Host
from braid.core.events import BatchCommitted, Event
from braid.core.facts import Usage
from braid.core.leaving import go_on
from braid.core.plan import Block, Plan
from braid.core.report import HostDid, Outcome, Size
from braid.core.state import State
from braid.core.step import Rules, Work
from braid.model.expected import Drawn, Expected, Journeys, Selects

Floats = npt.NDArray[np.float64]
_PASSES = 10
"""At most so many, to find the share of its work that each host gets done; they end when all busy
ones are within 5 %.
"""

_REFERENCE = Host()


class Queue:
    """The work that waits at each host: ``waiting`` seconds of it, and ``counts`` as Usage names
    the first of its fields. ``done`` is what the hosts worked on in the last batch.
    """

    def __init__(self, hosts: int) -> None:
        self.waiting = np.zeros(hosts)
        self.counts = self.done = np.zeros((5, hosts))

    def work(self, asked: Floats, busy: Floats, seconds: float, patience: float) -> Floats:
        """Take in what a batch asks of the hosts, ``busy`` seconds of it, and work for as long as
        the batch lasts: the seconds that each host works.
        """
        due = self.waiting + busy
        worked = np.minimum(due, seconds)
        share = np.divide(worked, due, out=np.ones_like(due), where=due > 0)
        self.counts = self.counts + asked
        self.done = self.counts * share
        self.counts = self.counts - self.done
        self.waiting = np.clip(due - worked, 0.0, patience)
        return np.asarray(worked)

    def told(self, usage: Sequence[Usage]) -> tuple[Usage, ...]:
        """The usage of the hosts with what they worked on, in place of what they were asked."""
        columns = np.rint(self.done).astype(np.int64).tolist()
        return tuple(
            Usage(came, arrived, sent, probed, compared, h.stored, h.stored_bytes, h.network_bytes)
            for h, came, arrived, sent, probed, compared in zip(usage, *columns, strict=False)
        )


class ModelRun:
    """A simulated run. By live block, ``tuples`` counts its tuples by routing key, ``rows`` all of
    them.
    """

    def __init__(
        self,
        rules: Rules,
        state: State,
        sizes: tuple[int, ...],
        draw: np.random.Generator,
        ends: Iterator[int],
        shares: list[Floats],
        sigma: np.ndarray,
        cluster: tuple[Host, ...],
        costs: Costs,
        patience: float,
        selects: Selects,
    ) -> None:
        self.rules, self.state, self.sizes, self.draw = rules, state, sizes, draw
        self.ends, self.shares, self.sigma = ends, shares, sigma
        self.cluster, self.costs, self.patience = cluster, costs, patience
        self.selects: Selects = selects
        self.begun, self.queue = next(ends), Queue(len(cluster))
        self.slowness = np.array([REFERENCE_MIPS / host.mips for host in cluster])
        self.tuples: dict[int, np.ndarray] = {}
        self.rows: dict[int, int] = {}
        self.results = 0.0

    def begin_with(self, b: Block, keys: int) -> None:
        """Have a block that there is already, of so many keys; its tuples are spread over its
        own.
        """
        there = np.zeros(keys, np.int64)
        there[slice(*b.keys)] = np.diff(np.linspace(0, b.rows, 1 + b.keys[1] - b.keys[0]).round())
        self._hold(b, there)

    def run(self, counts: Sequence[int]) -> list[Event]:
        """One batch: its events. Whoever waits may have it given up before (core.leaving)."""
        go_on()
        ends = next(self.ends)
        span, self.begun, self.seconds = (self.begun, ends - 1), ends, (ends - self.begun) / 1e6
        work = step.plan(self.rules, self.state)
        outcome = Outcome(key_counts=self._store(work.whole, counts, span))
        self._measure(work, outcome, span)
        seconds = self._work(work, outcome)
        self.state, (*happened, committed) = step.commit(self.rules, self.state, work, outcome)
        self.tuples = {id: self.tuples[id] for id in self.state.blocks}
        self.rows = {id: self.rows[id] for id in self.state.blocks}
        assert isinstance(committed, BatchCommitted)
        if self.cluster:
            self.state = replace(self.state, usage=self.queue.told(self.state.usage))
        return [*happened, replace(committed, seconds=seconds)]

    def _store(
        self, plan: Plan, counts: Sequence[int], span: tuple[int, int]
    ) -> tuple[dict[int, int], ...]:
        """Make the derived and the fresh blocks; by stream, the new tuples of each routing key,
        which a run that serves many queries counts.
        """
        for d in plan.derivations:
            self._hold(d.block, np.sum([self.tuples[source] for source in d.sources], axis=0))
        drawn = [self.draw.multinomial(n, p) for n, p in zip(counts, self.shares, strict=True)]
        if (space := self.rules.placement.keyspace(plan.state)).divide:
            keys = space.of(np.arange(len(drawn[0])))
            drawn = [np.bincount(keys, n, space.end).astype(np.int64) for n in drawn]
        for b in (r.block for r in plan.routes if r.fresh):
            self._hold(b, drawn[b.stream])
        if not self.state.queries:
            return ()
        return tuple({k: n for k, n in enumerate(each.tolist()) if n} for each in drawn)

    def _hold(self, b: Block, tuples: np.ndarray) -> None:
        """Of these tuples, a block holds those with its routing keys."""
        mine = np.zeros_like(tuples)
        mine[slice(*b.keys)] = tuples[slice(*b.keys)]
        self.tuples[b.id], self.rows[b.id] = mine, int(mine.sum())

    def _measure(self, work: Work, outcome: Outcome, span: tuple[int, int]) -> None:
        """Note the sizes of the blocks that were made."""
        fresh = (r.block for r in work.plan.routes if r.fresh)
        new = [b.holding(b.rows, b.bytes, span) for b in fresh]
        for b in (*new, *(d.block for d in work.whole.derivations)):
            if rows := self.rows[b.id]:
                assert b.span is not None
                outcome.sizes[b.id] = Size(rows, rows * self.sizes[b.stream], b.span)

    def _work(self, work: Work, outcome: Outcome) -> dict[str, float]:
        """Note what the hosts do; the seconds that the batch takes."""
        fresh = [r.block for r in work.plan.routes if r.fresh]
        there = {b.id: b for b in (*work.live, *fresh)}
        routed = (r.block for r in work.plan.routes)
        known = chain(self.state.blocks.values(), routed, there.values())
        hosts = max(self.rules.placement.hosts, step.hosts_of(known))
        received = self._came(((r.block, r.hosts()) for r in work.plan.routes if r.fresh), hosts)
        copies = (
            (d.block, [to for to, source in d.reads.items() if to != source])
            for d in work.whole.derivations
        )
        moved = self._came(copies, hosts)
        live = {id: b for id, b in there.items() if self.rows[id]}
        live |= {id: step.sized(live[id], outcome.sizes) for id in outcome.sizes if id in live}
        expected = self._expected(work, live, received[0])
        busy = self._busy(received[0], expected) if self.cluster else np.zeros((1, hosts))
        outcome.matches = expected.matches
        worked = busy.sum(axis=0)
        if (harvested := expected.harvested) is not None:
            makespan = float(busy.max(axis=1).sum())
            outcome.harvested = replace(
                harvested,
                utility=float(expected.results.sum()),
                probing=float((busy.sum(axis=0) - self._busy_receiving(received[0])).max()),
                seconds=makespan if self.cluster else None,
            )
        if self.cluster:
            asked = np.vstack([received[0], np.sum(expected.stages, axis=0)])
            worked = self.queue.work(asked, worked, self.seconds, self.patience)
        self._count(outcome, received, moved, expected, worked)
        return {"modelled": float(busy.max(axis=1).sum())} if self.cluster else {}

    def _came(self, places: Iterable[tuple[Block, Collection[int]]], hosts: int) -> np.ndarray:
        """Tuples and bytes that hosts get of some blocks."""
        places = list(places)
        at = np.fromiter(chain.from_iterable(there for _, there in places), np.int64)
        rows = [self.rows[b.id] for b, _ in places]
        size = [n * self.sizes[b.stream] for n, (b, _) in zip(rows, places, strict=True)]
        times = [len(there) for _, there in places]
        sums = [np.bincount(at, np.repeat(each, times), hosts) for each in (rows, size)]
        return np.array(sums).astype(np.int64)

    def _count(
        self,
        outcome: Outcome,
        received: np.ndarray,
        moved: np.ndarray,
        expected: Expected,
        busy: np.ndarray,
    ) -> None:
        """The counts of every host; results and intermediate results are rounded."""
        arrived, sent, probed, compared = np.rint(np.sum(expected.stages, axis=0)).astype(np.int64)
        ends = np.floor(self.results + np.cumsum([0.0, *expected.results]))
        self.results = (self.results + float(expected.results.sum())) % 1
        width = sum(self.sizes) / len(self.sizes)
        columns = {
            "received": received[0],
            "received_bytes": received[1],
            "moved": moved[0],
            "moved_bytes": moved[1],
            "compared": compared,
            "shed": np.rint(expected.shed).astype(np.int64),
            "probed": probed,
            "sent": sent,
            "arrived": arrived,
            "arrived_bytes": np.rint(arrived * width).astype(np.int64),
            "results": np.diff(ends).astype(np.int64),
            "seconds": busy,
        }
        did = zip(*(each.tolist() for each in columns.values()), strict=True)
        outcome.hosts = {
            h: HostDid(**dict(zip(columns, n, strict=True))) for h, n in enumerate(did)
        }

    def _expected(self, work: Work, live: dict[int, Block], received: np.ndarray) -> Expected:
        """What the paths do, once every host does as much of it as it can.

        What one host leaves undone lightens those after it, hence several passes.
        """
        share = np.ones(len(received))
        windows, ages = self.rules.windows, work.ages
        if (harvest := work.plan.harvest) is not None and harvest.keep:
            raise ValueError("tuples have no values in a simulation; none can be left out by them")
        drawn = None if harvest is None else Drawn(harvest)
        journeys = Journeys(work.plan.routes, live, self.sigma, windows, ages, self.selects, drawn)
        for _ in range(_PASSES):
            expected = Expected(journeys, share)
            if not self.cluster:
                break
            busy = self._busy(received, expected).sum(axis=0)
            asked = busy / (self.seconds + self.patience - self.queue.waiting)
            if np.all((asked < 1.05) & ((asked > 0.95) | (share == 1))):
                break
            share = np.clip(share / np.sqrt(np.maximum(asked, 1e-6)), 0.0, 1.0)
        if drawn is not None:
            expected.harvested = drawn.harvested(journeys, work.plan.routes, self.sigma)
        return expected

    def _busy_receiving(self, received: np.ndarray) -> Any:
        """Modelled seconds of CPU by host, but for probing."""
        if not self.cluster:
            return 0.0
        none = [np.zeros_like(received)] * 4
        counts: list[Any] = [received, *none]
        took: Any = self.costs.busy(Usage(*counts), _REFERENCE)
        return took * self.slowness

    def _busy(self, received: np.ndarray, expected: Expected) -> np.ndarray:
        """Modelled seconds of CPU by hop and host; a batch takes as long as the busiest host of
        each hop, one after the other.
        """
        # Usage of all hops and hosts at once: an array stands for each count.
        came = np.zeros((len(expected.stages), len(received)))
        came[0] = received
        did: list[Any] = [came, *expected.stages.transpose(1, 0, 2)]
        seconds: Any = self.costs.busy(Usage(*did), _REFERENCE)
        return np.asarray(seconds * self.slowness)
