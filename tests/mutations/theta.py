"""Faults of the adaptive grid (Elseidy 2014)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from inspect import signature
from itertools import count
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from braid.core.facts import Facts
from braid.core.placement import Placement
from braid.core.plan import Block, Hop, Plan, Route
from braid.core.run_events import BatchCommitted
from braid.papers.baselines.hash_partition import HashPartition
from braid.papers.theta.grid import StaticGrid
from braid.papers.theta.host_groups import HostGroup, make_groups
from braid.papers.theta.mapping import MappingDecision, powers_of_two
from braid.papers.theta.migration import MigrationStart
from braid_lab.common.claims import Claim
from braid_lab.common.recorded_settings import record_values
from braid_lab.theta import claims as claims_of_theta
from braid_lab.theta import compared_operators as theta_experiments
from braid_lab.theta import dynamics as dynamics
from braid_lab.theta import figure_tables as tables
from braid_lab.theta import figures as figures
from braid_lab.theta import hash_claims as by_hash
from braid_lab.theta import scaling_claims as by_size
from braid_lab.theta.cluster_model import JOINER, OPERATORS, simulate_progress
from braid_lab.theta.join_inputs import QUERIES, JoinInput
from braid_lab.workloads.zipf_skew import zipf_probabilities

from mutations import Mutation, Tries, lazy_figures, run_in_process, unchecked

COUNTED = [
    "results",
    theta_experiments.MEAN,
    theta_experiments.MOST,
    theta_experiments.MOVED,
]
"""The columns of a contest."""


def run_claim(claim: Callable[..., Claim], f: claims_of_theta.ThetaFigures) -> Claim:
    """Test a claim with the tables that it takes, made now if no claim has read them yet."""
    return claim(*(getattr(f, name) for name in signature(claim).parameters))


def outgrown() -> Tries:
    """Return streams in which one outgrows the other."""
    return [
        lambda: claims_of_theta.CLAIMS.test_claims(
            **dynamics.simulated_figures(dynamics.simulate_worst_case())
        ),
        lambda: claims_of_theta.never_exceeded_claim(tables.ratio_runs((8,), 16, 8, fine=0.01)),
    ]


def swinging() -> Tries:
    """Return streams that outgrow each other in turns."""

    def moves() -> pd.DataFrame:
        events = dynamics.simulate_fluctuation(4.2, 3, start=(50, 50))
        return dynamics.simulated_figures(events)["moves"]

    return [lambda: dynamics.migration_cost_claim(moves())]


def exchanged() -> Tries:
    """Return a stream that outgrows the other, without the check that pairs meet."""

    def moves() -> pd.DataFrame:
        with unchecked():
            events = dynamics.simulate_fluctuation(4.2, 1, start=(95, 50))
        return dynamics.simulated_figures(events)["moves"]

    return [lambda: dynamics.exchange_claim(moves())]


def clustered() -> Tries:
    """Return Table 2 and Fig. 5 of a generated join of few suppliers with many lines on 16
    machines.

    Some lines are far more frequent than others.
    """
    lines = np.rint(3e6 * zipf_probabilities(1000, 1.5)).astype(np.int64)
    suppliers = np.arange(1000) % 5 == 0
    of = JoinInput(
        "EQ5", 200, int(lines.sum()), int(lines[suppliers].sum()), (suppliers * 1, lines)
    )
    level_lines = np.full(1000, lines.sum() // 1000)
    even = JoinInput("EQ5", 200, int(level_lines.sum()), 0, (suppliers * 1, level_lines))
    ran = dict(hosts=16, gb=4, memory_gb=2, batches=10, seeds=1, hash_seeds=0, suppliers=1000)
    ran |= JOINER.prices | {"tuple_bytes": JOINER.tuple_bytes, "scale": 1, "epsilon": 1.0}

    def came(name: str, skew: str) -> pd.DataFrame:
        return simulate_progress(name, of if skew == "Z4" else even, 4.0, 16, 10)

    def times() -> pd.DataFrame:
        rows = (
            {
                "query": query,
                "operator": name,
                "skew": skew,
                "seconds_modelled": came(name, skew).iloc[-1]["seconds_modelled"],
                "overflow": came(name, skew)["overflow"].any(),
            }
            for query in figures.TIMED
            for name in OPERATORS[1:3]
            for skew in ("Z0", "Z4")
        )
        return record_values(pd.DataFrame(rows), **ran)

    def runs() -> pd.DataFrame:
        fixed = dict(query="EQ5", skew="Z4", hosts=16, gb=1.0, seed=0)
        frames = [came(n, "Z4").assign(operator=n, **fixed) for n in OPERATORS[1:]]
        return record_values(pd.concat(frames), **ran)

    f = lazy_figures(
        claims_of_theta.ThetaFigures,
        times=times,
        runs=runs,
        mapping_runs=lambda: figures.mapping_curves_for(of, 16, 10, 1.0),
        fluctuation_runs=lambda: figures.fluctuation_progress((8,), 16, growth=8),
    )
    made = (
        claims_of_theta.square_check,
        claims_of_theta.linear_check,
        claims_of_theta.latency_check,
        claims_of_theta.mappings_check,
        claims_of_theta.mapping_times_check,
        claims_of_theta.amortised_check,
        claims_of_theta.progress_claim,
    )
    return [partial(run_claim, claim, f) for claim in made]


def grown() -> Tries:
    """Return Fig. 5i and 5j: more machines for proportionally more TPC-H data, in memory and out of
    core.
    """
    sizes = (16, 32, 64)
    f = lazy_figures(
        claims_of_theta.ThetaFigures,
        scaling_runs=lambda: figures.weak_scaling(sizes, 6, 0.02, JOINER),
        disk=lambda: tables.vary_disk(sizes, 6, 0.02),
    )
    made = (by_size.scaling_check, by_size.replicated_load_check, by_size.storage_claim)
    return [partial(run_claim, claim, f) for claim in made]


def performed() -> Tries:
    """Return Fig. 5a, 5b, 5d and 5e on 64 machines, without SHJ."""
    grids = ("StaticMid", "Dynamic", "StaticOpt")
    f = lazy_figures(
        claims_of_theta.ThetaFigures,
        runs=lambda: figures.progress_runs(QUERIES, "Z4", 64, 0.02, 1, 16, grids),
        result_ranges=lambda: tables.vary_result_seconds(0.02, 16, result_us=(0.3, 1.0)),
    )
    made = (
        claims_of_theta.growth_check,
        claims_of_theta.load_claim,
        claims_of_theta.oracle_check,
        claims_of_theta.throughput_check,
        claims_of_theta.result_bound_check,
    )
    return [partial(run_claim, claim, f) for claim in made]


def tabled() -> Tries:
    """Return the ends of Table 2."""
    f = lazy_figures(
        claims_of_theta.ThetaFigures, times=lambda: figures.table_2(0.02, 1, ("Z0", "Z4"), 6)
    )
    made = (by_hash.skewed_hash_check, claims_of_theta.square_check, claims_of_theta.overflow_check)
    return [partial(run_claim, claim, f) for claim in made]


def hashed() -> Tries:
    """Return Table 2 and Fig. 5a to 5e of EQ5, with all values of its key and with few."""
    f = lazy_figures(
        claims_of_theta.ThetaFigures,
        times=lambda: figures.table_2(0.02, 1, ("Z0", "Z4"), 6),
        runs=lambda: figures.progress_runs(("EQ5",), "Z4", 64, 0.02, 1, 6),
        hash_ranges=lambda: tables.vary_key_values(0.02, 6, (25, 50)),
    )
    made = (
        by_hash.uneven_check,
        by_hash.hash_growth_claim,
        by_hash.busiest_claim,
        by_hash.disk_claim,
    )
    return [partial(run_claim, claim, f) for claim in made]


def rivals() -> Tries:
    """Return the loads of the rivals as counted by runs: few suppliers, with skewed lines."""
    lines = np.rint(1e5 * zipf_probabilities(200, 1.5)).astype(np.int64)
    of = JoinInput("EQ5", 200, int(lines.sum()), int(lines.sum()), (np.ones(200, np.int64), lines))

    def contest() -> pd.DataFrame:
        runs = {
            theta_experiments.competitor_name(n, 1): simulate_progress(n, of, 1.0, 16, 12)
            for n in theta_experiments.RIVALS
        }
        rows = {
            k: (
                *run.iloc[-1][["results_modelled", "stored_mean", "stored_max"]],
                run["moved"].sum(),
            )
            for k, run in runs.items()
        }
        table = pd.DataFrame.from_dict(rows, orient="index", columns=COUNTED)
        more = {"tuples in": lines.sum(), "scale": 1.0}
        return table.assign(hosts=16, batches=12, epsilon=1.0, **more)

    return [lambda: claims_of_theta.CLAIMS.test_claims(contest=contest(), skews=[1.0], batches=12)]


def joined() -> Tries:
    """Return the rivals' results and loads: a few real tuples under each placement of four hosts,
    joined in this process. A fifth of S has one value.
    """

    def stream(rows: int, seed: int) -> pa.Table:
        draw = np.random.default_rng(seed)
        batch = np.sort(draw.integers(0, 4, rows)).astype(np.int32)
        keys = draw.choice(40, rows, p=zipf_probabilities(40, 1.0))
        return pa.table({"id": np.arange(rows), "k": keys, "batch": batch})

    def counts(kind: str) -> tuple[int, float, int, int]:
        streams = {"r": stream(40, 1), "s": stream(6000, 2)}
        placement = Placement.class_by_name(kind).from_settings({"hosts": 4})

        def count(run: Any) -> tuple[int, float, int, int]:
            commits = [e for e in run.events() if isinstance(e, BatchCommitted)]
            stored = [host.stored_tuples for host in commits[-1].host_metrics]
            moved = sum(e.total_host_metrics.migrated_tuples for e in commits)
            return int(run.results().num_rows), sum(stored) / len(stored), max(stored), moved

        return run_in_process(count, streams, "r.k = s.k", placement)

    @cache
    def contest() -> pd.DataFrame:
        rows = {
            theta_experiments.competitor_name(name, 1): counts(kind)
            for name, kind in theta_experiments.RIVALS.items()
        }
        table = pd.DataFrame.from_dict(rows, orient="index", columns=COUNTED)
        return table.assign(hosts=4, batches=4, epsilon=1.0, scale=1.0, **{"tuples in": 6040})

    return [
        lambda: theta_experiments.same_results_claim(contest(), 1.0),
        lambda: theta_experiments.skew_claim(contest(), 1.0),
    ]


def one_cell(probes: Any) -> Any:
    """Make a fresh block probe a single cell of its line."""

    def fault(self: Any, stream: int, part: int) -> Any:
        found, deferred = probes(self, stream, part)
        return dict(list(found.items())[:1]), deferred

    return fault


class Restless(MappingDecision):
    """A decision to change the mapping, whatever the sizes are."""

    def is_checkpoint_due(self) -> bool:
        return True

    def at_checkpoint(self, r: float, s: float) -> MappingDecision:
        n, m = self.mapping
        return replace(self, mapping=(n * 2, m // 2) if n <= m else (n // 2, m * 2))


def spread(plan_batch: Any) -> Any:
    """Return SHJ that gives a value of S to another host in each batch, and R to all of them."""

    def fault(self: HashPartition, facts: Facts, state: Any) -> Plan:
        every, ids = tuple(range(self.hosts)), count(facts.next_id)
        on_r = tuple(b.id for b in facts.blocks if b.stream == 0)
        on_s: dict[int, tuple[int, ...]] = {}
        for b in facts.blocks:
            if b.stream == 1:
                on_s[b.hosts[0]] = (*on_s.get(b.hosts[0], ()), b.id)
        whole = Block(next(ids), 0, (0, self.hosts), facts.batch, every)
        routes = [Route(whole, ((Hop(1, on_s),),) if on_s else ())]
        for h in every:
            at = (h + facts.batch) % self.hosts
            block = Block(next(ids), 1, (h, h + 1), facts.batch, (at,))
            routes.append(Route(block, ((Hop(0, {at: (*on_r, whole.id)}),),)))
        return Plan(tuple(routes), state=state)

    return fault


def late(times: float) -> Any:
    """Return a trigger that waits for a multiple of the growth."""
    return lambda due: lambda self: due(replace(self, epsilon=times * self.epsilon))


def scattered(placed: Any) -> Any:
    """Return a new grid with reversed hosts, so that everything moves."""

    def other(self: HostGroup, *step: Any) -> HostGroup:
        new: HostGroup = placed(self, *step)
        return replace(new, hosts=new.hosts[::-1])

    return other


def halved(begin: Any) -> Any:
    """Return a migration that leaves out every second copy."""

    def fault(*given: Any) -> MigrationStart:
        start: MigrationStart = begin(*given)
        copies = start.migration.pending_copies[::2]
        return replace(start, migration=replace(start.migration, pending_copies=copies))

    return fault


def column(groups: Any) -> Any:
    """Return a square grid that gives each host all tuples of S."""

    def fault(self: StaticGrid) -> list[HostGroup]:
        return make_groups(self.hosts, [(j, 1) for j in powers_of_two(self.hosts)])

    return fault


NEVER = "braid.papers.theta.mapping.MappingDecision.is_checkpoint_due"
SAME = "the output is complete"
RATIO = "ILF/ILF* stays within its bound"

MUTATIONS = [
    Mutation(
        "tuples that probe one cell of their line, in a join of a few thousand tuples",
        "braid.papers.theta.host_groups._Shelf.plan_home_group_probes",
        one_cell,
        joined,
        (SAME,),
    ),
    Mutation(
        "a grid that hashes the join value, in a join of a few thousand tuples",
        "braid.papers.theta.grid.AdaptiveGrid.routing_key_source",
        lambda source: "join",
        joined,
        ("Dynamic partitions data equally",),
    ),
    Mutation(
        "a trigger three times too late",
        NEVER,
        late(3),
        outgrown,
        (RATIO,),
    ),
    Mutation(
        "the grid never changes",
        NEVER,
        lambda due: lambda self: False,
        outgrown,
        (RATIO, "ILF/ILF* never exceeds 1.25"),
    ),
    Mutation(
        "the grid never changes, on the cluster",
        NEVER,
        lambda due: lambda self: False,
        clustered,
        ("StaticMid is slower than Dynamic", "the gap in input load", "the gap in time"),
        runs=("AdaptiveGrid",),
    ),
    Mutation(
        "the grid never changes, on 64 machines",
        NEVER,
        lambda due: lambda self: False,
        performed,
        (
            "StaticMid stores about",
            "Dynamic behaves roughly the same as StaticOpt: input load",
            "Dynamic has at least twice",
        ),
        runs=("AdaptiveGrid",),
    ),
    Mutation(
        "the grid turns the wrong way",
        "braid.papers.theta.mapping.input_load_factor",
        lambda ilf: lambda r, s, n, m: ilf(r, s, m, n),
        performed,
        ("MB a percent of the input: 14", "Dynamic has at least twice"),
    ),
    Mutation(
        "a square grid that is a column",
        "braid.papers.theta.grid.StaticGrid.host_groups",
        column,
        performed,
        ("the gap between StaticMid and Dynamic is not large",),
        runs=("StaticGrid",),
    ),
    Mutation(
        "migration waits for the end",
        "braid.papers.theta.migration.RATE",
        lambda rate: 0,
        clustered,
        ("adaptivity adds at most 20 ms",),
        runs=("AdaptiveGrid",),
    ),
    Mutation(
        "a hash that gives a value to another host in each batch",
        "braid.papers.baselines.hash_partition.HashPartition.plan_batch",
        spread,
        hashed,
        (
            "as data gets skewed, SHJ distributes",
            "MB a percent of the input: SHJ",
            "SHJ loads a machine with up to 13",
            "SHJ takes two orders",
        ),
        runs=("HashPartition",),
    ),
    Mutation(
        "a mapping that changes in every batch",
        "braid.papers.theta.controller.MappingDecision",
        lambda decision: Restless,
        clustered,
        (
            "under every k the time is linear",
            "input load and time of EQ5 are linear",
            "all migration costs are amortized",
        ),
        runs=("AdaptiveGrid",),
    ),
    Mutation(
        "migration moves everything",
        "braid.papers.theta.host_groups.HostGroup._with_host_cells",
        scattered,
        outgrown,
        ("a migration brings a host",),
    ),
    Mutation(
        "migration leaves out every second copy",
        "braid.papers.theta.controller.begin_migration",
        halved,
        exchanged,
        ("a migration brings a host",),
    ),
    Mutation(
        "migration moves everything, while streams swing",
        "braid.papers.theta.host_groups.HostGroup._with_host_cells",
        scattered,
        swinging,
        ("sending and receiving in a migration takes",),
    ),
    Mutation(
        "the grid never changes, on more machines",
        NEVER,
        lambda due: lambda self: False,
        grown,
        ("EQ5 and EQ7 take as long", "BNCI's input load grows", "out of core the same scaling"),
    ),
    Mutation(
        "the grid never changes, in Table 2",
        NEVER,
        lambda due: lambda self: False,
        tabled,
        (
            "StaticMid is slower than Dynamic",
            "on 16 machines EQ5 overflows",
            "at the greatest skew SHJ",
        ),
        runs=("AdaptiveGrid",),
    ),
    Mutation(
        "the grid never changes, beside its rivals",
        NEVER,
        lambda due: lambda self: False,
        rivals,
        (
            "Dynamic behaves roughly the same as StaticOpt: tuples stored",
            "StaticMid has a larger input load",
        ),
        runs=("AdaptiveGrid",),
    ),
]
