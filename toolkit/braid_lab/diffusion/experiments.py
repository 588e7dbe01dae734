"""Runs of Gu, Yu and Wang 2007, section 5: settings, competitors and outcomes.

The figures are in ``figures``. All throughput is modelled: ``simulate`` runs the placements without
tuples, on hosts as Gu's simulator drew them (``gu_host_capacities``). A host that is asked for more
than it can do sheds a share of its probes. A micro-batch is one second of event time.

``python -m braid_lab.diffusion.experiments --hosts 10000 --seconds 1000`` makes one run under ATR
and one under CTR, and prints how long they take.

Source: Gu, Yu and Wang, "Adaptive Load Diffusion for Multiway Windowed Stream Joins", ICDE 2007.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from itertools import product
from math import isqrt
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from braid.core.cluster_model import GU, REFERENCE_MIPS, CostParameters, HostCapacity
from braid.core.placement import Placement, placements_for
from braid.core.run_events import BatchCommitted
from braid.papers.baselines.centralized import Centralized
from braid.papers.diffusion.aligned import GAIN, Aligned
from braid.papers.diffusion.coordinated import Coordinated
from braid.papers.diffusion.semantics_unaware import SemanticsUnaware
from braid.simulation.expected_work import Selects

from braid_lab.common.recorded_settings import record_values
from braid_lab.common.result_cache import CachedOutcome
from braid_lab.common.simulated_cluster import iter_cluster_simulation
from braid_lab.diffusion.simulated_hosts import GU_SCANNED, gu_host_capacities
from braid_lab.workloads.poisson_arrivals import Arrivals, draw_rates

PLACEMENTS = (
    "ATR",
    "CTR",
    "ATR-unoptimized",
    "CTR-unoptimized",
    "Semantics-unaware",
    "Centralized",
)
"""The placements by the paper's names."""

_PAPERS = ("Aligned", "Coordinated", "SemanticsUnaware", "Centralized")

VISITED, SCANNED = "per host visited", "per tuples scanned"
READINGS: Mapping[str, CostParameters] = {VISITED: GU, SCANNED: GU_SCANNED}
"""Interpretations of "one join probing takes on average 10 ms": see ``GU`` and ``GU_SCANNED``."""


