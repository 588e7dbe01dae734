"""Re-planning of a hub and its schedule, on a deployment alone, without tuples."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
from braid.hub.reoptimizer import Reoptimizer
from braid.papers.reuse.deployment import DeployedQuery, Deployment, remove_queries
from braid.papers.reuse.deployment_changes import HORIZON
from braid.papers.reuse.planner import Planner, PlanningService
from braid.papers.reuse.query_definition import Definition
from braid.papers.reuse.reoptimization import Item, ReviewQueue
from reuse_cases import MINUTE, draw_setting, joined

pytestmark = pytest.mark.unit
SECOND = 1_000_000


def make_query(name: str, streams: str, sink: str) -> DeployedQuery:
    x, y = streams
    joins = [joined(x, "k", y, "k")]
    return DeployedQuery(
        name, Definition.make(dict.fromkeys(streams, MINUTE), joins, columns={}), sink
    )


@dataclass
class Hub:
    """A deployment with a clock; re-planning changes nothing."""

    service: PlanningService
    time: int = SECOND
    looked: list[Item] = field(default_factory=list)
    settings: Any = field(default_factory=lambda: SimpleNamespace(network="some"))
    ledger: Any = field(default_factory=lambda: SimpleNamespace(failed_nodes=[]))

    @property
    def current_deployment(self) -> Deployment:
        return self.service.deployment

    def make_planner(self) -> Planner:
        return self.service.planner

    def latest_event_time(self) -> int:
        return self.time


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Hub:
    _, model, deployment = draw_setting(0, 6)
    hub = Hub(PlanningService(Planner(model), deployment))
    sink = model.network.nodes[0].name
    for name, streams in (("q0", "ab"), ("q1", "de")):
        hub.service.submit_query(make_query(name, streams, sink))

    def look(planner: Planner, old: Deployment, item: Item, *_: Any) -> Deployment:
        hub.looked.append(item)
        return old

    monkeypatch.setattr("braid.hub.reoptimizer.review_item", look)
    return hub


def looks(hub: Hub, reoptimizer: Reoptimizer) -> set[Item]:
    """Return everything that is re-planned until the hub is settled."""
    hub.looked.clear()
    while not reoptimizer.is_settled:
        reoptimizer.review_next()
    return set(hub.looked)


def test_all_is_looked_at_when_time_has_doubled_though_something_changed_as_well(hub: Hub) -> None:
    reoptimizer = Reoptimizer(hub)  # type: ignore[arg-type]
    everything = {*hub.current_deployment.operators, *hub.current_deployment.queries}
    assert looks(hub, reoptimizer) == everything and reoptimizer.lasted == HORIZON
    reoptimizer.changed = True
    hub.time += int(1.5 * HORIZON) * SECOND
    assert looks(hub, reoptimizer) == set() and reoptimizer.lasted == HORIZON, (
        "not twice as long yet"
    )
    reoptimizer.changed = True
    hub.time += int(0.5 * HORIZON) * SECOND
    assert looks(hub, reoptimizer) == everything and reoptimizer.lasted == 2 * HORIZON
    before = hub.current_deployment
    hub.service.withdraw_query("q1")
    reoptimizer.note_change(before, hub.current_deployment, queries=True)
    looks(hub, reoptimizer)
    assert reoptimizer.lasted == HORIZON, "it is counted anew when queries come or go"


def test_a_name_that_is_used_again_is_looked_at() -> None:
    _, model, deployment = draw_setting(0, 6)
    service, seen = PlanningService(Planner(model), deployment), ReviewQueue()
    sink = model.network.nodes[0].name
    service.submit_query(make_query("q0", "ab", sink))
    service.submit_query(make_query("q1", "ab", sink))
    for item in seen.due_items(model, service.deployment):
        seen.mark_reviewed(item)
    both = service.deployment
    seen.note_change(both, one := remove_queries(both, "q1"))
    assert "q1" not in seen.due_items(model, one)
    seen.note_change(one, both)
    for item in {*both.operators} | {"q0"}:
        seen.mark_reviewed(item)
    assert seen.due_items(model, both) == ["q1"], "it is another query"
