"""Two queries that share a tree of joins, (A join B) join C: Wang 2008, chapter 6. All modelled.

Memory is in tuples of the input (a joined pair AB counts twice), times M_t it is Eq. 6.1 to 6.3;
work is in comparisons per minute, Eq. 6.5 to 6.7. ``memory_ratios`` and ``cpu_ratios`` are Eq. 6.4
and 6.8. Where the book contradicts itself:

- Section 6.3.4 adds up isolated execution to 2325.8 MB. The parts printed before, 75.8 and
  2253.375, are 2329.175: all states of Q2 but AB are left out.
- The windows are rewritten as W_BC^1 = 30 n, W_BC^2 = 60 (6.3.4, 6.4.4). By n = W_BC^2 / W_BC^1 and
  Table 6.2 they are 30 and 30 n, and Eq. 6.4 and 6.8 follow from those only.
- Eq. 6.4 is for the states AB alone, which are 99% and more of the whole.
- Eq. 6.8, numerator: Eq. 6.7 gives 41.1 m n + 206.35 m + 206.25 n + 0.1375 (in 60 million
  comparisons). Printed is 228.61 m n + 206.33 m + 18.75 n + 0.1375: 187.5 n (1 - m) is missing, the
  probing of C3 by AB3, which section 6.4.4 calls dominant. At Table 6.2 the printed ratio to
  isolated execution is 0.15, that of the costs printed above it 1.10. With the whole numerator the
  chains cost 10% to 21% more than isolated execution for all m and n. ``printed_cpu_ratios`` has
  the equation as printed.
- Eq. 6.8, denominator: isolated execution without filtering and purging, as printed; they are less
  than 0.1%.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple


@dataclass(frozen=True)
class JoinTree:
    """The terms of Table 6.1 with the values of Table 6.2.

    Rates are in tuples per minute, windows in minutes. ``ab`` and ``bc`` are the windows W_AB and
    W_BC of Q1 and Q2, with W_AB^1 <= W_AB^2 and W_BC^2 <= W_BC^1. ``per_query`` is the
    selectivity of each selection, ``either`` that of being selected by Q1 or Q2 (80% of Q1's tuples
    are Q2's too).

    Raises ValueError for windows in another order.
    """

    rate: float = 1000.0
    ab: tuple[float, float] = (1.0, 60.0)
    bc: tuple[float, float] = (30.0, 15.0)
    per_query: float = 0.25
    either: float = 0.3
    join_ab: float = 0.1
    join_bc: float = 0.1

    def __post_init__(self) -> None:
        if not 0 < self.ab[0] <= self.ab[1] or not 0 < self.bc[1] <= self.bc[0]:
            raise ValueError(
                f"windows are {self.ab} and {self.bc}; Q1's is the shorter of A and B, Q2's the "
                "shorter of B and C"
            )

    def ab_results_per_minute(self, fraction: float, window: float) -> float:
        """Return the results of A join B per minute, if a fraction of each passes."""
        return 2 * (self.rate * fraction) ** 2 * window * self.join_ab

    def abc_results_per_minute(self, pairs: float, fraction: float, window: float) -> float:
        """Return the results of AB join C per minute."""
        return 2 * pairs * self.rate * fraction * window * self.join_bc


MEGABYTES = 0.1e-3
"""M_t, the size of a tuple, in MB."""


def ratio_tree(m: float, n: float) -> JoinTree:
    """Return the tree with m = W_AB^1 / W_AB^2 and n = W_BC^2 / W_BC^1.

    The longer windows are those of Table 6.2. Raises ValueError unless both are in (0, 1].
    """
    if not (0 < m <= 1 and 0 < n <= 1):
        raise ValueError(f"m is {m} and n is {n}; ratios of windows are above 0 and up to 1")
    tree = JoinTree()
    return replace(tree, ab=(m * tree.ab[1], tree.ab[1]), bc=(tree.bc[0], n * tree.bc[0]))


def isolated_memory(t: JoinTree) -> tuple[dict[str, float], dict[str, float]]:
    """Return Eq. 6.1 for Q1 and Q2 (Fig. 6.1): tuples by state."""
    q1, q2 = (
        _compute_state_sizes(t, t.per_query, ab, bc) for ab, bc in zip(t.ab, t.bc, strict=True)
    )
    return q1, q2


def pull_up_memory(t: JoinTree) -> dict[str, float]:
    """Return Eq. 6.2, Fig. 6.2: tuples by state."""
    return _compute_state_sizes(t, t.either, t.ab[1], t.bc[0])


def _compute_state_sizes(t: JoinTree, fraction: float, ab: float, bc: float) -> dict[str, float]:
    held = t.rate * fraction
    return {
        "A": held * ab,
        "B": held * ab,
        "C": held * bc,
        "AB": 2 * t.ab_results_per_minute(fraction, ab) * bc,
    }


def slice_memory(t: JoinTree) -> dict[str, float]:
    """Return Eq. 6.3: tuples by state, of the three chains of Fig. 6.3."""
    both, own_tuples = t.rate * t.either, t.rate * t.per_query
    young, old = t.ab[0], t.ab[1] - t.ab[0]
    near, far = t.bc[1], t.bc[0] - t.bc[1]
    return {
        "A1": both * young,
        "A2": own_tuples * old,
        "B1": both * young,
        "B2": own_tuples * old,
        "C1": both * near,
        "C2": own_tuples * far,
        "C3": own_tuples * near,
        "AB1": 2 * t.ab_results_per_minute(t.either, young) * near,
        "AB2": 2 * t.ab_results_per_minute(t.per_query, young) * far,
        "AB3": 2 * t.ab_results_per_minute(t.per_query, old) * near,
    }


def isolated_cpu(t: JoinTree) -> tuple[dict[str, float], dict[str, float]]:
    """Return Eq. 6.5 for Q1 and Q2: comparisons per minute by purpose."""
    q1, q2 = (_compute_isolated_cpu(t, ab, bc) for ab, bc in zip(t.ab, t.bc, strict=True))
    return q1, q2


def _compute_isolated_cpu(t: JoinTree, ab: float, bc: float) -> dict[str, float]:
    pairs = t.ab_results_per_minute(t.per_query, ab)
    return {
        "filter": 3 * t.rate,
        "purge": 3 * t.rate * t.per_query + pairs,
        "probe": pairs / t.join_ab + 2 * pairs * t.rate * t.per_query * bc,
    }


def pull_up_cpu(t: JoinTree) -> dict[str, float]:
    """Return Eq. 6.6: comparisons per minute by purpose."""
    pairs = t.ab_results_per_minute(t.either, t.ab[1])
    triples = t.abc_results_per_minute(pairs, t.either, t.bc[0])
    return {
        "filter": 3 * t.rate + 2 * triples,
        "purge": 3 * t.rate * t.either + pairs,
        "probe": pairs / t.join_ab + triples / t.join_bc,
        "route": 2 * triples,
    }


def slice_cpu(t: JoinTree) -> dict[str, float]:
    """Return Eq. 6.7: comparisons per minute by purpose.

    The probing of C3 by AB3 is separate, under "probe AB3".
    """
    ab1, ab2 = (
        t.ab_results_per_minute(t.either, t.ab[0]),
        t.ab_results_per_minute(t.per_query, t.ab[1] - t.ab[0]),
    )
    abc1 = t.abc_results_per_minute(ab1, t.either, t.bc[1])
    abc2 = t.abc_results_per_minute(
        t.ab_results_per_minute(t.per_query, t.ab[0]), t.per_query, t.bc[0] - t.bc[1]
    )
    abc3 = t.abc_results_per_minute(ab2, t.per_query, t.bc[1])
    return {
        "filter": 7 * t.rate + 2 * abc1 + ab1,
        "purge": 7 * t.rate * t.either + 2 * ab1 + ab2,
        "probe": (ab1 + ab2) / t.join_ab + (abc1 + abc2) / t.join_bc,
        "probe AB3": abc3 / t.join_bc,
        "union": 2 * abc1 + abc2 + abc3,
    }


class CostRatios(NamedTuple):
    """Costs of the chain as fractions of those of isolated execution and selection pull-up."""

    isolated: float
    pull_up: float


def memory_ratios(m: float, n: float) -> CostRatios:
    """Return Eq. 6.4: the ratios of the states AB."""
    sliced = 1500 * (m + n) - 840 * m * n
    return CostRatios(sliced / (1500 * (m + n)), sliced / 2160)


def cpu_ratios(m: float, n: float) -> CostRatios:
    """Return the ratios of Eq. 6.7 to Eq. 6.5 and to Eq. 6.6, which Eq. 6.8 should be."""
    t = ratio_tree(m, n)
    sliced = sum(slice_cpu(t).values())
    return CostRatios(
        sliced / sum(sum(q.values()) for q in isolated_cpu(t)),
        sliced / sum(pull_up_cpu(t).values()),
    )


def printed_cpu_ratios(m: float, n: float) -> CostRatios:
    """Return Eq. 6.8 as printed, without the probing of C3 by AB3."""
    sliced = 228.61 * m * n + 206.33 * m + 18.75 * n + 0.1375
    return CostRatios(sliced / (187.5 * (m + n) + 0.125 * m + 0.125), sliced / 453.798)
