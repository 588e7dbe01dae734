"""The experiments on the PSP ring: Wang 2008, Fig. 16.1, 16.2, 16.6 and 16.7, all modelled.

``scheme_comparison`` compares the ring with ATR and CTR.

There are two models. The closed forms are those of ``braid_lab.psp.cost`` (chapter 13, section
15.1). The counted ones run the placements without tuples (``simulate``) and price what every node
does: pairs, sends and receipts by ``psp.simulated_hosts.wang_cost_parameters``.

The book prints neither times nor values for its cost terms. A pair takes 1 ns for a pixel and a
tuple 50 microseconds to send or to receive, as in ``wang_cost_parameters``. T_n is a parameter:
HOPS. At 2 ms the best lengths are in the book's range of 4 to 19 nodes; 0.1 ms is a hop of the
gigabit network that it names. Response times leave out queueing, except in ``adaptation_curves``,
which is about queues.

Columns that end in ``_modelled`` hold tuples or seconds, as their names say. Counted runs have a
seed, of the arrivals; ``seed_statistics`` returns their mean and range.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from braid.core.facts import HostUsage
from braid.core.placement import Placement
from braid.core.run_events import BatchCommitted
from braid.papers.psp.ring import Ring
from braid.papers.psp.run_events import RingResized
from braid.simulation.simulator import simulate

from braid_lab.psp import cost
from braid_lab.psp.simulated_hosts import wang_cost_parameters, wang_host_capacities
from braid_lab.workloads.poisson_arrivals import Arrivals

JOINS = {"small": 5.0, "middle": 10.0, "large": 20.0}
"""Join costs of section 16.1, in thousands of pixels for an image."""

HOPS = (0.0001, 0.0002, 0.0005, 0.001, 0.002)
"""T_n, seconds from one node of the ring to the next.

