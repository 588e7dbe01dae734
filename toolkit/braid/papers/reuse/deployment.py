"""Deployments: operators, their demands and the queries that they answer.

Functions that add or remove queries return a new deployment and execute nothing.

Source: Seshadri 2008, section 3 (an operator is a definition, a location and a lifetime) and 3.1,
step 5 (cascading).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from braid.core.query import MOST
from braid.papers.reuse.query_definition import Definition, can_serve
from braid.papers.reuse.relaxation import Lifetime, relax_all, relax_lifetimes
from braid.papers.reuse.reuse_lattice import LatticeEntry, with_result_columns

Input = str | int
"""An input of an operator: the name of a stream, or the id of an operator."""


@dataclass(frozen=True)
class Demand:
    """The part of an operator's results that a query or another operator asks for.

    One demand alone must contain what a consumer asks for: a result whose members each serve a
    different demand belongs to neither. ``upstream_bits`` are the demands on the operator's inputs,
    None for a stream; ``consumers`` is the number of queries and operators that use this demand.
    """

    bit: int
    definition: Definition
    upstream_bits: tuple[int | None, ...]
    consumers: int = 1


@dataclass(frozen=True)
class Operator:
    """A deployed operator.

    ``definition`` is the union of the demands. It may keep columns of removed demands until the
    operator is rebuilt. Each new demand rebuilds the operator and increases ``version``, so a bit
    identifies a demand within a version. ``until`` is the end of its last query. A pinned operator
    (``is_pinned``) was placed by the user: re-optimization does not move it, and after the failure
    of another node it stays if the new plans contain the same join.
    """

    id: int
    node: str
    inputs: tuple[Input, ...]
    definition: Definition
    demands: tuple[Demand, ...]
    version: int = 0
    until: Lifetime = None
    is_pinned: bool = False

    @property
    def is_full(self) -> bool:
        """Whether no further demand can be added."""
        return len(self.demands) >= MOST

    @property
    def free_bit(self) -> int:
        """The lowest unused bit."""
        return min(set(range(MOST)) - {d.bit for d in self.demands})

    def find_demand(self, bit: int) -> Demand:
        """Return the demand with this bit."""
        return next(d for d in self.demands if d.bit == bit)

    def demand_results(self, bit: int) -> Definition:
        """Return the definition that the results of a demand are certain to satisfy.

        It has the demand's selections and windows, and the operator's joins and columns.
        """
        definition = self.definition
        return replace(
            self.find_demand(bit).definition, joins=definition.joins, columns=definition.columns
        )

    def serving_demand(self, wanted: Definition) -> Demand | None:
        """Return a demand that contains the wanted definition, or None."""
        columns = self.definition.columns
        serving = (
            d for d in self.demands if can_serve(with_result_columns(d.definition, columns), wanted)
        )
        return next(serving, None)

    def lattice_entry(self, nid: int) -> LatticeEntry:
        """Return the operator as an entry of the reuse lattice."""
        return LatticeEntry(
            self.id, self.definition, tuple(d.definition for d in self.demands), nid
        )


@dataclass(frozen=True)
class DeployedQuery:
    """A query and the demand that answers it.

    ``operator`` and ``bit`` identify the demand, ``sink`` is the node that receives the answers,
    and ``ends_at`` is the end of the query, in microseconds; None: unknown.
    """

    name: str
    definition: Definition
    sink: str
    operator: int = -1
    bit: int = 0
    ends_at: Lifetime = None
    sql: str = ""


@dataclass(frozen=True)
class StreamLeaf:
    """A leaf of a plan: a stream at its source."""

    stream: str


@dataclass(frozen=True)
class ReusedOperator:
    """A leaf of a plan: an existing operator, unchanged or relaxed."""

    operator: int
    node: str


@dataclass(frozen=True)
class NewOperator:
    """A node of a plan: a new operator for these streams."""

    streams: tuple[str, ...]
    node: str
    inputs: tuple[Tree, ...]


Tree = StreamLeaf | ReusedOperator | NewOperator


@dataclass(frozen=True)
class Deployment:
    """All operators and queries: Σ(t) in section 2.2.

    ``stream_nodes`` has the source node of each stream.
    """

    stream_nodes: Mapping[str, str]
    operators: Mapping[int, Operator] = field(default_factory=dict)
    queries: Mapping[str, DeployedQuery] = field(default_factory=dict)
    next_id: int = 0

    def source_node(self, stream: str) -> str:
        """Return the source node of a stream."""
        return self.stream_nodes[stream.partition("#")[0]]

    def all_flows(self) -> Iterator[Flow]:
        """Yield all flows: streams to operators, results to operators and to sinks."""
        for operator in self.operators.values():
            yield from self.operator_inflows(operator, operator.definition)
        for query in self.queries.values():
            node = self.operators[query.operator].node
            yield Flow(query.operator, query.name, node, query.sink, query.definition)

    def operator_inflows(self, operator: Operator, definition: Definition) -> Iterator[Flow]:
        """Yield the flows into an operator if it had this definition."""
        for read in operator.inputs:
            if isinstance(read, str):
                streams: tuple[str, ...] = (read,)
                node = self.source_node(read)
            else:
                streams = self.operators[read].definition.streams
                node = self.operators[read].node
            yield Flow(read, operator.id, node, operator.node, definition.restrict_to(streams))

    def can_relax(self, operator: Operator, wanted: Definition) -> bool:
        """Return whether a demand for the wanted definition can be added to an operator.

        Each operator that it reads must then also serve its part, from an existing demand or from a
        new one.
        """
        if operator.is_full or self._has_free_demand_bits(operator):
            return not operator.is_full
        relaxed = relax_all((operator.definition, wanted))
        below = [
            (o, upstream_demand(relaxed, wanted, o)) for o in self._list_input_operators(operator)
        ]
        return all(
            o.serving_demand(part) is not None or self.can_relax(o, part) for o, part in below
        )

    def _has_free_demand_bits(self, operator: Operator) -> bool:
        return not operator.is_full and all(
            map(self._has_free_demand_bits, self._list_input_operators(operator))
        )

    def _list_input_operators(self, operator: Operator) -> Iterator[Operator]:
        return (self.operators[i] for i in operator.inputs if isinstance(i, int))

    def topological_order(self) -> list[Operator]:
        """Return the operators, each after those that it reads."""
        return self._cached_topological_order

    @cached_property
    def _cached_topological_order(self) -> list[Operator]:
        return [operator for depth in self.operators_by_depth() for operator in depth]

    def operators_by_depth(self) -> Iterator[list[Operator]]:
        """Yield the operators by depth: first those that read only streams.

        Operators of each later level read only operators of earlier levels, and streams.
        """
        left = dict(self.operators)
        while left:
            ready = [o for o in left.values() if not any(i in left for i in o.inputs)]
            yield ready
            for operator in ready:
                del left[operator.id]


@dataclass(frozen=True)
class Flow:
    """Results that a consumer receives over the network."""

    item: Input
    consumer: Input
    source_node: str
    target_node: str
    definition: Definition


def add_query(deployment: Deployment, query: DeployedQuery, tree: Tree) -> Deployment:
    """Return the deployment with one more query, answered by a plan."""
    work = _Changes(deployment)
    id, bit = work.add_planned_demand(tree, query.definition, query.ends_at)
    return work.make_deployment(query, id, bit)


class _Changes:
    """A deployment under construction."""

    def __init__(self, deployment: Deployment) -> None:
        self.old = deployment
        self.operators = dict(deployment.operators)
        self.next_id = deployment.next_id

    def make_deployment(self, query: DeployedQuery, operator: int, bit: int) -> Deployment:
        queries = {
            **self.old.queries,
            query.name: replace(query, operator=operator, bit=bit),
        }
        return replace(self.old, operators=self.operators, queries=queries, next_id=self.next_id)

    def add_planned_demand(
        self, tree: Tree, wanted: Definition, until: Lifetime
    ) -> tuple[int, int]:
        """Deploy a plan for the wanted definition. Return its operator and demand."""
        if isinstance(tree, ReusedOperator):
            return tree.operator, self.reuse_operator(tree.operator, wanted, until)
        assert isinstance(tree, NewOperator)
        used = [self._add_input(t, wanted, until) for t in tree.inputs]
        id, self.next_id = self.next_id, self.next_id + 1
        first = Demand(0, wanted, tuple(bit for _, bit in used))
        inputs = tuple(read for read, _ in used)
        self.operators[id] = Operator(id, tree.node, inputs, wanted, (first,), until=until)
        return id, 0

    def _add_input(
        self, tree: Tree, wanted: Definition, until: Lifetime
    ) -> tuple[Input, int | None]:
        if isinstance(tree, StreamLeaf):
            return tree.stream, None
        streams = (
            tree.streams
            if isinstance(tree, NewOperator)
            else self.operators[tree.operator].definition.streams
        )
        return self.add_planned_demand(tree, wanted.restrict_to(streams), until)

    def reuse_operator(self, id: int, wanted: Definition, until: Lifetime) -> int:
        """Return the bit of a demand of an operator that contains the wanted definition.

        If none does, add one and relax the operator and those that it reads (step 5, cascading).
        """
        operator = self.operators[id]
        operator = replace(operator, until=relax_lifetimes((operator.until, until)))
        if (there := operator.serving_demand(wanted)) is not None:
            demands = tuple(
                replace(d, consumers=d.consumers + 1) if d.bit == there.bit else d
                for d in operator.demands
            )
            self.operators[id] = replace(operator, demands=demands)
            return there.bit
        definition = relax_all((operator.definition, wanted))
        uses = tuple(
            None
            if isinstance(i, str)
            else self.reuse_operator(
                i, upstream_demand(definition, wanted, self.operators[i]), until
            )
            for i in operator.inputs
        )
        new = Demand(operator.free_bit, wanted, uses)
        self.operators[id] = replace(
            operator,
            definition=definition,
            demands=(*operator.demands, new),
            version=operator.version + 1,
        )
        return new.bit


def upstream_demand(relaxed: Definition, wanted: Definition, upstream: Operator) -> Definition:
    """Return the demand of an operator being relaxed on one that it reads (step 5).

    It is the part of the wanted definition on that operator's streams, with all columns of the
    relaxed one, because the compensations of its other queries read them too.
    """
    streams = upstream.definition.streams
    return replace(wanted.restrict_to(streams), columns=relaxed.restrict_to(streams).columns)


def remove_queries(deployment: Deployment, *names: str) -> Deployment:
    """Return the deployment without these queries.

    Demands without a consumer and operators without a demand are removed. No operator is rebuilt,
    so columns remain.

    Raises KeyError for an unknown query.
    """
    operators = dict(deployment.operators)
    for name in names:
        query = deployment.queries[name]
        _release_demand(operators, query.operator, query.bit)
    queries = {n: q for n, q in deployment.queries.items() if n not in names}
    return replace(deployment, operators=_update_lifetimes(operators, queries), queries=queries)


def _release_demand(operators: dict[int, Operator], id: int, bit: int) -> None:
    operator = operators[id]
    demand = operator.find_demand(bit)
    if demand.consumers > 1:
        demands = tuple(
            replace(d, consumers=d.consumers - 1) if d.bit == bit else d for d in operator.demands
        )
        operators[id] = replace(operator, demands=demands)
        return
    rest = tuple(d for d in operator.demands if d.bit != bit)
    if rest:
        left = relax_all([d.definition for d in rest])
        left = replace(left, joins=operator.definition.joins, columns=operator.definition.columns)
        operators[id] = replace(operator, demands=rest, definition=left)
    else:
        del operators[id]
    for read, use in zip(operator.inputs, demand.upstream_bits, strict=True):
        if isinstance(read, int) and use is not None:
            _release_demand(operators, read, use)


def _update_lifetimes(
    operators: Mapping[int, Operator], queries: Mapping[str, DeployedQuery]
) -> dict[int, Operator]:
    """Return the operators with the lifetimes of the remaining queries."""
    ends: dict[int, list[Lifetime]] = {}

    def use(id: int, until: Lifetime) -> None:
        ends.setdefault(id, []).append(until)
        for read in operators[id].inputs:
            if isinstance(read, int):
                use(read, until)

    for query in queries.values():
        use(query.operator, query.ends_at)
    lived = {id: relax_lifetimes(all_of) for id, all_of in ends.items()}
    return {
        id: o if o.until == lived[id] else replace(o, until=lived[id])
        for id, o in operators.items()
    }


def with_operator_moved(
    deployment: Deployment, operator: int, node: str, stays: bool = False
) -> Deployment:
    """Return the deployment with an operator at another node; ``stays``: pin it there.

    Raises KeyError for an unknown operator.
    """
    there = replace(deployment.operators[operator], node=node, is_pinned=stays)
    return replace(deployment, operators={**deployment.operators, operator: there})


def unpin_operators(deployment: Deployment) -> Deployment:
    """Return the deployment without pinned operators."""
    operators = {
        id: replace(o, is_pinned=False) if o.is_pinned else o
        for id, o in deployment.operators.items()
    }
    return replace(deployment, operators=operators)
