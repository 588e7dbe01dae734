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
from braid.papers.reuse.definition import Definition, holds
from braid.papers.reuse.lattice import Offer, as_offered
from braid.papers.reuse.relaxation import Lifetime, lifetimes, union

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
    uses: tuple[int | None, ...]
    asked: int = 1


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
    stays: bool = False

    @property
    def full(self) -> bool:
        """Whether no demand can be added any more."""
        return len(self.demands) >= MOST

    @property
    def free(self) -> int:
        """The lowest bit that no demand has."""
        return min(set(range(MOST)) - {d.bit for d in self.demands})

    def demand(self, bit: int) -> Demand:
        """The demand with this bit."""
        return next(d for d in self.demands if d.bit == bit)

    def offered(self, bit: int) -> Definition:
        """What is sure to be among the results that serve a demand: its own, joined on what the
        operator joins on.
        """
        own = self.definition
        return replace(self.demand(bit).definition, joins=own.joins, columns=own.columns)

    def serving(self, wanted: Definition) -> Demand | None:
        """The demand that holds what is wanted, if one does."""
        columns = self.definition.columns
        found = (d for d in self.demands if holds(as_offered(d.definition, columns), wanted))
        return next(found, None)

    def offer(self, nid: int) -> Offer:
        """As the reuse lattice keeps it."""
        return Offer(self.id, self.definition, tuple(d.definition for d in self.demands), nid)


@dataclass(frozen=True)
class Asked:
    """A query that is answered: what it computes, where its answers go, and which demand of which
    operator answers it. ``until`` is when it ends.
    """

    name: str
    definition: Definition
    sink: str
    operator: int = -1
    bit: int = 0
    until: Lifetime = None
    sql: str = ""


@dataclass(frozen=True)
class Source:
    """In a plan: a stream, from where it comes."""

    stream: str


@dataclass(frozen=True)
class Reused:
    """In a plan: an operator that is there, relaxed or as it is."""

    operator: int
    node: str


@dataclass(frozen=True)
class New:
    """In a plan: a new operator for these streams at this node."""

    streams: tuple[str, ...]
    node: str
    inputs: tuple[Tree, ...]


Tree = Source | Reused | New


@dataclass(frozen=True)
class Deployment:
    """All operators and queries, Σ(t) in section 2.2. ``at`` says where streams come from."""

    at: Mapping[str, str]
    operators: Mapping[int, Operator] = field(default_factory=dict)
    queries: Mapping[str, Asked] = field(default_factory=dict)
    next_id: int = 0

    def source(self, stream: str) -> str:
        """The node that a stream comes from."""
        return self.at[stream.partition("#")[0]]

    def flows(self) -> Iterator[Flow]:
        """What flows: streams to operators, results to operators and to sinks."""
        for operator in self.operators.values():
            yield from self.inflows(operator, operator.definition)
        for asked in self.queries.values():
            node = self.operators[asked.operator].node
            yield Flow(asked.operator, asked.name, node, asked.sink, asked.definition)

    def inflows(self, operator: Operator, definition: Definition) -> Iterator[Flow]:
        """What flows into an operator if this is its definition."""
        for read in operator.inputs:
            if isinstance(read, str):
                streams: tuple[str, ...] = (read,)
                node = self.source(read)
            else:
                streams = self.operators[read].definition.streams
                node = self.operators[read].node
            yield Flow(read, operator.id, node, operator.node, definition.part(streams))

    def relaxable(self, operator: Operator, wanted: Definition) -> bool:
        """Whether a demand for what is wanted can be added to an operator, and to all that it reads
        but those of which one demand holds their part of it.
        """
        if operator.full or self._free(operator):
            return not operator.full
        relaxed = union((operator.definition, wanted))
        below = [(o, cascaded(relaxed, wanted, o)) for o in self._below(operator)]
        return all(o.serving(part) is not None or self.relaxable(o, part) for o, part in below)

    def _free(self, operator: Operator) -> bool:
        return not operator.full and all(map(self._free, self._below(operator)))

    def _below(self, operator: Operator) -> Iterator[Operator]:
        return (self.operators[i] for i in operator.inputs if isinstance(i, int))

    def upstream(self) -> list[Operator]:
        """The operators, each after those that it reads."""
        return self._upstream

    @cached_property
    def _upstream(self) -> list[Operator]:
        return [operator for depth in self.depths() for operator in depth]

    def depths(self) -> Iterator[list[Operator]]:
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

    what: Input
    to: Input
    source: str
    target: str
    definition: Definition


def submitted(deployment: Deployment, asked: Asked, tree: Tree) -> Deployment:
    """The deployment with one more query, answered by a plan for it."""
    work = _Changes(deployment)
    id, bit = work.demand(tree, asked.definition, asked.until)
    return work.deployment(asked, id, bit)


