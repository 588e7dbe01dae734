"""Faults of the PSP ring, of its rivals ATR and CTR, and of its cost model (Wang 2008, Part II)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from functools import partial
from typing import Any
from unittest.mock import patch

from braid.core.placement import Placement
from braid.core.plan import Route
from braid.papers.psp.slice_table import SliceTable
from braid_lab.common.claims import Claim
from braid_lab.common.result_cache import CachedOutcome
from braid_lab.psp import adaptation
from braid_lab.psp import claims as closed
from braid_lab.psp import contest_claims as contests
from braid_lab.psp import experiments as psp_experiments
from braid_lab.psp import rival_claims as paper
from braid_lab.psp import scheme_comparison as psp_rivals
from braid_lab.psp import scheme_properties as psp_comparison
from msgspec import structs

from mutations import Mutation, Tries, cached_run, lazy_figures, run_in_process, unchecked

QUICK = psp_experiments.RingSetting(seconds=14.0)


def made(scheme: str, nodes: int, setting: psp_experiments.RingSetting) -> CachedOutcome:
    """Return the outcome of a scheme."""
    run = psp_rivals.competitors(nodes, setting)[scheme], setting
    return cached_run(run, lambda: psp_rivals.run_scheme(scheme, nodes, setting))


def rivals(
    claims: Collection[Callable[[contests.Contest], Claim]],
    nodes: tuple[int, ...] = (4, 12),
    schemes: Collection[str] = (),
) -> Tries:
    """Return claims about rings, ATR and CTR, or some schemes of them, on ``nodes`` nodes.

    Without ``claims``, all that there are are returned.
    """
    offered = psp_rivals.competitors

    def chosen(nodes: int, setting: psp_experiments.RingSetting) -> dict[str, Placement]:
        return {n: p for n, p in offered(nodes, setting).items() if not schemes or n in schemes}

    def runs() -> Any:
        with patch.object(psp_rivals, "competitors", chosen):
            return psp_rivals.compare_schemes(nodes, setting=QUICK, source=made)

    r = lazy_figures(contests.Contest, runs=runs)
    return [partial(claim, r) for claim in claims] or [lambda: contests.CLAIMS.test_claims(r)]


def contest() -> Tries:
    """Return claims about all schemes."""
    return rivals(())


def rings() -> Tries:
    """Return claims about rings alone."""
    claims = (contests.balanced_work_claim, contests.late_purge_claim)
    return rivals(claims, schemes=psp_rivals.RINGS)


def prices() -> Tries:
    """Return the parts of a node's work."""
    return rivals((contests.probing_claim,), schemes=psp_rivals.RINGS)


def copies() -> Tries:
    """Return claims about CTR alone."""
    claims = (contests.ctr_state_claim, contests.ctr_response_claim, contests.ctr_copies_claim)
    return rivals(claims, schemes=(psp_rivals.PAIR, psp_rivals.HALF))


def table() -> Tries:
    """Return Fig. 15.1 row by row."""
    few, run = (
        replace(QUICK, sigma=0.05, seconds=20.0),
        psp_experiments.RingSetting.simulate_placement,
    )

    def ran(
        self: psp_experiments.RingSetting, placement: Placement, factor: float = 1.0
    ) -> list[Any]:
        return cached_run((placement, self, factor), lambda: run(self, placement, factor))

    def rows() -> list[Claim]:
        with patch.object(psp_experiments.RingSetting, "simulate_placement", ran):
            return paper.CLAIMS.test_claims(rows=psp_comparison.scheme_properties(8, few))

    return [rows]


def moved() -> Tries:
    """Return Fig. 14.1."""
    return [lambda: paper.relocated_state_claim(psp_comparison.relocation_table())]


def together() -> Tries:
    """Return PSP-I with many tuples at once."""
    few = replace(QUICK, sigma=0.05, window=5.0, seconds=6.5)
    return [
        lambda: paper.more_at_once_claim(
            psp_rivals.concurrency_table((4, 8), (15, 30), setting=few)
        )
    ]


def as_many() -> Tries:
    """Return PSP-I with as many tuples at once as nodes."""
    few = replace(QUICK, sigma=0.05, seconds=11.0)
    return [
        lambda: paper.concurrency_claim(psp_rivals.concurrency_table((8, 16), (0,), setting=few))
    ]


def replicas() -> Tries:
    """Return the state of ATR."""
    return [lambda: paper.atr_state_growth_claim(psp_rivals.replica_table((4, 8)))]


def counted() -> Tries:
    """Return Fig. 16.1: counts against Eq. 13.1."""

    def parts() -> Claim:
        few = replace(QUICK, seconds=20.0)
        return closed.equation_claim(psp_experiments.cost_breakdown(setting=few).assign(streams=3))

    return [parts]


