"""A placement run without tuples: the same policy, the same plans, the same events, in
milliseconds.

Only numbers of tuples exist here, one for each routing key of each block, so cuts, merges and
copies are exact. Nothing is measured; the clock is modelled.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np

from braid.core.cluster import GU, REFERENCE_MIPS, Costs, Host, check_cluster
from braid.core.codec import again, plain
from braid.core.compaction import compact, watermarks_of
from braid.core.cover import CoverError, CoverLedger
from braid.core.events import BatchCommitted, HostDid, RunEnded, RunStarted
from braid.core.facts import Facts, Matches, Usage
from braid.core.history import discarded, matches, planned, usage
from braid.core.placement import Placement
from braid.core.plan import Block, Plan, after, joined
from braid.model.expected import Expected, Journeys

_PASSES = 10
"""At most so many, to find the share of its work that each host gets done; they end when all busy
ones are within 5 %.
"""

_REFERENCE = Host()


def simulate(placement: Placement, batches: Iterable[Sequence[int]], **settings: Any) -> list[Any]:
    """The events of a run, all at once; ``settings`` are those of ``simulation``. The start tells
    the batches that were run.
    """
    start, *rest = simulation(placement, batches, **settings)
    return [replace(start, batches=rest[-1].batch + 1), *rest]


def simulation(
    placement: Placement,
    batches: Iterable[Sequence[int]],
    seed: int = 0,
    tuple_bytes: Sequence[int] = (),
    streams: Sequence[str] = (),
    windows: Sequence[float | None] = (),
    seconds: float = 1.0,
    selectivity: float | Sequence[Sequence[float]] = 0.0,
    cluster: Sequence[Host] = (),
    costs: Costs = GU,
    patience: float = 0.0,
) -> Iterator[Any]:
    """The events of a run, one after the other.

    Parameters
    ----------
    placement
        The policy.
    batches
        For each micro-batch the number of new tuples of every stream. Empty batches follow while a
        migration runs.
    seed
        Of the generator that draws the tuples' routing keys, uniform over ``placement.keys``.
    tuple_bytes
        The size of a tuple of every stream in bytes; by default 1.
    streams
        Names of the streams; by default r, s, t, ...
    windows
        W_i of every stream in seconds, None for full history; by default full history.
    seconds
        Event time that each batch covers; the event times of its tuples are uniform in it.
    selectivity
        Of every pair of streams: one number, or a square of numbers by stream.
    cluster
        The machine under every host. With it, each host's ``seconds`` are the modelled time that it
        is busy and ``seconds`` has the modelled makespan; a host that is asked for more than it has
        time for does a smaller share of its probes, as a join that sheds load, and the results
        shrink.
    costs
        What sending, probing and comparing cost on the cluster.
    patience
        Seconds of work that may wait at a host before it sheds: what a batch leaves undone is done
        in those that ask for less. Its results count for the batch whose tuples they are of.

    Every plan is held against the cover rule (unless the placement says that it is not complete):
    raises CoverError when one breaks it or when results stay owed. Raises ValueError when the
    placement cannot serve that many streams. Events count as the engine does, but ``compared``
    counts the pairs of tuples that meet; results and intermediate results are expected numbers,
    rounded.
    """
    counts = [tuple(batch) for batch in batches]
    width = len(counts[0]) if counts else 2
    names = tuple(streams) or tuple("rstuvwxyz"[:width])
    sizes, spread = tuple(tuple_bytes) or (1,) * width, tuple(windows) or (None,) * width
    if any(len(batch) != width for batch in counts) or {len(names), len(sizes), len(spread)} != {
        width
    }:
        raise ValueError(
            "each batch, streams, tuple_bytes and windows must have one entry per stream; the "
            f"first batch has {width}"
        )
    sigma = np.broadcast_to(np.asarray(selectivity, float), (width, width))
    check_cluster(cluster, placement.max_hosts)
    micros = tuple(None if w is None else round(w * 1e6) for w in spread)
    model = _Model(
        placement,
        names,
        sizes,
        np.random.default_rng(seed),
        micros,
        seconds,
        sigma,
        tuple(cluster),
        costs,
        patience,
    )
    settings = plain(placement)
    shown = {name: f"{w:g} seconds" for name, w in zip(names, spread, strict=True) if w is not None}
    yield RunStarted(
        names,
        "",
        shown,
        type(placement).__name__,
        settings,
        placement.hosts,
        placement.keys,
        len(counts),
        clock="modelled",
    )
    for batch in counts:
        yield from model.run(batch)
    while placement.owes(model.state):
        yield from model.run((0,) * width)
    if model.ledger is not None and model.ledger.owed:
        raise CoverError(
            f"{len(model.ledger.owed)} pairs of blocks are still owed after the last batch"
        )
    yield RunEnded(model.batch - 1, "completed")


class _Model:
    """The state of a simulated run. ``tuples`` maps a block to its number of tuples by key,
    ``rows`` to the sum.
    """

    def __init__(
        self,
        placement: Placement,
        names: tuple[str, ...],
        sizes: tuple[int, ...],
        draw: np.random.Generator,
        windows: tuple[int | None, ...],
        seconds: float,
        sigma: np.ndarray,
        cluster: tuple[Host, ...],
        costs: Costs,
        patience: float,
    ) -> None:
        self.placement, self.names, self.sizes, self.draw = placement, names, sizes, draw
        self.windows, self.seconds, self.sigma, self.cluster, self.costs = (
            windows,
            seconds,
            sigma,
            cluster,
            costs,
        )
        self.patience, self.backlog = patience, np.zeros(len(cluster))
        self.slowness = np.array([REFERENCE_MIPS / host.mips for host in cluster])
        self.state = placement.start(len(names))
        self.ledger = (
            CoverLedger(len(names), placement.keying)
            if placement.coverage == "exactly once"
            else None
        )
        self.batch = self.next_id = 0
        self.blocks: dict[int, Block] = {}
        self.tuples: dict[int, np.ndarray] = {}
        self.rows: dict[int, int] = {}
        self.pinned: frozenset[int] = frozenset()
        self.received = self.last = (0,) * len(names)
        self.latest: list[int | None] = [None] * len(names)
        self.usage: tuple[Usage, ...] = ()
        self.matches: Matches = {}
        self.results = 0.0

    def run(self, counts: Sequence[int]) -> list[Any]:
        """One batch: its events."""
        before = self.blocks
        kept, own = self._plan()
        plan = joined(kept, own)
        self._derive(plan)
        fresh = self._fresh(plan, counts)
        rows = self.rows
        live = [*after(before.values(), plan), *fresh]
        self.blocks = {b.id: self._sized(b) for b in live if rows[b.id]}
        self.tuples = {id: self.tuples[id] for id in self.blocks}
        self.rows = {id: rows[id] for id in self.blocks}
        if self.ledger is not None:
            self.ledger.owed = {
                (a, b) for a, b in self.ledger.owed if a in self.blocks and b in self.blocks
            }
        self.next_id = max([self.next_id - 1, *rows]) + 1
        self.state, self.pinned, self.last = plan.state, plan.pinned, tuple(counts)
        self.received = tuple(a + b for a, b in zip(self.received, counts, strict=True))
        self.latest = [
            self._span()[1] if n else t for n, t in zip(counts, self.latest, strict=True)
        ]
        committed = self._committed(
            before, plan, rows, discarded(after(before.values(), kept), own, self.blocks)
        )
        self.usage = usage(committed)
        self.batch += 1
        return [planned(committed.batch, plan), *plan.events, committed]

    def _sized(self, b: Block) -> Block:
        rows, size = self.rows[b.id], self.rows[b.id] * self.sizes[b.stream]
        return b if (b.rows, b.bytes) == (rows, size) else replace(b, rows=rows, bytes=size)

    def _hold(self, b: Block, tuples: np.ndarray) -> None:
        self.tuples[b.id], self.rows[b.id] = tuples, int(tuples.sum())

    def _span(self) -> tuple[int, int]:
        """Event time of the batch, in microseconds."""
        return round(self.batch * self.seconds * 1e6), round(
            (self.batch + 1) * self.seconds * 1e6
        ) - 1

    def _plan(self) -> tuple[Plan, Plan]:
        """The compaction that is due, and the placement's plan."""
        blocks = tuple(self.blocks.values())
        kept = compact(
            blocks, self.next_id, self.pinned, self.windows, watermarks_of(self.latest, 0)
        )
        size = tuple(n * size for n, size in zip(self.received, self.sizes, strict=True))
        facts = Facts(
            self.batch,
            self.names,
            after(blocks, kept),
            self.next_id + len(kept.derivations),
            self.received,
            size,
            self.last,
            self.windows,
            tuple(self.latest),
            self.usage,
            self.matches,
        )
        plan = self.placement.plan(facts, again(self.state, self.placement.State))
        if self.ledger is not None:
            self.ledger.check(blocks, joined(kept, plan))
        return kept, plan

    def _derive(self, plan: Plan) -> None:
        for d in plan.derivations:
            lo, hi = d.block.keys
            tuples = np.sum([self.tuples[source] for source in d.sources], axis=0)
            tuples[:lo] = tuples[hi:] = 0
            self._hold(d.block, tuples)

    def _fresh(self, plan: Plan, counts: Sequence[int]) -> list[Block]:
        keys = self.placement.keys
        drawn = [self.draw.multinomial(n, np.full(keys, 1 / keys)) for n in counts]
        fresh = [replace(route.block, span=self._span()) for route in plan.routes if route.fresh]
        for b in fresh:
            tuples = np.zeros(keys, dtype=np.int64)
            tuples[slice(*b.keys)] = drawn[b.stream][slice(*b.keys)]
            self._hold(b, tuples)
        return fresh

    def _committed(
        self, before: dict[int, Block], plan: Plan, rows: dict[int, int], given_up: dict[int, int]
    ) -> BatchCommitted:
        now, streams = self.blocks, range(len(self.names))
        copies = [
            (d.block, [dst for dst, src in d.reads.items() if dst != src]) for d in plan.derivations
        ]
        known = (*before.values(), *now.values(), *(r.block for r in plan.routes))
        hosts = max([self.placement.hosts, *(1 + max(b.hosts, default=0) for b in known)])

        def by_host(places: Iterable[tuple[Block, Collection[int]]]) -> np.ndarray:
            """Tuples and bytes that hosts get of some blocks."""
            places = list(places)
            at = np.fromiter(chain.from_iterable(there for _, there in places), np.int64)
            each = np.array(
                [(rows[b.id], rows[b.id] * self.sizes[b.stream]) for b, _ in places], np.int64
            ).reshape(-1, 2)
            times = [len(there) for _, there in places]
            return np.array([np.bincount(at, np.repeat(n, times), hosts) for n in each.T]).astype(
                np.int64
            )

        received = by_host((r.block, r.hosts()) for r in plan.routes if r.fresh)
        moved = by_host(copies)
        stored = by_host((b, b.hosts) for b in now.values())
        expected = self._expected(plan, received[0])
        arrived, sent, probed, compared = np.rint(np.sum(expected.stages, axis=0)).astype(np.int64)
        results = np.diff(np.floor(self.results + np.cumsum([0.0, *expected.results]))).astype(
            np.int64
        )
        self.results = (self.results + float(expected.results.sum())) % 1
        width = sum(self.sizes) / len(self.sizes)
        busy = self._busy(received[0], expected) if self.cluster else np.zeros((1, hosts))
        counts = {
            "received": received[0],
            "received_bytes": received[1],
            "stored": stored[0],
            "stored_bytes": stored[1],
            "moved": moved[0],
            "moved_bytes": moved[1],
            "compared": compared,
            "probed": probed,
            "sent": sent,
            "arrived": arrived,
            "arrived_bytes": np.rint(arrived * width).astype(np.int64),
            "results": results,
            "seconds": busy.sum(axis=0),
        }
        columns = {name: each.tolist() for name, each in counts.items()}
        return BatchCommitted(
            batch=self.batch,
            received=self.last,
            total=self.received,
            live=tuple(sum(b.rows for b in now.values() if b.stream == s) for s in streams),
            results=int(results.sum()),
            seconds={"modelled": float(busy.max(axis=1).sum())} if self.cluster else {},
            blocks=tuple(b for b in now.values() if before.get(b.id) != b),
            dropped=tuple(sorted(before.keys() - now.keys())),
            hosts=tuple(
                HostDid(
                    discarded=given_up.get(h, 0),
                    **{name: each[h] for name, each in columns.items()},
                )
                for h in range(hosts)
            ),
        )

    def _expected(self, plan: Plan, received: np.ndarray) -> Expected:
        """What the paths do, once every host does as much of it as it can; also the matches, for
        the next plan's facts.

        What one host leaves undone lightens those after it, hence several passes.
        """
        share = np.ones(len(received))
        journeys = Journeys(plan.routes, self.blocks, self.sigma, self.windows)
        for _ in range(_PASSES):
            expected = Expected(journeys, share)
            if not self.cluster:
                break
            busy = self._busy(received, expected).sum(axis=0)
            asked = busy / (self.seconds + self.patience - self.backlog)
            if np.all((asked < 1.05) & ((asked > 0.95) | (share == 1))):
                break
            share = np.clip(share / np.sqrt(np.maximum(asked, 1e-6)), 0.0, 1.0)
        if self.cluster:
            self.backlog = np.clip(self.backlog + busy - self.seconds, 0.0, self.patience)
        self.matches = matches(self.matches, expected.matches)
        return expected

    def _busy(self, received: np.ndarray, expected: Expected) -> np.ndarray:
        """Modelled seconds of CPU by hop and host; a batch takes as long as the busiest host of
        each hop, one after the other.
        """
        came = [received, *[np.zeros_like(received)] * (len(expected.stages) - 1)]
        return (
            np.array(
                [
                    self.costs.busy(Usage(n, *did), _REFERENCE)
                    for n, did in zip(came, expected.stages, strict=True)
                ]
            )
            * self.slowness
        )
