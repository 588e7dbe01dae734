"""The experiments on the PSP ring: Wang 2008, Fig. 15.1 and 16.1 to 16.7. Everything here is
modelled, nothing is measured.

Two models serve. The closed forms are those of ``placement.ring_cost`` (chapter 13, section 15.1).
The counted ones run the placements without tuples (``simulate``) and price what every node does:
pairs, sends and receipts by ``hosts.wang_costs``.

The book prints neither times nor values for its cost terms. A pair takes 1 ns for a pixel and a
tuple 50 microseconds to send or to receive, as in ``wang_costs``. ``HOP``, T_n, is 2 ms, which puts
the best lengths into the book's range of 4 to 19 nodes. Response times leave out queueing, but for
``adaptation``, where queues are the point.

Columns that end in ``_modelled`` hold tuples or seconds, as their names say.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from braid.core.cluster import wang_costs, wang_hosts
from braid.core.events import BatchCommitted
from braid.core.facts import Usage
from braid.core.placement import Placement
from braid.model.simulate import simulate
from braid.papers.diffusion.aligned import Aligned
from braid.papers.diffusion.coordinated import Coordinated
from braid.papers.psp import cost
from braid.papers.psp.events import RingResized
from braid.papers.psp.ring import Ring
from braid.workloads.arrivals import Arrivals

JOINS = {"small": 5.0, "middle": 10.0, "large": 20.0}
"""Join costs of section 16.1, in thousands of pixels for an image."""

HOP = 0.002
"""T_n: seconds from one node of the ring to the next."""


@dataclass(frozen=True)
class Setting:
    """An M-way join of section 16.1; the defaults are its own.

    ``rate`` lambda in tuples per second and stream, ``window`` W in seconds, ``sigma`` the
    selectivity of each pair of streams, ``join`` one of JOINS, ``seconds`` that a counted run lasts
    (the book's last 600), ``step`` seconds of a micro-batch, ``seed`` of the Poisson arrivals.
    """

    streams: int = 3
    rate: float = 50.0
    window: float = 10.0
    sigma: float = 0.1
    join: str = "small"
    seconds: float = 60.0
    step: float = 0.5
    seed: int = 0

    def load(self) -> cost.Workload:
        """The same for the closed forms."""
        costs = wang_costs(JOINS[self.join])
        each = (1.0,) * self.streams
        return cost.Workload(
            tuple(self.rate * x for x in each),
            tuple(self.window * x for x in each),
            tuple(self.sigma * x for x in each),
            join=costs.compare_us * 1e-6,
            send=2e-3 * costs.transfer_ms,
            hop=HOP,
        )

    def arrivals(self, factor: float = 1.0) -> Arrivals:
        """Poisson arrivals; half-way the rates change by ``factor``."""
        rates = (self.rate,) * self.streams
        changes = () if factor == 1 else ((self.seconds / 2, tuple(factor * r for r in rates)),)
        windows = (self.window,) * self.streams
        return Arrivals(
            rates, self.seconds, self.step, windows, self.sigma, changes=changes, seed=self.seed
        )

    def run(self, placement: Placement, factor: float = 1.0) -> list[Any]:
        """The events of a counted run. No host sheds load."""
        given = self.arrivals(factor)
        return simulate(
            placement,
            given.counts(),
            windows=given.windows,
            seconds=self.step,
            selectivity=self.sigma,
            seed=self.seed,
        )


def schemes(
    nodes: Sequence[int] = tuple(range(4, 20)),
    setting: Setting = Setting(),
    copies: int = 2,
    segment: float = 10.0,
) -> pd.DataFrame:
    """Fig. 15.1 and the equations above it: nodes, scheme, memory_modelled (tuples), sent_modelled
    (sends for one tuple).

    Closed forms; for ATR with the book's N segments at a time.
    """
    load = setting.load()
    rows = []
    for n in nodes:
        rows.append((n, "PSP", cost.memory_psp(load), cost.sent_psp(load, n)))
        rows.append((n, "CTR", cost.memory_ctr(load, copies), cost.sent_ctr(load, n, copies)))
        rows.append((n, "ATR", cost.memory_atr(load, n, segment), cost.sent_atr(load, segment)))
    return pd.DataFrame(rows, columns=["nodes", "scheme", "memory_modelled", "sent_modelled"])


def breakdown(nodes: int = 4, setting: Setting = Setting()) -> pd.DataFrame:
    """Fig. 16.1: join, part ("network" or "join"), mean_modelled and deviation_modelled, seconds
    for one tuple over batches.

    Counted. As in the book the network's share is the same for all join costs, so it is told once
    for each.
    """
    batches = _settled(setting.run(Ring(nodes)), setting)
    rows = []
    for name, kilopixels in JOINS.items():
        costs = wang_costs(kilopixels)
        tuples = np.array([sum(b.received) for b in batches])
        pairs = np.array([b.all_hosts.compared for b in batches])
        sends = np.array([b.all_hosts.received + b.all_hosts.arrived for b in batches])
        parts = {
            "network": sends * 2e-3 * costs.transfer_ms,
            "join": pairs * costs.compare_us * 1e-6,
        }
        rows += [
            (name, part, float((s / tuples).mean()), float((s / tuples).std()))
            for part, s in parts.items()
        ]
    return pd.DataFrame(rows, columns=["join", "part", "mean_modelled", "deviation_modelled"])


def response(
    nodes: Sequence[int] = tuple(range(4, 20)),
    sigmas: Sequence[float] = (0.05, 0.1, 0.5),
    joins: Iterable[str] = tuple(JOINS),
    setting: Setting = Setting(),
) -> pd.DataFrame:
    """Fig. 16.2 (a), (c), (e): join, sigma, nodes, response_modelled (Eq. 13.5, seconds),
    best_modelled (Theorem 9, nodes).
    """
    rows = []
    for join in joins:
        for sigma in sigmas:
            load = replace(setting, join=join, sigma=sigma).load()
            best = cost.optimal_length(load)
            rows += [(join, sigma, n, cost.latency(load, (n,) * load.streams), best) for n in nodes]
    return pd.DataFrame(
        rows, columns=["join", "sigma", "nodes", "response_modelled", "best_modelled"]
    )


def contenders(nodes: int) -> dict[str, Placement]:
    """The schemes of sections 16.2 to 16.4 by name; segments of W and 3 W, copies 2 and half of the
    nodes.

    Lengths are in batches, for the ``step`` and ``window`` of the default Setting.
    """
    short = round(Setting.window / Setting.step)
    return {
        "PSP": Ring(nodes, form="basic"),
        "PSP-D": Ring(nodes),
        "PSP-I": Ring(nodes, form="interleaved"),
        "ATR, T = W": Aligned(nodes, length=short, adaptive=False),
        "ATR, T = 3 W": Aligned(nodes, length=3 * short, adaptive=False),
        "CTR, 2 copies": Coordinated(nodes, copies=2),
        "CTR, N/2 copies": Coordinated(nodes, copies=max(2, nodes // 2)),
    }


def rivals(
    nodes: Sequence[int] = (4, 8, 12, 16), setting: Setting = Setting(sigma=0.05, seconds=120.0)
) -> pd.DataFrame:
    """Fig. 16.2 to 16.5: nodes, scheme, stored_modelled, left_modelled (tuples), response_modelled
    (seconds). Counted.

    ``stored``: tuples that are live, with their copies, the mean over batches. ``left``: the same,
    if a host purges only when a tuple comes to it (cross-purge), so that an idle host keeps its
    last segment; the end of the run. ``response``: what the busiest node does for one tuple, and
    the hops: M - 1 rounds of N / 2 on a ring, M - 1 under CTR, one under ATR.
    """
    rows = []
    for n in nodes:
        for name, placement in contenders(n).items():
            events = setting.run(placement)
            batches = _settled(events, setting)
            stored = float(np.mean([b.all_hosts.stored for b in batches]))
            rows.append(
                (
                    n,
                    name,
                    stored,
                    _left(events, n),
                    _busiest(batches, setting) + _hops(placement, setting) * HOP,
                )
            )
    return pd.DataFrame(
        rows, columns=["nodes", "scheme", "stored_modelled", "left_modelled", "response_modelled"]
    )


def rivals_by_streams(
    nodes: Sequence[int], streams: Iterable[int], setting: Setting
) -> pd.DataFrame:
    """``rivals`` for each number of streams, which the column ``streams`` holds."""
    runs = [rivals(nodes, replace(setting, streams=m)).assign(streams=m) for m in streams]
    return pd.concat(runs, ignore_index=True)


def _hops(placement: Placement, setting: Setting) -> float:
    """Hops of a tuple and its intermediate results: M - 1 rounds of N / 2 on a ring, M - 1 under
    CTR, one under ATR.
    """
    rounds = setting.streams - 1
    if isinstance(placement, Ring):
        return rounds * placement.hosts / 2
    return rounds if isinstance(placement, Coordinated) else 1


def _left(events: Iterable[Any], nodes: int) -> int:
    left = [0] * nodes
    for b in (e for e in events if isinstance(e, BatchCommitted)):
        left = [h.stored if h.received else n for h, n in zip(b.hosts, left, strict=True)]
    return sum(left)


def _settled(events: Iterable[Any], setting: Setting) -> list[BatchCommitted]:
    """The batches with tuples after the first window, when states are full."""
    batches = [e for e in events if isinstance(e, BatchCommitted) and any(e.received)]
    return [b for b in batches if (b.batch + 1) * setting.step > setting.window]


def _work(b: BatchCommitted, setting: Setting) -> np.ndarray:
    """Seconds that each node is busy with a batch."""
    costs, node = wang_costs(JOINS[setting.join]), wang_hosts(1)[0]
    did = (Usage(h.received, h.arrived, h.sent, h.probed, h.compared) for h in b.hosts)
    return np.array([costs.busy(counts, node) for counts in did])


def _busiest(batches: Sequence[BatchCommitted], setting: Setting) -> float:
    """Seconds of the busiest node for one tuple, the mean over batches."""
    return float(np.mean([_work(b, setting).max() / sum(b.received) for b in batches]))


@dataclass(frozen=True)
class Change:
    """Half-way through a run the rates grow by ``factor``, from ``setting.rate``."""

    setting: Setting
    factor: float


CHANGES = {
    "16.6": Change(Setting(rate=15.0, sigma=0.05, join="middle", step=0.25), 2.0),
    "16.7ab": Change(Setting(rate=12.0, sigma=0.2, step=0.25), 2.0),
    "16.7cd": Change(Setting(rate=8.0, sigma=0.2, step=0.25), 3.0),
}
"""Fig. 16.6 and 16.7. The book starts from 50 tuples per second. At the costs above Fig. 16.6 would
then ask for 20 nodes before and 156 after the change, and in Fig. 16.7 sending alone would fill
every node, however many there are. So rates start lower.
"""


def adaptation(
    figure: str, seconds: float = 60.0, nodes: int = 3, most: int = 40, seed: int = 0
) -> pd.DataFrame:
    """Fig. 16.6 and 16.7: adapts, second, nodes, response_modelled (seconds), with and without
    adaptation. Counted.

    A batch waits for those before it, then takes as long as its busiest node. With adaptation the
    ring takes nodes in, up to ``most``, by the pairs that it compares (``Ring(capacity=...)``: a
    third of what fills a node, for it sends and receives too). Raises ValueError for a figure that
    is not among CHANGES.
    """
    if figure not in CHANGES:
        raise ValueError(f"no figure is named {figure!r}; there are: {', '.join(CHANGES)}")
    setting = replace(CHANGES[figure].setting, seconds=seconds, seed=seed)
    third = int(setting.step / 3 / (JOINS[setting.join] * 1e-6))
    frames = []
    for adapts, ring in ((False, Ring(nodes)), (True, Ring(nodes, capacity=third, max_hosts=most))):
        events = setting.run(ring, CHANGES[figure].factor)
        frames.append(_queue(events, setting, nodes).assign(adapts=adapts))
    return pd.concat(frames, ignore_index=True)[["adapts", "second", "nodes", "response_modelled"]]


def _queue(events: Iterable[Any], setting: Setting, nodes: int) -> pd.DataFrame:
    waiting, rows = 0.0, []
    for e in events:
        if isinstance(e, RingResized):
            nodes = e.new
        if isinstance(e, BatchCommitted):
            takes = float(_work(e, setting).max())
            rows.append((round(e.batch * setting.step, 6), nodes, waiting + takes))
            waiting = max(0.0, waiting + takes - setting.step)
    return pd.DataFrame(rows, columns=["second", "nodes", "response_modelled"])


def by_settings(
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
    """A run by plain settings, as panels and reports have them: what arrives, and the ring.

    ``rates`` (tuples per second) and ``windows`` (seconds) are one number for all streams, or one
    for each, with commas between. Half-way the ring goes to ``resize`` nodes; 0 leaves it as it is.
    Raises ValueError for settings out of range.
    """
    arrivals = Arrivals(
        _each("rates", rates, streams),
        seconds,
        step,
        _each("windows", windows, streams),
        sigma,
        seed=seed,
    )
    if min(w or 0 for w in arrivals.windows) <= 0:
        raise ValueError(f"windows are {windows!r}; a window lasts longer than 0 seconds")
    when = ((max(1, arrivals.batches // 2), resize),) if resize else ()
    return arrivals, Ring(nodes, form=form, slicing=slicing, resize=when)  # type: ignore[arg-type]


def _each(what: str, text: str, streams: int) -> tuple[float, ...]:
    try:
        numbers = tuple(float(part) for part in text.split(","))
    except ValueError:
        numbers = ()
    if len(numbers) not in (1, streams):
        raise ValueError(
            f"{what} are {text!r}; give one number, or {streams} with commas between, one for each "
            "stream"
        )
    whole = tuple(int(n) if n.is_integer() else n for n in numbers)
    return whole * streams if len(whole) == 1 else whole


def modelled(arrivals: Arrivals, ring: Ring) -> list[Any]:
    """The events of the run without tuples."""
    return simulate(
        ring,
        arrivals.counts(),
        windows=arrivals.windows,
        seconds=arrivals.step,
        selectivity=arrivals.sigma,
        streams=arrivals.streams,
    )


def agreement(measured: Iterable[Any], simulated: Iterable[Any]) -> pd.DataFrame:
    """The same run done both ways: what, measured, modelled, ratio; totals over all batches, and
    the state after the last.

    Tuples and state are counted in both. Results and intermediate results are counted in one,
    expected numbers in the other.
    """
    sums: dict[str, Callable[[BatchCommitted], int]] = {
        "tuples in": lambda b: sum(b.received),
        "tuples sent to nodes": lambda b: b.all_hosts.received,
        "state moved": lambda b: b.all_hosts.moved,
        "intermediate results sent": lambda b: b.all_hosts.sent,
        "results": lambda b: b.results,
    }
    both = [
        [e for e in events if isinstance(e, BatchCommitted)] for events in (measured, simulated)
    ]
    rows = [(what, *(sum(map(count, batches)) for batches in both)) for what, count in sums.items()]
    rows.append(("state at the end", *(batches[-1].all_hosts.stored for batches in both)))
    found = pd.DataFrame(rows, columns=["what", "measured", "modelled"])
    return found.assign(ratio=found["measured"] / found["modelled"].where(found["modelled"] > 0))
