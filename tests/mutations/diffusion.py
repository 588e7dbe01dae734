"""Faults of aligned and coordinated tuple routing (Gu 2007)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import product
from typing import Any

import pandas as pd
from braid.studies import diffusion as study
from braid.studies import diffusion_claims as gu
from braid.studies import diffusion_figures as figures
from braid.studies.claim import Claim
from braid.studies.diffusion import Setting

from mutations import Mutation

NONE = pd.DataFrame()


def outcomes(setting: Setting, hosts: Iterable[int], labels: Iterable[str]) -> gu.Figures:
    """Fig. 11 and 12 by J, for some of the rivals."""
    rows = []
    for j, label in product(hosts, labels):
        rival = study.RIVALS[label]
        s = replace(setting, hosts=j, copies=rival.copies(j))
        got = study.outcome(study.run(study.placement(rival.placement, s), s), s.window)
        rows.append({"x": j, "placement": label, **got})
    return gu.Figures(NONE, {}, {}, {"11, 12": pd.DataFrame(rows)}, NONE, NONE)


def scaled() -> list[Claim]:
    """All rivals on few hosts, of which none is idle."""
    f = outcomes(Setting(3, 6.0, (8.0, 30.0), seconds=30), (4, 10), study.RIVALS)
    made = (gu.scale_check, gu.existing_claim, gu.covers_claim, gu.ctr_sends_claim)
    return [claim(f) for claim in made]


def mastered() -> list[Claim]:
    """Streams of which the first, and so the first master, is by far the slowest."""
    slow = Setting(3, 6.0, (8.0, 30.0), length=3, sample=1000, seconds=60, seed=11)
    return [gu.atr_sends_claim(outcomes(slow, (12,), ("ATR", "ATR-unoptimized")))]


def searched() -> list[Claim]:
    """The search for the segment length, from five seconds."""
    shorter = replace(figures.SEARCHED, sample=10, seconds=240)
    f = gu.Figures(NONE, {}, {}, {}, NONE, figures.tuning(1, (5,), shorter))
    return [gu.tuned_check(f)]


def random_covers(kind: Any) -> Any:
    """CTR whose hosts are drawn at random."""
    return lambda hosts, length, optimize, *rest, **more: kind(hosts, length, False, *rest, **more)


MUTATIONS = [
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
        "a search that never moves",
        "braid.papers.diffusion.tuning.Search.decide",
        lambda decide: lambda self, step: replace(self, busy=0.0, done=0.0, batches=0),
        searched,
        ("from a first length that is not the best",),
    ),
]
