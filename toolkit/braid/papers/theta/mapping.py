"""The (n, m)-mapping of the join matrix: its input-load factor, its optimum, and when to change it.

R is stream 0, S is stream 1. Sizes are in unit tuples (tuples times tau, the size of one), floats
or integers.

Source: Elseidy et al., "Scalable and Adaptive Online Joins", PVLDB 7(6), 2014, sections 3.3, 4.1
and 4.2.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from braid.core.placement import check_hosts

Mapping = tuple[int, int]
"""(n, m): R is split in n partitions, S in m; n * m hosts, one for each pair."""


def powers_of_two(hosts: int) -> tuple[int, ...]:
    """Return J as its unique sum of powers of two, largest first.

    These are the sizes J_1..J_G of the groups (section 4.2.2). With them no host stores more than
    3.75 times what the best plan of J hosts needs: 1.875, doubled.

    >>> powers_of_two(20)
    (16, 4)
    """
    check_hosts(hosts)
    return tuple(1 << bit for bit in range(hosts.bit_length() - 1, -1, -1) if hosts >> bit & 1)


def square_mapping(hosts: int) -> Mapping:
    """Return (sqrt J, sqrt J), the mapping of StaticMid; for an odd power of two n is the smaller.

    J is a power of two.
    """
    n = 1 << (_compute_log2_hosts(hosts) // 2)
    return n, hosts // n


def input_load_factor(r: float, s: float, n: int, m: int) -> float:
    """Return the input-load factor |R|/n + |S|/m (section 3.3).

    This is what each host of an (n, m)-mapping receives and stores.
    """
    return r / n + s / m


def optimal_mapping(r: float, s: float, hosts: int, current: Mapping | None = None) -> Mapping:
    """Return the mapping (n, m), n * m = J, with the least ILF.

    ``current`` is kept if no other is better. Raises ValueError unless J is a power of two.
    """
    exponent = _compute_log2_hosts(hosts)
    best = min(
        ((1 << k, hosts >> k) for k in range(exponent + 1)),
        key=lambda mapping: input_load_factor(r, s, *mapping),
    )
    if current is not None and input_load_factor(r, s, *current) <= input_load_factor(
        r, s, *best
    ) * (1 + 1e-12):
        return current
    return best


def pad_sizes(r: float, s: float, hosts: int) -> tuple[float, float]:
    """Return the sizes with the smaller stream padded with dummy tuples (section 4.2.2).

    The sizes are then no more than a factor J apart, and Lemma 4.3 bounds the padded ILF. Without
    the padding ILF is at most 1.25 (1 + 1/J) ILF*, so 1.875 for J = 2.
    """
    return max(r, s / hosts), max(s, r / hosts)


@dataclass(frozen=True, slots=True)
class MappingDecision:
    """Algorithm 2 as a value: the controller's counts of one group, and the mapping in force.

    ``r`` and ``s`` are |R| and |S| at the last checkpoint, ``delta_r`` and ``delta_s`` are |Delta
    R| and |Delta S| since, all in tuples. ``sizes`` are tau_R and tau_S. ``epsilon`` in (0, 1]
    trades competitiveness against migrations; 1 is the paper's algorithm. Call ``add_counts`` for
    each batch, and ``at_checkpoint`` if one is due.
    """

    hosts: int
    mapping: Mapping
    epsilon: float = 1.0
    sizes: tuple[float, float] = (1.0, 1.0)
    r: float = 0.0
    s: float = 0.0
    delta_r: float = 0.0
    delta_s: float = 0.0

    def add_counts(self, r: float, s: float) -> MappingDecision:
        """Apply Algorithm 1, lines 2 and 3: add new tuples, already scaled to the whole."""
        return replace(self, delta_r=self.delta_r + r, delta_s=self.delta_s + s)

    def is_checkpoint_due(self) -> bool:
        """Return whether a checkpoint is due (line 2).

        It is if either stream, padded, has grown by epsilon of its size at the last checkpoint.
        """
        then, now = (
            self.unit_sizes(self.r, self.s),
            self.unit_sizes(self.r + self.delta_r, self.s + self.delta_s),
        )
        grown = any(b - a >= self.epsilon * a for a, b in zip(then, now, strict=True))
        return self.delta_r + self.delta_s > 0 and grown

    def at_checkpoint(self, r: float, s: float) -> MappingDecision:
        """Apply lines 3 to 6: a checkpoint at |R| = r and |S| = s. On a tie the mapping stays.

        ``r`` and ``s`` include the new tuples: line 5 comes before line 3. In the printed order,
        the mapping is chosen for sizes half as large, and ILF reaches 1.5 ILF* (Lemma 4.3: 1.25).
        """
        mapping = optimal_mapping(*self.unit_sizes(r, s), self.hosts, self.mapping)
        return replace(self, mapping=mapping, r=r, s=s, delta_r=0.0, delta_s=0.0)

    def unit_sizes(self, r: float, s: float) -> tuple[float, float]:
        """Return tuples as padded unit tuples."""
        return pad_sizes(r * self.sizes[0], s * self.sizes[1], self.hosts)


def _compute_log2_hosts(hosts: int) -> int:
    check_hosts(hosts)
    if hosts & (hosts - 1):
        raise ValueError(
            f"a mapping of {hosts} hosts was asked for; one grid needs a power of two, see "
            "decompose"
        )
    return hosts.bit_length() - 1
