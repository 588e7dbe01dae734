"""Stream reuse, tuple by tuple: every query gets the answer that it gets alone.

This holds whatever is reused, relaxed and withdrawn, and wherever operators are. Source: Seshadri
2008, section 3.1.
"""

from __future__ import annotations

import json
import random
from collections import Counter

import pytest
from braid.errors import PlanningError
from braid.papers.reuse.cost import CostModel
from braid.papers.reuse.deployment import DeployedQuery, Deployment, with_operator_moved
from braid.papers.reuse.deployment_changes import diff_deployments, replan_after_failure
from braid.papers.reuse.deployment_codec import deployment_from_plain, deployment_to_plain
from braid.papers.reuse.planner import Planner, PlanningService, Reuse
from braid.papers.reuse.reoptimization import best_replan
from braid_lab.reuse.reference import Arrival, Match, isolated_results, query_results
from hypothesis import given, settings
from hypothesis import strategies as st
from reuse_cases import MINUTE, STREAMS, draw_definition, draw_setting

pytestmark = pytest.mark.unit


def count_matches(matches: list[Match]) -> Counter:
    return Counter(
        tuple((s, a.id, tuple(sorted(a.values.items()))) for s, a in sorted(m.items()))
        for m in matches
    )


def changed(rng: random.Random, service: PlanningService) -> Deployment:
    """Return the deployment, now and then changed.

    An operator is moved, everything is re-planned, or a node without streams and queries goes down.
    """
    deployment, planner = service.deployment, service.planner
    nodes = [n.name for n in planner.network.nodes]
    if rng.random() < 0.3 and deployment.operators:
        id, node = rng.choice(list(deployment.operators)), rng.choice(nodes)
        deployment = with_operator_moved(deployment, id, node, stays=True)
    if rng.random() < 0.3:
        deployment = best_replan(planner, deployment)
    used = {*deployment.stream_nodes.values(), *(q.sink for q in deployment.queries.values())}
    spare = [n for n in nodes if n not in used]
    if spare and rng.random() < 0.5:
        down = rng.choice(spare)
        rest = CostModel(planner.network.without_nodes(down), planner.model.rates)
        try:
            deployment = replan_after_failure(Planner(rest, planner.reuse), deployment, [down])
        except PlanningError:  # it is needed
            return deployment
        assert down not in {o.node for o in deployment.operators.values()}
    here = [(o.id, o.version) for o in deployment.operators.values()]
    todo = diff_deployments(service.deployment, deployment)
    assert {(o.id, o.version) for o in todo.build} <= set(here) and not set(todo.drop) & set(here)
    assert (
        deployment_from_plain(json.loads(json.dumps(deployment_to_plain(deployment)))) == deployment
    )
    return deployment


@pytest.mark.parametrize("reuse", ["relaxed", "always", "contained"])
@settings(max_examples=40)  # of seven added queries, with all their joins
@given(seed=st.integers(0, 10**6))
def test_every_query_is_told_what_it_is_told_alone(reuse: Reuse, seed: int) -> None:
    rng, model, _ = draw_setting(seed, 6)
    streams = STREAMS[:4]
    names = [n.name for n in model.network.nodes]
    deployment = Deployment({s: rng.choice(names[:2]) for s in streams})
    arrivals = {
        s: [
            Arrival(
                i,
                rng.randrange(6 * MINUTE),
                {"k": rng.randrange(2)} | {c: rng.randrange(10) for c in "xyz"},
            )
            for i in range(6)
        ]
        for s in streams
    }
    service = PlanningService(Planner(model, reuse), deployment)
    for i in range(7):
        asked = DeployedQuery(f"q{i}", draw_definition(rng, streams, 3), rng.choice(names[2:4]))
        service.submit_query(asked)
        if rng.random() < 0.3:
            service.withdraw_query(rng.choice(list(service.deployment.queries)))
        service.deployment = changed(rng, service)
        found = query_results(service.deployment, arrivals)
        for name, query in service.deployment.queries.items():
            assert count_matches(found[name]) == count_matches(isolated_results(query, arrivals)), (
                name
            )
