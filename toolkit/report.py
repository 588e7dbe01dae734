"""A plan as an event: plain lists that views draw and that a recording keeps."""

from __future__ import annotations

from typing import Any

from toolkit.events import BatchPlanned
from toolkit.plan import Plan, Route


def planned(batch: int, plan: Plan) -> BatchPlanned:
    """The event that tells the plan of a batch; see BatchPlanned for the lists."""
    derivations = [
        [d.block.id, list(d.block.keys), list(d.sources), {str(dst): src for dst, src in d.reads.items()}]
        for d in plan.derivations
    ]
    drops = {str(block): list(hosts) for block, hosts in plan.drops.items()}
    return BatchPlanned(batch, [_route(r) for r in plan.routes], derivations, drops)


def _route(r: Route) -> list[Any]:
    paths = [[[hop.stream, {str(h): list(ids) for h, ids in hop.probes.items()}] for hop in path] for path in r.paths]
    b = r.block
    return [b.id, b.stream, list(b.keys), list(b.hosts), paths, r.fresh, list(r.deferred)]
