"""Change the operators of a running hub: moves, failed nodes, and planning all queries again.

Seshadri 2008 has neither moves nor failures; these are ours.
"""

from __future__ import annotations

from dataclasses import dataclass

from braid.errors import PlanningError
from braid.hub.query_registry import QueryRegistry
from braid.papers.reuse import deployment_changes as pure
from braid.papers.reuse.deployment import with_operator_moved
from braid.papers.reuse.hub_events import NodeFailed, NodeRestored
from braid.papers.reuse.reoptimization import best_replan


@dataclass(frozen=True)
class ReplanResult:
    """Result of planning all queries again, with modelled costs."""

    cost_before: float
    cost_after: float
    changes: pure.DeploymentChanges
    is_adopted: bool


def move_operator(registry: QueryRegistry, operator: int, node: str) -> None:
    """Move an operator with its state to another node and keep it there.

    It stays until the node fails, all queries are planned again, or another node's failure replans
    its queries without an equal join.

    Raises ValueError if there is no such operator, or if the node is down or unreachable.
    """
    check_operator(registry, operator)
    _check_operator_node(registry, node)
    if node in registry.ledger.failed_nodes:
        raise ValueError(f"{node} is down; restore it first, or choose another node")
    after = with_operator_moved(registry.current_deployment, operator, node, stays=True)
    if not all(
        _is_reachable(registry, flow.source_node, flow.target_node) for flow in after.all_flows()
    ):
        raise ValueError(f"there is no path between {node} and what operator {operator} needs")
    registry.switch_deployment(after, registry.migration_events(after))


def check_operator(registry: QueryRegistry, operator: int) -> None:
    """Raise ValueError unless an operator is deployed."""
    if operator not in registry.current_deployment.operators:
        ids = ", ".join(map(str, registry.current_deployment.operators)) or "none"
        raise ValueError(f"no operator is {operator!r}; there are: {ids}")


def _is_reachable(registry: QueryRegistry, source: str, target: str) -> bool:
    network = registry.cost_model().network
    return bool(
        network.latency_ms[network.find_node_index(source), network.find_node_index(target)]
        < float("inf")
    )


def _check_operator_node(registry: QueryRegistry, node: str) -> None:
    """Raise ValueError if a node cannot run operators."""
    network = registry.settings.network
    if network is None:
        raise ValueError("this hub has one site; nodes are those of QueryHub(network=...)")
    kind = network.nodes[network.find_node_index(node)].role
    if kind not in ("node", "site"):
        raise ValueError(f"{node} is a {kind}; operators are at nodes")


def fail_node(registry: QueryRegistry, node: str) -> None:
    """Mark a node as failed, and rebuild its queries' operators elsewhere from history.

    Raises ValueError if a stream or query needs the node.
    """
    _check_operator_node(registry, node)
    if node in registry.ledger.failed_nodes:
        raise ValueError(f"{node} is down already")
    used = {
        *registry.settings.stream_nodes.values(),
        *(q.sink for q in registry.ledger.serving_queries),
    }
    if node in used:
        raise ValueError(f"{node} has a stream or a query of its own; only others can fail")
    after, gone = registry.ledger.copy_mutable(), _operators_at_node(registry, node)
    after.failed_nodes.append(node)
    registry.ledger = after
    try:
        planner = registry.make_planner()
        new = pure.replan_after_failure(
            planner, registry.current_deployment, [node], registry.latest_event_time()
        )
        registry.switch_deployment(new, [NodeFailed(after.epoch, node, gone)])
    except PlanningError as error:
        _undo_move(registry, node)
        raise ValueError(f"{node} cannot be spared: {error}") from None
    except BaseException:
        _undo_move(registry, node)
        raise


def _undo_move(registry: QueryRegistry, node: str) -> None:
    """Mark a node as available in a hub state that was not committed."""
    registry.ledger = registry.ledger.copy_mutable()
    registry.ledger.failed_nodes.remove(node)


def _operators_at_node(registry: QueryRegistry, node: str) -> tuple[int, ...]:
    return tuple(o.id for o in registry.current_deployment.operators.values() if o.node == node)


def restore_node(registry: QueryRegistry, node: str) -> None:
    """Mark a failed node as available. Operators move only with the next planning."""
    if node not in registry.ledger.failed_nodes:
        raise ValueError(
            f"{node} is not down; down are {', '.join(registry.ledger.failed_nodes) or 'none'}"
        )
    after = registry.ledger.copy_mutable()
    after.failed_nodes.remove(node)
    registry.commit_change(after, [NodeRestored(after.epoch, node)])


def replan_queries(registry: QueryRegistry, dry: bool = False) -> ReplanResult:
    """Plan all queries again, and adopt the plan if it saves more than it costs.

    ``dry``: return the result without adopting it.
    """
    planner, old = registry.make_planner(), registry.current_deployment
    model = planner.model
    new = best_replan(planner, old, registry.latest_event_time())
    pays = new != old and pure.is_worthwhile(model, old, new)
    if pays and not dry:
        registry.switch_deployment(new, registry.migration_events(new))
    costs = model.total_cost(old), model.total_cost(new)
    return ReplanResult(*costs, pure.diff_deployments(old, new), pays and not dry)
