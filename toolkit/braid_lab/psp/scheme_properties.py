"""Fig. 14.1 and 15.1 of Wang 2008, counted on the policies themselves.

Fig. 14.1 is the state that a ring moves when it takes nodes in; Fig. 15.1 is a table in words that
compares ATR, CTR and PSP. Modelled: no tuple is joined.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import pandas as pd
from braid.core.batch_history import LiveBlocks
from braid.core.plan import Block, Route
from braid.core.run_events import BatchCommitted, BatchPlanned
from braid.papers.diffusion.coordinated import Coordinated
from braid.papers.diffusion.run_events import PathChosen
from braid.papers.psp.ring import Ring
from braid.papers.psp.run_events import SliceTableChanged, StateRelocated
from braid.papers.psp.slice_table import insertion_points
from braid.simulation.simulator import simulate

from braid_lab.psp import cost
from braid_lab.psp.experiments import RingSetting, steady_batches, with_fine_batches
from braid_lab.psp.scheme_comparison import (
    CTR_SEGMENT,
    PAIR,
    SHORT,
    competitors,
    record_schemes,
    sent_copies,
)

ROWS: Mapping[str, tuple[tuple[str, str, str], str]] = {
    "Routing Cost": (("Low", "High", "Low"), "set covers computed for a new block"),
    "Per Segment Metadata": (
        ("No", "Yes", "No"),
        "different sets of other hosts that one stream's blocks visit for another, the most",
    ),
    "Duplication Removal": (("No", "Yes", "No"), "second replicas left out for a new tuple"),
    "Load Balancing Granularity": (
        ("Large", "Small", "Small"),
        "pairs of a batch on its busiest host, in the mean of batches, %",
    ),
    "State Management Cost": (("High", "High", "Low"), "times that a tuple is inserted"),
    "Adaptation Cost": (
        ("Unknown", "Unknown", "Low"),
        "share of the state that is moved for one more node, %",
    ),
    "Network Transmission": (
        ("Low", "Middle", "High"),
        "copies of a tuple and of its intermediate results that are sent",
    ),
}
"""Fig. 15.1: by row, what it prints for ATR, CTR and PSP, and what is counted for it here."""

SCHEMES = ("ATR", "CTR", "PSP")
SETTING = RingSetting(sigma=0.05, seconds=40.0)
BEFORE_END = 12
"""Seconds before the end of a run, at which a ring takes a node in: a window and more."""


@dataclass(frozen=True)
class _Seen:
    """A run of one scheme after its first window.

    ``routes`` are its routes with the live blocks at that time; ``batches`` are its commits.
    """

    routes: list[tuple[Route, dict[int, Block]]]
    batches: list[BatchCommitted]
    paths: list[PathChosen]

    @classmethod
    def from_events(cls, events: Iterable[Any], setting: RingSetting) -> _Seen:
        live, routes, paths = LiveBlocks(), [], []
        events = list(events)
        batches = steady_batches(events, setting)
        for e in events:
            if isinstance(e, BatchPlanned) and e.batch >= batches[0].batch:
                routes += [(r, dict(live)) for r in e.routes if r.is_fresh]
            elif isinstance(e, BatchCommitted):
                live.apply_commit(e)
            elif isinstance(e, PathChosen) and e.batch >= batches[0].batch:
                paths.append(e)
        return cls(routes, batches, paths)

    @property
    def new_tuples(self) -> int:
        """Number of new tuples."""
        return sum(sum(b.received_tuples) for b in self.batches)

    def covers_per_block(self) -> float:
        """Return the set covers computed for one new block: one for each hop of each order."""
        lengths = [len(order.streams) for p in self.paths for order in p.join_orders]
        return sum(lengths) / sum(len(b.received_tuples) for b in self.batches)

    def count_visited_host_sets(self) -> int:
        """Return the number of different sets of hosts that a path visits.

        The hosts that store its block are not counted. It is one if the path is fixed, and none if
        a block meets everything on its own host.
        """
        visited = {
            (r.block.stream, hop.stream, frozenset(hop.blocks_by_host))
            for r, _ in self.routes
            for path in r.paths
            for hop in path
            if not set(hop.blocks_by_host) <= set(r.block.hosts)
        }
        ways = {(stream, to) for stream, to, _ in visited}
        return max((sum(v[:2] == way for v in visited) for way in ways), default=0)

    def unprobed_replicas_per_tuple(self) -> float:
        """Return the replicas, a new tuple, on hosts of a hop that are probed on another host."""
        new = self._count_rows_by_block()
        second = sum(
            new.get(r.block.id, 0) * live[id].rows
            for r, live in self.routes
            for path in r.paths
            for hop in path
            for host, ids in hop.blocks_by_host.items()
            for id in ids
            if id in live and set(live[id].hosts) & set(hop.blocks_by_host) - {host}
        )
        return second / self.new_tuples

    def busiest_host_percent(self) -> float:
        """Return the percentage of a batch's pairs that its busiest host compares."""
        compared = [[h.compared_pairs for h in b.host_metrics] for b in self.batches]
        return 100 * float(np.mean([max(each) / sum(each) for each in compared if sum(each)]))

    def inserts_per_tuple(self) -> float:
        """Return how often a tuple is inserted into the state of a host."""
        new = self._count_rows_by_block()
        held = sum(len(r.block.hosts) * new.get(r.block.id, 0) for r, _ in self.routes)
        moved = sum(b.total_host_metrics.migrated_tuples for b in self.batches)
        return (held + moved) / self.new_tuples

    def _count_rows_by_block(self) -> dict[int, int]:
        return {b.id: b.rows for e in self.batches for b in e.changed_blocks}


