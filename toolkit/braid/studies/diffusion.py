"""The experiments of Gu, Yu and Wang, "Adaptive Load Diffusion for Multiway Windowed Stream Joins",
ICDE 2007, section 5.

All throughput here is modelled: ``simulate`` runs the placements without tuples, on hosts as Gu's
simulator drew them (``gu_hosts``), and a host that is asked for more than it can do sheds a share
of its probes. Only the time that a plan takes (``routing_time``) is measured. A micro-batch is one
second of event time.

Each experiment returns one row for each x, placement and seed: ``figure`` (of the paper), ``x``,
``placement``, ``seed``, and what ``outcome`` has.

``python -m braid.studies.diffusion --hosts 10000 --seconds 1000`` makes one run under ATR and one
under CTR, and tells how long they take.
"""

from __future__ import annotations

import time
from argparse import ArgumentParser
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from math import inf
from typing import Any

import numpy as np
import pandas as pd

from braid.core.cluster import GU, Costs, Host, gu_hosts
from braid.core.events import BatchCommitted
from braid.core.facts import Facts
from braid.core.placement import Placement, offered
from braid.core.plan import Plan
from braid.model.simulate import simulation
from braid.papers.baselines.centralized import Centralized
from braid.papers.diffusion.aligned import Aligned
from braid.papers.diffusion.coordinated import Coordinated, first_covers
from braid.papers.diffusion.setcover import chvatal_bound, exact_cover, greedy_cover
from braid.papers.diffusion.unaware import SemanticsUnaware
from braid.workloads.arrivals import Arrivals, drawn_rates

PLACEMENTS = (
    "ATR",
    "CTR",
    "ATR-unoptimized",
    "CTR-unoptimized",
    "Semantics-unaware",
    "Centralized",
)
"""As the paper calls them."""

_PAPERS = ("Aligned", "Coordinated", "SemanticsUnaware", "Centralized")

Contenders = Mapping[str, tuple[str, float]]
"""By label, a placement and the bound L on copies under CTR as a share of all hosts (of no matter
to the others).
"""

RIVALS: Contenders = {
    "ATR": ("ATR", 0),
    "CTR, L = J/2": ("CTR", 0.5),
    "CTR, L = J": ("CTR", 1),
    "ATR-unoptimized": ("ATR-unoptimized", 0),
    "CTR-unoptimized, L = J/2": ("CTR-unoptimized", 0.5),
    "Semantics-unaware": ("Semantics-unaware", 0),
    "Centralized": ("Centralized", 0),
}
ALIGNED_OR_COORDINATED: Contenders = {
    name: RIVALS[name] for name in ("ATR", "ATR-unoptimized", "CTR, L = J/2", "CTR, L = J")
}

TUPLE_BYTES = 1000
"""Size of a tuple; the paper gives none. Bandwidth and memory are in proportion to it."""


@dataclass(frozen=True)
class Setting:
    """One join S_1[W] x ... x S_n[W] on a heterogeneous cluster.

    ``streams`` n; ``window`` W in seconds; ``rates`` the range in tuples per second from which each
    stream's r_i is drawn; ``selectivity`` sigma of every pair of streams; ``hosts`` J; ``length`` T
    in seconds; ``seconds`` that the run lasts, after a warm-up of one ``window``; ``burst`` theta,
    None for steady Poisson arrivals (in bursts the mean rate is r_i / 2); ``copies`` L, the bound
    on the copies of a tuple under CTR (0: ceil(sqrt(J)); None: no bound, as printed); ``costs`` of
    the hosts; ``patience`` the seconds of work that may wait at a host before it sheds; ``seed`` of
    rates, arrivals and machines.
    """

    streams: int = 3
    window: float = 30.0
    rates: tuple[float, float] = (5.0, 20.0)
    selectivity: float = 0.1
    hosts: int = 30
    length: int = 1
    seconds: int = 120
    burst: float | None = None
    copies: int | None = 0
    costs: Costs = GU
    patience: float = 10.0
    seed: int = 0

    def machines(self, hosts: int) -> tuple[Host, ...]:
        """Hosts of unequal capacity, as Gu 2007, section 5.1, draws them."""
        return gu_hosts(hosts, self.seed)


def arrivals(setting: Setting) -> Arrivals:
    """The streams of a setting, warm-up and all, in micro-batches of a second."""
    s = setting
    rates = drawn_rates(s.streams, s.seed, *s.rates)
    windows = (s.window,) * s.streams
    return Arrivals(rates, s.window + s.seconds, 1.0, windows, s.selectivity, s.burst, seed=s.seed)


