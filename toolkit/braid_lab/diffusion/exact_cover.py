"""The lightest set covers, by integer programming, and Chvatal's bound on greedy ones.

Sets and weights are those of ``braid.papers.diffusion.routing_table``.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from braid.papers.diffusion.routing_table import Sets, greedy_cover
from braid.util.optional_imports import OptionalImport


def exact_cover(sets: Sets, weights: Sequence[float], wanted: int) -> list[int]:
    """Return the lightest cover, by integer programming (HiGHS): a reference for the greedy one.

    The result is within a millionth of the lightest host, in milliseconds for 100 hosts. Raises
    ModuleNotFoundError without scipy, which ``braid-joins[exact]`` installs.
    """
    with OptionalImport("exact"):
        from scipy.optimize import Bounds, LinearConstraint, milp

    greedy_cover(sets, weights, wanted)  # raises if a block is on no host
    hosts = [j for j, mask in sets.items() if mask & wanted]
    blocks = [b for b in range(wanted.bit_length()) if wanted >> b & 1]
    if not blocks:
        return []
    held = np.array([[sets[j] >> b & 1 for j in hosts] for b in blocks]).reshape(
        len(blocks), len(hosts)
    )
    costs = np.array([weights[j] for j in hosts])
    solution = milp(
        costs / costs.min(),  # the solver stops at an absolute gap of 1e-6
        constraints=LinearConstraint(held, lb=1),
        integrality=1,
        bounds=Bounds(0, 1),
        options={"mip_rel_gap": 0.0},
    )
    return [j for j, chosen in zip(hosts, np.rint(solution.x), strict=True) if chosen]


def chvatal_bound(sets: Sets, wanted: int) -> float:
    """Return H(d), the bound of a greedy cover's weight relative to the lightest cover."""
    most = max(((mask & wanted).bit_count() for mask in sets.values()), default=0)
    return sum(1 / k for k in range(1, most + 1))
