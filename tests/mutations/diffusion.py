"""Faults of aligned and coordinated tuple routing (Gu 2007)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any
from unittest.mock import patch

import pandas as pd
from braid_lab.common.claims import Claim
from braid_lab.common.recorded_settings import concat_runs
from braid_lab.common.result_cache import CachedOutcome
from braid_lab.diffusion import claim_frames as frames
from braid_lab.diffusion import claims as gu
from braid_lab.diffusion import executed_claims as runs
from braid_lab.diffusion import experiments as study
from braid_lab.diffusion import figures as figures
from braid_lab.diffusion import planning_claims as planned
from braid_lab.diffusion import planning_costs as plans
from braid_lab.diffusion import tradeoff_claims as trades
from braid_lab.diffusion.exact_cover import exact_cover
from braid_lab.diffusion.experiments import DiffusionSetting

from mutations import (
    Mutation,
    Tries,
    cached_run,
    call_counting_clock,
    lazy_figures,
    run_in_process,
    unchecked,
)


def made(name: str, setting: DiffusionSetting) -> CachedOutcome:
    """Return the outcome of a run; settings known only to the placement are left out of its key."""
    run = study.make_placement(name, setting), replace(setting, length=1, sample=1, copies=0)
    return cached_run(run, lambda: study.run_and_summarize(name, setting))


def of(
    *claims: Callable[[frames.DiffusionFigures], Any],
    outcomes: Callable[[], dict[str, pd.DataFrame]] = dict,
    **tables: Callable[[], Any],
) -> Tries:
    """Return claims about figures."""
    f = lazy_figures(frames.DiffusionFigures, outcomes=outcomes, **tables)
    return [partial(claim, f) for claim in claims]


def by_hosts(
    setting: DiffusionSetting, hosts: Iterable[int], labels: Iterable[str]
) -> pd.DataFrame:
    """Return Fig. 11 and 12 by J, for some of the rivals."""
    some = {label: study.RIVALS[label] for label in labels}
    return study.run_sweep("", {j: replace(setting, hosts=j) for j in hosts}, some, 1, made)


SCALED = DiffusionSetting(3, 6.0, (8.0, 30.0), seconds=30)


def scaled() -> Tries:
    """Return all rivals on few hosts, all of them busy."""
    claims = (
        gu.scale_check,
        gu.coordinated_scale_claim,
        gu.above_existing_schemes_claim,
        gu.set_covers_check,
        gu.ctr_sends_check,
        gu.large_clusters_claim,
    )
    return of(
        *claims,
        outcomes=lambda: {"11, 12": by_hosts(SCALED, (4, 10), study.RIVALS)},
        tuned=lambda: figures.first_lengths(30, 1, (4, 10), (1,), SCALED, made),
    )


def beside(
    settings: Mapping[Any, DiffusionSetting], readings: Iterable[str], *bounds: str
) -> pd.DataFrame:
    """Return ATR beside CTR with some bounds L."""
    some = {name: study.VISITING[name] for name in ("ATR", *bounds)}
    runs = []
    for reading in readings:
        priced = {x: replace(s, costs=study.READINGS[reading]) for x, s in settings.items()}
        runs.append(study.run_sweep("", priced, some, 1, made).assign(reading=reading))
    return concat_runs(runs)


THREE = DiffusionSetting(3, 8.0, (10.0, 20.0), hosts=12, seconds=20)


def traded() -> Tries:
    """Return the ends of Fig. 15 and 16, on few hosts that are all busy."""
    selective = {v: replace(THREE, selectivity=v) for v in (0.2, 1.0)}
    bursting = {t: replace(THREE, rates=(50.0, 80.0), burst=t) for t in (0.0, 1.0)}

    def rows() -> dict[str, pd.DataFrame]:
        by_sigma = beside(selective, study.READINGS, frames.HALF, frames.ALL)
        by_burst = beside(bursting, study.READINGS, frames.HALF)
        return {"15": by_sigma, "16": by_burst, "16, r_i": by_burst}

    bursts = (trades.bursts_claim, trades.bursts_check, trades.halved_bursts_claim)
    ends = (trades.low_selectivity_claim, trades.high_selectivity_claim)
    return of(*bursts, *ends, outcomes=rows)


def traded_by_scans() -> Tries:
    """Return the ends of Fig. 15 if a probe costs what it scans."""
    selective = {v: replace(THREE, selectivity=v) for v in (0.2, 1.0)}
    return of(
        trades.selectivity_gains_check,
        outcomes=lambda: {"15": beside(selective, [study.SCANNED], frames.HALF, frames.ALL)},
    )


def crowded() -> Tries:
    """Return Fig. 13: three streams and six, on few hosts that are all busy."""
    busy = DiffusionSetting(3, 10.0, (10.0, 30.0), selectivity=0.15, hosts=15, seconds=8)
    some = {n: replace(busy, streams=n) for n in (3, 6)}
    either = (trades.three_streams_claim, trades.many_streams_claim)
    claims = (*either, trades.streams_check)
    return of(*claims, outcomes=lambda: {"13": beside(some, [study.SCANNED], frames.ALL)})


def widened() -> Tries:
    """Return Fig. 14: a window four times as long, on few hosts that are all busy."""
    both = {w: DiffusionSetting(3, float(w), (15.0, 30.0), hosts=12, seconds=16) for w in (4, 16)}
    bounds = frames.TWO, frames.ROOT, frames.HALF, frames.ALL, frames.PRINTED

    def rows() -> dict[str, pd.DataFrame]:
        by_window = beside(both, [study.VISITED], frames.TWO, frames.ALL)
        return {"14": by_window, "14, wait": beside({10: both[16]}, [study.VISITED], *bounds)}

    claims = trades.small_windows_claim, trades.large_windows_claim, trades.waiting_claim
    return of(*claims, outcomes=rows)


def counted() -> Tries:
    """Return Fig. 9 and 10 with windows of a thirtieth, by a clock that counts calls."""

    def times() -> dict[float, pd.DataFrame]:
        with call_counting_clock("braid_lab.diffusion.planning_costs.perf_counter"):
            return {w: plans.routing_time(w / 30, 2) for w in (60.0, 120.0)}

    claims = [
        partial(planned.routing_claim, figure=n, window=w) for n, w in (("9", 60.0), ("10", 120.0))
    ]
    return of(*claims, routing=times)


def agreed() -> Tries:
    """Return section 5: runs in this process instead of on Spark, beside their models."""
    few = DiffusionSetting(3, 4.0, hosts=6, length=2, sample=1, seconds=16, seed=6)
    counts = study.count_totals

    def measured(name: str) -> tuple[dict[str, int], dict[str, int]]:
        a, under = study.make_arrivals(few), study.make_placement(name, few)
        return cached_run(
            (under, few, "in this process"),
            lambda: run_in_process(
                lambda ran: (counts(ran.events()), runs.count_adaptations(ran.events())),
                a.make_tables(),
                a.condition,
                under,
                a.window_texts(),
            ),
        )

    def claims() -> list[Claim]:
        ran = {name: measured(name) for name in ("ATR", "CTR", "Semantics-unaware")}
        events = {name: totals for name, (totals, _) in ran.items()}
        known = patch.object(
            study, "count_totals", lambda e: e if isinstance(e, dict) else counts(e)
        )
        with unchecked(), known:
            both = study.compare_with_model(events, few)
        return gu.CLAIMS.test_claims(
            both=both,
            window=few.window,
            expected=study.make_arrivals(few).count_results(),
            adaptations=ran["ATR"][1],
        )

    return [claims]


def tried_lengths() -> Tries:
    """Return Fig. 4: its ends and a length between them."""
    return of(
        partial(gu.length_claim, streams=2),
        lengths=lambda: figures.segment_length(30, 1, (0.5, 2, 9), source=made),
    )


def totals() -> Tries:
    """Return Fig. 7 with a window of 40 seconds."""
    both = (gu.aligned_results_check, gu.coordinated_results_check)
    claims = [partial(claim, figure="7", window=60.0) for claim in both]
    return of(*claims, totals=lambda: {60.0: figures.total_results(40.0, 20)})


def covered() -> Tries:
    """Return section 4.1."""
    few = DiffusionSetting(3, 10.0, hosts=12, seconds=12)
    claims = (planned.chvatal_check, planned.bounded_check)
    return of(*claims, covers=lambda: plans.greedy_cover_ratios(few, (None, 0, 6)))


def written() -> Tries:
    """Return Eq. 2 of Gu 2007."""
    return [lambda: gu.CLAIMS.test_claims(equations=plans.check_equations())]


def searched() -> Tries:
    """Return the search for the segment length, from five seconds."""
    busy = DiffusionSetting(3, 20.0, (10.0, 20.0), sample=10)
    return of(
        gu.optimized_check, tuned=lambda: figures.first_lengths(240, 1, (20,), (5,), busy, made)
    )


def heaviest(greedy: Any) -> Any:
    """Return a cover of the busiest hosts."""
    return lambda sets, weights, wanted: greedy(sets, [1 / (w + 1e-9) for w in weights], wanted)


def never_optimize(init: Any) -> Any:
    """Return CTR whose hosts are drawn at random, whatever is requested."""

    def begin(self: Any) -> None:
        init(self)
        object.__setattr__(self, "optimize", False)

    return begin


LEAST_LOADED = "braid.papers.common.load_balance.LoadBalance.least_loaded_host"
STORING = "braid.papers.diffusion.coordinated._Planner._choose_storing_hosts"


def always_first(choose: Any) -> Any:
    """Return a choice of the first host for every segment of ATR, and of the baseline."""
    return lambda self, chosen, last: 0


def always_first_copy(choose: Any) -> Any:
    """Return a choice of the first host alone to store every segment of CTR."""
    return lambda self, first: (0,)


def without_transition(list_boxes: Any) -> Any:
    """Return boxes in which nothing that came before a switch meets the new master."""
    return lambda self: [
        (h, dict(enumerate(self.all)) | {self.tenure.master: ids}) for h, ids in self.new.items()
    ]


def nothing_void(assign: Any) -> Any:
    """Return probes of all that any host holds."""
    return lambda self, sets, *given: {h: held for h, held in sets.items() if held}


MUTATIONS = [
    Mutation(
        "all segments on one host",
        LEAST_LOADED,
        always_first,
        scaled,
        ("ATR scales better than the existing schemes", "ATR and CTR above the existing schemes"),
    ),
    Mutation(
        "all segments on one host, of six",
        LEAST_LOADED,
        always_first,
        totals,
        ("ATR above semantics-unaware and centralized",),
    ),
    Mutation(
        "CTR stores everything on one host",
        STORING,
        always_first_copy,
        scaled,
        ("CTR scales better than the existing schemes", "ATR and CTR above the existing schemes"),
    ),
    Mutation(
        "CTR stores everything on one host, of six",
        STORING,
        always_first_copy,
        totals,
        ("CTR above semantics-unaware and centralized",),
    ),
    Mutation(
        "covers of the hosts that have most to do",
        "braid.papers.diffusion.coordinated.greedy_cover",
        heaviest,
        covered,
        ("a greedy cover weighs at most", "with a bound on copies the greedy cover"),
    ),
    Mutation(
        "CTR never optimizes",
        "braid.papers.diffusion.coordinated.Coordinated.__post_init__",
        never_optimize,
        scaled,
        (
            "CTR above CTR-unoptimized at every J",
            "CTR sends much less than unoptimized",
            "optimizations gain at every J, and more",
        ),
        runs=("Coordinated",),
    ),
    Mutation(
        "slave tuples go to every host",
        "braid.papers.diffusion.alignment.Alignment._find_hosts_in_reach",
        lambda ahead: lambda self, stream: set(range(self.hosts)),
        written,
        ("Eq. 2 counts the copies",),
    ),
    Mutation(
        "CTR stores everything on one host, by selectivity and bursts",
        STORING,
        always_first_copy,
        traded,
        ("CTR ahead at the lowest selectivity: CTR", "CTR ahead under full bursts"),
    ),
    Mutation(
        "all segments on one host, by selectivity and bursts",
        LEAST_LOADED,
        always_first,
        traded,
        ("ATR ahead at the highest selectivity", "CTR gains on ATR from θ = 0 to 1"),
    ),
    Mutation(
        "all segments on one host, if a probe costs what it scans",
        LEAST_LOADED,
        always_first,
        traded_by_scans,
        ("ATR gains on CTR with every step of σ",),
    ),
    Mutation(
        "CTR stores everything on one host, for more streams",
        STORING,
        always_first_copy,
        crowded,
        (
            "CTR ahead for every number of streams",
            "CTR gains on ATR with every stream that is added to 3",
        ),
    ),
    Mutation(
        "all segments on one host, for three streams",
        LEAST_LOADED,
        always_first,
        crowded,
        ("ATR ahead for 3 streams: ",),
    ),
    Mutation(
        "all segments on one host, in short windows",
        LEAST_LOADED,
        always_first,
        widened,
        ("ATR ahead for the smallest window: CTR",),
    ),
    Mutation(
        "CTR stores everything on one host, in longer windows",
        STORING,
        always_first_copy,
        widened,
        ("CTR ahead for the largest window", "CTR ahead for W = 50 s"),
    ),
    Mutation(
        "exact covers for greedy ones, by a clock that counts calls",
        "braid.papers.diffusion.coordinated.greedy_cover",
        lambda greedy: exact_cover,
        counted,
        (
            "tens of microseconds for a tuple or less, median, W = 60 s",
            "tens of microseconds for a tuple or less, median, W = 120 s",
        ),
    ),
    Mutation(
        "CTR stores everything on one host, in this process",
        STORING,
        always_first_copy,
        agreed,
        (
            "CTR: tuples sent to hosts within",
            "CTR: replicas stored at the end within",
        ),
        runs=("Coordinated",),
    ),
    Mutation(
        "a switch of the master that forgets the tuples before it, in this process",
        "braid.papers.diffusion.alignment.BlockRoles.host_boxes",
        without_transition,
        agreed,
        (
            "ATR and CTR miss no result",
            "ATR: tuples sent to hosts within",
            "ATR: replicas stored at the end within",
        ),
        runs=("Aligned",),
    ),
    Mutation(
        "covers of one host, in this process",
        "braid.papers.diffusion.coordinated.greedy_cover",
        lambda greedy: lambda *problem: greedy(*problem)[:1],
        agreed,
        ("ATR and CTR miss no result",),
        runs=("Coordinated",),
    ),
    Mutation(
        "every host that holds a segment joins it (no step 3), in this process",
        "braid.papers.diffusion.coordinated._Planner._assign_blocks_to_hosts",
        nothing_void,
        agreed,
        ("ATR and CTR miss no result",),
        runs=("Coordinated",),
    ),
    Mutation(
        "semantics-unaware routing to one host, in this process",
        LEAST_LOADED,
        always_first,
        agreed,
        ("semantics-unaware routing can lose results",),
    ),
    Mutation(
        "segments of nine batches, whatever their length",
        "braid.papers.diffusion.segment_length.LengthSearch.start_at",
        lambda start: staticmethod(lambda length: start(9)),
        tried_lengths,
        ("throughput rises with T up to a T* between the extremes",),
    ),
    Mutation(
        "a search that never moves, in short runs",
        "braid.papers.diffusion.segment_length.LengthSearch.next_length",
        lambda decide: (
            lambda self, step: replace(self, max_host_load=0.0, completed_work=0.0, batches=0)
        ),
        searched,
        ("ATR above ATR-unoptimized at every J",),
    ),
]
