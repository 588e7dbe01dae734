"""What plans of Gu 2007 cost: the time to route a tuple (Fig. 9, 10), measured, and how far greedy
covers are from exact ones (section 4.1).
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from math import inf
from typing import Any

import pandas as pd

from braid.core.events import BatchCommitted
from braid.core.facts import Facts
from braid.core.placement import Placement
from braid.core.plan import Plan
from braid.papers.diffusion.coordinated import Coordinated, first_covers
from braid.papers.diffusion.setcover import chvatal_bound, exact_cover, greedy_cover
from braid.studies.diffusion import RIVALS, Setting, placement, run


@dataclass(frozen=True)
class _Timed(Placement):
    """A placement that keeps how long each of its plans takes, in microseconds."""

    under: Placement
    micros: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        object.__setattr__(self, "State", self.under.State)

    @property
    def hosts(self) -> int:
        return self.under.hosts

    @property
    def keys(self) -> int:
        return self.under.keys

    def start(self, streams: int) -> Any:
        return self.under.start(streams)

    def plan(self, facts: Facts, state: Any) -> Plan:
        began = time.perf_counter()
        plan = self.under.plan(facts, state)
        self.micros.append((time.perf_counter() - began) * 1e6)
        return plan


def routing_time(window: float, seconds: int, hosts: int = 6, seed: int = 0) -> pd.DataFrame:
    """Fig. 9 (W = 60) and 10 (W = 120), measured on this machine: microseconds to route a tuple.

    A plan routes the tuples of one second, of three streams, so its time is divided by their
    number; a second without tuples is left out. Columns: second, placement, micros.
    """
    rows: list[tuple[int, str, float]] = []
    for label in ("ATR", "CTR, L = 2"):
        copies = RIVALS[label].copies(hosts)
        s = Setting(3, window, (2.0, 8.0), hosts=hosts, copies=copies, seconds=seconds, seed=seed)
        timed = _Timed(placement(RIVALS[label].placement, s))
        came = [sum(e.received) for e in run(timed, s) if isinstance(e, BatchCommitted)]
        both = enumerate(zip(timed.micros, came, strict=True))
        rows += [(second, label, micros / n) for second, (micros, n) in both if n]
    return pd.DataFrame(rows, columns=["second", "placement", "micros"])


@dataclass(frozen=True)
class _Weighed(Coordinated):
    """CTR that keeps, of every ``each``-th plan, the greedy covers' weights over those of the exact
    ones, and Chvatal's bound.
    """

    each: int = 1
    found: list[tuple[int, float, float]] = field(default_factory=list)

    def plan(self, facts: Facts, state: Any) -> Plan:
        if facts.batch % self.each == 0:
            for sets, weights, wanted in first_covers(self, facts, state):
                greedy, exact = (
                    sum(weights[j] for j in cover(sets, weights, wanted))
                    for cover in (greedy_cover, exact_cover)
                )
                self.found.append((facts.batch, greedy / exact, chvatal_bound(sets, wanted)))
        return super().plan(facts, state)


def cover_distance(setting: Setting, copies: Sequence[int | None], each: int = 3) -> pd.DataFrame:
    """How far greedy covers are from exact ones on the plans of CTR runs (section 4.1), by the
    bound L on copies.

    Solved again by integer programming: the covers that every ``each``-th plan looks for at first.
    Columns: copies ("none" for no bound), second, ratio (weight of the greedy cover over the
    lightest), bound (H(d), Chvatal's, on that ratio).
    """
    rows: list[tuple[Any, ...]] = []
    for most in copies:
        plain = placement("CTR", replace(setting, copies=most))
        assert isinstance(plain, Coordinated)
        weighed = _Weighed(**{f.name: getattr(plain, f.name) for f in fields(plain)}, each=each)
        for _ in run(weighed, setting):
            pass
        rows += [(str(weighed.copies or "none"), *line) for line in weighed.found]
    return pd.DataFrame(rows, columns=["copies", "second", "ratio", "bound"])


def cover_table(covers: pd.DataFrame) -> pd.DataFrame:
    """``cover_distance`` by bound on copies: how many covers weigh so many times the lightest, the
    mean and the worst of these ratios, and the least of Chvatal's bounds.
    """
    names = ["the lightest", "to 1.1", "to 1.2", "to 1.3", "above"]
    cut = pd.cut(covers["ratio"], [0, 1 + 1e-6, 1.1, 1.2, 1.3, inf], labels=names)
    spread = pd.crosstab(covers["copies"], cut, dropna=False).reindex(covers["copies"].unique())
    ratio = covers.groupby("copies", sort=False).agg(
        mean=("ratio", "mean"), worst=("ratio", "max"), least_bound=("bound", "min")
    )
    spread.columns = pd.Index(names)
    table = spread.join(ratio).rename(index={"none": "none (as printed)"})
    return table.rename(columns={"least_bound": "least H(d)"}).rename_axis("bound L on copies")