def scheme_properties(
    nodes: int = 8,
    setting: RingSetting = SETTING,
    seeds: Sequence[int] = (0,),
) -> pd.DataFrame:
    """Return all rows of Fig. 15.1, counted on the policies themselves.

    Columns: item, counts (what is counted), scheme, printed (the book's word), seed,
    number_modelled. ATR has T = W, CTR 2 copies, and PSP is PSP-D. For duplication removal, CTR
    stores as in Gu 2007, on all hosts of the first cover, because with a bound on copies covers
    have no redundant host; what it leaves out with 2 copies is recorded. Items that are unknown to
    the book are left out.
    """
    rows, bounded = [], []
    for seed in seeds:
        given = with_fine_batches(replace(setting, seed=seed), nodes)
        all_of = competitors(nodes, given)
        ways = {"ATR": all_of[SHORT], "CTR": all_of[PAIR], "PSP": all_of["PSP-D"]}
        seen = {
            k: _Seen.from_events(given.simulate_placement(placement), given)
            for k, placement in ways.items()
        }
        loose = _Seen.from_events(
            given.simulate_placement(Coordinated(nodes, CTR_SEGMENT, max_copies=None)), given
        )
        left_out = {k: s.unprobed_replicas_per_tuple() for k, s in seen.items()}
        bounded.append(left_out["CTR"])
        numbers: dict[str, dict[str, float]] = {
            "Routing Cost": {k: s.covers_per_block() for k, s in seen.items()},
            "Per Segment Metadata": {k: s.count_visited_host_sets() for k, s in seen.items()},
            "Duplication Removal": left_out | {"CTR": loose.unprobed_replicas_per_tuple()},
            "Load Balancing Granularity": {k: s.busiest_host_percent() for k, s in seen.items()},
            "State Management Cost": {k: s.inserts_per_tuple() for k, s in seen.items()},
            "Adaptation Cost": {"PSP": 100 * relocated_share(nodes, given, "passive")},
            "Network Transmission": {k: sent_copies(s.batches) for k, s in seen.items()},
        }
        for item, (printed, counts) in ROWS.items():
            for scheme, word in zip(SCHEMES, printed, strict=True):
                if scheme in numbers[item]:
                    rows.append((item, counts, scheme, word, seed, numbers[item][scheme]))
    names = ["item", "counts", "scheme", "printed", "seed", "number_modelled"]
    frame = pd.DataFrame(rows, columns=names)
    return record_schemes(frame, setting, nodes=nodes, bounded_left_out=bounded)


def relocated_share(
    nodes: int, setting: RingSetting, relocation: Literal["passive", "aggressive"]
) -> float:
    """Return the share of its state that a ring moves until the end of the run (14.2).

    It takes one more node in BEFORE_END seconds before.
    """
    given = setting.make_arrivals()
    when = given.micro_batch_count - round(BEFORE_END / setting.step)
    run = simulate(
        Ring(nodes, resize=((when, nodes + 1),), relocation=relocation),
        given.batch_counts(),
        windows=given.windows,
        seconds=setting.step,
        selectivity=setting.sigma,
    )
    after = [e for e in run if isinstance(e, BatchCommitted) and e.batch >= when]
    moved = sum(e.total_host_metrics.migrated_tuples for e in after)
    return moved / sum(after[0].live_tuples)


def relocation_table(
    grown: Sequence[tuple[int, int]] = ((3, 1), (3, 2), (2, 3), (4, 4), (5, 2)),
) -> pd.DataFrame:
    """Return Fig. 14.1, for rings of N nodes that take M more.

    Columns: nodes, added, place (1 is the head's), moved_modelled and equation_modelled: the state
    that the node of that place hands on, in new slices, the mean of both streams; and
    beyond_modelled: that which goes beyond the next old node. It is counted on rings whose window
    is N (N + M) batches, when the head's slice is full. ``equation_modelled`` is Eq. 14.1 and, for
    each new node that is inserted after the place, a whole slice.
    """
    rows = []
    for nodes, added in grown:
        batches = nodes * (nodes + added)
        ring = Ring(nodes, resize=((2 * batches, nodes + added),))
        counts = [(10, 10)] * (2 * batches + 1)
        run = simulate(ring, counts, windows=(batches,) * 2, seconds=1.0)
        moves = [m for e in run if isinstance(e, StateRelocated) for m in e.moves]
        tables = [e.nodes for e in run if isinstance(e, SliceTableChanged) and e.stream == 0]
        old = next(t for t in reversed(tables) if len(t) == nodes)
        new = next(t for t in tables if len(t) == nodes + added)
        places = insertion_points(nodes, added)
        for place, share in enumerate(cost.relocated_shares(nodes, added), 1):
            targets = [m.target for m in moves if m.source == old[place - 1]]
            beyond = sum(t not in _list_successors(new, old, old[place - 1]) for t in targets)
            equation = float(share) + places.count(place)
            blocks = nodes * len(counts[0])
            rows.append((nodes, added, place, len(targets) / blocks, equation, beyond / blocks))
    counted = ("moved", "equation", "beyond")
    names = ["nodes", "added", "place", *(f"{c}_modelled" for c in counted)]
    return pd.DataFrame(rows, columns=names)


def _list_successors(new: Sequence[int], old: Sequence[int], node: int) -> list[int]:
    """Return the nodes after one in the new ring, up to the next that was in the old one."""
    at = list(new).index(node) + 1
    after = [*new[at:], *new[:at]]
    return after[: next(k for k, n in enumerate(after, 1) if n in old)]
