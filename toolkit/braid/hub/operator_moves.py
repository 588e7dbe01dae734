"""Operators of a running hub change: they move, nodes fail, all is planned anew.

Source: Seshadri 2008 has neither moves nor failures; these are ours.
"""

from __future__ import annotations

from dataclasses import dataclass

from braid.hub.query_registry import QueryRegistry
from braid.papers.reuse import deployment_changes as pure
from braid.papers.reuse.deployment import with_operator_moved
from braid.papers.reuse.events import NodeFailed, NodeRestored
from braid.papers.reuse.planner import PlanningError
from braid.papers.reuse.reoptimization import best_replan


@dataclass(frozen=True)
class ReplanResult:
    """What planning all queries anew would change, costs modelled: ``adopted`` if it was done."""

    cost_before: float
    cost_after: float
    changes: pure.DeploymentChanges
    is_adopted: bool


def move_operator(desk: QueryRegistry, operator: int, node: str) -> None:
    """Have an operator go on at another node, with its state, and stay there until the node fails,
    or all is planned anew, or its queries are, as another node fails, without a join like it.
    """
    there = desk.current_deployment.operators.get(operator)
    if there is None:
        known = ", ".join(map(str, desk.current_deployment.operators)) or "none"
        raise ValueError(f"no operator is {operator!r}; there are: {known}")
    _check_operator_node(desk, node)
    if node in desk.ledger.failed_nodes:
        raise ValueError(f"{node} is down; restore it first, or choose another node")
    after = with_operator_moved(desk.current_deployment, operator, node, stays=True)
    if not all(
        _is_reachable(desk, flow.source_node, flow.target_node) for flow in after.all_flows()
    ):
        raise ValueError(f"there is no path between {node} and what operator {operator} needs")
    desk.switch_deployment(after, desk.migration_events(after))


def _is_reachable(desk: QueryRegistry, source: str, target: str) -> bool:
    network = desk.cost_model().network
    return bool(
        network.latency_ms[network.find_node_index(source), network.find_node_index(target)]
        < float("inf")
    )


def _check_operator_node(desk: QueryRegistry, node: str) -> None:
    """Raises ValueError for a place where operators cannot be."""
    network = desk.settings.network
    if network is None:
        raise ValueError("this hub has one site; nodes are those of QueryHub(network=...)")
    kind = network.nodes[network.find_node_index(node)].role
    if kind not in ("node", "site"):
        raise ValueError(f"{node} is a {kind}; operators are at nodes")


def fail_node(desk: QueryRegistry, node: str) -> None:
    """A node is down, and the state of its operators is lost: what they answer is planned anew
    without it, and built from history.
    """
    _check_operator_node(desk, node)
    if node in desk.ledger.failed_nodes:
        raise ValueError(f"{node} is down already")
    used = {*desk.settings.stream_nodes.values(), *(q.sink for q in desk.ledger.serving_queries)}
    if node in used:
        raise ValueError(f"{node} has a stream or a query of its own; only others can fail")
    after, gone = desk.ledger.copy_mutable(), _operators_at_node(desk, node)
    after.failed_nodes.append(node)
    desk.ledger = after
    try:
        planner = desk.make_planner()
        new = pure.replan_after_failure(
            planner, desk.current_deployment, [node], desk.latest_event_time()
        )
        desk.switch_deployment(new, [NodeFailed(after.epoch, node, gone)])
    except PlanningError as error:
        _undo_move(desk, node)
        raise ValueError(f"{node} cannot be spared: {error}") from None
    except BaseException:
        _undo_move(desk, node)
        raise


def _undo_move(desk: QueryRegistry, node: str) -> None:
    """Have a node up again in a ledger that was not committed."""
    desk.ledger = desk.ledger.copy_mutable()
    desk.ledger.failed_nodes.remove(node)


def _operators_at_node(desk: QueryRegistry, node: str) -> tuple[int, ...]:
    return tuple(o.id for o in desk.current_deployment.operators.values() if o.node == node)


def restore_node(desk: QueryRegistry, node: str) -> None:
    """A node is up again; operators stay where they are until something is planned."""
    if node not in desk.ledger.failed_nodes:
        raise ValueError(
            f"{node} is not down; down are {', '.join(desk.ledger.failed_nodes) or 'none'}"
        )
    after = desk.ledger.copy_mutable()
    after.failed_nodes.remove(node)
    desk.commit_change(after, [NodeRestored(after.epoch, node)])


def replan_queries(desk: QueryRegistry, dry: bool = False) -> ReplanResult:
    """Plan all queries anew, and adopt that if it saves more than it costs; ``dry``: only tell."""
    planner, old = desk.make_planner(), desk.current_deployment
    model = planner.model
    new = best_replan(planner, old, desk.latest_event_time())
    pays = new != old and pure.is_worthwhile(model, old, new)
    if pays and not dry:
        desk.switch_deployment(new, desk.migration_events(new))
    costs = model.total_cost(old), model.total_cost(new)
    return ReplanResult(*costs, pure.diff_deployments(old, new), pays and not dry)
