"""Other ways to plan a query, to hold the exact planner against: none of them reuses anything."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product

import numpy as np

from braid.papers.reuse.cost import CostModel
from braid.papers.reuse.definition import Definition
from braid.papers.reuse.deployment import Asked, Deployment, New, Source, Tree
from braid.papers.reuse.hierarchy import Hierarchical
from braid.papers.reuse.network import ONE_SITE
from braid.papers.reuse.plans import Leaf, Plans

Rival = Callable[[CostModel, Definition, Sequence[Leaf], int], Tree]
"""A planner: costs, the query, its streams at their nodes, the node of the sink."""


def leaves_of(model: CostModel, deployment: Deployment, wanted: Definition) -> list[Leaf]:
    """The streams of a query at the nodes that they come from."""
    place = model.network.place
    return [Leaf(frozenset([s]), place(deployment.source(s)), Source(s)) for s in wanted.streams]


def cost_of(model: CostModel, deployment: Deployment, asked: Asked, tree: Tree) -> float:
    """What a plan of new operators costs for one query."""
    from braid.papers.reuse.deployment import submitted

    return model.total(submitted(Deployment(deployment.at), asked, tree))


def exact(model: CostModel, wanted: Definition, leaves: Sequence[Leaf], sink: int) -> Tree:
    """Join order and places together, at the least cost."""
    return Plans(model, wanted, leaves, model.network.working).tree(sink)


def plan_then_deploy(
    model: CostModel, wanted: Definition, leaves: Sequence[Leaf], sink: int
) -> Tree:
    """First the join order that makes the fewest tuples, whatever the network; then the best places
    for it.
    """
    blind = CostModel(ONE_SITE, model.rates, kappa=1.0)
    here = [Leaf(k.streams, 0, k.tree) for k in leaves]
    order = Plans(blind, wanted, here, ONE_SITE.working).tree(0)
    return _placed(model, wanted, order, {k.tree: k for k in leaves}, sink)


def _placed(
    model: CostModel, wanted: Definition, order: Tree, leaves: dict[Tree, Leaf], sink: int
) -> Tree:
    """The best places for the operators of a fixed join order."""
    far = model.network.latency / 1e3
    barred = np.where(model.network.working, 0.0, np.inf)

    def costs(tree: Tree) -> tuple[np.ndarray, Definition]:
        if tree in leaves:
            made = np.full(len(far), np.inf)
            made[leaves[tree].node] = 0.0
            return made, wanted.part(leaves[tree].streams)
        assert isinstance(tree, New)
        made = sum((there(read)[0] for read in tree.inputs), barred)
        return made, wanted.part(tree.streams)

    def there(tree: Tree) -> tuple[np.ndarray, np.ndarray]:
        made, part = costs(tree)
        whole = made[:, None] + far * model.rates.bytes(part)
        return whole.min(0), whole.argmin(0)

    def at(tree: Tree, target: int) -> Tree:
        if tree in leaves or not isinstance(tree, New):
            return tree
        node = int(there(tree)[1][target])
        return New(
            tree.streams, model.network.nodes[node].name, tuple(at(i, node) for i in tree.inputs)
        )

    return at(order, sink)


def all_to_sink(model: CostModel, wanted: Definition, leaves: Sequence[Leaf], sink: int) -> Tree:
    """Every operator at the working node that is nearest to the sink."""
    near = np.where(model.network.working, model.network.latency[sink], np.inf)
    only = np.zeros(len(near), np.bool_)
    only[int(near.argmin())] = True
    return Plans(model, wanted, leaves, only).tree(sink)


def top_down(most: int) -> Rival:
    """Top-Down over clusters of at most so many nodes."""
    return lambda model, wanted, leaves, sink: Hierarchical(model, most).top_down(
        wanted, leaves, sink
    )


def bottom_up(most: int) -> Rival:
    """Bottom-Up over clusters of at most so many nodes."""
    return lambda model, wanted, leaves, sink: Hierarchical(model, most).bottom_up(
        wanted, leaves, sink
    )


def every_plan(wanted: Definition, trees: Sequence[Tree], nodes: Sequence[str]) -> Iterator[Tree]:
    """Every bushy tree without a product, with its operators at all places: for tests, on small
    networks. ``trees`` are the streams.
    """
    if len(trees) == 1:
        yield trees[0]
        return
    first, *rest = trees
    for bits in range(1 << len(rest)):
        left = [first, *(t for i, t in enumerate(rest) if bits >> i & 1)]
        right = [t for i, t in enumerate(rest) if not bits >> i & 1]
        if not right or not (_connected(wanted, left) and _connected(wanted, right)):
            continue
        streams = tuple(sorted(t.stream for t in trees if isinstance(t, Source)))
        for a, b in product(
            list(every_plan(wanted, left, nodes)), list(every_plan(wanted, right, nodes))
        ):
            for node in nodes:
                yield New(streams, node, (a, b))


def _connected(wanted: Definition, trees: Sequence[Tree]) -> bool:
    return wanted.part(t.stream for t in trees if isinstance(t, Source)).connected