def choices() -> tuple[str, ...]:
    """The paper's placements, then all others that join any streams on any condition, by their
    registered names.
    """
    return (*PLACEMENTS, *(name for name in offered(3, equality=False) if name not in _PAPERS))


def placement(name: str, setting: Setting) -> Placement:
    """A placement by a name of ``choices``; those that are not the paper's get the number of hosts.
    Raises ValueError for any other name.
    """
    s = setting
    told = tuple((m.memory_mb, m.mips, m.mbps) for m in s.machines(s.hosts))
    if name in ("ATR", "ATR-unoptimized"):
        return Aligned(s.hosts, s.length, name == "ATR", cluster=told)
    if name in ("CTR", "CTR-unoptimized"):
        copies = s.copies if s.copies is None else min(s.copies, s.hosts)
        return Coordinated(s.hosts, s.length, name == "CTR", copies, cluster=told, seed=s.seed)
    if name == "Semantics-unaware":
        return SemanticsUnaware(s.hosts, s.length, cluster=told)
    if name == "Centralized":
        return Centralized()
    if name not in choices():
        raise ValueError(f"no placement is named {name!r}; there are: {', '.join(choices())}")
    return Placement.by_name(name).of({"hosts": s.hosts})


def run(under: Placement, setting: Setting) -> Iterator[Any]:
    """The events of the join under a placement, simulated, one after the other."""
    s = setting
    return simulation(
        under,
        arrivals(s).counts(),
        s.seed,
        (TUPLE_BYTES,) * s.streams,
        windows=(s.window,) * s.streams,
        selectivity=s.selectivity,
        cluster=s.machines(under.hosts),
        costs=s.costs,
        patience=s.patience,
    )


def outcome(events: Iterable[Any], warmup: float = 0.0) -> dict[str, float]:
    """What a simulated run comes to, in the mean over the batches from ``warmup`` on; all of it
    modelled.

    ``throughput`` results per second; ``work`` CPU seconds that all hosts spend for a second of
    input; ``mbits`` Mbit/s that go to hosts; ``stored`` replicas of a live tuple.
    """
    rows = [_batch(e) for e in events if isinstance(e, BatchCommitted) and e.batch >= warmup]
    return {name: float(np.mean([row[name] for row in rows])) for name in rows[0]}


def _batch(e: BatchCommitted) -> dict[str, float]:
    did = e.all_hosts
    sent = did.received_bytes + did.arrived_bytes + did.moved_bytes
    return {
        "throughput": e.results,
        "work": did.seconds,
        "mbits": sent * 8 / 1e6,
        "stored": did.stored / max(sum(e.live), 1),
    }


def counts(events: Iterable[Any]) -> dict[str, int]:
    """What a run counts in all, executed or modelled: the same names, so that both can be laid side
    by side.
    """
    done = [e for e in events if isinstance(e, BatchCommitted)]
    return {
        "tuples in": sum(done[-1].total),
        "tuples sent to hosts": sum(e.all_hosts.received for e in done),
        "replicas stored at the end": done[-1].all_hosts.stored,
        "probes": sum(e.all_hosts.probed for e in done),
        "intermediate results sent": sum(e.all_hosts.sent for e in done),
        "results": sum(e.results for e in done),
    }


def sweep(
    figure: str, settings: Mapping[Any, Setting], rivals: Contenders, seeds: int
) -> pd.DataFrame:
    """The outcome for every x (a key of ``settings``), rival and seed."""
    rows = []
    for x, setting in settings.items():
        for label, (name, share) in rivals.items():
            for seed in range(seeds):
                s = replace(setting, seed=seed, copies=max(1, round(share * setting.hosts)))
                got = outcome(run(placement(name, s), s), s.window)
                rows.append({"figure": figure, "x": x, "placement": label, "seed": seed} | got)
    return pd.DataFrame(rows)


def segment_length(
    seconds: int, seeds: int, lengths: Sequence[int] = (1, 2, 3, 4, 6, 9)
) -> pd.DataFrame:
    """Fig. 4: throughput of ATR by T, for two operators; x is T in seconds, ``streams`` tells the
    operator.

    The paper does not name its two. A two-way join of fast streams spends its time on copies, a
    three-way join on results.
    """
    operators = (
        Setting(2, 10.0, (100.0, 200.0), seconds=seconds),
        Setting(3, 10.0, (20.0, 40.0), seconds=seconds),
    )
    fixed = {"ATR, T fixed": ("ATR-unoptimized", 0.0)}
    runs = [
        sweep("4", {t: replace(s, length=t) for t in lengths}, fixed, seeds).assign(
            streams=s.streams
        )
        for s in operators
    ]
    return pd.concat(runs, ignore_index=True)


