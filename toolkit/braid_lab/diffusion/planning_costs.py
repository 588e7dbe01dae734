"""Costs of planning in Gu 2007: routing times (Fig. 9, 10), measured, and greedy covers.

The covers are compared with exact ones (section 4.1).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import product
from math import inf
from time import perf_counter
from typing import Any

import pandas as pd
from braid.core.cluster_model import CostParameters
from braid.core.facts import Facts
from braid.core.placement import Placement
from braid.core.plan import Plan
from braid.core.run_events import BatchCommitted
from braid.papers.diffusion.coordinated import Coordinated, initial_cover_problems
from braid.papers.diffusion.run_events import PathChosen
from braid.papers.diffusion.segment_length import atr_overhead

from braid_lab.common.recorded_settings import describe_machine
from braid_lab.diffusion.exact_cover import chvatal_bound, exact_cover
from braid_lab.diffusion.experiments import (
    RIVALS,
    DiffusionSetting,
    make_placement,
    record_settings,
    simulate_setting,
)


@dataclass(frozen=True)
class _Timed(Placement):
    """A placement that records the duration of each of its plans, in microseconds."""

    under: Placement
    micros: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        object.__setattr__(self, "State", self.under.State)

    @property
    def hosts(self) -> int:
        return self.under.hosts

    @property
    def key_space_size(self) -> int:
        return self.under.key_space_size

    def initial_state(self, streams: int) -> Any:
        return self.under.initial_state(streams)

    def plan_batch(self, facts: Facts, state: Any) -> Plan:
        began = perf_counter()
        plan = self.under.plan_batch(facts, state)
        self.micros.append((perf_counter() - began) * 1e6)
        return plan


def routing_time(window: float, seconds: int, hosts: int = 6, seed: int = 0) -> pd.DataFrame:
    """Return Fig. 9 (W = 60) and 10 (W = 120), measured: microseconds to route a tuple.

    A plan routes the tuples of one second, of three streams, so its time is divided by their
    number; a second without tuples is left out. Columns: second, placement, micros.
    """
    rows: list[tuple[int, str, float]] = []
    rivals = {label: RIVALS[label] for label in ("ATR", "CTR, L = 2", "CTR, no bound")}
    base = DiffusionSetting(3, window, (2.0, 8.0), hosts=hosts, seconds=seconds, seed=seed)
    for label, rival in rivals.items():
        s = replace(base, copies=rival.max_copies(hosts))
        timed = _Timed(make_placement(rival.placement, s))
        counts = [
            sum(e.received_tuples)
            for e in simulate_setting(timed, s)
            if isinstance(e, BatchCommitted)
        ]
        both = enumerate(zip(timed.micros, counts, strict=True))
        rows += [(second, label, micros / n) for second, (micros, n) in both if n]
    frame = pd.DataFrame(rows, columns=["second", "placement", "micros"])
    return record_settings(frame, [base], rivals, machine=describe_machine())


@dataclass(frozen=True)
class _Weighed(Coordinated):
    """CTR that compares the greedy covers of every ``each``-th plan with exact ones.

    It records the ratio of their weights, and Chvatal's bound.
    """

    each: int = 1
    ratios: list[tuple[int, float, float]] = field(default_factory=list)

    def plan_batch(self, facts: Facts, state: Any) -> Plan:
        if facts.batch % self.each == 0:
            for sets, weights, wanted, chosen in initial_cover_problems(self, facts, state):
                covers = chosen, exact_cover(sets, weights, wanted)
                greedy, exact = (sum(weights[j] for j in cover) for cover in covers)
                self.ratios.append((facts.batch, greedy / exact, chvatal_bound(sets, wanted)))
        return super().plan_batch(facts, state)


def greedy_cover_ratios(
    setting: DiffusionSetting, copies: Sequence[int | None], each: int = 3, seeds: int = 1
) -> pd.DataFrame:
    """Return the ratios of greedy to exact covers on the plans of CTR runs (section 4.1).

    Rows are by the bound L on copies. The initial covers of every ``each``-th plan are solved again
    by integer programming. ``seeds``: how many. Columns: copies ("none" for no bound), second,
    ratio (weight of the greedy cover over the lightest), bound (H(d), Chvatal's, on that ratio).
    """
    rows: list[tuple[Any, ...]] = []
    ran = [replace(setting, seed=setting.seed + k) for k in range(seeds)]
    for most, one in product(copies, ran):
        plain = make_placement("CTR", replace(one, copies=most))
        assert isinstance(plain, Coordinated)
        weighed = _Weighed(**{f.name: getattr(plain, f.name) for f in fields(plain)}, each=each)
        for _ in simulate_setting(weighed, one):
            pass
        rows += [(str(weighed.max_copies or "none"), *line) for line in weighed.ratios]
    frame = pd.DataFrame(rows, columns=["copies", "second", "ratio", "bound"])
    return record_settings(frame, ran, {}, each=each)


ROOM = DiffusionSetting(3, 6.0, hosts=40, length=2, seconds=40)
"""A setting with so many hosts that no two live segments share one."""


def check_equations(
    setting: DiffusionSetting = ROOM, lengths: Sequence[int] = (1, 2, 3), seeds: int = 1
) -> pd.DataFrame:
    """Return Eq. 2, and Eq. 3 summed as in Eq. 4, beside the counts of runs.

    Values are tuples and intermediate results sent beyond one copy of each tuple, per second. Hosts
    take no time, so that none sheds; CTR stores on all of V_1, as printed. Columns: equation,
    placement, length (T), seed, window, printed, counted.
    """
    rows, ran = [], [replace(setting, seed=seed) for seed in range(seeds)]
    both = (("Eq. 2", "ATR-unoptimized"), ("Eq. 3, 4", "CTR"))
    for (equation, name), t, one in product(both, lengths, ran):
        free = replace(one, costs=CostParameters(0.0, 0.0, 0.0), copies=None, length=t)
        events = list(simulate_setting(make_placement(name, replace(free, costs=one.costs)), free))
        done = [e for e in events if isinstance(e, BatchCommitted) and e.batch >= 2 * free.window]
        extra = sum(
            e.total_host_metrics.received_tuples
            - sum(e.received_tuples)
            + e.total_host_metrics.sent_partials
            for e in done
        )
        printed = (_compute_eq_2 if name != "CTR" else _compute_eq_4)(events, done, free)
        rows.append((equation, name, t, one.seed, free.window, printed, extra / len(done)))
    names = ["equation", "placement", "length", "seed", "window", "printed", "counted"]
    rivals = {"CTR, no bound": RIVALS["CTR, no bound"]}
    frame = pd.DataFrame(rows, columns=names)
    more = dict(length=lengths, counted_seconds=len(done), warmup=Coordinated.warmup_hosts)
    return record_settings(frame, ran, rivals, **more)


def _compute_eq_2(events: list[Any], done: list[BatchCommitted], s: DiffusionSetting) -> float:
    rates = [sum(e.received_tuples[i] for e in done) / len(done) for i in range(s.streams)]
    return atr_overhead(rates, (s.window,) * s.streams, 0, s.length)


def _compute_eq_4(events: list[Any], done: list[BatchCommitted], s: DiffusionSetting) -> float:
    """Return Eq. 3 summed over every new segment, for its tuples during the segment."""
    received = {e.batch: e.received_tuples for e in done}
    paths = [e for e in events if isinstance(e, PathChosen)]
    total = sum(
        e.join_orders[0].estimated_overhead_eq3 * received[batch][e.stream]
        for e in paths
        for batch in range(e.batch, e.batch + s.length)
        if batch in received
    )
    return float(total / len(done))


def cover_table(covers: pd.DataFrame) -> pd.DataFrame:
    """Return the ``greedy_cover_ratios`` by bound on copies.

    Columns: how many covers have each ratio to the lightest, the mean and the worst of these
    ratios, and the least of Chvatal's bounds.
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
