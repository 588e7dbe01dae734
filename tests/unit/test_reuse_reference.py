"""Stream reuse, tuple by tuple: whatever is reused, relaxed and withdrawn, and wherever operators
are, every query is told what it is told alone (Seshadri 2008, section 3.1).
"""

from __future__ import annotations

from collections import Counter

import pytest
from braid.papers.reuse.deployment import Asked
from braid.papers.reuse.planner import Planner, Reuse, Service
from braid.papers.reuse.reference import Arrival, Match, alone, answers
from hypothesis import given
from hypothesis import strategies as st
from reuse_cases import MINUTE, STREAMS, definition_of, setting

pytestmark = pytest.mark.unit


def told(matches: list[Match]) -> Counter:
    return Counter(
        tuple((s, a.id, tuple(sorted(a.values.items()))) for s, a in sorted(m.items()))
        for m in matches
    )


@pytest.mark.parametrize("reuse", ["relaxed", "always", "contained"])
@given(seed=st.integers(0, 10**6))
def test_every_query_is_told_what_it_is_told_alone(reuse: Reuse, seed: int) -> None:
    rng, model, deployment = setting(seed, 4)
    streams = STREAMS[:4]
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
    service = Service(Planner(model, reuse), deployment)
    names = [n.name for n in model.network.nodes]
    for i in range(7):
        asked = Asked(f"q{i}", definition_of(rng, streams, 3), rng.choice(names))
        service.submit(asked)
        if rng.random() < 0.3:
            service.withdraw(rng.choice(list(service.deployment.queries)))
        found = answers(service.deployment, arrivals)
        for name, query in service.deployment.queries.items():
            assert told(found[name]) == told(alone(query, arrivals)), name
