"""The experiments on the PSP ring: Wang 2008, Fig. 16.1 and 16.2, all modelled.

``scheme_comparison`` compares the ring with ATR and CTR; ``adaptation`` has Fig. 16.6 and 16.7.

There are two models. The closed forms are those of ``braid_lab.psp.cost`` (chapter 13, section
15.1). The counted ones run the placements without tuples (``simulate``) and price what every node
does: pairs, sends and receipts by ``psp.simulated_hosts.wang_cost_parameters``.

The book prints neither times nor values for its cost terms. A pair takes 1 ns for a pixel and a
tuple 50 microseconds to send or to receive, as in ``wang_cost_parameters``. T_n is a parameter:
HOPS. At 2 ms the best lengths are in the book's range of 4 to 19 nodes; 0.1 ms is a hop of the
gigabit network that it names. Response times leave out queueing.

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
from braid.core.cluster_model import CostParameters
from braid.core.facts import HostUsage
from braid.core.placement import Placement
from braid.core.run_events import BatchCommitted
from braid.papers.psp.ring import Ring
from braid.simulation.simulator import simulate

from braid_lab.common.recorded_settings import concat_runs, record_values
from braid_lab.psp import cost, simulated_hosts
from braid_lab.workloads.poisson_arrivals import Arrivals

JOINS = {"small": 5.0, "middle": 10.0, "large": 20.0}
"""Join costs of section 16.1, in thousands of pixels for an image."""

HOPS = (0.0001, 0.0002, 0.0005, 0.001, 0.002)
"""T_n, seconds from one node of the ring to the next.

The range is from a fast local network to the one under which the book's best lengths result.
"""

SENDS = (1.0, 10.0)
"""T_s as multiples of ours, at which Theorem 9 is tested: N_1 is the lesser, and N_2."""
BOOK_LENGTH = 14
"""The one best length that section 16.2 prints: 3-way, small join, selectivity 0.5."""
SLICE_BATCHES = 5
"""The least number of micro-batches in a slice of a ring, where rings are compared."""
BOOK_SECONDS = 600
"""How much of a run the book judges."""


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
    - ``price``: the costs of a pair and of a send, as a share of ours.
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
    price: float = 1.0

    @property
    def costs(self) -> CostParameters:
        """The costs of a pair and of a send."""
        costs = simulated_hosts.wang_cost_parameters(JOINS[self.join])
        pair, send = self.price * costs.compare_us, self.price * costs.transfer_ms
        return replace(costs, compare_us=pair, transfer_ms=send)

    def record_run(self, frame: pd.DataFrame, **more: object) -> pd.DataFrame:
        """Add to the frame of a run the values of its setting that are no columns, and more."""
        names = ("streams", "rate", "window", "sigma", "join", "seconds", "step")
        same = {name: getattr(self, name) for name in names if name not in frame}
        joins = JOINS if "join" in frame else (self.join,)
        costs = [replace(self, join=join).costs for join in joins]
        pairs, sends = ([getattr(c, n) for c in costs] for n in ("compare_us", "transfer_ms"))
        priced = {"pair_us": pairs, "send_us": [1e3 * send for send in sends]}
        values = {**same, **priced, "printed_seconds": BOOK_SECONDS, **more}
        return record_values(
            frame, slice_batches=SLICE_BATCHES, ring_hops="M - 1 rounds of N / 2", **values
        )

    def cost_workload(self) -> cost.Workload:
        """Return the setting for the closed forms."""
        costs = self.costs
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
    for one tuple over batches, printed_modelled, the same by Eq. 13.1, which has T_j for a result,
    and equation_modelled, where it is for a pair, and the network's part has N - 1 sends of an
    intermediate result, which is not sent to the node where it was found. The three joins differ
    only in the cost of a pair, so the network's part is counted once. The book says the same of its
    own runs: that is its setting, not a claim.
    """
    rows = []
    for seed in seeds:
        given = replace(setting, seed=seed)
        batches = steady_batches(given.simulate_placement(Ring(nodes)), given)
        tuples = np.array([sum(b.received_tuples) for b in batches])
        totals = [b.total_host_metrics for b in batches]
        pairs = np.array([t.compared_pairs for t in totals]) / tuples
        sent = np.array([t.received_tuples + t.received_partials for t in totals]) / tuples
        compared, partials, results = probe_counts(given)
        for name in JOINS:
            costs = replace(given, join=name).costs
            send, pair = 2e-3 * costs.transfer_ms, costs.compare_us * 1e-6
            sends = nodes + (nodes - 1) * partials
            network = sent * send, nodes * (1 + partials) * send, sends * send
            joining = pairs * pair, (partials + results) * pair, compared * pair
            for part, (s, printed, equation) in (("network", network), ("join", joining)):
                mean, spread = float(s.mean()), float(s.std())
                rows.append((name, part, seed, mean, spread, printed, equation))
    names = ["mean_modelled", "deviation_modelled", "printed_modelled", "equation_modelled"]
    frame = pd.DataFrame(rows, columns=["join", "part", "seed", *names])
    return setting.record_run(frame, nodes=nodes)


