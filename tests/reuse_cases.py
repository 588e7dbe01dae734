"""Random and fixed definitions, networks and rates for the tests of stream reuse."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import combinations, pairwise

from braid.papers.reuse.cost import CostModel
from braid.papers.reuse.deployment import DeployedQuery, Deployment
from braid.papers.reuse.network import Network, Node
from braid.papers.reuse.query_definition import Definition, JoinCondition
from braid.papers.reuse.result_rates import Rates, StreamRate
from braid.papers.reuse.selections import (
    EVERYTHING,
    ColumnDomain,
    Conjunction,
    OpaqueCondition,
    Selection,
    make_interval,
    make_value_set,
)

MINUTE = 60_000_000


def where(**domains: ColumnDomain) -> Selection:
    return Selection.make([Conjunction.make(domains)])


def joined(a: str, x: str, b: str, y: str, implied: bool = False) -> JoinCondition:
    left, right = sorted([f"{a}.{x}", f"{b}.{y}"])
    return JoinCondition(f"{left} = {right}", frozenset([(a, x), (b, y)]), implied)


def figure1_queries() -> tuple[Definition, Definition]:
    """Return Q1 and Q2 of section 2.1."""
    f, c, b, w = "flights", "checkins", "baggage", "weather"
    q1 = Definition.make(
        {f: 5 * MINUTE, w: 5 * MINUTE, c: MINUTE, b: MINUTE},
        [
            joined(f, "num", c, "flight"),
            joined(f, "num", b, "flight"),
            joined(c, "flight", b, "flight", implied=True),
            joined(f, "dest", w, "city"),
        ],
        {f: where(terminal=make_value_set("TERMINAL A"), carrier_code=make_value_set("DL"))},
        {f: ["num", "gate"], b: ["area"], c: ["status"], w: ["forecast"]},
        [MINUTE],
    )
    q2 = Definition.make(
        {f: 5 * MINUTE, c: 5 * MINUTE},
        [joined(f, "num", c, "flight")],
        {f: where(carrier_code=make_value_set("DL", "CO"))},
        {f: ["num"], c: ["status", "vacant_seats"]},
        [5 * MINUTE],
    )
    return q1, q2


COLUMNS = ("k", "x", "y", "z")
STREAMS = tuple("abcdefghij")
OPAQUE = OpaqueCondition("f(z)", ("z",))


def draw_selection(rng: random.Random) -> Selection:
    if rng.random() < 0.3:
        return EVERYTHING
    boxes = []
    for _ in range(rng.choice([1, 1, 2])):
        domains = {}
        for column in rng.sample(("x", "y"), rng.choice([1, 1, 2])):
            kind = rng.randrange(3)
            low = rng.randrange(8)
            domains[column] = (
                make_value_set(*rng.sample(range(10), rng.randint(1, 3)))
                if kind == 0
                else make_interval((low, True), (low + rng.randint(1, 4), False))
                if kind == 1
                else make_interval((rng.randrange(5), True))
            )
        boxes.append(Conjunction.make(domains, [OPAQUE] if rng.random() < 0.1 else []))
    return Selection.make(boxes)


def draw_definition(
    rng: random.Random, streams: tuple[str, ...] = STREAMS, most: int = 4
) -> Definition:
    """Return a query over 2 or more streams linked in a chain, with one key for all of them."""
    chosen = rng.sample(streams, rng.randint(2, min(most, len(streams))))
    chain = {frozenset(p) for p in pairwise(chosen)}
    joins = [
        joined(a, "k", b, "k", frozenset((a, b)) not in chain) for a, b in combinations(chosen, 2)
    ]
    return Definition.make(
        {s: rng.choice([1, 2, 5]) * MINUTE for s in chosen},
        joins,
        {s: draw_selection(rng) for s in chosen},
        {s: rng.sample(COLUMNS, rng.randint(1, 3)) for s in chosen},
        [] if rng.random() < 0.7 else [rng.choice([1, 2, 3]) * MINUTE],
    )


def draw_rates(seed: int = 0) -> Rates:
    rng = random.Random(seed)
    known = {
        s: StreamRate(
            rng.uniform(1, 50),
            {c: rng.choice([4.0, 8.0, 20.0]) for c in COLUMNS},
            [{c: rng.randrange(10) for c in COLUMNS} for _ in range(60)],
        )
        for s in STREAMS
    }
    pairs = {
        joined(a, "k", b, "k").text: 10 ** rng.uniform(-4, -2) for a, b in combinations(STREAMS, 2)
    }
    return Rates(known, pairs)


def draw_network(rng: random.Random, nodes: int) -> Network:
    """Return a connected network of sites."""
    names = [f"n{i}" for i in range(nodes)]
    links = [(names[rng.randrange(i)], names[i], rng.uniform(1, 20)) for i in range(1, nodes)]
    links += [(a, b, rng.uniform(1, 20)) for a, b in combinations(names, 2) if rng.random() < 0.2]
    return Network(tuple(Node(n, "site") for n in names), tuple(links))


def draw_setting(seed: int, nodes: int) -> tuple[random.Random, CostModel, Deployment]:
    """Return a network with rates and without deployed operators."""
    rng = random.Random(seed)
    network = draw_network(rng, nodes)
    names = [n.name for n in network.nodes]
    return (
        rng,
        CostModel(network, draw_rates(seed)),
        Deployment({s: rng.choice(names) for s in STREAMS}),
    )


def draw_query(rng: random.Random, name: str, network: Network, most: int = 4) -> DeployedQuery:
    return DeployedQuery(name, draw_definition(rng, most=most), rng.choice(network.nodes).name)


def check_consistency(deployment: Deployment) -> None:
    """Check every demand: its inputs are held upstream, and a query or operator needs it."""
    asked_for: dict[tuple[int, int], int] = {}
    for o in deployment.topological_order():
        for d in o.demands:
            for read, use in zip(o.inputs, d.upstream_bits, strict=True):
                if isinstance(read, int):
                    assert use is not None
                    upstream = deployment.operators[read]
                    one = replace(upstream, demands=(upstream.find_demand(use),))
                    assert (
                        one.serving_demand(d.definition.restrict_to(upstream.definition.streams))
                        is not None
                    )
                    asked_for[read, use] = asked_for.get((read, use), 0) + 1
    for q in deployment.queries.values():
        operator = deployment.operators[q.operator]
        one = replace(operator, demands=(operator.find_demand(q.bit),))
        assert one.serving_demand(q.definition) is not None
        asked_for[q.operator, q.bit] = asked_for.get((q.operator, q.bit), 0) + 1
    counted = {(o.id, d.bit): d.consumers for o in deployment.operators.values() for d in o.demands}
    assert asked_for == counted
