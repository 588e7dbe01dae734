"""Operators of a running hub change: they move, nodes fail, all is planned anew.

Source: Seshadri 2008 has neither moves nor failures; these are ours.
"""

from __future__ import annotations

from dataclasses import dataclass

from braid.hub.desk import Desk
from braid.papers.reuse import changes as pure
from braid.papers.reuse.deployment import moved
from braid.papers.reuse.events import NodeFailed, NodeRestored
from braid.papers.reuse.planner import PlanError
from braid.papers.reuse.rest import replanned


@dataclass(frozen=True)
class Replan:
    """What planning all queries anew would change, costs modelled: ``adopted`` if it was done."""

    before: float
    after: float
    changes: pure.Changes
    adopted: bool


def move(desk: Desk, operator: int, node: str) -> None:
    """Have an operator go on at another node, with its state, and stay there until the node fails,
    or all is planned anew, or its queries are, as another node fails, without a join like it.
    """
    there = desk.deployment.operators.get(operator)
    if there is None:
        known = ", ".join(map(str, desk.deployment.operators)) or "none"
        raise ValueError(f"no operator is {operator!r}; there are: {known}")
    _working(desk, node)
    if node in desk.ledger.down:
        raise ValueError(f"{node} is down; restore it first, or choose another node")
    after = moved(desk.deployment, operator, node, stays=True)
    if not all(_reaches(desk, flow.source, flow.target) for flow in after.flows()):
        raise ValueError(f"there is no path between {node} and what operator {operator} needs")
    desk.switch(after, desk.moves(after))


def _reaches(desk: Desk, source: str, target: str) -> bool:
    network = desk.model().network
    return bool(network.latency[network.place(source), network.place(target)] < float("inf"))


def _working(desk: Desk, node: str) -> None:
    """Raises ValueError for a place where operators cannot be."""
    network = desk.settings.network
    if network is None:
        raise ValueError("this hub has one site; nodes are those of QueryHub(network=...)")
    kind = network.nodes[network.place(node)].kind
    if kind not in ("node", "site"):
        raise ValueError(f"{node} is a {kind}; operators are at nodes")


def fail(desk: Desk, node: str) -> None:
    """A node is down, and the state of its operators is lost: what they answer is planned anew
    without it, and built from history.
    """
    _working(desk, node)
    if node in desk.ledger.down:
        raise ValueError(f"{node} is down already")
    used = {*desk.settings.at.values(), *(q.sink for q in desk.ledger.served)}
    if node in used:
        raise ValueError(f"{node} has a stream or a query of its own; only others can fail")
    after, gone = desk.ledger.copy(), _at(desk, node)
    after.down.append(node)
    desk.ledger = after
    try:
        planner = desk.planner()
        new = pure.failed(planner, desk.deployment, [node], desk.now())
        desk.switch(new, [NodeFailed(after.epoch, node, gone)])
    except PlanError as error:
        _take_back(desk, node)
        raise ValueError(f"{node} cannot be spared: {error}") from None
    except BaseException:
        _take_back(desk, node)
        raise


def _take_back(desk: Desk, node: str) -> None:
    """Have a node up again in a ledger that was not committed."""
    desk.ledger = desk.ledger.copy()
    desk.ledger.down.remove(node)


def _at(desk: Desk, node: str) -> tuple[int, ...]:
    return tuple(o.id for o in desk.deployment.operators.values() if o.node == node)


def restore(desk: Desk, node: str) -> None:
    """A node is up again; operators stay where they are until something is planned."""
    if node not in desk.ledger.down:
        raise ValueError(f"{node} is not down; down are {', '.join(desk.ledger.down) or 'none'}")
    after = desk.ledger.copy()
    after.down.remove(node)
    desk.commit(after, [NodeRestored(after.epoch, node)])


def replan(desk: Desk, dry: bool = False) -> Replan:
    """Plan all queries anew, and adopt that if it saves more than it costs; ``dry``: only tell."""
    planner, old = desk.planner(), desk.deployment
    model = planner.model
    new = replanned(planner, old, desk.now())
    pays = new != old and pure.worth(model, old, new)
    if pays and not dry:
        desk.switch(new, desk.moves(new))
    costs = model.total(old), model.total(new)
    return Replan(*costs, pure.changes(old, new), pays and not dry)
