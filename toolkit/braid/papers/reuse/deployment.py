"""What is deployed: operators, which demands they serve, which queries they answer, and how that
changes when queries come and go.

Source: Seshadri 2008, section 3 (an operator is a definition, a location and a lifetime) and 3.1,
step 5 (cascading). Pure: what must be done is decided here, done elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from braid.core.query import MOST
from braid.papers.reuse.definition import Definition, can_serve
from braid.papers.reuse.relaxation import Lifetime, relax_all, relax_lifetimes
from braid.papers.reuse.reuse_lattice import LatticeEntry, with_result_columns

Input = str | int
"""What an operator reads: a stream by name, or an operator by id."""


@dataclass(frozen=True)
class Demand:
    """What of an operator's results a query or another operator asks for.

    What is asked for must be held by one demand: two demands together make no results whose
    members serve one of them each. ``uses`` are the demands on the operator's inputs, None for a
    stream. ``asked`` by how many.
    """

    bit: int
    definition: Definition
    upstream_bits: tuple[int | None, ...]
    consumers: int = 1


@dataclass(frozen=True)
class Operator:
    """A deployed operator. Its definition is the union of its demands, but for columns of former
    ones: they stay until it is built anew. ``until`` is when its last query ends. Whenever it gets
    a demand it is built anew, which is the next ``version``; so a bit names a demand in a version.
    ``stays``: somebody has put it at its node, and nothing that comes to rest moves it away, nor
    another node's failure if the plans without that one have the same join.
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
        """Whether no demand can be added any more."""
        return len(self.demands) >= MOST

    @property
    def free_bit(self) -> int:
        """The lowest bit that no demand has."""
        return min(set(range(MOST)) - {d.bit for d in self.demands})

    def find_demand(self, bit: int) -> Demand:
        """The demand with this bit."""
        return next(d for d in self.demands if d.bit == bit)

    def demand_results(self, bit: int) -> Definition:
        """What is sure to be among the results that serve a demand: its own, joined on what the
        operator joins on.
        """
        own = self.definition
        return replace(self.find_demand(bit).definition, joins=own.joins, columns=own.columns)

    def serving_demand(self, wanted: Definition) -> Demand | None:
        """The demand that holds what is wanted, if one does."""
        columns = self.definition.columns
        found = (
            d for d in self.demands if can_serve(with_result_columns(d.definition, columns), wanted)
        )
        return next(found, None)

    def lattice_entry(self, nid: int) -> LatticeEntry:
        """As the reuse lattice keeps it."""
        return LatticeEntry(
            self.id, self.definition, tuple(d.definition for d in self.demands), nid
        )


@dataclass(frozen=True)
class DeployedQuery:
    """A query that is answered: what it computes, where its answers go, and which demand of which
    operator answers it. ``until`` is when it ends.
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
    """In a plan: a stream, from where it comes."""

    stream: str


@dataclass(frozen=True)
class ReusedOperator:
    """In a plan: an operator that is there, relaxed or as it is."""

    operator: int
    node: str


@dataclass(frozen=True)
class NewOperator:
    """In a plan: a new operator for these streams at this node."""

    streams: tuple[str, ...]
    node: str
    inputs: tuple[Tree, ...]


Tree = StreamLeaf | ReusedOperator | NewOperator


@dataclass(frozen=True)
class Deployment:
    """All operators and queries, Σ(t) in section 2.2. ``at`` says where streams come from."""

    stream_nodes: Mapping[str, str]
    operators: Mapping[int, Operator] = field(default_factory=dict)
    queries: Mapping[str, DeployedQuery] = field(default_factory=dict)
    next_id: int = 0

    def source_node(self, stream: str) -> str:
        """The node that a stream comes from."""
        return self.stream_nodes[stream.partition("#")[0]]

    def all_flows(self) -> Iterator[Flow]:
        """What flows: streams to operators, results to operators and to sinks."""
        for operator in self.operators.values():
            yield from self.operator_inflows(operator, operator.definition)
        for asked in self.queries.values():
            node = self.operators[asked.operator].node
            yield Flow(asked.operator, asked.name, node, asked.sink, asked.definition)

    def operator_inflows(self, operator: Operator, definition: Definition) -> Iterator[Flow]:
        """What flows into an operator if this is its definition."""
        for read in operator.inputs:
            if isinstance(read, str):
                streams: tuple[str, ...] = (read,)
                node = self.source_node(read)
            else:
                streams = self.operators[read].definition.streams
                node = self.operators[read].node
            yield Flow(read, operator.id, node, operator.node, definition.restrict_to(streams))

    def can_relax(self, operator: Operator, wanted: Definition) -> bool:
        """Whether a demand for what is wanted can be added to an operator, and to all that it reads
        but those of which one demand holds their part of it.
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
        """The operators, each after those that it reads."""
        return self._cached_topological_order

    @cached_property
    def _cached_topological_order(self) -> list[Operator]:
        return [operator for depth in self.operators_by_depth() for operator in depth]

    def operators_by_depth(self) -> Iterator[list[Operator]]:
        """The operators by depth: those that read streams alone, and then those that read none but
        what came before.
        """
        left = dict(self.operators)
        while left:
            ready = [o for o in left.values() if not any(i in left for i in o.inputs)]
            yield ready
            for operator in ready:
                del left[operator.id]


