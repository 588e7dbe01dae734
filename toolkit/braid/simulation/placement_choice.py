"""Choose the placement for "auto": simulate each candidate, and compare the modelled work.

The result is modelled, and the same for the same facts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from braid.core.batch_report import HostMetrics
from braid.core.events import BatchCommitted, BatchPlanned
from braid.core.placement import Placement, placements_for
from braid.core.plan_sentences import format_count
from braid.simulation.simulator import simulate

BATCHES = 8
"""Simulated batches of each candidate."""
ROWS = 10_000
"""Tuples of the largest stream in a batch, about the size of a micro-batch."""
RECEIVED, PROBED, COMPARED, FOUND, BLOCK = 1.0, 0.5, 0.02, 0.1, 2000.0
"""Microseconds of a host to receive a tuple, to probe a host's blocks, to check a pair that no
index has found, to write a result, and to make a block. 2 to 3 ms were measured for each additional
block in a batch of 4,000 tuples (benchmarks/auto.py).
"""
SHARED = {False: 0.9, True: 0.02}
"""Share of the other hosts' work that the busiest host waits for, by whether hosts are on several
machines. Threads of one machine share memory and locks; several machines share only the driver. The
first is from joins of 4,000 to 16,000 tuples a batch on two cores: a hash on two hosts took 1.03 to
1.3 times the time of one host (benchmarks/auto.py). The second is an estimate.
"""
ORDER = ("HashPartition", "AdaptiveGrid", "StaticGrid", "Centralized")
"""Preference among placements of equal cost. Others follow by name."""


@dataclass(frozen=True, slots=True)
class JoinStatistics:
    """Facts about a join before it starts.

    - ``rows``: by stream, number of tuples, absolute or relative.
    - ``windows``: by stream, seconds; None: full history.
    - ``hosts``: tasks that run at once.
    - ``equality``: whether an equality links all streams.
    - ``is_indexed``: whether an index finds partners.
    - ``event_time_span``: seconds of event time that the rows cover; 0: unknown.
    - ``most_frequent_share``: share of tuples with the most frequent join value; 0: unknown.
    - ``has_remote_hosts``: whether hosts are on several machines.
    """

    rows: tuple[float, ...]
    windows: tuple[float | None, ...]
    hosts: int
    equality: bool
    is_indexed: bool
    event_time_span: float = 0.0
    most_frequent_share: float = 0.0
    has_remote_hosts: bool = False


class PlacementChoice(NamedTuple):
    """The chosen placement, the reason, and the cost of each candidate relative to it."""

    placement: Placement
    reason: str
    relative_costs: dict[str, float]


def choose_placement(known: JoinStatistics) -> PlacementChoice:
    """Return the placement with the least modelled work on the busiest host."""
    candidates = {type(p).__name__: p for p in candidate_placements(known)}
    costs = {name: simulate_cost(p, known) for name, p in candidates.items()}
    best = min(costs, key=lambda name: (round(costs[name], -2), _make_preference_key(name)))
    ratios = {name: costs[name] / costs[best] for name in sorted(costs, key=costs.__getitem__)}
    return PlacementChoice(candidates[best], _explain_choice(known, best, ratios), ratios)


def candidate_placements(known: JoinStatistics) -> Iterable[Placement]:
    """Yield the placements that support the join on this number of hosts, with default settings."""
    streams = len(known.rows)
    for kind in placements_for(streams, known.equality).values():
        is_built_in = (
            kind.__module__.startswith("braid.") and kind.delivery_guarantee == "exactly once"
        )
        if not is_built_in or kind.routing_key_source == "both" or kind.__name__ == "StaticOpt":
            continue
        try:
            placement = kind.from_settings(
                {"hosts": known.hosts} if "hosts" in kind.setting_names() else {}
            )
        except ValueError:  # too few hosts
            continue
        if placement.supports_streams(streams):
            yield placement


def simulate_cost(placement: Placement, known: JoinStatistics) -> float:
    """Return the modelled microseconds of all simulated batches."""
    factor = (
        sum(share**2 for share in _estimate_key_shares(placement, known))
        if known.most_frequent_share
        else 1.0
    )
    return modelled_work(
        _simulate_placement(placement, known),
        known.is_indexed,
        known.has_remote_hosts,
        known.most_frequent_share**2 / factor,
    )


def modelled_work(events: Iterable[Any], indexed: bool, apart: bool, matches: float) -> float:
    """Return the modelled microseconds of the batches in some events.

    ``matches`` is the share of meeting pairs that are results.
    """
    total = 0.0
    built_by_host: Counter[int] = Counter()
    for event in events:
        if isinstance(event, BatchPlanned):
            built_by_host = Counter(h for r in event.routes if r.is_fresh for h in r.block.hosts)
            built_by_host.update(h for d in event.derivations for h in d.block.hosts)
        elif isinstance(event, BatchCommitted):
            each = [
                _compute_host_micros(metrics, built_by_host[h], indexed, matches)
                for h, metrics in enumerate(event.host_metrics)
            ]
            busiest = max(each, default=0.0)
            total += busiest + SHARED[apart] * (sum(each) - busiest)
    return total


def _simulate_placement(placement: Placement, known: JoinStatistics) -> list[Any]:
    most = max(known.rows, default=0.0) or 1.0
    batch = [max(1, round(ROWS * n / most)) for n in known.rows]
    windows = [w for w in known.windows if w is not None]
    duration = known.event_time_span or 3 * max(windows, default=1.0)
    shares = _estimate_key_shares(placement, known)
    return simulate(
        placement,
        [batch] * BATCHES,
        windows=known.windows,
        seconds=duration / BATCHES,
        selectivity=1 / (ROWS * BATCHES),
        key_shares=[shares] * len(batch) if len(shares) > 1 else (),
    )


def _estimate_key_shares(placement: Placement, known: JoinStatistics) -> list[float]:
    """Return the share of tuples with each routing key.

    Tuples of one value are assumed to have the same key.
    """
    if placement.routing_key_source != "join":
        return [1.0]
    rest = (1 - known.most_frequent_share) / placement.key_space_size
    return [known.most_frequent_share + rest, *[rest] * (placement.key_space_size - 1)]


def _compute_host_micros(did: HostMetrics, blocks: int, indexed: bool, matches: float) -> float:
    """Return the modelled microseconds of a host's work.

    ``matches`` is the share of meeting pairs that are results.
    """
    tuples = did.received_tuples + did.received_partials + did.migrated_tuples
    pairs = 0 if indexed else did.compared_pairs
    match_micros = FOUND * matches * did.compared_pairs
    return (
        RECEIVED * tuples + PROBED * did.probes + COMPARED * pairs + match_micros + BLOCK * blocks
    )


def _make_preference_key(name: str) -> tuple[int, str]:
    return (ORDER.index(name) if name in ORDER else len(ORDER)), name


def _explain_choice(known: JoinStatistics, best: str, ratios: dict[str, float]) -> str:
    others = ", ".join(f"{name} {ratio:.2f}" for name, ratio in ratios.items() if name != best)
    facts = [f"{len(known.rows)} streams", format_count(known.hosts, "host")]
    facts.append("an equality links all" if known.equality else "no equality links all")
    if known.most_frequent_share:
        facts.append(f"its most frequent value has {known.most_frequent_share:.1%} of the tuples")
    if not known.is_indexed:
        facts.append("no index finds partners")
    than = f"; modelled work, compared with it: {others}" if others else ""
    return f"{best} for {', '.join(facts)}{than}"
