"""What a hub looks at again, and when: on a deployment alone, without tuples."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
from braid.hub.resting import Resting
from braid.papers.reuse.changes import HORIZON
from braid.papers.reuse.definition import Definition
from braid.papers.reuse.deployment import Asked, Deployment, withdrawn
from braid.papers.reuse.planner import Planner, Service
from braid.papers.reuse.rest import Item, Looks
from reuse_cases import MINUTE, joined, setting

pytestmark = pytest.mark.unit
SECOND = 1_000_000


def asked(name: str, streams: str, sink: str) -> Asked:
    x, y = streams
    joins = [joined(x, "k", y, "k")]
    return Asked(name, Definition.of(dict.fromkeys(streams, MINUTE), joins, columns={}), sink)


@dataclass
class Hub:
    """What is deployed, and the time; nothing that is looked at changes."""

    service: Service
    time: int = SECOND
    looked: list[Item] = field(default_factory=list)
    settings: Any = field(default_factory=lambda: SimpleNamespace(network="some"))
    ledger: Any = field(default_factory=lambda: SimpleNamespace(down=[]))

    @property
    def deployment(self) -> Deployment:
        return self.service.deployment

    def planner(self) -> Planner:
        return self.service.planner

    def now(self) -> int:
        return self.time


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Hub:
    _, model, deployment = setting(0, 6)
    hub = Hub(Service(Planner(model), deployment))
    sink = model.network.nodes[0].name
    for name, streams in (("q0", "ab"), ("q1", "de")):
        hub.service.submit(asked(name, streams, sink))

    def look(planner: Planner, old: Deployment, item: Item, *_: Any) -> Deployment:
        hub.looked.append(item)
        return old

    monkeypatch.setattr("braid.hub.resting.again", look)
    return hub


def looks(hub: Hub, resting: Resting) -> set[Item]:
    """All that is looked at until the hub is at rest."""
    hub.looked.clear()
    while not resting.over:
        resting.look_again()
    return set(hub.looked)


def test_all_is_looked_at_when_time_has_doubled_though_something_changed_as_well(hub: Hub) -> None:
    resting = Resting(hub)  # type: ignore[arg-type]
    everything = {*hub.deployment.operators, *hub.deployment.queries}
    assert looks(hub, resting) == everything and resting.lasted == HORIZON
    resting.changed = True
    hub.time += int(1.5 * HORIZON) * SECOND
    assert looks(hub, resting) == set() and resting.lasted == HORIZON, "not twice as long yet"
    resting.changed = True
    hub.time += int(0.5 * HORIZON) * SECOND
    assert looks(hub, resting) == everything and resting.lasted == 2 * HORIZON
    before = hub.deployment
    hub.service.withdraw("q1")
    resting.note(before, hub.deployment, queries=True)
    looks(hub, resting)
    assert resting.lasted == HORIZON, "it is counted anew when queries come or go"


def test_a_name_that_is_used_again_is_looked_at() -> None:
    _, model, deployment = setting(0, 6)
    service, seen = Service(Planner(model), deployment), Looks()
    sink = model.network.nodes[0].name
    service.submit(asked("q0", "ab", sink))
    service.submit(asked("q1", "ab", sink))
    for item in seen.due(model, service.deployment):
        seen.at(item)
    both = service.deployment
    seen.note(both, one := withdrawn(both, "q1"))
    assert "q1" not in seen.due(model, one)
    seen.note(one, both)
    for item in {*both.operators} | {"q0"}:
        seen.at(item)
    assert seen.due(model, both) == ["q1"], "it is another query"