@dataclass(frozen=True)
class Flow:
    """Results of one thing that another takes, over the network: from node to node."""

    item: Input
    consumer: Input
    source_node: str
    target_node: str
    definition: Definition


def add_query(deployment: Deployment, asked: DeployedQuery, tree: Tree) -> Deployment:
    """The deployment with one more query, answered by a plan for it."""
    work = _Changes(deployment)
    id, bit = work.add_planned_demand(tree, asked.definition, asked.ends_at)
    return work.make_deployment(asked, id, bit)


class _Changes:
    """A deployment that is being changed."""

    def __init__(self, deployment: Deployment) -> None:
        self.old = deployment
        self.operators = dict(deployment.operators)
        self.next_id = deployment.next_id

    def make_deployment(self, asked: DeployedQuery, operator: int, bit: int) -> Deployment:
        queries = {
            **self.old.queries,
            asked.name: replace(asked, operator=operator, bit=bit),
        }
        return replace(self.old, operators=self.operators, queries=queries, next_id=self.next_id)

    def add_planned_demand(
        self, tree: Tree, wanted: Definition, until: Lifetime
    ) -> tuple[int, int]:
        """Have what is wanted made as planned; the operator and the demand that make it."""
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
        """The demand of an operator that holds what is wanted: one that it has, or a new one, for
        which the operator is relaxed, and those that it reads (step 5, cascading).
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
    """What an operator that is relaxed for what is wanted asks of one that it reads (step 5): the
    part that is wanted, with all columns that the relaxed one has, since compensations for its
    other queries read them too.
    """
    streams = upstream.definition.streams
    return replace(wanted.restrict_to(streams), columns=relaxed.restrict_to(streams).columns)


def remove_queries(deployment: Deployment, *names: str) -> Deployment:
    """The deployment without these queries: demands that nobody asks for go, and operators without
    demands. Nothing is built anew, so the columns stay.

    Raises KeyError for a query that is not there.
    """
    operators = dict(deployment.operators)
    for name in names:
        asked = deployment.queries[name]
        _release_demand(operators, asked.operator, asked.bit)
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
    """The operators with the lifetimes of the queries that are left."""
    ends: dict[int, list[Lifetime]] = {}

    def use(id: int, until: Lifetime) -> None:
        ends.setdefault(id, []).append(until)
        for read in operators[id].inputs:
            if isinstance(read, int):
                use(read, until)

    for asked in queries.values():
        use(asked.operator, asked.ends_at)
    lived = {id: relax_lifetimes(all_of) for id, all_of in ends.items()}
    return {
        id: o if o.until == lived[id] else replace(o, until=lived[id])
        for id, o in operators.items()
    }


def with_operator_moved(
    deployment: Deployment, operator: int, node: str, stays: bool = False
) -> Deployment:
    """The deployment with an operator at another node, where it ``stays`` or not. Raises KeyError
    if it is not there.
    """
    there = replace(deployment.operators[operator], node=node, is_pinned=stays)
    return replace(deployment, operators={**deployment.operators, operator: there})


def unpin_operators(deployment: Deployment) -> Deployment:
    """The deployment with no operator that stays where somebody has put it."""
    operators = {
        id: replace(o, is_pinned=False) if o.is_pinned else o
        for id, o in deployment.operators.items()
    }
    return replace(deployment, operators=operators)
