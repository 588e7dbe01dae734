"""A placement run without tuples: the same policy, the same plans, the same events, in milliseconds.

Only numbers of tuples exist here, one for each routing key of each block, so cuts, merges and copies are exact. Nothing is
measured; the clock is modelled.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from toolkit.events import BatchCommitted, RunEnded, RunStarted
from toolkit.plan import Block, CoverError, CoverLedger, Facts, Placement, Plan, after
from toolkit.report import planned
from toolkit.upkeep import upkeep


def simulate(
    placement: Placement,
    batches: Iterable[Sequence[int]],
    seed: int = 0,
    tuple_bytes: Sequence[int] = (),
    streams: Sequence[str] = (),
) -> list[Any]:
    """The events of a run in full history, without windows.

    Parameters
    ----------
    placement
        The policy.
    batches
        For each micro-batch the number of new tuples of every stream. Empty batches follow while a migration runs.
    seed
        Of the generator that draws the tuples' routing keys, uniform over ``placement.keys``.
    tuple_bytes
        The size of a tuple of every stream in bytes; by default 1.
    streams
        Names of the streams; by default r, s, t, ...

    Every plan is held against the cover rule: raises CoverError when one breaks it or when results stay owed. Raises
    ValueError when the placement cannot serve that many streams. Events count as the engine does; ``host_compared`` counts
    the pairs of tuples that meet, ``results`` and ``seconds`` stay empty.
    """
    counts = [tuple(batch) for batch in batches]
    width = len(counts[0]) if counts else 2
    names = tuple(streams) or tuple("rstuvwxyz"[:width])
    sizes = tuple(tuple_bytes) or (1,) * width
    if any(len(batch) != width for batch in counts) or len(names) != width or len(sizes) != width:
        raise ValueError(f"each batch, streams and tuple_bytes must have one entry per stream; the first batch has {width}")
    model = _Model(placement, names, sizes, np.random.default_rng(seed))
    happened = [e for batch in counts for e in model.run(batch)]
    owes = getattr(placement, "owes", lambda state: False)
    while owes(model.state):
        happened += model.run((0,) * width)
    if model.ledger.owed:
        raise CoverError(f"{len(model.ledger.owed)} pairs of blocks are still owed after the last batch")
    settings = json.loads(json.dumps(asdict(placement)))  # type: ignore[call-overload]
    start = RunStarted(
        names, "", {}, type(placement).__name__, settings, placement.hosts, placement.keys, model.batch, clock="modelled"
    )
    return [start, *happened, RunEnded(model.batch - 1, "completed")]


class _Model:
    """The state of a simulated run. ``tuples`` maps a block to its number of tuples by key."""

    def __init__(self, placement: Placement, names: tuple[str, ...], sizes: tuple[int, ...], draw: np.random.Generator):
        self.placement, self.names, self.sizes, self.draw = placement, names, sizes, draw
        self.state = placement.start(len(names))
        self.ledger = CoverLedger(len(names), placement.keying)
        self.batch = self.next_id = 0
        self.blocks: dict[int, Block] = {}
        self.tuples: dict[int, np.ndarray] = {}
        self.pinned: frozenset[int] = frozenset()
        self.received = self.last = (0,) * len(names)

    def run(self, counts: Sequence[int]) -> list[Any]:
        """One batch: its events."""
        before, plan = self.blocks, self._plan()
        self._derive(plan)
        fresh = self._fresh(plan, counts)
        rows = {id: int(n.sum()) for id, n in self.tuples.items()}
        live = [*after(before.values(), plan), *fresh]
        live = [replace(b, rows=rows[b.id], bytes=rows[b.id] * self.sizes[b.stream]) for b in live if rows[b.id]]
        self.blocks = {b.id: b for b in live}
        self.tuples = {id: self.tuples[id] for id in self.blocks}
        self.ledger.owed = {(a, b) for a, b in self.ledger.owed if a in self.blocks and b in self.blocks}
        self.next_id = max([self.next_id - 1, *rows]) + 1
        self.state, self.pinned, self.last = plan.state, plan.pinned, tuple(counts)
        self.received = tuple(a + b for a, b in zip(self.received, counts, strict=True))
        committed = self._committed(before, plan, rows)
        self.batch += 1
        return [planned(committed.batch, plan), *plan.events, committed]

    def _plan(self) -> Plan:
        """Upkeep and the placement's plan as one."""
        blocks, none = tuple(self.blocks.values()), (None,) * len(self.names)
        kept = upkeep(blocks, self.next_id, self.pinned, none, none)
        size = tuple(n * size for n, size in zip(self.received, self.sizes, strict=True))
        next_id = self.next_id + len(kept.derivations)
        facts = Facts(self.batch, self.names, after(blocks, kept), next_id, self.received, size, self.last)
        plan = self.placement.plan(facts, json.loads(json.dumps(self.state)))
        drops = dict(kept.drops)
        for id, hosts in plan.drops.items():
            drops[id] = tuple(sorted({*drops.get(id, ()), *hosts}))
        whole = replace(plan, derivations=kept.derivations + plan.derivations, drops=drops)
        self.ledger.check(blocks, whole)
        return whole

    def _derive(self, plan: Plan) -> None:
        for d in plan.derivations:
            lo, hi = d.block.keys
            tuples = np.sum([self.tuples[source] for source in d.sources], axis=0)
            tuples[:lo] = tuples[hi:] = 0
            self.tuples[d.block.id] = tuples

    def _fresh(self, plan: Plan, counts: Sequence[int]) -> list[Block]:
        keys = self.placement.keys
        drawn = [self.draw.multinomial(n, np.full(keys, 1 / keys)) for n in counts]
        fresh = [route.block for route in plan.routes if route.fresh]
        for b in fresh:
            tuples = np.zeros(keys, dtype=np.int64)
            tuples[slice(*b.keys)] = drawn[b.stream][slice(*b.keys)]
            self.tuples[b.id] = tuples
        return fresh

    def _committed(self, before: dict[int, Block], plan: Plan, rows: dict[int, int]) -> BatchCommitted:
        now, streams = self.blocks, range(len(self.names))
        copies = [(d.block, dst) for d in plan.derivations for dst, src in d.reads.items() if dst != src]
        fresh = {r.block.id: r.block for r in plan.routes if r.fresh}
        hosts = 1 + max([self.placement.hosts - 1, *(h for b in (*before.values(), *now.values()) for h in b.hosts)])

        def by_host(pairs: Iterable[tuple[Block, int]]) -> np.ndarray:
            tuples = np.zeros((2, hosts), dtype=np.int64)
            for b, h in pairs:
                tuples[:, h] += (rows[b.id], rows[b.id] * self.sizes[b.stream])
            return tuples

        received = by_host((r.block, h) for r in plan.routes if r.fresh for h in r.hosts())
        moved = by_host(copies)
        had = by_host((b, h) for b in before.values() for h in b.hosts)
        stored = by_host((b, h) for b in now.values() for h in b.hosts)
        added = by_host((b, h) for b in fresh.values() for h in b.hosts)
        compared = np.zeros(hosts, dtype=np.int64)
        for r in plan.routes:
            for hop in (hop for path in r.paths for hop in path):
                for h, ids in hop.probes.items():
                    compared[h] += rows[r.block.id] * sum(rows[b] for b in ids)
        none = [0] * hosts
        return BatchCommitted(
            batch=self.batch,
            received=list(self.last),
            total=list(self.received),
            live=[sum(b.rows for b in now.values() if b.stream == s) for s in streams],
            results=0,
            seconds={},
            blocks=[
                [b.id, b.stream, list(b.keys), b.batch, list(b.hosts), b.rows, b.bytes]
                for b in now.values() if before.get(b.id) != b
            ],
            dropped=sorted(before.keys() - now.keys()),
            host_received=received[0].tolist(),
            host_received_bytes=received[1].tolist(),
            host_stored=stored[0].tolist(),
            host_stored_bytes=stored[1].tolist(),
            host_moved=moved[0].tolist(),
            host_moved_bytes=moved[1].tolist(),
            host_discarded=(had + added + moved - stored)[0].tolist(),
            host_compared=compared.tolist(),
            host_results=none,
            host_seconds=[0.0] * hosts,
        )  # fmt: skip
