"""Stream reuse: what a relaxation costs that cascades to the operators below (section 3.1)."""

from __future__ import annotations

import pytest
from braid.papers.reuse.cost import CostModel
from braid.papers.reuse.deployment import (
    DeployedQuery,
    Deployment,
    NewOperator,
    ReusedOperator,
    StreamLeaf,
    add_query,
)
from braid.papers.reuse.network import Network, Node
from braid.papers.reuse.query_definition import Definition
from braid.papers.reuse.result_rates import Rates, StreamRate
from braid.papers.reuse.selections import make_interval
from reuse_cases import MINUTE, joined, where

pytestmark = pytest.mark.unit


def query(name: str, upto: int, window: int) -> DeployedQuery:
    """Return a query over a, b and c, with a selection on a."""
    asked = Definition.make(
        dict.fromkeys("abc", window * MINUTE),
        [joined("a", "k", "b", "k"), joined("b", "x", "c", "x")],
        {"a": where(x=make_interval((0, True), (upto, False)))},
        {s: ["k"] for s in "abc"},
    )
    return DeployedQuery(name, asked, "sink")


def test_a_relaxation_costs_what_it_adds_to_all_operators_that_it_reaches() -> None:
    """The top operator reads one at another node, which must bring more tuples as well."""
    nodes = tuple(Node(n) for n in ("low", "high", "sink"))
    net = Network(nodes, (("low", "high", 20.0), ("high", "sink", 10.0)))
    sample = [{"k": n, "x": n % 10} for n in range(50)]
    rates = Rates({s: StreamRate(5.0, {"k": 8.0, "x": 8.0}, sample) for s in "abc"})
    model = CostModel(net, rates)
    lower = NewOperator(("a", "b"), "low", (StreamLeaf("a"), StreamLeaf("b")))
    tree = NewOperator(("a", "b", "c"), "high", (lower, StreamLeaf("c")))
    first, second = query("q", 3, 1), query("r", 8, 5)
    before = add_query(Deployment(dict.fromkeys("abc", "low")), first, tree)
    top = next(o for o in before.operators.values() if len(o.definition.streams) == 3)
    after = add_query(before, second, ReusedOperator(top.id, top.node))
    more = {id: model.operator_cost(after, o) for id, o in after.operators.items()}
    added = sum(more.values()) - sum(
        model.operator_cost(before, o) for o in before.operators.values()
    )
    below = [o for o in before.operators.values() if o.id != top.id]
    assert len(below) == 1 and more[below[0].id] > model.operator_cost(before, below[0])
    masks = rates.sample_masks(second.definition)
    reported = model.relaxed_cost(before, top, second.definition, masks)
    assert reported == pytest.approx(added)
    assert model.relaxed_cost_bound(before, top, masks) <= reported + 1e-9
