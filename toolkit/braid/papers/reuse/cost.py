"""The modelled cost of a deployment: data in transit on the network, plus a small weight for work.

Flows between operators are computed from operator definitions, the union of their demands. They are
upper bounds: an executed operator produces only what some demand asks for.

Source: Seshadri 2008, section 2.2: network usage, C(G, Σ(t)), its sum over time.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from operator import or_

from braid.papers.reuse.deployment import DeployedQuery, Deployment, Operator
from braid.papers.reuse.network import Network
from braid.papers.reuse.query_definition import Definition, join_columns, union_slides
from braid.papers.reuse.relaxation import Lifetime
from braid.papers.reuse.result_rates import BoundedCache, Rates
from braid.papers.reuse.selections import implies_selection

KAPPA = 1e-3
"""Cost of one processed tuple a second, in bytes in transit.

It decides between plans of equal network usage, and is the whole cost on one site.
"""


@dataclass
class CostModel:
    """Costs on one network at given rates, in bytes in transit.

    Bytes in transit are bytes a second times latency in seconds. ``work_weight`` is added for each
    tuple a second that an operator receives or emits.
    """

    network: Network
    rates: Rates
    work_weight: float = KAPPA

    def __post_init__(self) -> None:
        self._operator_costs = BoundedCache[tuple[int, tuple[str, ...]], OperatorCost]()

    def path_latency_seconds(self, source: str, target: str) -> float:
        """Return the latency of the shortest path, in seconds."""
        index = self.network.node_index
        return float(self.network.latency_ms[index[source], index[target]]) / 1e3

    def network_usage(self, deployment: Deployment) -> float:
        """Return the bytes in transit at an instant. Source: section 2.2; Pietzuch et al."""
        return sum(
            self.rates.result_byte_rate(f.definition)
            * self.path_latency_seconds(f.source_node, f.target_node)
            for f in deployment.all_flows()
        )

    def total_cost(self, deployment: Deployment) -> float:
        """Return C(G, Σ(t)) plus the cost of work."""
        operators = sum(self.operator_cost(deployment, o) for o in deployment.operators.values())
        return operators + self.delivery_usage(deployment)

    def delivery_usage(self, deployment: Deployment) -> float:
        """Return the network usage of answers, from operators to sinks."""
        return sum(self._compute_delivery_usage(deployment, q) for q in deployment.queries.values())

    def _compute_delivery_usage(self, deployment: Deployment, query: DeployedQuery) -> float:
        seconds = self.path_latency_seconds(deployment.operators[query.operator].node, query.sink)
        return self.rates.result_byte_rate(query.definition) * seconds

    def cost_saving(self, old: Deployment, new: Deployment) -> float:
        """Return the ``total_cost`` of the old deployment minus that of the new one.

        Only what differs between the two is computed.
        """
        return self._compute_differing_cost(old, new) - self._compute_differing_cost(new, old)

    def _compute_differing_cost(self, deployment: Deployment, other: Deployment) -> float:
        """Return the cost of the part of a deployment that differs from another one.

        The part consists of changed operators and queries, and of what reads from an operator that
        has another node there.
        """
        there, cost = other.operators, 0.0
        changed = {id for id, o in deployment.operators.items() if there.get(id) is not o}
        moved = {
            id for id in changed & there.keys() if there[id].node != deployment.operators[id].node
        }
        for id, operator in deployment.operators.items():
            if id in changed or not moved.isdisjoint(operator.inputs):
                cost += self.operator_cost(deployment, operator)
        for name, query in deployment.queries.items():
            if other.queries.get(name) is not query or query.operator in moved:
                cost += self._compute_delivery_usage(deployment, query)
        return cost

    def operator_cost(self, deployment: Deployment, operator: Operator) -> float:
        """Return the cost of one operator: its inputs and its work."""
        return self._get_operator_cost(deployment, operator).cost

    def relaxed_cost(
        self,
        deployment: Deployment,
        operator: Operator,
        wanted: Definition,
        masks: Sequence[int],
        besides: float = 0.0,
        limit: float = math.inf,
    ) -> float:
        """Return the extra cost of relaxing an operator, plus ``besides``.

        ``masks`` are the sample masks of the wanted definition. If a partial sum reaches ``limit``,
        the partial sum is returned.
        """
        current = self._get_operator_cost(deployment, operator)
        columns = current.relaxed_columns(wanted)
        more = besides + current.relaxed_cost(wanted, masks, columns) - current.cost
        for read, inflow in zip(operator.inputs, current.inputs, strict=True):
            if more >= limit:
                break
            if isinstance(read, int):
                part = replace(
                    wanted.restrict_to(inflow.streams), columns=inflow.carried_columns(columns)
                )
                upstream = deployment.operators[read]
                if upstream.serving_demand(part) is None:
                    input_masks = [masks[i] for i in inflow.places]
                    more = self.relaxed_cost(deployment, upstream, part, input_masks, more, limit)
        return more

    def relaxed_cost_bound(
        self, deployment: Deployment, operator: Operator, masks: Sequence[int]
    ) -> float:
        """Return a lower bound of ``relaxed_cost`` that is quick to compute."""
        current = self._get_operator_cost(deployment, operator)
        least = current.relaxed_bound(masks)
        for read, inflow in zip(operator.inputs, current.inputs, strict=True):
            if isinstance(read, int):
                input_masks = [masks[i] for i in inflow.places]
                least += self.relaxed_cost_bound(
                    deployment, deployment.operators[read], input_masks
                )
        return least

    def _get_operator_cost(self, deployment: Deployment, operator: Operator) -> OperatorCost:
        """Return the cost of an operator that reads from these nodes.

        The cache entry refers to the operator, so that no other object gets the same ``id``.
        """
        sources = tuple(
            deployment.operators[i].node if isinstance(i, int) else deployment.source_node(i)
            for i in operator.inputs
        )
        key = id(operator), sources
        cost = self._operator_costs.get(key)
        if cost is None:
            inputs = [
                deployment.operators[i].definition.streams if isinstance(i, int) else (i,)
                for i in operator.inputs
            ]
            far = [self.path_latency_seconds(source, operator.node) for source in sources]
            cost = self._operator_costs[key] = OperatorCost(
                operator, self.rates, inputs, far, self.work_weight
            )
        return cost

    def lifetime_extension_cost(
        self, deployment: Deployment, operator: Operator, now: int, until: Lifetime
    ) -> float:
        """Return the mean cost, until a query ends, of extending the lifetime of an operator.

        The operators that it reads are included. 0 if a lifetime is unknown.
        """
        if until is None or operator.until is None or operator.until >= until:
            return 0.0
        share = (until - max(operator.until, now)) / (until - now)
        more = share * self.operator_cost(deployment, operator)
        for read in operator.inputs:
            if isinstance(read, int):
                more += self.lifetime_extension_cost(
                    deployment, deployment.operators[read], now, until
                )
        return more


_NONE = frozenset[str]()


class OperatorCost:
    """The cost of one operator, as it is and relaxed.

    A planner asks for the relaxed cost of many operators for each query, so it is computed without
    building the relaxed definition.
    """

    def __init__(
        self,
        operator: Operator,
        rates: Rates,
        inputs: Sequence[tuple[str, ...]],
        far: Sequence[float],
        kappa: float,
    ) -> None:
        self.operator, self.rates, self.kappa = operator, rates, kappa
        definition = operator.definition
        self.masks = rates.sample_masks(definition)
        self.each = list(map(rates.tuple_rate, definition.streams))
        self.inputs = [
            _Inflow(
                streams,
                [definition.stream_index(s) for s in streams],
                definition.crossing_columns(frozenset(streams)),
                rates.join_selectivity(streams, definition.restrict_to(streams).joins),
                seconds,
            )
            for streams, seconds in zip(inputs, far, strict=True)
        ]
        self.each_in = [
            (
                i,
                self.each[i]
                * self._compute_column_bytes(inflow, i, definition.columns)
                * inflow.seconds,
            )
            for inflow in self.inputs
            if len(inflow.places) == 1
            for i in inflow.places
        ]
        self.joint = rates.join_selectivity(definition.streams, definition.joins)
        self.cost = self._compute_cost(
            self.masks, definition.windows, definition.columns, definition.slides
        )

    def relaxed_bound(self, wanted_masks: Sequence[int]) -> float:
        """Return a lower bound of the extra cost of relaxing: the additional input tuples."""
        more = 0.0
        for place, rate in self.each_in:
            mask = self.masks[place]
            before = mask.bit_count() or 0.5
            more += rate * max((mask | wanted_masks[place]).bit_count() - before, 0.0)
        return more

    def relaxed_columns(self, wanted: Definition) -> list[frozenset[str]]:
        """Return, by stream, the columns of the operator when relaxed for a definition.

        They are the columns of ``relax_all`` of both definitions.
        """
        definition = self.operator.definition
        more = wanted.joins - definition.joins
        extra = join_columns(j for j in more if not j.is_implied) if more else {}
        columns = []
        for i, stream in enumerate(definition.streams):
            p, q = definition.selections[i], wanted.selections[i]
            all_of = definition.columns[i] | wanted.columns[i]
            if stream in extra:
                all_of |= extra[stream]
            if p != q:
                if not implies_selection(p, q):
                    all_of |= q.referenced_columns
                if not implies_selection(q, p):
                    all_of |= p.referenced_columns
            columns.append(all_of)
        return columns

    def relaxed_cost(
        self, wanted: Definition, wanted_masks: Sequence[int], columns: Sequence[frozenset[str]]
    ) -> float:
        """Return the cost of the operator relaxed for a definition, with these ``columns``."""
        definition = self.operator.definition
        masks = list(map(or_, self.masks, wanted_masks))
        windows = tuple(map(max, definition.windows, wanted.windows))
        slides = (
            union_slides(definition.slides | wanted.slides)
            if definition.slides and wanted.slides
            else frozenset()
        )
        return self._compute_cost(masks, windows, columns, slides)

    def _compute_cost(
        self,
        masks: Sequence[int],
        windows: Sequence[int],
        columns: Sequence[frozenset[str]],
        slides: frozenset[int],
    ) -> float:
        rates = self.rates
        arriving = [
            each * max(mask.bit_count(), 0.5) for each, mask in zip(self.each, masks, strict=True)
        ]
        usage, worked = 0.0, rates.join_rate(arriving, windows, self.joint, slides)
        for inflow in self.inputs:
            at = inflow.places
            tuples = rates.join_rate(
                [arriving[i] for i in at], [windows[i] for i in at], inflow.joint
            )
            width = sum(self._compute_column_bytes(inflow, i, columns) for i in at)
            usage += tuples * width * inflow.seconds
            worked += tuples
        return usage + self.kappa * worked

    def _compute_column_bytes(
        self, inflow: _Inflow, place: int, columns: Sequence[frozenset[str]]
    ) -> float:
        """Return the bytes of one input stream with the columns that results have of it."""
        stream = self.operator.definition.streams[place]
        read = columns[place] | inflow.crossing.get(stream, _NONE)
        return self.rates.column_width(stream, read)


@dataclass(frozen=True)
class _Inflow:
    """One input of an operator.

    ``streams`` and ``places`` are its streams and their indexes, ``crossing`` the columns that
    joins need besides, ``joint`` the selectivity of its joins, and ``seconds`` the latency.
    """

    streams: tuple[str, ...]
    places: list[int]
    crossing: Mapping[str, frozenset[str]]
    joint: float
    seconds: float

    def carried_columns(self, columns: Sequence[frozenset[str]]) -> tuple[frozenset[str], ...]:
        """Return, by stream, the columns that the input must carry for results with ``columns``."""
        return tuple(
            columns[i] | self.crossing.get(s, _NONE)
            for s, i in zip(self.streams, self.places, strict=True)
        )