class _Changes:
    """A deployment that is being changed."""

    def __init__(self, deployment: Deployment) -> None:
        self.old = deployment
        self.operators = dict(deployment.operators)
        self.next_id = deployment.next_id

    def deployment(self, asked: Asked, operator: int, bit: int) -> Deployment:
        queries = {
            **self.old.queries,
            asked.name: replace(asked, operator=operator, bit=bit),
        }
        return replace(self.old, operators=self.operators, queries=queries, next_id=self.next_id)

    def demand(self, tree: Tree, wanted: Definition, until: Lifetime) -> tuple[int, int]:
        """Have what is wanted made as planned; the operator and the demand that make it."""
        if isinstance(tree, Reused):
            return tree.operator, self.reuse(tree.operator, wanted, until)
        assert isinstance(tree, New)
        used = [self._input(t, wanted, until) for t in tree.inputs]
        id, self.next_id = self.next_id, self.next_id + 1
        first = Demand(0, wanted, tuple(bit for _, bit in used))
        inputs = tuple(read for read, _ in used)
        self.operators[id] = Operator(id, tree.node, inputs, wanted, (first,), until=until)
        return id, 0

    def _input(self, tree: Tree, wanted: Definition, until: Lifetime) -> tuple[Input, int | None]:
        if isinstance(tree, Source):
            return tree.stream, None
        streams = (
            tree.streams
            if isinstance(tree, New)
            else self.operators[tree.operator].definition.streams
        )
        return self.demand(tree, wanted.part(streams), until)

    def reuse(self, id: int, wanted: Definition, until: Lifetime) -> int:
        """The demand of an operator that holds what is wanted: one that it has, or a new one, for
        which the operator is relaxed, and those that it reads (step 5, cascading).
        """
        operator = self.operators[id]
        operator = replace(operator, until=lifetimes((operator.until, until)))
        if (there := operator.serving(wanted)) is not None:
            demands = tuple(
                replace(d, asked=d.asked + 1) if d.bit == there.bit else d for d in operator.demands
            )
            self.operators[id] = replace(operator, demands=demands)
            return there.bit
        definition = union((operator.definition, wanted))
        uses = tuple(
            None
            if isinstance(i, str)
            else self.reuse(i, cascaded(definition, wanted, self.operators[i]), until)
            for i in operator.inputs
        )
        new = Demand(operator.free, wanted, uses)
        self.operators[id] = replace(
            operator,
            definition=definition,
            demands=(*operator.demands, new),
            version=operator.version + 1,
        )
        return new.bit


def cascaded(relaxed: Definition, wanted: Definition, upstream: Operator) -> Definition:
    """What an operator that is relaxed for what is wanted asks of one that it reads (step 5): the
    part that is wanted, with all columns that the relaxed one has, since compensations for its
    other queries read them too.
    """
    streams = upstream.definition.streams
    return replace(wanted.part(streams), columns=relaxed.part(streams).columns)


def withdrawn(deployment: Deployment, *names: str) -> Deployment:
    """The deployment without these queries: demands that nobody asks for go, and operators without
    demands. Nothing is built anew, so the columns stay.

    Raises KeyError for a query that is not there.
    """
    operators = dict(deployment.operators)
    for name in names:
        asked = deployment.queries[name]
        _release(operators, asked.operator, asked.bit)
    queries = {n: q for n, q in deployment.queries.items() if n not in names}
    return replace(deployment, operators=_lived(operators, queries), queries=queries)


def _release(operators: dict[int, Operator], id: int, bit: int) -> None:
    operator = operators[id]
    demand = operator.demand(bit)
    if demand.asked > 1:
        demands = tuple(
            replace(d, asked=d.asked - 1) if d.bit == bit else d for d in operator.demands
        )
        operators[id] = replace(operator, demands=demands)
        return
    rest = tuple(d for d in operator.demands if d.bit != bit)
    if rest:
        left = union([d.definition for d in rest])
        left = replace(left, joins=operator.definition.joins, columns=operator.definition.columns)
        operators[id] = replace(operator, demands=rest, definition=left)
    else:
        del operators[id]
    for read, use in zip(operator.inputs, demand.uses, strict=True):
        if isinstance(read, int) and use is not None:
            _release(operators, read, use)


def _lived(operators: Mapping[int, Operator], queries: Mapping[str, Asked]) -> dict[int, Operator]:
    """The operators with the lifetimes of the queries that are left."""
    ends: dict[int, list[Lifetime]] = {}

    def use(id: int, until: Lifetime) -> None:
        ends.setdefault(id, []).append(until)
        for read in operators[id].inputs:
            if isinstance(read, int):
                use(read, until)

    for asked in queries.values():
        use(asked.operator, asked.until)
    lived = {id: lifetimes(all_of) for id, all_of in ends.items()}
    return {
        id: o if o.until == lived[id] else replace(o, until=lived[id])
        for id, o in operators.items()
    }


def moved(deployment: Deployment, operator: int, node: str, stays: bool = False) -> Deployment:
    """The deployment with an operator at another node, where it ``stays`` or not. Raises KeyError
    if it is not there.
    """
    there = replace(deployment.operators[operator], node=node, stays=stays)
    return replace(deployment, operators={**deployment.operators, operator: there})


def freed(deployment: Deployment) -> Deployment:
    """The deployment with no operator that stays where somebody has put it."""
    operators = {
        id: replace(o, stays=False) if o.stays else o for id, o in deployment.operators.items()
    }
    return replace(deployment, operators=operators)
