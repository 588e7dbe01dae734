"""Compare placements by simulation, to choose one for "auto".

The result is modelled, and the same for the same facts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, NamedTuple

from braid.core.batch_report import HostMetrics
from braid.core.placement import Placement, placements_for
from braid.core.plan_sentences import format_count
from braid.core.run_events import BatchCommitted, BatchPlanned
from braid.simulation.simulator import simulate

BATCHES = 8
"""Simulated batches of each candidate."""
WARM_UP = 3
"""First batches that do not count: placements that measure the streams adapt in them."""
_SIMULATIONS = 64
"""Simulations that are remembered."""
_SHORTEST = 1.0
"""Least seconds of event time to simulate. A window can be a microsecond, if times are equal."""
ROWS = 10_000
"""Tuples of the largest stream in a batch, about the size of a micro-batch."""
RECEIVED, PROBED, COMPARED, FOUND = 1.0, 0.5, 0.02, 0.1
"""Microseconds of a host to receive a tuple, to probe a host's blocks, to check a pair that no
index has found, and to write a result.
"""
BLOCK = {False: 2000.0, True: 150.0}
"""Microseconds to make a block and probe with it, by whether hosts are on several machines. 135
were measured in joins of 4,000 tuples a batch by a hash on 1 to 64 hosts (November 2026). On one
machine, more hosts bring no more than the cores do already, and the price keeps them few.
"""
SHARED = {False: 0.9, True: 0.02}
"""Share of the other hosts' work that the busiest host waits for, by whether hosts are on several
machines. Threads of one machine share memory and locks; several machines share only the driver. The
first is from joins of 4,000 to 16,000 tuples a batch on two cores: a hash on two hosts took 1.03 to
1.3 times the time of one host (benchmarks/auto.py). The second is an estimate.
"""
ORDER = {
    False: ("HashPartition", "Centralized", "HotKeys", "StaticGrid", "AdaptiveGrid"),
    True: ("HotKeys", "HashPartition", "AdaptiveGrid", "StaticGrid", "Centralized"),
}
"""Preference among placements of equal cost, by whether hosts are on several machines: on one, the
simplest first; on several, those first that store each tuple once or adapt. Others follow by name.
"""
EQUAL = {False: 1.03, True: 1.02}
"""Costs relative to the least that count as equal, likewise. Of nine cases in benchmarks/auto.py in
which several hosts of a machine were modelled as within a tenth of one host, eight took at least
1.03 times as long as modelled, relative to one host.
"""
FREQUENT = 0.1
"""Least share of tuples with the most frequent join value, in parts of a host's even share, at
which HotKeys is simulated. Below, it plans as HashPartition does.
"""


@dataclass(frozen=True, slots=True)
class JoinStatistics:
    """Facts about a join before it starts.

    - ``rows``: by stream, number of tuples, absolute or relative.
    - ``windows``: by stream, seconds; None: full history.
    - ``hosts``: tasks that run at once.
    - ``equality``: whether an equality links all streams.
    - ``compared_share``: share of all pairs that are compared; 1: no index finds partners.
    - ``event_time_span``: seconds of event time that the rows cover; 0: unknown.
    - ``most_frequent_share``: share of tuples with the most frequent join value; 0: unknown.
    - ``has_remote_hosts``: whether hosts are on several machines.
    - ``dimensions``: by class of columns that the condition makes equal, its streams, ascending.
    """

    rows: tuple[float, ...]
    windows: tuple[float | None, ...]
    hosts: int
    equality: bool
    compared_share: float
    event_time_span: float = 0.0
    most_frequent_share: float = 0.0
    has_remote_hosts: bool = False
    dimensions: tuple[tuple[int, ...], ...] = ()


class PlacementChoice(NamedTuple):
    """The chosen placement, the reason, and the cost of each candidate relative to it."""

    placement: Placement
    reason: str
    relative_costs: dict[str, float]


def choose_placement(statistics: JoinStatistics) -> PlacementChoice:
    """Return the placement with the least modelled work on the busiest host."""
    candidates = {type(p).__name__: p for p in candidate_placements(statistics)}
    costs = {name: simulate_cost(p, statistics) for name, p in candidates.items()}
    least = min(costs.values()) * EQUAL[statistics.has_remote_hosts]
    rounded = {name: round(max(cost, least), -2) for name, cost in costs.items()}
    preferred = ORDER[statistics.has_remote_hosts]
    best = min(costs, key=lambda name: (rounded[name], _make_preference_key(name, preferred)))
    order = sorted(costs, key=lambda name: (name != best, costs[name]))
    ratios = {name: costs[name] / costs[best] for name in order}
    return PlacementChoice(candidates[best], _explain_choice(statistics, best, ratios), ratios)


def candidate_placements(statistics: JoinStatistics) -> Iterable[Placement]:
    """Yield the placements that support the join on this number of hosts, with default settings."""
    streams = len(statistics.rows)
    has_values = statistics.equality or bool(statistics.dimensions)
    for name, kind in placements_for(streams, has_values).items():
        is_built_in = (
            kind.__module__.startswith("braid.") and kind.delivery_guarantee == "exactly once"
        )
        if not is_built_in or not _is_apt(name, statistics):
            continue
        try:
            placement = kind.from_settings(
                {"hosts": statistics.hosts} if "hosts" in kind.setting_names() else {}
            ).bind_dimensions(statistics.dimensions)
        except ValueError:  # too few hosts
            continue
        if placement.supports_streams(streams):
            yield placement


def _is_apt(name: str, statistics: JoinStatistics) -> bool:
    """Return whether a placement is a candidate, by the equalities and the number of hosts.

    A hash and HotKeys plan the same without frequent values, so one of them is enough. HyperCube is
    a candidate if no equality links all streams.
    """
    by_name = {
        "HashPartition": statistics.equality and statistics.hosts == 1,
        "HotKeys": statistics.equality and statistics.hosts > 1,
        "HyperCube": not statistics.equality,
        "StaticOpt": False,
    }
    return by_name.get(name, True)


def simulate_cost(placement: Placement, statistics: JoinStatistics) -> float:
    """Return the modelled microseconds of all simulated batches."""
    if type(placement).__name__ == "HotKeys" and (
        statistics.most_frequent_share * statistics.hosts < FREQUENT
    ):
        placement = Placement.class_by_name("HashPartition").from_settings(
            {"hosts": statistics.hosts}
        )
    return modelled_work(
        _simulate_placement(placement, _select_simulated_facts(statistics)),
        statistics.compared_share,
        statistics.has_remote_hosts,
        statistics.most_frequent_share**2 / _estimate_meeting_share(placement, statistics),
    )


def modelled_work(
    events: Iterable[Any], compared: float, has_remote_hosts: bool, matches: float
) -> float:
    """Return the modelled microseconds of the batches in some events, after the first ones.

    ``compared``, ``matches``: shares of meeting pairs that are compared, and that are results.
    """
    total = 0.0
    built_by_host: Counter[int] = Counter()
    for event in events:
        if isinstance(event, BatchPlanned):
            built_by_host = Counter(h for r in event.routes if r.is_fresh for h in r.block.hosts)
            built_by_host.update(h for d in event.derivations for h in d.block.hosts)
        elif isinstance(event, BatchCommitted) and event.batch >= WARM_UP:
            each = [
                _compute_host_micros(
                    metrics, built_by_host[h] * BLOCK[has_remote_hosts], compared, matches
                )
                for h, metrics in enumerate(event.host_metrics)
            ]
            busiest = max(each, default=0.0)
            total += busiest + SHARED[has_remote_hosts] * (sum(each) - busiest)
    return total


def _select_simulated_facts(statistics: JoinStatistics) -> JoinStatistics:
    """Return the facts on which a simulation depends, with the tuples of a batch as ``rows``."""
    most = max(statistics.rows, default=0.0) or 1.0
    rows = tuple(max(1.0, round(ROWS * n / most)) for n in statistics.rows)
    return replace(statistics, rows=rows, compared_share=0.0, has_remote_hosts=False)


@lru_cache(_SIMULATIONS)
def _simulate_placement(placement: Placement, statistics: JoinStatistics) -> Sequence[Any]:
    """Return the events of a simulated run.

    A simulation takes milliseconds, and joins of one session often have the same facts.
    """
    windows = [w for w in statistics.windows if w is not None]
    duration = statistics.event_time_span or max(_SHORTEST, 3 * max(windows, default=1.0))
    shares, batch = (
        _estimate_key_shares(placement, statistics),
        [int(rows) for rows in statistics.rows],
    )
    return simulate(
        placement,
        [batch] * BATCHES,
        windows=statistics.windows,
        seconds=duration / BATCHES,
        selectivity=1 / (ROWS * BATCHES),
        key_shares=[shares] * len(batch) if len(shares) > 1 else (),
    )


def _estimate_key_shares(placement: Placement, statistics: JoinStatistics) -> list[float]:
    """Return the share of tuples with each routing key, or each join value if it has several keys.

    Tuples of one value are assumed to have the same key or keys.
    """
    if placement.routing_key_source != "join":
        return [1.0]
    values = placement.key_space_size // placement.keys_per_value
    rest = (1 - statistics.most_frequent_share) / values
    return [statistics.most_frequent_share + rest, *[rest] * (values - 1)]


def _estimate_meeting_share(placement: Placement, statistics: JoinStatistics) -> float:
    """Return the share of pairs of tuples that meet: those of one host, if values select it.

    A value with several routing keys meets no other value of its host, once it is shared out.
    """
    if placement.routing_key_source != "join":
        return 1.0
    frequent, hosts = statistics.most_frequent_share, placement.hosts
    rest = (1 - frequent) / hosts
    mixed = 0.0 if placement.keys_per_value > 1 else 2 * frequent * rest
    return frequent**2 + mixed + hosts * rest**2


def _compute_host_micros(
    metrics: HostMetrics, block_micros: float, compared: float, matches: float
) -> float:
    """Return the modelled microseconds of a host's work.

    ``block_micros``: to make its blocks. ``matches`` is the share of meeting pairs that are
    results.
    """
    tuples = metrics.received_tuples + metrics.received_partials + metrics.migrated_tuples
    pairs = compared * metrics.compared_pairs
    match_micros = FOUND * matches * metrics.compared_pairs
    return (
        RECEIVED * tuples + PROBED * metrics.probes + COMPARED * pairs + match_micros + block_micros
    )


def _make_preference_key(name: str, preferred: Sequence[str]) -> tuple[int, str]:
    return (preferred.index(name) if name in preferred else len(preferred)), name


def _explain_choice(statistics: JoinStatistics, best: str, ratios: dict[str, float]) -> str:
    others = ", ".join(f"{name} {ratio:.2f}" for name, ratio in ratios.items() if name != best)
    facts = [f"{len(statistics.rows)} streams", format_count(statistics.hosts, "host")]
    facts.append("an equality links all" if statistics.equality else "no equality links all")
    if statistics.most_frequent_share:
        facts.append(
            f"its most frequent value has {statistics.most_frequent_share:.1%} of the tuples"
        )
    if statistics.compared_share == 1.0:
        facts.append("no index finds partners")
    than = f"; modelled work, compared with it: {others}" if others else ""
    return f"{best} for {', '.join(facts)}{than}"
