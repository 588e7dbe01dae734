"""Load balancing that knows nothing of joins: the baseline that loses results. Source: Gu, Yu and
Wang, ICDE 2007, section 5.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from braid.core.cluster import check_cluster, check_weights
from braid.core.facts import Facts
from braid.core.placement import Placement, check_hosts
from braid.core.plan import Block, Hop, Ids, Plan, Route
from braid.papers.kit.balance import Balance, Cluster, Weights
from braid.papers.kit.pace import Pace


@dataclass(frozen=True, slots=True)
class Places:
    """The host of the current segment of each stream."""

    hosts: tuple[int, ...] = ()


@dataclass(frozen=True)
class SemanticsUnaware(Placement):
    """Every segment of every stream goes to the host that is least loaded, and meets only what
    happens to be there.

    A combination whose tuples lie on several hosts is lost, so its plans cover at most once.
    ``length`` is that of a segment, in batches; ``cluster`` and ``weights`` are those of
    ``Aligned``. Serves any condition and any number of streams. Raises ValueError for settings out
    of range.
    """

    coverage = "at most once"
    State = Places
    label = "Semantics-unaware (loses results)"

    hosts: int
    length: int = 1
    cluster: Cluster = ()
    weights: Weights = (1 / 3, 1 / 3, 1 / 3)

    def __post_init__(self) -> None:
        check_hosts(self.hosts)
        if isinstance(self.length, bool) or not isinstance(self.length, int) or self.length < 1:
            raise ValueError(
                f"length is {self.length!r}; it must be a whole number of batches, 1 or more"
            )
        check_cluster(self.cluster, self.hosts)
        check_weights(self.weights)

    def start(self, streams: int) -> Places:
        return Places()

    def plan(self, facts: Facts, state: Places) -> Plan:
        places = state.hosts if facts.batch % self.length else self._choose(facts)
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
        return Plan(tuple(routes), state=Places(places))

    def _choose(self, facts: Facts) -> tuple[int, ...]:
        streams, begun = (
            len(facts.streams),
            len({(b.stream, b.batch // self.length) for b in facts.blocks}),
        )
        balance = Balance(
            self.hosts, self.cluster, facts, self.weights, Pace.of(facts).seconds, begun
        )
        chosen: Counter[int] = Counter()
        places: list[int] = []
        for _ in range(streams):
            host = balance.lightest(chosen, places[-1] if places else facts.batch * streams - 1)
            places.append(host)
            chosen[host] += 1
        return tuple(places)
