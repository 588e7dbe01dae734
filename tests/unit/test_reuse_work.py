"""Stream reuse: the work inside operators, modelled, beside what nested loops do."""

from __future__ import annotations

import pytest
from braid.papers.reuse.cost import CostModel
from braid.papers.reuse.deployment import (
    DeployedQuery,
    Deployment,
    NewOperator,
    StreamLeaf,
    add_query,
)
from braid.papers.reuse.network import Network, Node
from braid.papers.reuse.planner import fuse_operators
from braid.papers.reuse.query_definition import Definition
from braid.papers.reuse.result_rates import Rates, StreamRate
from braid_lab.reuse.join_work import deployment_work, processed_tuples_per_second
from reuse_cases import joined

pytestmark = pytest.mark.unit
PER_SECOND = {"a": 2.0, "b": 3.0, "c": 5.0}
SPAN = {"a": 60.0, "b": 120.0, "c": 60.0}


def deploy(tree: NewOperator, streams: tuple[str, ...]) -> tuple[CostModel, Deployment]:
    joins = [joined("a", "k", "b", "k"), joined("b", "x", "c", "x")][: len(streams) - 1]
    asked = Definition.make(
        {s: round(SPAN[s] * 1e6) for s in streams}, joins, {}, {s: ["k"] for s in streams}
    )
    net = Network((Node("n"),))
    rates = Rates(
        {s: StreamRate(r, {"k": 8.0}) for s, r in PER_SECOND.items()}, default_selectivity=0.01
    )
    empty = Deployment(dict.fromkeys(PER_SECOND, "n"))
    return CostModel(net, rates), add_query(empty, DeployedQuery("q", asked, "n"), tree)


def test_two_streams_compare_each_new_tuple_with_the_other_window() -> None:
    model, deployment = deploy(
        NewOperator(("a", "b"), "n", (StreamLeaf("a"), StreamLeaf("b"))), ("a", "b")
    )
    work = deployment_work(model, deployment)
    pairs = 2.0 * (3.0 * 120) + 3.0 * (2.0 * 60)
    assert work.compared == pytest.approx(pairs)
    assert work.emitted == pytest.approx(0.01 * pairs)
    assert work.received == pytest.approx(5.0) and work.intermediate == 0.0
    assert work.received + work.emitted == pytest.approx(
        processed_tuples_per_second(model, deployment)
    )


def test_an_operator_of_three_inputs_has_the_intermediate_results_of_two_operators() -> None:
    """Fused, the tuples between two joins do not show at the boundary, and are still counted."""
    lower = NewOperator(("a", "b"), "n", (StreamLeaf("a"), StreamLeaf("b")))
    whole = NewOperator(("a", "b", "c"), "n", (lower, StreamLeaf("c")))
    fused = fuse_operators(whole)
    assert isinstance(fused, NewOperator) and len(fused.inputs) == 3
    apart, together = (deployment_work(*deploy(tree, ("a", "b", "c"))) for tree in (whole, fused))
    assert together.emitted < apart.emitted, "the lower join's results are inside"
    assert together.intermediate > 0.0 == apart.intermediate
    ab = 2.0 * (3.0 * 120) * 0.01
    ba = 3.0 * (2.0 * 60) * 0.01
    cb = 5.0 * (3.0 * 120) * 0.01
    assert together.intermediate == pytest.approx(ab + ba + cb)