def ringed() -> Tries:
    """Return Fig. 16.2 of rings of some lengths."""

    def claims() -> list[Claim]:
        short = psp_experiments.RingSetting(seconds=11.0, step=0.1)
        work = psp_experiments.count_ring_work((1, 6, 14, 16, 40), setting=short)
        every = closed.interior_claim, closed.fourteen_nodes_claim
        return [claim(work) for claim in every]

    return [claims]


def ringed_unchecked() -> Tries:
    """Return Fig. 16.2 of runs whose plans are not checked."""

    def claim() -> Claim:
        short = psp_experiments.RingSetting(seconds=11.0, step=0.1)
        with unchecked():
            work = psp_experiments.count_ring_work((4, 8), setting=short)
        return closed.response_growth_claim(work)

    return [claim]


def equations() -> Tries:
    """Return Theorem 9."""

    def claim() -> Claim:
        times = psp_experiments.response_times(
            range(1, 240), (0.5,), hops=psp_experiments.HOPS[:2], sends=psp_experiments.SENDS
        )
        return closed.theorem_9_claim(times)

    return [claim]


def grown() -> Tries:
    """Return Fig. 16.6."""
    return [
        lambda: closed.adaptation_claim(
            adaptation.adaptation_curves("16.6", 40.0, prices=(0.05,)), "16.6", "16.6"
        )
    ]


def stored() -> Tries:
    """Return a small ring that grows, in this process instead of on Spark."""
    launched = {"rates": "8", "windows": "3", "streams": 3, "sigma": 0.05, "nodes": 3, "resize": 4}
    launched["form"] = "dynamic"
    arrivals, ring = psp_experiments.run_from_controls(**launched, seconds=8.0)  # type: ignore[arg-type]

    def measured() -> list[Any]:
        tables, spans = arrivals.make_tables(), arrivals.window_texts()
        return run_in_process(
            lambda run: list(run.events()), tables, arrivals.condition, ring, spans
        )

    return [lambda: closed.one_copy_on_spark_claim(measured(), launched)]


def unsent(work: Any) -> Any:
    """Return a cost in which nothing is sent."""
    return lambda load, lengths: work(replace(load, hop=1e-9), lengths)


def replaced(**settings: Any) -> Any:
    """Return a placement that replaces the given settings by others."""

    def fault(made: Any) -> Any:
        def checked(self: Any) -> None:
            for name, value in settings.items():
                object.__setattr__(self, name, value)
            made(self)

        return checked

    return fault


def undelayed(move: Any) -> Any:
    """Drop state in transit at once."""
    return lambda self, stream, moves, reason, is_delayed: move(self, stream, moves, reason, False)


def delayed(move: Any) -> Any:
    """Keep state that has moved."""
    return lambda self, stream, moves, reason, is_delayed: move(self, stream, moves, reason, True)


def of_one_node(make: Any) -> Any:
    """Return rings of the head alone, whatever their length."""

    def fault(self: Any, streams: int) -> Any:
        return replace(make(self, streams), slices=(SliceTable((0,), (None,)),) * streams)

    return fault


def _store_on(route: Route, more: Iterable[int]) -> Route:
    hosts = tuple(dict.fromkeys((*route.block.hosts, *more)))
    return structs.replace(route, block=structs.replace(route.block, hosts=hosts))