def probe_counts(setting: RingSetting) -> tuple[float, float, float]:
    """Return a tuple's compared pairs, intermediate results, and results, by Eq. 13.1.

    S of the k-th probing step is sigma^k: a match fits each of the k tuples before it.
    """
    window, probing, pairs, partials = setting.rate * setting.window, 1.0, 0.0, 0.0
    for step in range(1, setting.streams):
        pairs += probing * window
        probing *= window * setting.sigma**step
        partials += probing if step < setting.streams - 1 else 0.0
    return pairs, partials, probing


def response_times(
    nodes: Sequence[int] = tuple(range(4, 20)),
    sigmas: Sequence[float] = (0.05, 0.1, 0.5),
    joins: Iterable[str] = tuple(JOINS),
    hops: Sequence[float] = HOPS[-1:],
    setting: RingSetting = RingSetting(),
    sends: Sequence[float] = (1.0,),
) -> pd.DataFrame:
    """Return Fig. 16.2 (a), (c), (e).

    Columns: join, sigma, hop (T_n, seconds), sends (T_s as a multiple of ours), nodes,
    response_modelled (Eq. 13.5, seconds), first_modelled and second_modelled (N_1 and N_2 of
    Theorem 9, nodes).
    """
    rows = []
    for join, sigma, hop, sent in product(joins, sigmas, hops, sends):
        load = replace(setting, join=join, sigma=sigma, hop=hop).cost_workload()
        load = replace(load, send=sent * load.send)
        best = cost.find_equal_part_lengths(load)
        for n in nodes:
            response = cost.mean_latency_seconds(load, (n,) * load.stream_count)
            rows.append((join, sigma, hop, sent, n, response, *best))
    names = ["join", "sigma", "hop", "sends", "nodes"]
    columns = [*names, *(f"{c}_modelled" for c in ("response", "first", "second"))]
    frame = pd.DataFrame(rows, columns=columns)
    sent_us = [2e3 * sent * setting.costs.transfer_ms for sent in sends]
    return setting.record_run(frame, hop_ms=to_milliseconds(hops), sent_us=sent_us)


def to_milliseconds(hops: Iterable[float]) -> tuple[float, ...]:
    """Return each T_n in milliseconds, as settings of claims have it."""
    return tuple(1e3 * seconds for seconds in hops)


def count_ring_work(
    nodes: Sequence[int] = tuple(range(4, 20)),
    sigmas: Sequence[float] = (0.05, 0.1, 0.5),
    setting: RingSetting = RingSetting(seconds=14.0),
    seeds: Sequence[int] = (0,),
) -> pd.DataFrame:
    """Return Fig. 16.2 (a), (c), (e) by the ring itself, without hops.

    Columns: join, sigma, nodes, seed, busy_counted (seconds of the busiest node for one tuple), and
    hops_modelled, M - 1 rounds of N / 2. ``price_hops`` adds what a hop takes.
    """
    rows = []
    for n, sigma, seed in product(nodes, sigmas, seeds):
        given = with_fine_batches(replace(setting, sigma=sigma, seed=seed), n)
        batches = steady_batches(given.simulate_placement(Ring(n)), given)
        hops = (setting.streams - 1) * n / 2
        for join in JOINS:
            busy = busiest_seconds(batches, replace(given, join=join))
            rows.append((join, sigma, n, seed, busy, hops))
    names = ["join", "sigma", "nodes", "seed", "busy_counted", "hops_modelled"]
    return setting.record_run(pd.DataFrame(rows, columns=names))


def price_hops(work: pd.DataFrame, hops: Sequence[float] = HOPS) -> pd.DataFrame:
    """Return ``count_ring_work`` with response_modelled for each T_n, in the column ``hop``."""
    frames = [
        work.assign(hop=t, response_modelled=work["busy_counted"] + t * work["hops_modelled"])
        for t in hops
    ]
    return concat_runs(frames)


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


def with_fine_batches(setting: RingSetting, nodes: int) -> RingSetting:
    """Return the setting with batches short enough for ``nodes``: at most W / (SLICE_BATCHES N)."""
    finest = setting.window / (SLICE_BATCHES * nodes)
    return replace(setting, step=min(setting.step, finest))


def busiest_seconds(batches: Sequence[BatchCommitted], setting: RingSetting) -> float:
    """Return the seconds of the busiest node for one tuple, the mean over batches with tuples."""
    return float(
        np.mean([busy_seconds(b, setting).max() / sum(b.received_tuples) for b in batches])
    )


def busy_seconds(b: BatchCommitted, setting: RingSetting) -> np.ndarray:
    """Return the seconds that each node is busy with a batch."""
    costs, node = setting.costs, simulated_hosts.wang_host_capacities(1)[0]
    usage = [
        (h.received_tuples, h.received_partials, h.sent_partials, h.probes, h.compared_pairs)
        for h in b.host_metrics
    ]
    counts: list[Any] = [*np.array(usage, dtype=float).T]  # one column for all nodes
    return np.asarray(costs.busy_seconds(HostUsage(*counts), node))


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
