"""Faults of aligned and coordinated tuple routing (Gu 2007)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any
from unittest.mock import patch

import pandas as pd
from braid_lab.common.result_cache import CachedOutcome
from braid_lab.diffusion import claim_frames as frames
from braid_lab.diffusion import claims as gu
from braid_lab.diffusion import experiments as study
from braid_lab.diffusion import figures as figures
from braid_lab.diffusion import planning_costs as plans
from braid_lab.diffusion import tradeoff_claims as trades
from braid_lab.diffusion.exact_cover import exact_cover
from braid_lab.diffusion.experiments import DiffusionSetting

from mutations import Mutation, Tries, cached_run, call_counting_clock, lazy_figures, run_in_process


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
    rows = []
    for j, label in product(hosts, labels):
        rival = study.RIVALS[label]
        got = made(rival.placement, replace(setting, hosts=j, copies=rival.max_copies(j)))
        rows.append({"x": j, "placement": label, **got.outcome})
    return pd.DataFrame(rows)


SCALED = DiffusionSetting(3, 6.0, (8.0, 30.0), seconds=30)


def scaled() -> Tries:
    """Return all rivals on few hosts, all of them busy."""
    claims = (
        gu.above_existing_schemes_claim,
        gu.set_covers_check,
        gu.ctr_sends_claim,
        gu.ctr_sends_check,
        gu.scale_claim,
    )
    return of(*claims, outcomes=lambda: {"11, 12": by_hosts(SCALED, (4, 10), study.RIVALS)})


def scaled_atr() -> Tries:
    """Return the same for ATR alone."""
    return of(gu.scale_check, outcomes=lambda: {"11, 12": by_hosts(SCALED, (4, 10), ("ATR",))})


def mastered() -> Tries:
    """Return streams whose first one, the first master, is by far the slowest."""
    slow = DiffusionSetting(3, 6.0, (8.0, 30.0), length=3, sample=1000, seconds=60, seed=11)
    both = ("ATR", "ATR-unoptimized")
    return of(gu.atr_sends_claim, outcomes=lambda: {"11, 12": by_hosts(slow, (12,), both)})


def beside(
    settings: dict[float, DiffusionSetting], readings: Iterable[str], *bounds: str
) -> pd.DataFrame:
    """Return ATR beside CTR with some bounds L."""
    some = {name: study.ALIGNED_OR_COORDINATED[name] for name in ("ATR", *bounds)}
    runs = []
    for reading in readings:
        priced = {x: replace(s, costs=study.READINGS[reading]) for x, s in settings.items()}
        runs.append(study.run_sweep("", priced, some, 1, made).assign(reading=reading))
    return pd.concat(runs)


def traded() -> Tries:
    """Return the ends of Fig. 15 and 16, on few hosts that are all busy."""
    three = DiffusionSetting(3, 8.0, (10.0, 20.0), hosts=12, seconds=20)
    selective = {v: replace(three, selectivity=v) for v in (0.2, 1.0)}
    bursting = {t: replace(three, rates=(50.0, 80.0), burst=t) for t in (0.0, 1.0)}

    def rows() -> dict[str, pd.DataFrame]:
        by_sigma = beside(selective, study.READINGS, frames.HALF, frames.ALL)
        by_burst = beside(bursting, study.READINGS, frames.HALF)
        return {"15": by_sigma, "16": by_burst}

    bursts = (trades.bursts_claim, trades.bursts_check)
    ends = (trades.low_selectivity_claim, trades.high_selectivity_claim, trades.selectivity_claim)
    claims = (trades.selectivity_gains_check, *bursts, *ends)
    return of(*claims, outcomes=rows)


def crowded() -> Tries:
    """Return Fig. 13: three streams and six, on few hosts that are all busy."""
    busy = DiffusionSetting(3, 10.0, (10.0, 30.0), selectivity=0.15, hosts=15, seconds=8)
    some = {n: replace(busy, streams=n) for n in (3, 6)}
    either = (trades.few_streams_claim, trades.many_streams_claim)
    claims = (*either, trades.streams_claim, trades.streams_check)
    return of(*claims, outcomes=lambda: {"13": beside(some, [study.SCANNED], frames.ALL)})


def widened() -> Tries:
    """Return Fig. 14: a window four times as long, on few hosts that are all busy."""
    both = {w: DiffusionSetting(3, float(w), (15.0, 30.0), hosts=12, seconds=16) for w in (4, 16)}
    bounds = frames.TWO, frames.ALL
    return of(
        trades.small_windows_claim,
        trades.large_windows_claim,
        trades.window_size_claim,
        outcomes=lambda: {"14": beside(both, [study.VISITED], *bounds)},
    )


def counted() -> Tries:
    """Return Fig. 9 and 10 with windows of a thirtieth, by a clock that counts calls."""

    def times() -> dict[float, pd.DataFrame]:
        with call_counting_clock("braid_lab.diffusion.planning_costs.perf_counter"):
            return {w: plans.routing_time(w / 30, 2) for w in (60.0, 120.0)}

    claims = [
        partial(gu.routing_claim, figure=n, window=w) for n, w in (("9", 60.0), ("10", 120.0))
    ]
    return of(*claims, routing=times)


def kept_streams() -> Tries:
    """Return Fig. 13 from stored long runs, here those of ``crowded``, with L = J."""

    def rows() -> pd.DataFrame:
        busy = DiffusionSetting(3, 10.0, (10.0, 30.0), selectivity=0.15, hosts=15, seconds=8)
        some = {n: replace(busy, streams=n) for n in (3, 6)}
        return beside(some, [study.SCANNED], frames.ALL).assign(figure="13")

    return [lambda: gu.CLAIMS.test_claims(cached=rows())]


def agreed() -> Tries:
    """Return section 5: runs in this process instead of on Spark, beside their models."""
    few = DiffusionSetting(3, 2.0, (5.0, 10.0), hosts=8, seconds=6)
    names, counts = ("ATR-unoptimized", "CTR", "Semantics-unaware"), study.count_totals

    def measured(name: str) -> dict[str, int]:
        a, under = study.make_arrivals(few), study.make_placement(name, few)
        run = (under, few, "in this process")
        return cached_run(
            run,
            lambda: run_in_process(
                lambda ran: study.count_totals(ran.events()),
                a.make_tables(),
                a.condition,
                under,
                a.window_texts(),
            ),
        )

    def both() -> pd.DataFrame:
        events = {name: measured(name) for name in names}
        with patch.object(study, "count_totals", lambda e: e if isinstance(e, dict) else counts(e)):
            return study.compare_with_model(events, few)

    return [lambda: gu.CLAIMS.test_claims(both=both(), window=few.window)]


def tried_lengths() -> Tries:
    """Return Fig. 4: its ends and a length between them."""
    claims = (partial(gu.length_claim, streams=2), gu.too_long_check)
    return of(*claims, lengths=lambda: figures.segment_length(30, 1, (1, 3, 9), source=made))


def totals() -> Tries:
    """Return Fig. 7 with a window of 40 seconds."""
    asked = dict(figure="7", window=60.0)
    both = (frames.CENTRALIZED, frames.UNAWARE)
    above = [partial(gu.complete_results_check, rival=k.lower(), **asked) for k in both]
    complete = partial(gu.more_results_claim, **asked)
    return of(*above, complete, totals=lambda: {60.0: figures.total_results(40.0, 20)})


def covered() -> Tries:
    """Return section 4.1."""
    few = DiffusionSetting(3, 10.0, hosts=12, seconds=12)
    claims = (gu.chvatal_check, gu.bounded_check)
    return of(*claims, covers=lambda: plans.greedy_cover_ratios(few, (None, 0, 6)))


def written() -> Tries:
    """Return Eq. 2 of Gu 2007."""
    return [lambda: gu.CLAIMS.test_claims(equations=plans.check_equations())]


def searched() -> Tries:
    """Return the search for the segment length, from five seconds.

    Also Fig. 11 from there, as stored for long runs, from these short ones.
    """
    shorter = replace(figures.SEARCHED, sample=10, seconds=240)

    def runs() -> pd.DataFrame:
        return figures.length_tuning(1, (5,), shorter, made)

    return [
        *of(gu.tuned_check, tuned=runs),
        lambda: gu.CLAIMS.test_claims(cached=runs().assign(figure="11, 12")),
    ]


def as_atr(kind: Any) -> Any:
    """Return CTR that routes as ATR does."""
    return lambda hosts, length, optimize, copies, host_capacities, cost_parameters, seed: (
        study.Aligned(
            hosts,
            length,
            optimize,
            host_capacities=host_capacities,
            cost_parameters=cost_parameters,
        )
    )


def unaware(kind: Any) -> Any:
    """Return ATR that ignores the location of partners."""
    return lambda hosts, length, *rest, cluster=(), **more: study.SemanticsUnaware(
        hosts, length, host_capacities=cluster
    )


def heaviest(greedy: Any) -> Any:
    """Return a cover of the busiest hosts."""
    return lambda sets, weights, wanted: greedy(sets, [1 / (w + 1e-9) for w in weights], wanted)


def nine_batches(kind: Any) -> Any:
    """Return ATR with segments of nine batches, whatever is requested."""
    return lambda hosts, length, *rest, **more: kind(hosts, 9, *rest, **more)


def random_covers(kind: Any) -> Any:
    """Return CTR whose hosts are drawn at random."""
    return lambda hosts, length, optimize, *rest, **more: kind(hosts, length, False, *rest, **more)


MUTATIONS = [
    Mutation(
        "ATR sends tuples anywhere",
        "braid_lab.diffusion.experiments.Aligned",
        unaware,
        scaled,
        ("both above the existing schemes", "throughput grows with J: last / first"),
        runs=(),
    ),
    Mutation(
        "ATR sends tuples anywhere, of six hosts",
        "braid_lab.diffusion.experiments.Aligned",
        unaware,
        totals,
        ("ATR and CTR above semantics-unaware", "ATR and CTR above centralized"),
    ),
    Mutation(
        "covers of the hosts that have most to do",
        "braid_lab.diffusion.planning_costs.greedy_cover",
        heaviest,
        covered,
        ("a greedy cover weighs at most", "with a bound on copies the greedy cover"),
    ),
    Mutation(
        "all segments on one host",
        "braid.papers.common.load_balance.LoadBalance.least_loaded_host",
        lambda lightest: lambda self, chosen, last: 0,
        scaled_atr,
        ("more hosts, more results (ATR)",),
    ),
    Mutation(
        "covers drawn at random",
        "braid_lab.diffusion.experiments.Coordinated",
        random_covers,
        scaled,
        ("CTR above CTR-unoptimized on up to 40 hosts", "CTR sends less than unoptimized"),
        runs=(),
    ),
    Mutation(
        "the wrong master",
        "braid.papers.diffusion.aligned.atr_overhead",
        lambda overhead: lambda *args: 1 / overhead(*args),
        mastered,
        ("ATR sends less than unoptimized",),
    ),
    Mutation(
        "slave tuples go to every host",
        "braid.papers.diffusion.alignment.Alignment._find_hosts_in_reach",
        lambda ahead: lambda self, stream: set(range(self.hosts)),
        written,
        ("Eq. 2 counts the copies",),
    ),
    Mutation(
        "CTR routes as ATR does",
        "braid_lab.diffusion.experiments.Coordinated",
        as_atr,
        traded,
        (
            "ATR gains on CTR as σ grows",
            "CTR ahead at low selectivity: CTR",
            "CTR ahead under bursts",
            "CTR gains on ATR as θ grows",
            "ATR ahead at high selectivity",
        ),
        runs=(),
    ),
    Mutation(
        "CTR routes as ATR does, for more streams",
        "braid_lab.diffusion.experiments.Coordinated",
        as_atr,
        crowded,
        (
            "ATR ahead for 3 streams, and not behind for 2",
            "CTR ahead for the most streams",
            "ATR ahead for 3 streams, CTR for the most",
            "CTR gains on ATR from 3 streams to the most",
        ),
        runs=(),
    ),
    Mutation(
        "CTR routes as ATR does, in longer windows",
        "braid_lab.diffusion.experiments.Coordinated",
        as_atr,
        widened,
        ("ATR ahead for small windows: CTR", "CTR ahead for large windows"),
        runs=(),
    ),
    Mutation(
        "exact covers for greedy ones, by a clock that counts calls",
        "braid.papers.diffusion.coordinated.greedy_cover",
        lambda greedy: exact_cover,
        counted,
        (
            "tens of microseconds for a tuple, median, W = 60 s",
            "tens of microseconds for a tuple, median, W = 120 s",
        ),
    ),
    Mutation(
        "CTR routes as ATR does, in short runs for those that are kept",
        "braid_lab.diffusion.experiments.Coordinated",
        as_atr,
        kept_streams,
        ("ATR ahead for 3 streams, CTR for 6",),
        runs=(),
    ),
    Mutation(
        "windows that the engine takes for nine times as long, in this process",
        "braid.time_arguments.parse_duration",
        lambda parse: lambda span, *given: 9 * parse(span, *given),
        agreed,
        (
            "ATR-unoptimized: tuples sent to hosts as modelled",
            "ATR-unoptimized: replicas stored at the end as modelled",
            "CTR: tuples sent to hosts as modelled",
            "CTR: replicas stored at the end as modelled",
        ),
    ),
    Mutation(
        "ATR sends tuples anywhere, in this process",
        "braid_lab.diffusion.experiments.Aligned",
        unaware,
        agreed,
        ("ATR and CTR find the same",),
        runs=(),
    ),
    Mutation(
        "semantics-unaware routing to one host, in this process",
        "braid_lab.diffusion.experiments.SemanticsUnaware",
        lambda kind: lambda *given, **more: study.Centralized(),
        agreed,
        ("semantics-unaware routing loses results",),
        runs=(),
    ),
    Mutation(
        "segments of nine batches, whatever their length",
        "braid_lab.diffusion.experiments.Aligned",
        nine_batches,
        tried_lengths,
        ("throughput peaks at a length T* between extremes", "too long segments cost"),
        runs=(),
    ),
    Mutation(
        "all segments on one host, of six",
        "braid.papers.common.load_balance.LoadBalance.least_loaded_host",
        lambda lightest: lambda self, chosen, last: 0,
        totals,
        ("ATR and CTR above centralized",),
    ),
    Mutation(
        "a search that never moves, in short runs, also for those that are kept",
        "braid.papers.diffusion.segment_length.LengthSearch.next_length",
        lambda decide: (
            lambda self, step: replace(self, max_host_load=0.0, completed_work=0.0, batches=0)
        ),
        searched,
        ("from a first length that is not the best", "from T0 = 5 s ATR is above ATR-unoptimized"),
    ),
]