The range is from a fast local network to the one under which the book's best lengths result.
"""

BOOK_LENGTH = 14
"""The one best length that section 16.2 prints: 3-way, small join, selectivity 0.5."""


@dataclass(frozen=True)
class RingSetting:
    """An M-way join of section 16.1; the defaults are the book's.

    - ``rate``: lambda in tuples per second and stream.
    - ``window``: W in seconds.
    - ``sigma``: selectivity of each pair of streams.
    - ``join``: one of JOINS.
    - ``seconds``: duration of a counted run (the book's last 600).
    - ``step``: seconds of a micro-batch.
    - ``hop``: T_n in seconds.
    - ``seed``: of the Poisson arrivals.
    """

    streams: int = 3
    rate: float = 50.0
    window: float = 10.0
    sigma: float = 0.1
    join: str = "small"
    seconds: float = 60.0
    step: float = 0.5
    hop: float = HOPS[-1]
    seed: int = 0

    def cost_workload(self) -> cost.Workload:
        """Return the setting for the closed forms."""
        costs = wang_cost_parameters(JOINS[self.join])
        each = (1.0,) * self.streams
        return cost.Workload(
            tuple(self.rate * x for x in each),
            tuple(self.window * x for x in each),
            tuple(self.sigma * x for x in each),
            join=costs.compare_us * 1e-6,
            send=2e-3 * costs.transfer_ms,
            hop=self.hop,
        )

    def make_arrivals(self, factor: float = 1.0) -> Arrivals:
        """Return Poisson arrivals; half-way the rates change by ``factor``."""
        rates = (self.rate,) * self.streams
        changes = () if factor == 1 else ((self.seconds / 2, tuple(factor * r for r in rates)),)
        windows = (self.window,) * self.streams
        return Arrivals(
            rates, self.seconds, self.step, windows, self.sigma, changes=changes, seed=self.seed
        )

    def simulate_placement(self, placement: Placement, factor: float = 1.0) -> list[Any]:
        """Return the events of a counted run. No host sheds load."""
        given = self.make_arrivals(factor)
        return simulate(
            placement,
            given.batch_counts(),
            windows=given.windows,
            seconds=self.step,
            selectivity=self.sigma,
            seed=self.seed,
        )


def seed_statistics(runs: pd.DataFrame, value: str) -> pd.DataFrame:
    """Return mean, low and high of a value over seeds (all modelled), by the other columns."""
    excluded = ("seed", "kept")
    keys = [c for c in runs.columns if c not in excluded and not c.endswith("_modelled")]
    statistics = runs.groupby(keys, sort=False)[value].agg(["mean", "min", "max"])
    names = {"mean": "mean_modelled", "min": "low_modelled", "max": "high_modelled"}
    return statistics.rename(columns=names).reset_index()


def cost_breakdown(
    nodes: int = 4, setting: RingSetting = RingSetting(), seeds: Sequence[int] = (0,)
) -> pd.DataFrame:
    """Return Fig. 16.1, counted.

    Columns: join, part ("network" or "join"), seed, mean_modelled and deviation_modelled, seconds
    for one tuple over batches, and equation_modelled, the same by Eq. 13.1. The three joins differ
    only in the cost of a pair, so the network's part is counted once. The book says the same of its
    own runs: that is its setting, not a claim.
    """
    rows = []
    for seed in seeds:
        given = replace(setting, seed=seed)
        batches = steady_batches(given.simulate_placement(Ring(nodes)), given)
        tuples = np.array([sum(b.received_tuples) for b in batches])
        pairs = np.array([b.total_host_metrics.compared_pairs for b in batches]) / tuples
        sent = (
            np.array(
                [
                    b.total_host_metrics.received_tuples + b.total_host_metrics.received_partials
                    for b in batches
                ]
            )
            / tuples
        )
        for name, kilopixels in JOINS.items():
            costs, load = (
                wang_cost_parameters(kilopixels),
                replace(given, join=name).cost_workload(),
            )
            network = sent * 2e-3 * costs.transfer_ms, nodes * cost.send_seconds(load)
            joining = pairs * costs.compare_us * 1e-6, cost.probe_work(load)
            for part, (s, equation) in (("network", network), ("join", joining)):
                rows.append((name, part, seed, float(s.mean()), float(s.std()), equation))
    names = ["join", "part", "seed", "mean_modelled", "deviation_modelled", "equation_modelled"]
    return pd.DataFrame(rows, columns=names)


def response_times(
    nodes: Sequence[int] = tuple(range(4, 20)),
    sigmas: Sequence[float] = (0.05, 0.1, 0.5),
    joins: Iterable[str] = tuple(JOINS),
    hops: Sequence[float] = HOPS[-1:],
    setting: RingSetting = RingSetting(),
) -> pd.DataFrame:
    """Return Fig. 16.2 (a), (c), (e).

    Columns: join, sigma, hop (T_n, seconds), nodes, response_modelled (Eq. 13.5, seconds),
    best_modelled (Theorem 9, nodes).
    """
    rows = []
    for join, sigma, hop in product(joins, sigmas, hops):
        load = replace(setting, join=join, sigma=sigma, hop=hop).cost_workload()
        best = cost.optimal_length(load)
        rows += [
            (join, sigma, hop, n, cost.mean_latency_seconds(load, (n,) * load.stream_count), best)
            for n in nodes
        ]
    names = ["join", "sigma", "hop", "nodes", "response_modelled", "best_modelled"]
    return pd.DataFrame(rows, columns=names)


def count_ring_work(
    nodes: Sequence[int] = tuple(range(4, 20)),
    sigmas: Sequence[float] = (0.05, 0.1, 0.5),
    setting: RingSetting = RingSetting(seconds=14.0),
) -> pd.DataFrame:
    """Return Fig. 16.2 (a), (c), (e) by the ring itself, without hops.

    Columns: join, sigma, nodes, busy_counted (seconds of the busiest node for one tuple), and
    hops_modelled, M - 1 rounds of N / 2. ``price_hops`` adds what a hop takes.
    """
    rows = []
    for n, sigma in product(nodes, sigmas):
        given = replace(setting, sigma=sigma, step=min(setting.step, setting.window / (5 * n)))
        batches = steady_batches(given.simulate_placement(Ring(n)), given)
        for join in JOINS:
            busy = [
                busy_seconds(b, replace(given, join=join)).max() / sum(b.received_tuples)
                for b in batches
            ]
            rows.append((join, sigma, n, float(np.mean(busy)), (given.streams - 1) * n / 2))
    return pd.DataFrame(rows, columns=["join", "sigma", "nodes", "busy_counted", "hops_modelled"])


def price_hops(work: pd.DataFrame, hops: Sequence[float] = HOPS) -> pd.DataFrame:
    """Return ``count_ring_work`` with response_modelled for each T_n, in the column ``hop``."""
    frames = [
        work.assign(hop=t, response_modelled=work["busy_counted"] + t * work["hops_modelled"])
        for t in hops
    ]
    return pd.concat(frames, ignore_index=True)


def hop_seconds_for(length: int, sigma: float = 0.5, join: str = "small") -> float:
    """Return the T_n (seconds) at which Theorem 9 gives this length, for a 3-way join.

    It is what the book's one number implies about its network.
    """
    low, high = 1e-6, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        longer = (
            cost.optimal_length(RingSetting(sigma=sigma, join=join, hop=middle).cost_workload())
            > length
        )
        low, high = (middle, high) if longer else (low, middle)
    return (low + high) / 2


def steady_batches(events: Iterable[Any], setting: RingSetting) -> list[BatchCommitted]:
    """Return the batches with tuples after the first window, when states are full."""
    batches = [e for e in events if isinstance(e, BatchCommitted) and any(e.received_tuples)]
    return [b for b in batches if (b.batch + 1) * setting.step > setting.window]


def busy_seconds(b: BatchCommitted, setting: RingSetting) -> np.ndarray:
    """Return the seconds that each node is busy with a batch."""
    costs, node = wang_cost_parameters(JOINS[setting.join]), wang_host_capacities(1)[0]
    usage = [
        (h.received_tuples, h.received_partials, h.sent_partials, h.probes, h.compared_pairs)
        for h in b.host_metrics
    ]
    counts: list[Any] = [*np.array(usage, dtype=float).T]  # one column for all nodes
    return np.asarray(costs.busy_seconds(HostUsage(*counts), node))


@dataclass(frozen=True)
class RateChange:
    """A change of rates by ``factor`` half-way through a run, from ``setting.rate``."""

    setting: RingSetting
    factor: float


CHANGES = {
    "16.6": RateChange(RingSetting(rate=15.0, sigma=0.05, join="middle", step=0.25), 2.0),
    "16.7ab": RateChange(RingSetting(rate=12.0, sigma=0.2, step=0.25), 2.0),
    "16.7cd": RateChange(RingSetting(rate=8.0, sigma=0.2, step=0.25), 3.0),
}
"""Fig. 16.6 and 16.7.

The book starts from 50 tuples per second. At the costs above Fig. 16.6 would then need 20 nodes
before and 156 after the change, and in Fig. 16.7 sending alone would fill every node, at any number
of nodes. So rates start lower.
"""


def adaptation_curves(
    figure: str,
    seconds: float = 60.0,
    nodes: int = 3,
    most: int = 40,
    seeds: Sequence[int] = (0,),
) -> pd.DataFrame:
    """Return Fig. 16.6 and 16.7, counted, with and without adaptation.

    Columns: adapts, second, seed, nodes, response_modelled (seconds). A batch waits for those
    before it, then takes as long as its busiest node. With adaptation the ring takes nodes in, up
    to ``most``, by the pairs that it compares (``Ring(max_pairs_per_node=...)``: a third of what
    fills a node, because it sends and receives too). Raises ValueError for a figure that is not in
    CHANGES.
    """
    if figure not in CHANGES:
        raise ValueError(f"no figure is named {figure!r}; there are: {', '.join(CHANGES)}")
    frames = []
    for seed in seeds:
        setting = replace(CHANGES[figure].setting, seconds=seconds, seed=seed)
        third = int(setting.step / 3 / (JOINS[setting.join] * 1e-6))
        growing = Ring(nodes, max_pairs_per_node=third, max_hosts=most)
        for adapts, ring in ((False, Ring(nodes)), (True, growing)):
            events = setting.simulate_placement(ring, CHANGES[figure].factor)
            frames.append(_simulate_queue(events, setting, nodes).assign(adapts=adapts, seed=seed))
    names = ["adapts", "second", "seed", "nodes", "response_modelled"]
    return pd.concat(frames, ignore_index=True)[names]


def _simulate_queue(events: Iterable[Any], setting: RingSetting, nodes: int) -> pd.DataFrame:
    waiting, rows = 0.0, []
    for e in events:
        if isinstance(e, RingResized):
            nodes = e.nodes
        if isinstance(e, BatchCommitted):
            takes = float(busy_seconds(e, setting).max())
            rows.append((round(e.batch * setting.step, 6), nodes, waiting + takes))
            waiting = max(0.0, waiting + takes - setting.step)
    return pd.DataFrame(rows, columns=["second", "nodes", "response_modelled"])


MOST = 2_000_000
"""Maximum number of tuples of a run by plain settings, so that a control cannot ask for hours."""


def run_from_controls(
    rates: str = "20",
    windows: str = "10",
    streams: int = 3,
    sigma: float = 0.05,
    nodes: int = 6,
    form: str = "dynamic",
    slicing: str = "time",
    resize: int = 0,
    seconds: float = 40.0,
    step: float = 1.0,
    seed: int = 0,
) -> tuple[Arrivals, Ring]:
    """Return a run by plain settings, as panels and reports have them: the arrivals, and the ring.

    ``rates`` (tuples per second) and ``windows`` (seconds) are one number for all streams, or one
    for each, with commas between. Half-way the ring changes to ``resize`` nodes; 0: it does not.
    Raises ValueError for settings out of range.
    """
    each = _parse_numbers_per_stream("rates", rates, streams)
    if (expected := sum(each) * seconds * streams / len(each)) > MOST:
        raise ValueError(
            f"rates are {rates!r}, which makes {expected:,.0f} tuples in {seconds:g} seconds; a "
            f"run has at most {MOST:,}"
        )
    arrivals = Arrivals(
        each,
        seconds,
        step,
        _parse_numbers_per_stream("windows", windows, streams),
        sigma,
        seed=seed,
    )
    if min(w or 0 for w in arrivals.windows) <= 0:
        raise ValueError(f"windows are {windows!r}; a window lasts longer than 0 seconds")
    when = ((max(1, arrivals.micro_batch_count // 2), resize),) if resize else ()
    return arrivals, Ring(nodes, form=form, slicing=slicing, resize=when)  # type: ignore[arg-type]


def _parse_numbers_per_stream(what: str, text: str, streams: int) -> tuple[float, ...]:
    try:
        numbers = tuple(float(part) for part in text.split(","))
    except ValueError:
        numbers = ()
    if len(numbers) not in (1, streams):
        raise ValueError(
            f"{what} are {text!r}; give one number, or {streams} with commas between, one for each "
            "stream"
        )
    parsed = tuple(int(n) if n.is_integer() else n for n in numbers)
    return parsed * streams if len(parsed) == 1 else parsed


def simulate_all(arrivals: Arrivals, ring: Ring) -> list[Any]:
    """Return the events of the run without tuples."""
    return simulate(
        ring,
        arrivals.batch_counts(),
        windows=arrivals.windows,
        seconds=arrivals.step,
        selectivity=arrivals.sigma,
        streams=arrivals.stream_aliases,
    )


def compare_with_model(measured: Iterable[Any], simulated: Iterable[Any]) -> pd.DataFrame:
    """Return the same run measured and modelled: what, measured, modelled, ratio.

    Values are totals over all batches, and the state after the last. Tuples and state are counted
    in both; results and intermediate results are counts in one, expected numbers in the other.
    """
    sums: dict[str, Callable[[BatchCommitted], int]] = {
        "tuples in": lambda b: sum(b.received_tuples),
        "tuples sent to nodes": lambda b: b.total_host_metrics.received_tuples,
        "state moved": lambda b: b.total_host_metrics.migrated_tuples,
        "intermediate results sent": lambda b: b.total_host_metrics.sent_partials,
        "results": lambda b: b.results,
    }
    both = [
        [e for e in events if isinstance(e, BatchCommitted)] for events in (measured, simulated)
    ]
    rows = [(what, *(sum(map(count, batches)) for batches in both)) for what, count in sums.items()]
    rows.append(
        ("state at the end", *(batches[-1].total_host_metrics.stored_tuples for batches in both))
    )
    table = pd.DataFrame(rows, columns=["what", "measured", "modelled"])
    return table.assign(ratio=table["measured"] / table["modelled"].where(table["modelled"] > 0))