def replicated(make: Any) -> Any:
    """Return routes of blocks that are stored on half of the nodes too."""

    def fault(self: Any) -> Any:
        half = range(self.ring.hosts // 2)
        return tuple(_store_on(r, half) for r in make(self))

    return fault


def of_one_hop(make: Any) -> Any:
    """Return routes that end with the first ring that they visit."""
    return lambda self: tuple(
        structs.replace(r, paths=tuple(path[:1] for path in r.paths)) for r in make(self)
    )


SHARED = "With evenly sliced state the nodes do about the same work"
INTERIOR = "More nodes help up to a point"

MUTATIONS = [
    Mutation(
        "a ring that grows keeps what it has moved, in this process",
        "braid.papers.psp.ring._Planner._relocate_blocks",
        delayed,
        stored,
        ("PSP has no duplicated state at any time",),
        runs=(),
    ),
    Mutation(
        "rings of one node, whatever their length, beside ATR and CTR",
        "braid.papers.psp.ring.Ring.initial_state",
        of_one_node,
        contest,
        (
            SHARED,
            "The processing latency using PSP is the lowest",
            "With its best length PSP is ahead of CTR",
            "With its best length PSP is ahead of ATR",
        ),
        runs=("Ring",),
    ),
    Mutation(
        "rings that store a tuple on half of their nodes",
        "braid.papers.psp.ring._Planner._make_routes",
        replicated,
        contest,
        ("State of PSP is flat in N", "ATR and CTR store tuples more than once"),
        runs=("Ring",),
    ),
    Mutation(
        "segments of ATR that last a batch",
        "braid.papers.diffusion.aligned.Aligned.__post_init__",
        replaced(segment_batches=1),
        contest,
        ("Response time of ATR does not fall",),
        runs=(),
    ),
    Mutation(
        "segments of CTR that never end",
        "braid.papers.diffusion.coordinated.Coordinated.__post_init__",
        replaced(segment_batches=1000),
        table,
        ("Routing Cost",),
        runs=(),
    ),
    Mutation(
        "rings whose state moves at once",
        "braid.papers.psp.ring.Ring.__post_init__",
        replaced(relocation="aggressive"),
        table,
        ("Adaptation Cost",),
        runs=(),
    ),
    Mutation(
        "nothing ages from node to node, with as many tuples as nodes",
        "braid.papers.psp.ring.plan_purges",
        lambda aged: lambda slices, state: (slices, []),
        as_many,
        ("More nodes process more tuples at once",),
    ),
    Mutation(
        "pairs that cost next to nothing",
        "braid_lab.psp.simulated_hosts.wang_cost_parameters",
        lambda costs: lambda k: replace(costs(k), compare_us=costs(k).compare_us / 1000),
        prices,
        ("The dominant CPU cost of the busiest node",),
    ),
    Mutation(
        "no intermediate result goes round a second ring",
        "braid.papers.psp.ring._Planner._make_routes",
        of_one_hop,
        ringed_unchecked,
        ("Response time grows with the selectivity",),
    ),
    Mutation(
        "blocks are merged across the ends of a ring's slices",
        "braid.papers.psp.ring.Ring.merge_boundaries",
        lambda slices: lambda self, state: (),
        rings,
        (SHARED,),
    ),
    Mutation(
        "a static ring: the head never moves",
        "braid.papers.psp.ring.rotate_head",
        lambda turned: lambda slices, state: slices,
        rings,
        (SHARED,),
    ),
    Mutation(
        "a static ring, beside ATR and CTR",
        "braid.papers.psp.ring.rotate_head",
        lambda turned: lambda slices, state: slices,
        table,
        ("Load Balancing Granularity", "Network Transmission"),
        runs=("Ring",),
    ),
    Mutation(
        "nothing ages from node to node",
        "braid.papers.psp.ring.plan_purges",
        lambda aged: lambda slices, state: (slices, []),
        rings,
        (SHARED, "PSP-I holds more state"),
    ),
    Mutation(
        "PSP-I purges at once",
        "braid.papers.psp.ring._Planner._relocate_blocks",
        undelayed,
        together,
        ("Interleaved processing induces duplicated states",),
    ),
    Mutation(
        "rings of one node, beside Eq. 13.1",
        "braid.papers.psp.ring.Ring.initial_state",
        of_one_node,
        counted,
        ("Counted pairs and sends",),
    ),
    Mutation(
        "CTR with one copy",
        "braid.papers.diffusion.coordinated.Coordinated.__post_init__",
        replaced(max_copies=1),
        contest,
        (
            "ATR and CTR store tuples more than once",
            "State of CTR is flat in N",
            "With its best length PSP is ahead of CTR",
        ),
        runs=(),
    ),
    Mutation(
        "CTR with a copy on every host",
        "braid.papers.diffusion.coordinated.Coordinated.__post_init__",
        lambda made: (
            lambda self: (object.__setattr__(self, "max_copies", self.hosts), made(self))[1]
        ),
        copies,
        (
            "State of CTR is flat in N",
            "Response time of CTR with 2 copies falls",
            "More copies mean a longer response time",
        ),
        runs=(),
    ),
    Mutation(
        "CTR with one copy, in the table",
        "braid.papers.diffusion.coordinated.Coordinated.__post_init__",
        replaced(max_copies=1),
        table,
        ("State Management Cost", "Per Segment Metadata", "Duplication Removal"),
    ),
    Mutation(
        "all segments of ATR go to one host",
        "braid.papers.common.load_balance.LoadBalance.least_loaded_host",
        lambda lightest: lambda self, *given, **more: 0,
        replicas,
        ("State of ATR grows in proportion to N",),
    ),
    Mutation(
        "new nodes go in after the tail",
        "braid.papers.psp.slice_table.insertion_points",
        lambda insertions: lambda nodes, added: (nodes,) * added,
        moved,
        ("Aggressive relocation moves what Eq. 14.1 says",),
    ),
    Mutation(
        "the ring takes no node in",
        "braid.papers.psp.ring._Planner._choose_node_count",
        lambda want: lambda self, nodes, *rest: (want(self, nodes, *rest)[0], nodes),
        grown,
        ("Adaptation makes the ring more stable",),
    ),
    Mutation(
        "hops cost nothing",
        "braid_lab.psp.cost.mean_latency_seconds",
        unsent,
        equations,
        ("The latency of Eq. 13.5 is least",),
    ),
    Mutation(
        "rings of one node, whatever their length",
        "braid.papers.psp.ring.Ring.initial_state",
        of_one_node,
        ringed,
        (INTERIOR, "14 nodes are best"),
    ),
]
