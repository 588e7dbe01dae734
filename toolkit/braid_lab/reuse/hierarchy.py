"""Planners of the same authors' earlier work, over a hierarchy of clusters: Top-Down and Bottom-Up.

Seshadri 2008, section 2.2 names them ("virtual hierarchical network partition") and gives no
algorithm. We know them from abstracts; details are ours: clusters of at most ``most`` nodes, whose
medoids are the nodes of the next level. Neither reuses anything.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from braid.papers.reuse.cost import CostModel
from braid.papers.reuse.deployment import NewOperator, StreamLeaf, Tree
from braid.papers.reuse.network import Network, Truths
from braid.papers.reuse.plan_search import PlanLeaf, PlanTable
from braid.papers.reuse.query_definition import Definition


@dataclass(frozen=True)
class Level:
    """One level of the hierarchy: each cluster's nodes by its coordinator."""

    clusters: dict[int, tuple[int, ...]]

    def find_coordinator(self, node: int) -> int:
        """Return the coordinator of a node of this level."""
        return next(c for c, nodes in self.clusters.items() if node in nodes)


def build_hierarchy(network: Network, most: int) -> tuple[Level, ...]:
    """Return the levels from the leaves up; the last has one cluster.

    Raises ValueError for clusters of fewer than two nodes.
    """
    if most < 2:
        raise ValueError(f"clusters have at most {most} nodes; it must be 2 or more")
    nodes: Sequence[int] = [int(n) for n in np.flatnonzero(network.hosting_mask)]
    levels: list[Level] = []
    while not levels or len(levels[-1].clusters) > 1:
        levels.append(Level(dict(_cluster_nodes(network, nodes, most))))
        nodes = list(levels[-1].clusters)
    return tuple(levels)


