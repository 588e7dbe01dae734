"""The flows on the links of a network, as the page shows them."""

from __future__ import annotations

import pytest
from braid.papers.reuse.deployment import DeployedQuery, add_query
from braid_lab.reuse import claims as paper
from braid_lab.reuse.link_loads import link_loads, link_table

pytestmark = pytest.mark.unit


def test_the_table_has_what_flows_on_each_link() -> None:
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
    table = link_table(model, {"Q1": before, **after})
    assert set(table["deployment"]) == {"Q1", "SINK4", "SINK1"}
    widest = table[table["deployment"] == "Q1"]["bytes_modelled"].max()
    assert widest == max(link_loads(model, before).values())
