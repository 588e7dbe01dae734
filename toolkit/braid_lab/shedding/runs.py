"""Runs that shed load: modelled, and measured on Spark.

Models use the workload's density of matches, with the same policy and batch step as on Spark.
Source: Gedik 2007, section 6.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from braid.core import batch_step
from braid.core.batch_report import BatchReport, BlockSize, HostMetrics
from braid.core.batch_work import BatchWork, RunRules
from braid.core.horizon import reach_of_windows
from braid.core.plan import Block
from braid.core.run_events import BatchCommitted, RunEnded, RunStarted
from braid.core.run_state import RunState
from braid.core.shedding_plan import ItemYield, SheddingOutcome
from braid.papers.baselines.centralized import Centralized
from braid.papers.shedding.run_events import SheddingPlanned
from braid.papers.shedding.shed import Shed
from msgspec import structs

from braid_lab.common.claims import ClaimRegistry, Finding, judge
from braid_lab.common.run_folders import new_run_folder
from braid_lab.workloads.set_streams import SetStreams

if TYPE_CHECKING:
    from braid.join_run import JoinRun

BURST = 3.0
"""Factor of the number of tuples in the middle of a run."""

CLAIMS = ClaimRegistry(
    "Gedik 2007",
    {
        "": "{method} processing on Spark; {rates} tuples/s, W = {window} s, κ = {kappa}, r = "
        "{fraction}; {batches} batches"
    },
)


def sets_from_controls(
    kappa: float = 0.8,
    theta: int = 3,
    window: float = 10.0,
    shift: float = 5 / 8,
    rate: float = 100.0,
    seconds: float = 30.0,
    burst: float = BURST,
    dear: float = 0.0,
    **_: Any,
) -> SetStreams:
    """Return streams with a burst in the middle third."""
    low, high = (rate, rate), (burst * rate,) * 2
    changes = ((round(seconds / 3), high), (round(2 * seconds / 3), low))
    return SetStreams(
        low,
        seconds,
        window=window,
        kappa=kappa,
        theta=theta,
        shift=shift,
        dear=dear,
        changes=changes,
    )


def make_shedder(
    method: str = "selective",
    budget: str = "fraction",
    fraction: float = 0.25,
    allowed: float = 1.0,
    sample: float = 0.3,
    dear: float = 0.0,
    **_: Any,
) -> Shed:
    """Return the shedder of a panel's settings.

    If some tuples are valuable, it knows the worth of each.
    """
    amount = {"seconds": allowed} if budget == "seconds" else {"fraction": fraction}
    utility = {alias: f"{alias}.worth" for alias in "nm"} if dear else {}
    return Shed(**amount, method=method, sample=sample, utility=utility)  # type: ignore[arg-type]


def simulate_shedding(
    sets: SetStreams, shed: Shed, cost: float = 5e-6, overhead: float = 0.2
) -> list[Any]:
    """Return the events of a modelled run.

    Tuples are those of the workload, matches their expected number. A pair takes ``cost`` seconds
    and a batch ``overhead`` seconds besides.
    """
    micros = round(sets.window * 1e6)
    rules = RunRules(Centralized(), ("n", "m"), reach_of_windows((micros, micros)), shedder=shed)
    state = RunState.initial(2, None, (), shed.initial_state(2))
    counts = sets.make_arrivals.batch_counts()
    spans = dict.fromkeys("nm", f"{sets.window:g} seconds")
    start = RunStarted(
        ("n", "m"),
        sets.condition,
        spans,
        "Centralized",
        {},
        1,
        1,
        len(counts),
        time_source="modelled",
    )
    happened: list[Any] = [start]
    densities = (sets.match_density(0), sets.match_density(1))
    dear = sets.dear if shed.utility else None
    for number, received in enumerate(counts):
        work = batch_step.plan_batch(rules, state)
        begins = round(number * sets.step * 1e6)
        span = (begins, begins + round(sets.step * 1e6) - 1)
        outcome = _simulate_outcome(work, received, span, densities, micros, cost, overhead, dear)
        took = outcome.shedding.seconds if outcome.shedding else None
        state, (*events, committed) = batch_step.commit_batch(rules, state, work, outcome)
        assert isinstance(committed, BatchCommitted)
        happened += [*events, replace(committed, seconds_by_phase={"modelled": took or 0.0})]
    return [*happened, RunEnded(len(counts) - 1, "completed")]


def _simulate_outcome(
    work: BatchWork,
    arrivals: tuple[int, ...],
    span: tuple[int, int],
    densities: tuple[Any, ...],
    window: int,
    cost: float,
    overhead: float,
    dear: float | None,
) -> BatchReport:
    """Return the modelled report of a batch.

    ``dear`` is the share of tuples that are worth ten times as much; None: all are worth the same.
    """
    blocks = {b.id: b for b in work.live_blocks}
    sizes = {
        d.block.id: BlockSize(d.block.rows, d.block.rows, d.block.event_time_range or span)
        for d in work.combined_plan.derivations
    }
    fresh = {r.block.id: r.block for r in work.plan.routes if r.is_fresh}
    harvest = work.plan.shedding
    assert harvest is not None
    for b in fresh.values():
        rows = round(
            arrivals[b.stream] * (harvest.keep_shares[b.stream] if harvest.keep_shares else 1.0)
        )
        blocks[b.id] = structs.replace(b, rows=rows, event_time_range=span)
        if rows:
            sizes[b.id] = BlockSize(rows, rows, span)
    yields: dict[tuple[int, int, int], list[ItemYield]] = {}
    estimated = variance = worth = 0.0
    kept_share = prod(harvest.keep_shares)
    for route in work.plan.routes:
        stored_block = blocks[route.block.id]
        kinds = _list_type_worth(harvest.types[stored_block.stream] if harvest.types else (), dear)
        expected = harvest.expected_tuples.get(stored_block.id, 0.0)
        guard = min(1.0, expected / max(1, stored_block.rows)) if expected else 1.0
        for met in (blocks[b] for path in route.paths for b in path[0].probed_blocks()):
            item = (stored_block.stream, met.stream, harvest.basic_windows[met.id])
            shares = [share * guard for share in harvest.shares[item]]
            pairs = [stored_block.rows * met.rows * part for part, _ in kinds]
            likely = _estimate_match_probability(stored_block, met, densities[met.stream], window)
            matches = [n * likely for n in pairs]
            met_ = [n * share for n, share in zip(pairs, shares, strict=True)]
            matches_by_age = [n * likely for n in met_]
            value = [n * each for n, (_, each) in zip(matches_by_age, kinds, strict=True)]
            left = sum(pairs) - sum(met_)
            one = ItemYield(*item, tuple(met_), tuple(matches_by_age), tuple(value), left)
            yields.setdefault(item, []).append(one)
            chances = [share * kept_share for share in shares]
            estimated += sum(matches) / kept_share
            worth += sum(n * each for n, (_, each) in zip(matches, kinds, strict=True)) / kept_share
            variance += sum(
                n / kept_share * (1 / c - 1) for n, c in zip(matches, chances, strict=True)
            )
    item_yields = tuple(ItemYield.sum_yields(yields[item]) for item in sorted(yields))
    results = sum(sum(y.matches) for y in item_yields)
    considered = sum(sum(y.considered_pairs) for y in item_yields)
    probing = cost * considered
    harvested = SheddingOutcome(
        item_yields,
        _count_types(blocks, fresh, dear),
        estimated,
        variance,
        sum(sum(y.value) for y in item_yields),
        worth,
        probing,
        overhead + probing,
    )
    metrics = HostMetrics(
        received_tuples=sum(b.rows for b in fresh.values()),
        compared_pairs=round(considered),
        skipped_pairs=round(sum(y.skipped_pairs for y in item_yields)),
        results=round(results),
        seconds=probing,
    )
    return BatchReport(sizes, hosts={0: metrics}, shedding=harvested)


_CHEAP, _DEAR = 0, 23
"""The codes of types worth 1 and 10; see ``core.shedding_plan``."""


def _list_type_worth(types: Sequence[int], dear: float | None) -> list[tuple[float, float]]:
    """Return, for each type of a harvest, its share of the tuples and the worth of a match.

    A match is worth its more valuable member.
    """
    if dear is None:
        return [(1.0, 1.0)]
    cheap = (1 - dear) + 10 * dear
    worth = {_CHEAP: (1 - dear, cheap), _DEAR: (dear, 10.0)}
    mean = (1 - dear) * cheap + dear * 10
    return [worth[code] for code in types] if len(types) > 1 else [(1.0, mean)]


def _count_types(
    blocks: Mapping[int, Block], fresh: Mapping[int, Block], dear: float | None
) -> tuple[dict[int, int], ...]:
    """Return, by stream, the number of arrived tuples of each type."""
    if dear is None:
        return ()
    counts: tuple[dict[int, int], ...] = ({}, {})
    for id, b in fresh.items():
        many = round(dear * blocks[id].rows)
        for code, n in ((_CHEAP, blocks[id].rows - many), (_DEAR, many)):
            if n:
                counts[b.stream][code] = counts[b.stream].get(code, 0) + n
    return counts


def _estimate_match_probability(fresh: Block, met: Block, f: Any, window: int) -> float:
    """Return the probability that a tuple of a fresh block matches one of another.

    It depends on the age of the other block's middle.
    """
    assert fresh.event_time_range is not None and met.event_time_range is not None
    age = (sum(fresh.event_time_range) - sum(met.event_time_range)) / 2
    if age >= window:
        return 0.0
    return float(np.interp(max(0.0, age) / window, np.linspace(0, 1, len(f)), f))


def count_full_join(sets: SetStreams) -> int:
    """Return the number of results of the full join, by brute force."""
    n, m = sets.make_tables().values()
    times, held = [], []
    for table in (n, m):
        items = table["items"].to_pylist()
        matrix = np.zeros((len(items), sets.items + 1), np.float32)
        matrix[np.repeat(np.arange(len(items)), list(map(len, items))), np.concatenate(items)] = 1
        held.append(matrix)
        times.append(table["ts"].to_numpy().astype("datetime64[us]").astype(np.int64))
    time_gaps = np.abs(times[0][:, None] - times[1][None])
    return int(
        np.count_nonzero((held[0] @ held[1].T >= sets.theta) & (time_gaps < sets.window * 1e6))
    )


@CLAIMS.claim("beyond the paper", "weights estimate what the full join has, within their error")
def estimate_claim(run: JoinRun, sets: SetStreams) -> Finding:
    """Estimate of a measured run compared with the truth."""
    estimate, real = run.estimate_results().iloc[-1], count_full_join(sets)
    off = estimate["estimated_results"] - real
    finding = judge(
        f"{estimate['estimated_results']:,.0f} +- {estimate['error_95']:,.0f} estimated from "
        f"{estimate['results']:,} "
        f"found, {real:,} in truth",
        abs(off) <= 2.5 * estimate["error_95"],
    )
    planned = [e for e in run.events() if isinstance(e, SheddingPlanned)]
    ran = {
        "method": [e.method for e in planned],
        "fraction": [e.fraction for e in planned],
        "batches": len(planned),
        "rates": sets.every_rate,
        "window": sets.window,
        "kappa": sets.kappa,
    }
    return replace(finding, ran=ran)


def start_from_controls(settings: Mapping[str, Any], batches: int) -> JoinRun:
    """Start a run on Spark by the panel's settings, for ``batches`` seconds of event time."""
    sets = sets_from_controls(**{**settings, "seconds": float(batches)})
    return start_run(sets, make_shedder(**settings), float(settings.get("pace", 0.0)))


def start_run(sets: SetStreams, shed: Shed | None, pace: float = 0.0) -> JoinRun:
    """Start a workload of sets on Spark, on one host."""
    from braid.spark_session import session
    from braid.stream_join import StreamJoin

    given = sets.make_workload(session())
    join = StreamJoin(
        given.streams, given.condition, Centralized(), given.windows, given.time, shed=shed
    )
    return join.start(new_run_folder("shedding"), batches="batch", pace=pace)