def _cluster_nodes(
    network: Network, nodes: Sequence[int], most: int
) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Yield clusters of nearby nodes: the one farthest from all, with those nearest to it."""
    left, far = list(nodes), network.latency_ms
    while left:
        start = max(left, key=lambda n: (float(far[n, left].sum()), -n))
        chosen = sorted(left, key=lambda n: (float(far[start, n]), n))[:most]
        left = [n for n in left if n not in chosen]
        yield min(chosen, key=lambda n: (float(far[n, chosen].sum()), n)), tuple(chosen)


class HierarchicalPlanner:
    """A planner in clusters; ``looked`` counts the plans (trees and places) that it considered."""

    def __init__(self, model: CostModel, most: int = 16) -> None:
        self.model, self.levels = model, build_hierarchy(model.network, most)
        self.looked = 0

    def _make_node_mask(self, nodes: Sequence[int]) -> Truths:
        allowed = np.zeros(len(self.model.network.nodes), np.bool_)
        allowed[list(nodes)] = True
        return allowed

    def _find_representative(self, node: int, level: int) -> int:
        """Return the node that represents a node at a level.

        It is the node's coordinator, or that of its nearest working node.
        """
        near = self.model.network.latency_ms[node]
        if not self.model.network.hosting_mask[node]:
            able = np.flatnonzero(self.model.network.hosting_mask)
            node = int(able[near[able].argmin()])
        for below in self.levels[:level]:
            node = below.find_coordinator(node)
        return node

    def plan_top_down(self, wanted: Definition, leaves: Sequence[PlanLeaf], sink: int) -> Tree:
        """Plan among the coordinators of the top cluster.

        Each coordinator then re-plans its part in its own cluster.
        """
        top = len(self.levels) - 1
        return self._plan_cluster(wanted, leaves, sink, top, next(iter(self.levels[top].clusters)))

    def _plan_cluster(
        self, wanted: Definition, leaves: Sequence[PlanLeaf], sink: int, level: int, cluster: int
    ) -> Tree:
        nodes = self.levels[level].clusters[cluster]
        seen = [
            PlanLeaf(k.streams, self._find_representative(k.node, level), k.tree) for k in leaves
        ]
        plans = PlanTable(self.model, wanted, seen, self._make_node_mask(nodes))
        self.looked += count_plans(len(leaves), len(nodes))
        tree = plans.best_tree(self._find_representative(sink, level))
        if level == 0:
            return tree
        return self._refine_plan(tree, wanted, {k.tree: k for k in leaves}, sink, level)

    def _refine_plan(
        self,
        tree: Tree,
        wanted: Definition,
        leaf_by_tree: dict[Tree, PlanLeaf],
        sink: int,
        level: int,
    ) -> Tree:
        """Return the plan with the part on each coordinator re-planned in its cluster."""
        if tree in leaf_by_tree or not isinstance(tree, NewOperator):
            return tree
        inputs = list(_iterate_fragment_inputs(tree, leaf_by_tree))
        place = self.model.network.node_index
        leaves = []
        for read in inputs:
            if read in leaf_by_tree:
                leaves.append(leaf_by_tree[read])
            else:
                assert isinstance(read, NewOperator)
                inner = self._refine_plan(read, wanted, leaf_by_tree, place[tree.node], level)
                leaves.append(
                    PlanLeaf(frozenset(read.streams), place[_get_operator_node(inner)], inner)
                )
        part = wanted.restrict_to(tree.streams)
        return self._plan_cluster(part, leaves, sink, level - 1, place[tree.node])

    def plan_bottom_up(self, wanted: Definition, leaves: Sequence[PlanLeaf], sink: int) -> Tree:
        """Plan from the sink's cluster: join the streams that are there, and pass the rest up."""
        parts = list(leaves)
        for level, below in enumerate(self.levels):
            cluster = below.find_coordinator(self._find_representative(sink, level))
            nodes = below.clusters[cluster]
            local = [k for k in parts if self._find_representative(k.node, level) in nodes]
            last = level == len(self.levels) - 1
            chosen = parts if last else _select_linked_leaves(wanted, local)
            if len(chosen) < 2:
                continue
            part = wanted.restrict_to(frozenset().union(*(k.streams for k in chosen)))
            self.looked += count_plans(len(chosen), len(nodes))
            tree = PlanTable(self.model, part, chosen, self._make_node_mask(nodes)).best_tree(sink)
            node = self.model.network.node_index[_get_operator_node(tree)]
            parts = [k for k in parts if k not in chosen]
            parts.append(PlanLeaf(frozenset(part.streams), node, tree))
            if len(parts) == 1:
                break
        return parts[0].tree


def _get_operator_node(tree: Tree) -> str:
    assert not isinstance(tree, StreamLeaf)
    return tree.node


def _iterate_fragment_inputs(
    tree: NewOperator, leaf_by_tree: dict[Tree, PlanLeaf]
) -> Iterator[Tree]:
    """Yield the external inputs of the operators on the same node as this one."""
    for read in tree.inputs:
        if read not in leaf_by_tree and isinstance(read, NewOperator) and read.node == tree.node:
            yield from _iterate_fragment_inputs(read, leaf_by_tree)
        else:
            yield read


def _select_linked_leaves(wanted: Definition, leaves: Sequence[PlanLeaf]) -> list[PlanLeaf]:
    """Return the largest set of leaves that joins connect, grown from each in turn."""
    best: list[PlanLeaf] = []
    for start in leaves:
        chosen = [start]
        grown = True
        while grown:
            grown = False
            for leaf in leaves:
                streams = frozenset().union(*(k.streams for k in chosen), leaf.streams)
                if leaf not in chosen and wanted.restrict_to(streams).is_connected:
                    chosen.append(leaf)
                    grown = True
        best = chosen if len(chosen) > len(best) else best
    return best


def count_plans(streams: int, nodes: int) -> int:
    """Return the number of plans: bushy trees of the streams, (2K-3)!!, times places of joins.

    >>> count_plans(3, 124), count_plans(4, 10)
    (46128, 15000)
    """
    trees = prod(range(2 * streams - 3, 1, -2))
    return int(trees * nodes ** (streams - 1))
