"""Faults of aligned and coordinated tuple routing (Gu 2007)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import count, product
from typing import Any

import pandas as pd
from braid.studies import diffusion as study
from braid.studies import diffusion_claims as gu
from braid.studies import diffusion_figures as figures
from braid.studies import diffusion_frames as frames
from braid.studies import diffusion_plans as plans
from braid.studies import diffusion_trade_claims as trades
from braid.studies.claim import Claim
from braid.studies.diffusion import Setting

from mutations import Mutation

NONE = pd.DataFrame()


def outcomes(setting: Setting, hosts: Iterable[int], labels: Iterable[str]) -> frames.Figures:
    """Fig. 11 and 12 by J, for some of the rivals."""
    rows = []
    for j, label in product(hosts, labels):
        rival = study.RIVALS[label]
        s = replace(setting, hosts=j, copies=rival.copies(j))
        got = study.outcome(study.run(study.placement(rival.placement, s), s), s.window)
        rows.append({"x": j, "placement": label, **got})
    return frames.Figures(NONE, {}, {}, {"11, 12": pd.DataFrame(rows)}, NONE, NONE)


def scaled() -> list[Claim]:
    """All rivals on few hosts, of which none is idle."""
    f = outcomes(Setting(3, 6.0, (8.0, 30.0), seconds=30), (4, 10), study.RIVALS)
    made = (gu.scale_check, gu.existing_claim, gu.covers_claim, gu.ctr_sends_claim)
    return [claim(f) for claim in made]


def mastered() -> list[Claim]:
    """Streams of which the first, and so the first master, is by far the slowest."""
    slow = Setting(3, 6.0, (8.0, 30.0), length=3, sample=1000, seconds=60, seed=11)
    return [gu.atr_sends_claim(outcomes(slow, (12,), ("ATR", "ATR-unoptimized")))]


def halved(settings: dict[float, Setting], readings: Iterable[str]) -> pd.DataFrame:
    """ATR beside CTR with L = J/2."""
    both = {name: study.ALIGNED_OR_COORDINATED[name] for name in ("ATR", frames.HALF)}
    runs = []
    for reading in readings:
        of = {x: replace(s, costs=study.READINGS[reading]) for x, s in settings.items()}
        runs.append(study.sweep("", of, both, seeds=1).assign(reading=reading))
    return pd.concat(runs)


def traded() -> list[Claim]:
    """Fig. 15 and 16, their ends alone, on few hosts that are all busy."""
    three = Setting(3, 8.0, (10.0, 20.0), hosts=12, seconds=20)
    selective = {v: replace(three, selectivity=v) for v in (0.1, 1.0)}
    bursting = {t: replace(three, rates=(50.0, 80.0), burst=t) for t in (0.0, 1.0)}
    rows = {"15": halved(selective, study.READINGS), "16": halved(bursting, [study.SCANNED])}
    f = frames.Figures(NONE, {}, {}, rows, NONE, NONE)
    both = [claim(f) for claim in (trades.gains_check, trades.bursts_check)]
    return [*both, *trades.selectivity_claims(f)]


def crowded() -> list[Claim]:
    """Fig. 13: three streams and five, on few hosts."""
    of = {n: Setting(n, 5.0, selectivity=0.2, hosts=12, seconds=8) for n in (3, 5)}
    f = frames.Figures(NONE, {}, {}, {"13": figures.traded("13", of, seeds=1)}, NONE, NONE)
    return [trades.few_streams_claim(f), trades.many_streams_claim(f)]


def widened() -> list[Claim]:
    """Fig. 14: a window four times as long, on few hosts."""
    of = {w: Setting(3, float(w), hosts=12, seconds=20) for w in (4, 16)}
    f = frames.Figures(NONE, {}, {}, {"14": figures.traded("14", of, seeds=1)}, NONE, NONE)
    return trades.sizes_claims(f)


def routed() -> list[Claim]:
    """Fig. 9 and 10, of CTR and some seconds."""
    both = {w: plans.routing_time(w, 3) for w in (60.0, 120.0)}
    times = {w: rows[rows["placement"] == "CTR, L = 2"] for w, rows in both.items()}
    f = frames.Figures(NONE, {}, times, {}, NONE, NONE)
    return [gu.probe_check(f, "9", 60.0), gu.probe_check(f, "10", 120.0)]


def tried_lengths() -> list[Claim]:
    """Fig. 4, its ends alone."""
    f = frames.Figures(figures.segment_length(30, 1, (1, 9)), {}, {}, {}, NONE, NONE)
    return [gu.too_long_check(f)]


def totals() -> list[Claim]:
    """Fig. 7, of a window of 40 seconds."""
    f = frames.Figures(NONE, {60.0: figures.total_results(40.0, 20)}, {}, {}, NONE, NONE)
    above = [gu.above_check(f, "7", 60.0, k) for k in (frames.CENTRALIZED, frames.UNAWARE)]
    return [*above, gu.complete_claim(f, "7", 60.0)]


def covered() -> list[Claim]:
    """Section 4.1."""
    covers = plans.cover_distance(Setting(3, 10.0, hosts=12, seconds=12), (None, 0, 6))
    f = frames.Figures(NONE, {}, {}, {}, covers, NONE)
    return [gu.chvatal_check(f), gu.bounded_check(f)]


def written() -> list[Claim]:
    """Eq. 2 of Gu 2007."""
    return gu.equation_claims(plans.equations())


def searched() -> list[Claim]:
    """The search for the segment length, from five seconds."""
    shorter = replace(figures.SEARCHED, sample=10, seconds=240)
    f = frames.Figures(NONE, {}, {}, {}, NONE, figures.tuning(1, (5,), shorter))
    return [gu.tuned_check(f)]


def as_atr(kind: Any) -> Any:
    """CTR that routes as ATR does."""
    return lambda hosts, length, optimize, copies, cluster, prices, seed: study.Aligned(
        hosts, length, optimize, cluster=cluster, prices=prices
    )


def asked_far_away(clock: Callable[[], float]) -> Any:
    """The clock by which each plan waits 0.4 s for an answer."""
    waits = count()
    return lambda: clock() + 0.4 * next(waits)


def unaware(kind: Any) -> Any:
    """ATR that does not care where partners are."""
    return lambda hosts, length, *rest, cluster=(), **more: study.SemanticsUnaware(
        hosts, length, cluster=cluster
    )


def heaviest(greedy: Any) -> Any:
    """A cover of the hosts that have most to do."""
    return lambda sets, weights, wanted: greedy(sets, [1 / (w + 1e-9) for w in weights], wanted)


def one_second(kind: Any) -> Any:
    """ATR whose segments last a second, whatever is asked."""
    return lambda hosts, length, *rest, **more: kind(hosts, 1, *rest, **more)


def random_covers(kind: Any) -> Any:
    """CTR whose hosts are drawn at random."""
    return lambda hosts, length, optimize, *rest, **more: kind(hosts, length, False, *rest, **more)


MUTATIONS = [
    Mutation(
        "ATR sends tuples anywhere",
        "braid.studies.diffusion.Aligned",
        unaware,
        scaled,
        ("both above the existing schemes",),
    ),
    Mutation(
        "ATR sends tuples anywhere, of six hosts",
        "braid.studies.diffusion.Aligned",
        unaware,
        totals,
        ("ATR and CTR above semantics-unaware", "ATR and CTR above centralized"),
    ),
    Mutation(
        "covers of the hosts that have most to do",
        "braid.studies.diffusion_plans.greedy_cover",
        heaviest,
        covered,
        ("a greedy cover weighs at most", "with a bound on copies the greedy cover"),
    ),
    Mutation(
        "all segments on one host",
        "braid.papers.kit.balance.Balance.lightest",
        lambda lightest: lambda self, chosen, last: 0,
        scaled,
        ("more hosts, more results (ATR)",),
    ),
    Mutation(
        "covers drawn at random",
        "braid.studies.diffusion.Coordinated",
        random_covers,
        scaled,
        ("CTR above CTR-unoptimized", "CTR sends less than unoptimized"),
    ),
    Mutation(
        "the wrong master",
        "braid.papers.diffusion.aligned.overhead",
        lambda overhead: lambda *args: 1 / overhead(*args),
        mastered,
        ("ATR sends less than unoptimized",),
    ),
    Mutation(
        "slave tuples go to every host",
        "braid.papers.diffusion.aligned._Planner._ahead",
        lambda ahead: lambda self, stream: set(range(self.settings.hosts)),
        written,
        ("Eq. 2 counts the copies",),
    ),
    Mutation(
        "CTR routes as ATR does",
        "braid.studies.diffusion.Coordinated",
        as_atr,
        traded,
        (
            "ATR gains on CTR as σ grows",
            "CTR gains on ATR as θ grows",
            "ATR ahead at high selectivity",
        ),
    ),
    Mutation(
        "CTR routes as ATR does, for more streams",
        "braid.studies.diffusion.Coordinated",
        as_atr,
        crowded,
        ("ATR ahead for 3 streams, and not behind for 2", "CTR ahead for the most streams"),
    ),
    Mutation(
        "CTR routes as ATR does, in longer windows",
        "braid.studies.diffusion.Coordinated",
        as_atr,
        widened,
        ("CTR ahead for large windows",),
    ),
    Mutation(
        "a plan that is made far away",
        "braid.studies.diffusion_plans.perf_counter",
        asked_far_away,
        routed,
        (
            "routing takes less than a join probe of 10 ms, W = 60 s",
            "routing takes less than a join probe of 10 ms, W = 120 s",
        ),
    ),
    Mutation(
        "segments of one second, whatever their length",
        "braid.studies.diffusion.Aligned",
        one_second,
        tried_lengths,
        ("too long segments cost throughput",),
    ),
    Mutation(
        "all segments on one host, of six",
        "braid.papers.kit.balance.Balance.lightest",
        lambda lightest: lambda self, chosen, last: 0,
        totals,
        ("ATR and CTR above centralized",),
    ),
    Mutation(
        "a search that never moves",
        "braid.papers.diffusion.tuning.Search.decide",
        lambda decide: lambda self, step: replace(self, busy=0.0, done=0.0, batches=0),
        searched,
        ("from a first length that is not the best",),
    ),
]