def total_results(window: float, seconds: int, seed: int = 0) -> pd.DataFrame:
    """Fig. 7 (W = 60) and 8 (W = 120): results since the start, by second, of three streams on six
    hosts.

    The paper's news videos are not to be had; streams of 2 to 8 tuples per second, selectivity 0.1,
    take their place. Columns: second, placement, results.
    """
    rivals = ("ATR", "CTR, L = J/2", "CTR, L = J", "Semantics-unaware", "Centralized")
    rows = []
    for label in rivals:
        name, share = RIVALS[label]
        s = Setting(
            3,
            window,
            (2.0, 8.0),
            hosts=6,
            copies=max(1, round(share * 6)),
            seconds=seconds,
            seed=seed,
        )
        total = 0
        for e in run(placement(name, s), s):
            if isinstance(e, BatchCommitted):
                total += e.results
                rows.append((e.batch, label, total))
    return pd.DataFrame(rows, columns=["second", "placement", "results"])


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
    """Fig. 9 (W = 60) and 10 (W = 120), measured on this machine: microseconds to route a segment
    of one second.

    One plan routes the segments of all three streams, so its time is divided by three. Columns:
    second, placement, micros.
    """
    rows: list[tuple[int, str, float]] = []
    for label in ("ATR", "CTR, L = J/2"):
        name, share = RIVALS[label]
        s = Setting(
            3,
            window,
            (2.0, 8.0),
            hosts=hosts,
            copies=max(1, round(share * hosts)),
            seconds=seconds,
            seed=seed,
        )
        timed = _Timed(placement(name, s))
        for _ in run(timed, s):
            pass
        rows += [(second, label, micros / s.streams) for second, micros in enumerate(timed.micros)]
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


def scalability(seconds: int, seeds: int, hosts: Sequence[int] = (10, 20, 40, 80)) -> pd.DataFrame:
    """Fig. 11 (throughput) and 12 (Mbit/s) by J: four streams, W = 30, rates from 5 to 20, sigma =
    0.1.
    """
    return sweep(
        "11, 12", {j: Setting(4, 30.0, hosts=j, seconds=seconds) for j in hosts}, RIVALS, seeds
    )


def stream_number(
    seconds: int, seeds: int, streams: Sequence[int] = (2, 3, 4, 5, 6)
) -> pd.DataFrame:
    """Fig. 13: W = 20 on 30 hosts; x is the number of streams.

    The paper names no sigma here. The 0.1 of its Fig. 11 leaves six streams less than one result in
    ten seconds (15 pairs have to match); with 0.15 they have a few in a second.
    """
    runs = {n: Setting(n, 20.0, selectivity=0.15, seconds=seconds) for n in streams}
    return sweep("13", runs, ALIGNED_OR_COORDINATED, seeds)


def window_size(
    seconds: int, seeds: int, windows: Sequence[int] = (10, 20, 30, 40, 50)
) -> pd.DataFrame:
    """Fig. 14: three streams on 30 hosts; x is W in seconds."""
    return sweep(
        "14",
        {w: Setting(3, float(w), seconds=seconds) for w in windows},
        ALIGNED_OR_COORDINATED,
        seeds,
    )


def selectivity(
    seconds: int, seeds: int, sigmas: Sequence[float] = (0.05, 0.1, 0.2, 0.4, 0.6, 1.0)
) -> pd.DataFrame:
    """Fig. 15: three streams, W = 30, on 30 hosts; x is sigma. The paper's range is 0.2 to 1."""
    return sweep(
        "15",
        {v: Setting(3, 30.0, selectivity=v, seconds=seconds) for v in sigmas},
        ALIGNED_OR_COORDINATED,
        seeds,
    )


def burstiness(
    seconds: int, seeds: int, thetas: Sequence[float] = (0.0, 0.25, 0.5, 0.75, 1.0)
) -> pd.DataFrame:
    """Fig. 16: three streams, W = 30, on 30 hosts; x is the bursty ratio theta. Mean rates are
    those of the other figures.
    """
    rates = (10.0, 40.0)  # of which the paper's HIGH and LOW rates are half in the mean
    return sweep(
        "16",
        {t: Setting(3, 30.0, rates, burst=t, seconds=seconds) for t in thetas},
        ALIGNED_OR_COORDINATED,
        seeds,
    )


