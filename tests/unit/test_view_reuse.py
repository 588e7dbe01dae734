"""The map of a network: links as wide as their load."""

from __future__ import annotations

import pytest
from braid.papers.reuse.deployment import DeployedQuery, add_query
from braid_lab.reuse import claims as paper
from braid_widgets.reuse.network_map import link_loads, network_map

pytestmark = pytest.mark.unit


def test_the_map_has_what_flows_on_each_link_and_operators_where_they_are() -> None:
    service, plans = paper.plan_figure_1()
    model, before = service.planner.model, service.deployment
    asked = {s: DeployedQuery("Q2", paper.q2_definition(), s) for s in plans}
    after = {s: add_query(before, asked[s], plan.tree) for s, plan in plans.items()}
    length = {frozenset((a, b)): ms / 1e3 for a, b, ms in model.network.links}
    for deployment in (before, *after.values()):
        usage = sum(
            rate * length[frozenset(link)] for link, rate in link_loads(model, deployment).items()
        )
        assert usage == pytest.approx(model.network_usage(deployment))
    chart = network_map(model, {"Q1": before, **after})
    width = {
        t.text: t.line.width for t in chart.figure.data if t.mode == "lines" and t.xaxis == "x"
    }
    widest = max(width, key=lambda k: width[k])
    assert f"{max(link_loads(model, before).values()):,.0f}" in widest
    (nodes,) = (t for t in chart.figure.data if t.name == "node" and t.xaxis == "x2")
    at = {text.split("<br>")[0].strip("<b/>"): text for text in nodes.text}
    assert "2 demands" in at["N1"] and "σ" not in at["N2"]
    assert set(chart.data["deployment"]) == {"Q1", "SINK4", "SINK1"}