class Competitor(NamedTuple):
    """A placement by the paper's name, and L, the bound on the copies of a tuple under CTR.

    The bound is "2", "sqrt J", "J/2", "J" or "none", as printed.
    """

    placement: str
    bound: str = "sqrt J"

    def max_copies(self, hosts: int) -> int | None:
        """Return L in hosts; None: no bound."""
        if self.bound == "none":
            return None
        of = {"2": 2, "sqrt J": isqrt(hosts - 1) + 1, "J/2": hosts // 2, "J": hosts}
        return max(1, min(of[self.bound], hosts))


Contenders = Mapping[str, Competitor]
"""Competitors by label."""

RIVALS: Contenders = {
    "ATR": Competitor("ATR"),
    "CTR, L = 2": Competitor("CTR", "2"),
    "CTR, L = √J": Competitor("CTR", "sqrt J"),
    "CTR, L = J/2": Competitor("CTR", "J/2"),
    "CTR, no bound": Competitor("CTR", "none"),
    "ATR-unoptimized": Competitor("ATR-unoptimized"),
    "CTR-unoptimized, L = 2": Competitor("CTR-unoptimized", "2"),
    "CTR-unoptimized, L = √J": Competitor("CTR-unoptimized", "sqrt J"),
    "CTR-unoptimized, L = J/2": Competitor("CTR-unoptimized", "J/2"),
    "CTR-unoptimized, no bound": Competitor("CTR-unoptimized", "none"),
    "Semantics-unaware": Competitor("Semantics-unaware"),
    "Centralized": Competitor("Centralized"),
}
"""The competitors of Fig. 11 and 12.

Gu names no bound and stores on all of V_1; Wang 2008, 15.1 and 16.1, says that L is two.
"""

ALIGNED_OR_COORDINATED: Contenders = {
    **{name: RIVALS[name] for name in ("ATR", "CTR, L = 2", "CTR, L = √J", "CTR, L = J/2")},
    "CTR, L = J": Competitor("CTR", "J"),
}
"""The competitors of the trade-offs, Fig. 13 to 16."""

VISITING: Contenders = {**ALIGNED_OR_COORDINATED, "CTR, no bound": RIVALS["CTR, no bound"]}
"""The same, and CTR as printed, which stores a segment on all of V_1."""

BATCH_SECONDS = 1.0
"""Seconds of event time in a micro-batch."""
TUPLE_BYTES = 1000
"""Size of a tuple; the paper gives none. Bandwidth and memory are in proportion to it."""


@dataclass(frozen=True)
class DiffusionSetting:
    """One join S_1[W] x ... x S_n[W] on a heterogeneous cluster.

    - ``streams``: n.
    - ``window``: W in seconds.
    - ``rates``: the range in tuples per second from which each stream's r_i is drawn.
    - ``selectivity``: sigma of every pair of streams.
    - ``hosts``: J.
    - ``length``: T0 in seconds, the length of a segment, from which ATR searches for a better one.
    - ``sample``: seconds for which each length is tried.
    - ``seconds``: duration of the run, after a warm-up of one ``window``.
    - ``burst``: theta; None: steady Poisson arrivals. In bursts the mean rate is r_i / 2.
    - ``copies``: L, the bound on the copies of a tuple under CTR; 0: ceil(sqrt(J)); None: no bound,
      as printed.
    - ``costs``: costs of the hosts, one of READINGS.
    - ``selects``: as in ``iter_simulation``.
    - ``patience``: seconds of work that may wait at a host before it sheds.
    - ``seed``: of rates, arrivals and machines.
    """

    streams: int = 3
    window: float = 30.0
    rates: tuple[float, float] = (5.0, 20.0)
    selectivity: float = 0.1
    hosts: int = 30
    length: int = 1
    sample: int = 20
    seconds: int = 120
    burst: float | None = None
    copies: int | None = 0
    costs: CostParameters = GU
    selects: Selects = "pair"
    patience: float = 10.0
    seed: int = 0

    def host_capacities(self, hosts: int) -> tuple[HostCapacity, ...]:
        """Return hosts of unequal capacity, as Gu 2007, section 5.1, draws them."""
        return gu_host_capacities(hosts, self.seed)


def make_arrivals(setting: DiffusionSetting) -> Arrivals:
    """Return the streams of a setting, with warm-up, in micro-batches of a second."""
    s = setting
    rates = draw_rates(s.streams, s.seed, *s.rates)
    windows = (s.window,) * s.streams
    seconds = s.window + s.seconds, BATCH_SECONDS
    return Arrivals(rates, *seconds, windows, s.selectivity, s.burst, seed=s.seed)


def placement_names() -> tuple[str, ...]:
    """Return the names of the paper's placements, then of others for any streams and conditions.

    The others have their registered names.
    """
    return (
        *PLACEMENTS,
        *(name for name in placements_for(3, equality=False) if name not in _PAPERS),
    )


def make_placement(name: str, setting: DiffusionSetting) -> Placement:
    """Return a placement by a name of ``placement_names``.

    Those that are not the paper's get the number of hosts. Raises ValueError for any other name.
    """
    s = setting
    capacities = tuple((m.memory_mb, m.mips, m.mbps) for m in s.host_capacities(s.hosts))
    prices = (s.costs.transfer_ms, s.costs.probe_ms, s.costs.compare_us)
    if name in ("ATR", "ATR-unoptimized"):
        optimize = name == "ATR"
        return Aligned(
            s.hosts,
            s.length,
            optimize,
            sample_batches=s.sample,
            host_capacities=capacities,
            cost_parameters=prices,
        )
    if name in ("CTR", "CTR-unoptimized"):
        copies = s.copies if s.copies is None else min(s.copies, s.hosts)
        more: dict[str, Any] = dict(host_capacities=capacities, cost_parameters=prices, seed=s.seed)
        return Coordinated(s.hosts, s.length, name == "CTR", copies, **more)
    if name == "Semantics-unaware":
        return SemanticsUnaware(s.hosts, s.length, host_capacities=capacities)
    if name == "Centralized":
        return Centralized()
    if name not in placement_names():
        raise ValueError(
            f"no placement is named {name!r}; there are: {', '.join(placement_names())}"
        )
    return Placement.class_by_name(name).from_settings({"hosts": s.hosts})


def simulate_setting(under: Placement, setting: DiffusionSetting) -> Iterator[Any]:
    """Yield the events of the join under a placement, simulated."""
    s = setting
    return iter_cluster_simulation(
        under,
        make_arrivals(s).batch_counts(),
        seed=s.seed,
        tuple_bytes=(TUPLE_BYTES,) * s.streams,
        windows=(s.window,) * s.streams,
        selectivity=s.selectivity,
        cluster=s.host_capacities(under.hosts),
        costs=s.costs,
        patience=s.patience,
        selects=s.selects,
    )


def summarize(events: Iterable[Any], warmup: float = 0.0) -> dict[str, float]:
    """Return the outcome of a simulated run: means over the batches from ``warmup`` on, modelled.

    ``throughput``: results per second. ``work``: CPU seconds of all hosts for a second of input.
    ``mbits``: Mbit/s to hosts. ``stored``: replicas of a live tuple.
    """
    rows = [
        _summarize_batch(e) for e in events if isinstance(e, BatchCommitted) and e.batch >= warmup
    ]
    return {name: float(np.mean([row[name] for row in rows])) for name in rows[0]}


def _summarize_batch(e: BatchCommitted) -> dict[str, float]:
    metrics = e.total_host_metrics
    sent = metrics.received_bytes + metrics.received_partial_bytes + metrics.migrated_bytes
    return {
        "throughput": e.results,
        "work": metrics.seconds,
        "mbits": sent * 8 / 1e6,
        "stored": metrics.stored_tuples / max(sum(e.live_tuples), 1),
    }


def count_totals(events: Iterable[Any]) -> dict[str, int]:
    """Return the totals of a run, executed or modelled, under the same names."""
    done = [e for e in events if isinstance(e, BatchCommitted)]
    return {
        "tuples in": sum(done[-1].total_received_tuples),
        "tuples sent to hosts": sum(e.total_host_metrics.received_tuples for e in done),
        "replicas stored at the end": done[-1].total_host_metrics.stored_tuples,
        "live tuples at the end": sum(done[-1].live_tuples),
        "probes": sum(e.total_host_metrics.probes for e in done),
        "intermediate results sent": sum(e.total_host_metrics.sent_partials for e in done),
        "results": sum(e.results for e in done),
    }


def run_and_summarize(name: str, setting: DiffusionSetting) -> CachedOutcome:
    """Return the outcome of the join under a placement, after a warm-up of one window."""
    return CachedOutcome(
        summarize(simulate_setting(make_placement(name, setting), setting), setting.window)
    )


OutcomeSource = Callable[[str, DiffusionSetting], CachedOutcome]
"""A source of outcomes: ``run_and_summarize``, or cached runs."""


def record_settings(
    frame: pd.DataFrame, settings: Iterable[DiffusionSetting], rivals: Contenders, **more: object
) -> pd.DataFrame:
    """Record with a data frame the values of its settings, of its competitors, and ``more``."""
    runs = set(settings)
    values: dict[str, object] = {
        f.name: {getattr(s, f.name) for s in runs} - {None} for f in fields(DiffusionSetting)
    }
    values["rates"] = {format_rates(s) for s in runs}
    values["probe"] = {describe_probe(s.costs) for s in runs}
    values["transfer_ms"] = {s.costs.transfer_ms for s in runs}
    values["period"] = Arrivals.period
    values["gain"] = f"{100 * GAIN:g} %"
    values["step"] = Aligned.step_batches
    values["weights"] = [str(Fraction(w).limit_denominator(100)) for w in Aligned.load_weights]
    values["mips"], values["tuple_bytes"] = REFERENCE_MIPS, TUPLE_BYTES
    values["batch"] = BATCH_SECONDS
    values["policies"] = {rival.placement for rival in rivals.values()}
    coordinated = (name for name, rival in rivals.items() if rival.placement.startswith("CTR"))
    values["bounds"] = {name.partition(", ")[2].removeprefix("L = ") for name in coordinated}
    return record_values(frame, **values | more)


def format_rates(setting: DiffusionSetting) -> str:
    """Return the range of rates as text."""
    return "{:g} to {:g}".format(*setting.rates)


def describe_probe(costs: CostParameters) -> str:
    """Return the cost of a probe as text."""
    if costs.probe_ms:
        return f"{costs.probe_ms:g} ms for each host visited"
    return f"{costs.compare_us:.3g} µs for each tuple scanned"


def run_sweep(
    figure: str,
    settings: Mapping[Any, DiffusionSetting],
    rivals: Contenders,
    seeds: int,
    source: OutcomeSource = run_and_summarize,
) -> pd.DataFrame:
    """Return the outcome for every x (a key of ``settings``), competitor and seed.

    ``kept`` is the day on which a cached run was made.
    """
    rows, ran = [], []
    for (x, setting), (label, rival), seed in product(
        settings.items(), rivals.items(), range(seeds)
    ):
        ran.append(replace(setting, seed=seed, copies=rival.max_copies(setting.hosts)))
        got = source(rival.placement, ran[-1])
        columns = {"figure": figure, "x": x, "placement": label, "seed": seed}
        rows.append(columns | dict(got.outcome) | {"kept": got.date})
    return record_settings(pd.DataFrame(rows), ran, rivals)


def compare_with_model(
    measured: Mapping[str, Iterable[Any]], setting: DiffusionSetting
) -> pd.DataFrame:
    """Return runs on Spark beside their models: placement, count, measured, modelled, ratio.

    The modelled hosts take no time and so shed nothing. ``measured`` holds events by placement.
    The column "by L" has measured counts of CTR over those of its bound L.
    """
    free = replace(setting, costs=CostParameters(0.0, 0.0, 0.0))
    under = {name: make_placement(name, setting) for name in measured}
    rows = []
    for name, events in measured.items():
        done, model = count_totals(events), count_totals(simulate_setting(under[name], free))
        by_bound = count_by_bound(under[name], done)
        rows += [(name, n, done[n], model[n], done[n] / by_bound.get(n, np.nan)) for n in done]
    table = pd.DataFrame(rows, columns=["placement", "count", "measured", "modelled", "by L"])
    table = table.assign(ratio=table["measured"] / table["modelled"])
    bounds = {p.max_copies for p in under.values() if isinstance(p, Coordinated)} - {None}
    return record_settings(table, [setting], {}, policies=list(under), bounds=bounds)


def count_by_bound(under: Placement, done: Mapping[str, int]) -> dict[str, float]:
    """Return what CTR with a bound L sends and stores, by the totals of a run; else nothing.

    A tuple is stored on the L hosts of a set, and probes one host of each of J / L sets.
    """
    if not isinstance(under, Coordinated) or under.max_copies is None:
        return {}
    sets = -(-under.hosts // under.max_copies)
    copies = under.hosts / sets
    return {
        "tuples sent to hosts": done["tuples in"] * (copies + sets - 1),
        "replicas stored at the end": done["live tuples at the end"] * copies,
    }


def setting_from_controls(chosen: Mapping[str, Any], seconds: int) -> DiffusionSetting:
    """Return the setting of the panel's controls."""
    plain = ("streams", "window", "selectivity", "hosts", "length", "copies")
    return DiffusionSetting(
        **{name: chosen[name] for name in plain},
        rates=(chosen["slowest"], chosen["fastest"]),
        burst=chosen["burst"] if chosen["bursts"] else None,
        seconds=seconds,
    )


def iter_setting_events(chosen: Mapping[str, Any], seconds: int = 40) -> Iterator[Any]:
    """Yield the events of a modelled run by the panel's controls."""
    setting = setting_from_controls(chosen, seconds)
    yield from simulate_setting(make_placement(chosen["placement"], setting), setting)


def simulate_all(chosen: Mapping[str, Any], seconds: int = 40) -> list[Any]:
    """Return the events of a modelled run by the panel's controls."""
    return list(iter_setting_events(chosen, seconds))


def seed_means(outcomes: pd.DataFrame, of: str = "throughput") -> pd.DataFrame:
    """Return the mean of one outcome over seeds: a row for each x, a column for each placement."""
    table = outcomes.pivot_table(of, "x", "placement", sort=False)
    return table.rename_axis(columns=None)


def seed_spread(outcomes: pd.DataFrame) -> pd.DataFrame:
    """Return results per second over seeds, modelled.

    Columns: figure, x, reading (if there are several), placement, seeds, mean, least and most.
    """
    keys = [c for c in ("figure", "x", "reading", "placement") if c in outcomes]
    by = outcomes.groupby(keys, sort=False)["throughput"]
    spread = by.agg(["count", "mean", "min", "max"]).reset_index()
    return spread.rename(columns={"count": "seeds", "min": "least", "max": "most"})