@dataclass(frozen=True)
class Experiment:
    """One of the experiments of Fig. 11 to 16: what runs it (seconds, seeds, values of x), what x
    is called, its values, and the outcome that is shown beside throughput.
    """

    run: Callable[[int, int, Sequence[Any]], pd.DataFrame]
    x: str
    values: tuple[float, ...]
    beside: str = "work"
    log: bool = False

    def some(self, points: int) -> list[float]:
        """As many values of x as ``points`` says, the first and the last among them."""
        at = np.linspace(0, len(self.values) - 1, min(points, len(self.values)))
        return [self.values[k] for k in at.round().astype(int)]


EXPERIMENTS = {
    "11, 12": Experiment(scalability, "hosts J", (10, 20, 40, 80), "mbits", True),
    "13": Experiment(stream_number, "streams n", (2, 3, 4, 5, 6), log=True),
    "14": Experiment(window_size, "W (s)", (10, 20, 30, 40, 50)),
    "15": Experiment(selectivity, "selectivity σ", (0.05, 0.1, 0.2, 0.4, 0.6, 1.0), log=True),
    "16": Experiment(burstiness, "bursty ratio θ", (0.0, 0.25, 0.5, 0.75, 1.0)),
}
"""By the paper's figure."""

UNITS = {"mbits": "Mbit/s to hosts", "work": "CPU seconds per second"}
"""What the outcomes that are shown beside throughput are called, with their units."""


def curves(outcomes: pd.DataFrame, experiment: Experiment) -> dict[str, pd.DataFrame]:
    """What the figure of an experiment shows, by name with unit: means by x and placement. Zeros
    are left out of a logarithmic one.
    """
    through = means(outcomes)
    return {
        "results per second": through.replace(0, np.nan) if experiment.log else through,
        UNITS[experiment.beside]: means(outcomes, experiment.beside),
    }


def agreement(measured: Mapping[str, Iterable[Any]], setting: Setting) -> pd.DataFrame:
    """Runs on Spark beside the models of the same runs, in which no host sheds: placement, count,
    measured, modelled, ratio. ``measured`` holds events by placement.
    """
    patient = replace(setting, patience=inf)
    rows = []
    for name, events in measured.items():
        done, model = counts(events), counts(run(placement(name, setting), patient))
        rows += [(name, what, done[what], model[what]) for what in done]
    found = pd.DataFrame(rows, columns=["placement", "count", "measured", "modelled"])
    return found.assign(ratio=found["measured"] / found["modelled"])


def by_settings(chosen: Mapping[str, Any], seconds: int) -> Setting:
    """What the panel's controls say, as a setting."""
    plain = ("streams", "window", "selectivity", "hosts", "length", "copies")
    return Setting(
        **{name: chosen[name] for name in plain},
        rates=(chosen["slowest"], chosen["fastest"]),
        burst=chosen["burst"] if chosen["bursts"] else None,
        seconds=seconds,
    )


def modelled(chosen: Mapping[str, Any], seconds: int = 40) -> list[Any]:
    """The events of a modelled run by the panel's controls."""
    setting = by_settings(chosen, seconds)
    return list(run(placement(chosen["placement"], setting), setting))


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


def means(outcomes: pd.DataFrame, of: str = "throughput") -> pd.DataFrame:
    """One outcome in the mean over seeds: a row for each x, a column for each placement."""
    table = outcomes.pivot_table(of, "x", "placement", sort=False)
    return table.rename_axis(columns=None)


def main() -> None:
    """One run under each placement that is named, and how long it takes here."""
    parser = ArgumentParser(
        "python -m braid.studies.diffusion", description="Runs of Gu 2007, section 5, modelled."
    )
    parser.add_argument(
        "placements",
        nargs="*",
        default=["ATR", "CTR"],
        help=f"of {', '.join(PLACEMENTS)}; by default ATR and CTR",
    )
    for name, number in (
        ("hosts", 30),
        ("streams", 4),
        ("window", 30),
        ("seconds", 1000),
        ("seed", 0),
    ):
        parser.add_argument(f"--{name}", type=int, default=number, help=f"by default {number}")
    given = vars(parser.parse_args())
    names, setting = given.pop("placements"), Setting(**given)
    for name in names:
        began = time.perf_counter()
        got = outcome(run(placement(name, setting), setting), setting.window)
        told = ", ".join(f"{what} {value:.4g}" for what, value in got.items())
        print(
            f"{name}: {time.perf_counter() - began:.1f} s (measured); {told} (modelled)", flush=True
        )


if __name__ == "__main__":
    main()
