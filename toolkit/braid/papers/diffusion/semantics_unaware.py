"""Load balancing that ignores join semantics: a baseline that loses results.

Source: Gu, Yu and Wang, ICDE 2007, section 5.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from braid.core.cluster_model import check_cluster, check_weights
from braid.core.facts import Facts
from braid.core.placement import Placement, check_hosts
from braid.core.plan import Block, Hop, Ids, Plan, Route
from braid.papers.common.load_balance import Cluster, LoadBalance, Weights
from braid.papers.common.window_batches import EventTimeRate


@dataclass(frozen=True, slots=True)
class SegmentHosts:
    """The host of the current segment of each stream."""

    hosts: tuple[int, ...] = ()


@dataclass(frozen=True)
class SemanticsUnaware(Placement):
    """Every segment of every stream goes to the least loaded host and meets only the blocks there.

    A combination whose tuples are on different hosts is lost, so its plans cover at most once.

    Parameters
    ----------
    hosts
        Number of logical hosts.
    segment_batches
        Length of a segment, in batches.
    host_capacities, load_weights
        As for ``Aligned``.

    Supports any condition and any number of streams. Raises ValueError for settings out of range.
    """

    delivery_guarantee = "at most once"
    State = SegmentHosts
    label = "Semantics-unaware (loses results)"

    hosts: int
    segment_batches: int = 1
    host_capacities: Cluster = ()
    load_weights: Weights = (1 / 3, 1 / 3, 1 / 3)

    def __post_init__(self) -> None:
        check_hosts(self.hosts)
        if (
            isinstance(self.segment_batches, bool)
            or not isinstance(self.segment_batches, int)
            or self.segment_batches < 1
        ):
            raise ValueError(
                f"segment_batches is {self.segment_batches!r}; it must be a whole number of "
                "batches, 1 or more"
            )
        check_cluster(self.host_capacities, self.hosts)
        check_weights(self.load_weights)

    def initial_state(self, streams: int) -> SegmentHosts:
        return SegmentHosts()

    def plan_batch(self, facts: Facts, state: SegmentHosts) -> Plan:
        places = state.hosts if facts.batch % self.segment_batches else self._choose_hosts(facts)
        at: dict[tuple[int, int], Ids] = {}
        for b in facts.blocks:
            at[b.stream, b.hosts[0]] = (*at.get((b.stream, b.hosts[0]), ()), b.id)
        routes = []
        for stream, host in enumerate(places):
            block = Block(facts.next_id + stream, stream, (0, 1), facts.batch, (host,))
            others = [s for s in range(len(places)) if s != stream]
            path = tuple(Hop(s, {host: at[s, host]}) for s in others if (s, host) in at)
            routes.append(Route(block, (path,) if len(path) == len(others) else ()))
            at[stream, host] = (*at.get((stream, host), ()), block.id)
        return Plan(tuple(routes), state=SegmentHosts(places))

    def _choose_hosts(self, facts: Facts) -> tuple[int, ...]:
        streams, begun = (
            len(facts.streams),
            len({(b.stream, b.batch // self.segment_batches) for b in facts.blocks}),
        )
        balance = LoadBalance(
            self.hosts,
            self.host_capacities,
            facts,
            self.load_weights,
            EventTimeRate.from_facts(facts).seconds_per_batch,
            begun,
        )
        chosen: Counter[int] = Counter()
        places: list[int] = []
        for _ in range(streams):
            host = balance.least_loaded_host(
                chosen, places[-1] if places else facts.batch * streams - 1
            )
            places.append(host)
            chosen[host] += 1
        return tuple(places)
