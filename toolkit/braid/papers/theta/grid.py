"""Grid placements: the adaptive one (DYNAMIC), and the static baselines StaticMid and StaticOpt.

R is stream 0, S is stream 1. The routing key is a hash of the whole tuple, so partitions R_i and
S_j are random and skew does no harm. A pair of tuples meets at the one host of cell (i, j), which
stores both partitions. If J is no power of two, every group of hosts is a grid of its own that
stores its share of the tuples, and a fresh block also probes one row (or column) of every other
group.

Source: Elseidy et al., "Scalable and Adaptive Online Joins", PVLDB 7(6), 2014.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Self

from braid.core.facts import Facts
from braid.core.placement import Placement, check_hosts
from braid.core.plan import Plan
from braid.papers.theta.controller import Controller, ControllerSettings, GridState, GroupState
from braid.papers.theta.host_groups import (
    HostGroup,
    blocks_by_group,
    grid_routes,
    make_groups,
    mapping_event,
)
from braid.papers.theta.mapping import (
    optimal_mapping,
    pad_sizes,
    powers_of_two,
    square_mapping,
)

FINENESS = 16
"""Routing keys for each host of an adaptive grid.

Blocks that migrate can then be cut into pieces smaller than one host's share.
"""


@dataclass(frozen=True, slots=True)
class StaticState:
    """``has_announced``: events have reported the mappings."""

    has_announced: bool = False


@dataclass(frozen=True)
class StaticGrid(Placement):
    """A grid with a fixed mapping: the paper's StaticMid, (sqrt J, sqrt J), or a given one.

    A given (n, m) has n * m = J. Without one, and if J is no power of two, each group of hosts has
    the middle mapping of its size. Supports two streams. Raises ValueError for hosts < 1 and for a
    mapping that does not have J cells.
    """

    State = StaticState
    label = "StaticMid (square grid)"

    hosts: int
    n: int | None = None
    m: int | None = None

    def __post_init__(self) -> None:
        check_hosts(self.hosts)
        n, m = self.n or 0, self.m or 0
        if (self.n, self.m) != (None, None) and (n < 1 or m < 1 or n * m != self.hosts):
            raise ValueError(
                f"the mapping is ({self.n}, {self.m}); n * m must be the number of hosts, "
                f"{self.hosts}"
            )

    @property
    def key_space_size(self) -> int:
        return self.hosts

    def host_groups(self) -> list[HostGroup]:
        """Return the hosts as grids."""
        if self.n is not None and self.m is not None:
            return [HostGroup((0, self.hosts), (self.n, self.m), tuple(range(self.hosts)))]
        return make_groups(self.hosts, [square_mapping(j) for j in powers_of_two(self.hosts)])

    @classmethod
    def example_instances(cls) -> tuple[Self, ...]:
        return cls(8), cls(5), cls(7), cls(6, n=3, m=2)

    def initial_state(self, streams: int) -> StaticState:
        _check_streams(self, streams)
        return StaticState()

    def plan_batch(self, facts: Facts, state: StaticState) -> Plan:
        groups = self.host_groups()
        events = (
            ()
            if state.has_announced
            else tuple(mapping_event(facts.batch, k, g, g, (0, 0)) for k, g in enumerate(groups))
        )
        routes = grid_routes(
            facts.batch, facts.next_id, groups, blocks_by_group(groups, facts.blocks)
        )
        return Plan(tuple(routes), state=StaticState(True), events=events)


@dataclass(frozen=True)
class StaticOpt(StaticGrid):
    """The oracle: the optimal mapping for the sizes that R and S will have in the end.

    ``final_sizes`` are in unit tuples. If J is no power of two, each group of hosts has the optimum
    of its size. Takes no (n, m).
    """

    label = "StaticOpt (oracle's grid)"

    final_sizes: tuple[float, float] = (1.0, 1.0)

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_sizes(self.final_sizes, zero=True)
        if self.n is not None:
            raise ValueError(
                f"the mapping ({self.n}, {self.m}) was given to StaticOpt, which finds it from the "
                "sizes"
            )

    @classmethod
    def example_instances(cls) -> tuple[Self, ...]:
        return (cls(8, final_sizes=(1, 30)),)

    def host_groups(self) -> list[HostGroup]:
        r, s = self.final_sizes
        return make_groups(
            self.hosts, [optimal_mapping(*pad_sizes(r, s, j), j) for j in powers_of_two(self.hosts)]
        )


@dataclass(frozen=True)
class AdaptiveGrid(Placement):
    """DYNAMIC: a grid that adapts its mapping to the sizes of the streams during the join.

    Parameters
    ----------
    hosts
        J, the number of logical hosts at the start.
    epsilon
        Trigger of Algorithm 2, in (0, 1]: a checkpoint occurs when a stream has grown by this
        factor since the last one.
    n, m
        The first mapping, powers of two with n * m = J. Default: (sqrt J, sqrt J). Only if J is a
        power of two.
    size_estimation
        "sample": the controller, one host per group, scales what it has itself (Algorithm 1).
        "exact": it counts all.
    tuple_sizes
        (tau_R, tau_S), the size of a tuple of either stream. Default: the measured mean bytes.
    warmup_tuples
        Tuples, of both streams together, before adapting begins.
    max_tuples_per_host
        C, tuples that a host may store. If a host stores more than C/2 at a checkpoint or after a
        migration, every host is split in four (section 4.2.2), up to ``max_hosts``.
    max_hosts
        J times a power of four. Default: J.

    Supports two streams. Raises ValueError for settings out of range.
    """

    State = GridState
    label = "Dynamic (adaptive grid)"
    adjustable_settings = ("epsilon", "max_tuples_per_host")
    fixed_hosts_reason = (
        "the paper only splits each host in four once it is full (section 4.2.2), which needs "
        "max_hosts and max_tuples_per_host at the start"
    )

    hosts: int
    epsilon: float = 1.0
    n: int | None = None
    m: int | None = None
    size_estimation: Literal["sample", "exact"] = "sample"
    tuple_sizes: tuple[float, float] | None = None
    warmup_tuples: int = 0
    max_tuples_per_host: int | None = None
    max_hosts: int = 0

    def __post_init__(self) -> None:
        check_hosts(self.hosts)
        if not 0 < self.epsilon <= 1:
            raise ValueError(f"epsilon is {self.epsilon}; it must be more than 0 and at most 1")
        if self.size_estimation not in ("sample", "exact"):
            raise ValueError(
                f"size_estimation is {self.size_estimation!r}; it must be 'sample' or 'exact'"
            )
        if self.tuple_sizes is not None:
            _check_sizes(self.tuple_sizes)
        if self.warmup_tuples < 0:
            raise ValueError(
                f"warmup_tuples is {self.warmup_tuples}; it must be a number of tuples, 0 or more"
            )
        object.__setattr__(self, "max_hosts", self.max_hosts or self.hosts)
        self._check_growth()
        self._check_mapping()

    def _check_growth(self) -> None:
        if self.max_hosts not in (self.hosts * 4**e for e in range(16)):
            raise ValueError(
                f"max_hosts is {self.max_hosts}; it must be hosts, {self.hosts}, times a power of "
                "four"
            )
        if self.max_tuples_per_host is not None and self.max_tuples_per_host < 1:
            raise ValueError(
                f"max_tuples_per_host is {self.max_tuples_per_host}; it must be a number of "
                "tuples per host, 1 or more"
            )
        if (self.max_tuples_per_host is None) != (self.max_hosts == self.hosts):
            raise ValueError(
                f"max_tuples_per_host is {self.max_tuples_per_host} and max_hosts is "
                f"{self.max_hosts} with {self.hosts} hosts; growth needs both, a capacity and more "
                "hosts to grow to"
            )

    def _check_mapping(self) -> None:
        mappings = [(1 << k, self.hosts >> k) for k in range(self.hosts.bit_length())]
        odd = len(powers_of_two(self.hosts)) > 1
        if (self.n, self.m) != (None, None) and (odd or (self.n, self.m) not in mappings):
            raise ValueError(
                f"the mapping is ({self.n}, {self.m}) with {self.hosts} hosts; both must be powers "
                "of two and n * m = hosts"
            )

    @property
    def key_space_size(self) -> int:
        return self.max_hosts * FINENESS

    @classmethod
    def example_instances(cls) -> tuple[Self, ...]:
        return (
            cls(8, epsilon=0.25),
            cls(5, epsilon=0.5),
            cls(8),
            cls(16, size_estimation="exact", tuple_sizes=(1, 1), epsilon=0.5),
            cls(7, tuple_sizes=(1, 2)),
            cls(4, n=1, m=4, warmup_tuples=20),
            cls(1),
            cls(2, max_tuples_per_host=12, max_hosts=32, tuple_sizes=(1, 1)),
            cls(3, max_tuples_per_host=10, max_hosts=48, size_estimation="exact"),
        )

    def initial_state(self, streams: int) -> GridState:
        _check_streams(self, streams)
        given = [(self.n, self.m)] if self.n is not None and self.m is not None else None
        mappings = given or [square_mapping(j) for j in powers_of_two(self.hosts)]
        groups = make_groups(self.hosts, mappings, self.key_space_size // self.hosts)
        return GridState(tuple(GroupState(g) for g in groups))

    def has_pending_pairs(self, state: GridState) -> bool:
        """Return whether a migration runs.

        If so, results may be due that further batches, even empty ones, must still make.
        """
        return any(g.migration is not None for g in state.groups)

    def plan_batch(self, facts: Facts, state: GridState) -> Plan:
        settings = ControllerSettings(
            self.key_space_size,
            self.max_hosts,
            self.epsilon,
            self.size_estimation,
            self.tuple_sizes,
            self.warmup_tuples,
            self.max_tuples_per_host,
        )
        return Controller(settings, facts, state).plan_batch()


def _check_streams(grid: object, streams: int) -> None:
    if streams != 2:
        raise ValueError(
            f"{type(grid).__name__} joins two streams, the rows and the columns of its grid; got "
            f"{streams}"
        )


def _check_sizes(sizes: tuple[float, float], zero: bool = False) -> None:
    if any(x < 0 or (x == 0 and not zero) for x in sizes):
        raise ValueError(
            f"sizes is {sizes}; it must be two numbers {'of 0 or more' if zero else 'above 0'}, "
            "for R and S"
        )
