"""Stream reuse: operators that stay when a node fails."""

from __future__ import annotations

from dataclasses import replace

import pytest
from braid.papers.reuse.cost import CostModel
from braid.papers.reuse.deployment import (
    DeployedQuery,
    Deployment,
    NewOperator,
    StreamLeaf,
    add_query,
    with_operator_moved,
)
from braid.papers.reuse.deployment_changes import diff_deployments, replan_after_failure
from braid.papers.reuse.network import Network, Node
from braid.papers.reuse.planner import Planner
from braid.papers.reuse.query_definition import Definition
from braid.papers.reuse.result_rates import Rates, StreamRate
from reuse_cases import MINUTE, check_consistency, joined

pytestmark = pytest.mark.unit


def scene() -> tuple[Network, Rates, Deployment]:
    """Return a deployment with two operators.

    Streams a and b come from M, c and the query are at T; between them are B and C. Operator 0
    joins a and b at A, where it was placed by hand, and operator 1 at B joins c to its results.
    """
    names = ("M", "A", "B", "C", "T")
    links = (("M", "A"), ("M", "B"), ("M", "C"), ("B", "T"), ("C", "T"))
    nodes = tuple(Node(n, "site", (i, 0)) for i, n in enumerate(names))
    network = Network(nodes, tuple((a, b, 10.0) for a, b in links))
    rates = Rates({s: StreamRate(10.0, {"k": 8.0}) for s in "abc"}, default_selectivity=1e-4)
    joins = [joined("a", "k", "b", "k"), joined("b", "k", "c", "k")]
    columns = {s: ["k"] for s in "abc"}
    query = DeployedQuery(
        "q", Definition.make(dict.fromkeys("abc", MINUTE), joins, columns=columns), "T"
    )
    inner = NewOperator(("a", "b"), "M", (StreamLeaf("a"), StreamLeaf("b")))
    tree = NewOperator(("a", "b", "c"), "B", (inner, StreamLeaf("c")))
    deployed = add_query(Deployment({"a": "M", "b": "M", "c": "T"}), query, tree)
    (id,) = (o.id for o in deployed.operators.values() if o.node == "M")
    return network, rates, with_operator_moved(deployed, id, "A", stays=True)


def put(deployment: Deployment) -> list[tuple[int, str]]:
    return [(o.id, o.node) for o in deployment.operators.values() if o.is_pinned]


def test_what_somebody_has_put_somewhere_stays_when_another_node_fails() -> None:
    network, rates, before = scene()
    after = replan_after_failure(
        Planner(CostModel(network.without_nodes("B"), rates)), before, ["B"]
    )
    check_consistency(after)
    assert put(after) == put(before) and "B" not in {o.node for o in after.operators.values()}
    ((there, _),) = put(before)
    assert after.operators[there] is before.operators[there], "its state is not lost"
    assert there not in {o.id for o in diff_deployments(before, after).build}


def test_it_goes_where_planned_when_its_own_node_fails_or_cannot_be_reached() -> None:
    network, rates, before = scene()
    assert not put(
        replan_after_failure(Planner(CostModel(network.without_nodes("A"), rates)), before, ["A"])
    )
    links = tuple(link for link in network.links if "A" not in link[:2])
    cut = CostModel(replace(network, links=links).without_nodes("B"), rates)
    after = replan_after_failure(Planner(cut), before, ["B"])
    assert not put(after) and "A" not in {o.node for o in after.operators.values()}


def test_what_was_there_is_not_put_where_something_like_it_was() -> None:
    network, rates, before = scene()
    ((there, _),) = put(before)
    alike = DeployedQuery("other", before.operators[there].demands[0].definition, "M")
    before = add_query(
        before, alike, NewOperator(("a", "b"), "C", (StreamLeaf("a"), StreamLeaf("b")))
    )
    other = before.queries["other"].operator
    after = replan_after_failure(
        Planner(CostModel(network.without_nodes("B"), rates)), before, ["B"]
    )
    assert after.operators[other].node == "C" and not after.operators[other].is_pinned
