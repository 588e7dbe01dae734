"""The cost of a system over time. Source: Seshadri 2008, section 2.2."""

from __future__ import annotations

from collections.abc import Iterable, Iterator


def integrate_cost(costs: Iterable[tuple[float, float]], end: float) -> float:
    """Return the cost of a system: the sum over time of C(G, Σ(t)) (section 2.2).

    ``costs`` are pairs (second, cost from then on), in order of time.

    >>> integrate_cost([(0, 10.0), (5, 20.0)], end=10)
    150.0
    """
    return sum(cost * (later - since) for (since, cost), later in _pair_costs_with_ends(costs, end))


def _pair_costs_with_ends(
    costs: Iterable[tuple[float, float]], end: float
) -> Iterator[tuple[tuple[float, float], float]]:
    steps = list(costs)
    return zip(steps, [since for since, _ in steps[1:]] + [end], strict=True)
