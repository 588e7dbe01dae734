"""Bounds of grids: the optimal load ILF*, and the limit of Theorem 4.1 on ILF / ILF*.

Source: Elseidy et al., "Scalable and Adaptive Online Joins", PVLDB 7(6), 2014, 4.1 and 4.2.
"""

from __future__ import annotations

from braid.papers.theta.mapping import input_load_factor, optimal_mapping, powers_of_two


def optimal_ilf(r: float, s: float, hosts: int) -> float:
    """Return ILF*, for any J: the mean load of hosts under the best mapping of each group.

    A group of J_g hosts stores the share J_g/J of both streams, so its hosts hold J_g/J * (|R|/n_g
    + |S|/m_g). For a power of two that is the optimum of the one grid.
    """
    shares = [(j / hosts, optimal_mapping(r, s, j)) for j in powers_of_two(hosts)]
    return sum(share * share * input_load_factor(r, s, *mapping) for share, mapping in shares)


def ratio_bound(batch: float, smaller: float, epsilon: float = 1.0) -> float:
    """Return the bound of Theorem 4.1 on ILF/ILF* for a controller that sees micro-batches.

    ``batch`` is the greater of this batch and the one before, ``smaller`` the smaller stream, both
    in tuples. At its last checkpoint that stream had no less than (smaller - 2 batch) / (1 +
    epsilon); since then it grew by epsilon of it and two batches. With beta = two batches over it
    the proof gives (3 + 2 epsilon + 2 beta) / (3 + epsilon + beta): 1.25 for small batches and
    epsilon = 1.
    """
    beta = 2 * batch / ((smaller - 2 * batch) / (1 + epsilon))
    return (3 + 2 * epsilon + 2 * beta) / (3 + epsilon + beta)


def ratio_bound_if_applicable(batch: float, smaller: float, epsilon: float = 1.0) -> float | None:
    """Return the ``ratio_bound`` of a batch that is at most a quarter of the smaller stream.

    None for larger ones: the proof needs beta <= 2, and earlier batches are too coarse to judge.
    """
    return ratio_bound(batch, smaller, epsilon) if smaller >= max(1, 4 * batch) else None
