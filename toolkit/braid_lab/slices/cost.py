"""The cost of sharing by strategy, in closed form: state in tuples, work in comparisons.

Work is per unit of time; all figures are modelled. The equations are for two queries. Here any
number of queries share two streams, of lambda tuples each. The first ones take all tuples, the
others those tuples of A that pass sigma, as in section 8.2; without others this is the setting of
section 8.3. With two queries the functions are the equations. Each function states its extension to
more queries where the book prints none.

Eq. 5.2 leaves out every term that is linear in lambda. With them the chain does not always win: it
has 7 lambda such comparisons, pull-up 2 lambda and partition 4 lambda, so below a few tuples per
second the chain costs more.

Source: Wang 2008, Eq. 4.1 (selection pull-up), 4.2 (stream partition), 5.1 (state-slice chain), 5.2
(savings).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from itertools import pairwise

from braid.core.query import Query
from braid.papers.slices.chain_optimizer import Chain, ChainStatistics


@dataclass(frozen=True)
class SharedLoad:
    """The load of queries over the same join (Table 4.1), in any unit of time.

    Parameters
    ----------
    rate
        lambda of each of the two streams, tuples per unit of time.
    windows
        W_1 < W_2 < .., one for each query, in the same unit.
    selection_selectivity
        S_sigma: the fraction of A's tuples that pass the selection.
    join_selectivity
        S_join: the fraction of compared pairs that match.
    unselected_queries
        Number of queries without a selection: those with the shortest windows.

    Raises ValueError for settings out of range.
    """

    rate: float
    windows: tuple[float, ...]
    selection_selectivity: float = 1.0
    join_selectivity: float = 0.1
    unselected_queries: int = 1

    def __post_init__(self) -> None:
        if (
            self.rate <= 0
            or not self.windows
            or any(a >= b for a, b in pairwise((0.0, *self.windows)))
        ):
            raise ValueError(
                f"rate is {self.rate}, windows are {self.windows}; the rate is above 0, and "
                "windows rise from above 0"
            )
        if (
            not 0 <= self.selection_selectivity <= 1
            or not 0 <= self.join_selectivity <= 1
            or not 1 <= self.unselected_queries <= len(self.windows)
        ):
            raise ValueError(
                f"selection_selectivity is {self.selection_selectivity}, join "
                f"{self.join_selectivity}, unselected_queries {self.unselected_queries}; the first "
                "two are from 0 to 1, unselected_queries from 1 to the "
                f"number of queries, {len(self.windows)}"
            )

    @classmethod
    def from_queries(
        cls, queries: Sequence[Query], rate: float, sigma: float, join: float
    ) -> SharedLoad:
        """Return the load of queries as the equations of chapters 4 and 5 have them.

        Rates are equal, windows (seconds) are those of the first stream, and there is one selection
        on it, sigma. If the window of a query with a selection is not longer than that of one
        without, the selection saves no state, and the query counts as one without. Equal windows
        are set a billionth apart. Raises ValueError if all queries select: there is no equation for
        that.
        """
        ordered = sorted((q.windows[0] / 1e6, any(q.selections)) for q in queries)
        plain = max((k for k, (_, selects) in enumerate(ordered, 1) if not selects), default=0)
        if not plain:
            raise ValueError(
                "every query has a selection; the equations of chapters 4 and 5 are for one or "
                "more without"
            )
        windows = tuple(w * (1 + 1e-9 * k) for k, (w, _) in enumerate(ordered))
        return cls(rate, windows, sigma, join, plain)

    @property
    def has_selection(self) -> bool:
        """Whether some query has the selection."""
        return self.unselected_queries < len(self.windows)

    @property
    def unselected_window(self) -> float:
        """The longest window of the queries without selection."""
        return self.windows[self.unselected_queries - 1]

    def compared_pairs(self, window: float, fraction: float = 1.0) -> float:
        """Return the pairs compared per unit of time in a window of both streams.

        ``fraction`` is that of A's tuples.
        """
        return 2 * fraction * self.rate * self.rate * window


@dataclass(frozen=True)
class StrategyCost:
    """State in tuples (C_m / M_t), and comparisons per unit of time by purpose (C_p)."""

    state_tuples: float
    probe: float
    purge: float
    route: float = 0.0
    filter: float = 0.0
    split: float = 0.0
    union: float = 0.0

    @property
    def comparisons(self) -> float:
        """C_p: all comparisons per unit of time."""
        return float(sum(getattr(self, f.name) for f in fields(self) if f.name != "state_tuples"))


def isolated_cost(q: SharedLoad) -> StrategyCost:
    """Return the cost if each query has a join of its own, after its selection.

    This is not an equation of the book (but see Fig. 4.1).
    """
    fractions = [
        1.0 if k < q.unselected_queries else q.selection_selectivity for k in range(len(q.windows))
    ]
    both = list(zip(q.windows, fractions, strict=True))
    return StrategyCost(
        state_tuples=sum((1 + s) * q.rate * w for w, s in both),
        probe=sum(q.compared_pairs(w, s) for w, s in both),
        purge=sum((1 + s) * q.rate for s in fractions),
        filter=(len(q.windows) - q.unselected_queries) * q.rate,
    )


def pull_up_cost(q: SharedLoad) -> StrategyCost:
    """Return Eq. 4.1, Fig. 4.2: one join with the longest window, then a router and the selection.

    The router compares a result with every window but the longest, its fan-out less one, as in the
    routing term of section 7.2; the selection is evaluated once for a result.
    """
    last = q.windows[-1]
    results = q.compared_pairs(last) * q.join_selectivity
    return StrategyCost(
        state_tuples=2 * q.rate * last,
        probe=q.compared_pairs(last),
        purge=2 * q.rate,
        route=results * (len(q.windows) - 1),
        filter=results if q.has_selection else 0.0,
    )


def partition_cost(q: SharedLoad) -> StrategyCost:
    """Return Eq. 4.2, Fig. 4.3: sigma splits A.

    Failing tuples join in the longest window without selection, passing ones in the longest of all.
    Either join routes as ``pull_up_cost`` does, among the queries that it serves; every query
    without selection merges both. Raises ValueError if no query has a selection: there is nothing
    to split by.
    """
    if not q.has_selection:
        raise ValueError("no query has a selection; a stream is partitioned by one")
    last, rest = q.windows[-1], 1 - q.selection_selectivity
    return StrategyCost(
        state_tuples=(1 + rest) * q.rate * q.unselected_window
        + (1 + q.selection_selectivity) * q.rate * last,
        probe=q.compared_pairs(q.unselected_window, rest)
        + q.compared_pairs(last, q.selection_selectivity),
        purge=3 * q.rate,
        route=q.join_selectivity
        * (
            q.compared_pairs(last, q.selection_selectivity) * (len(q.windows) - 1)
            + q.compared_pairs(q.unselected_window, rest) * (q.unselected_queries - 1)
        ),
        split=q.rate,
        union=sum(
            q.compared_pairs(w) * q.join_selectivity for w in q.windows[: q.unselected_queries]
        ),
    )


def state_slice_cost(q: SharedLoad, chain: Chain = ()) -> StrategyCost:
    """Return Eq. 5.1, Fig. 5.6: a chain of slices, by default Mem-Opt.

    Sigma is pushed before the first slice that needs only passing tuples. Purging costs each tuple
    one comparison in each slice (as printed, also for tuples of A that fail sigma), and a union
    operator one for each of its punctuations, for all queries but the first (section 7.1). A result
    of a slice before sigma is filtered once. A slice in which several queries end routes its
    results among them (section 7.2). Raises ValueError for a chain that does not rise through
    windows of the queries to the last.
    """
    chain = tuple(chain) or q.windows
    if chain[-1] != q.windows[-1] or any(
        a >= b or b not in q.windows for a, b in pairwise((0.0, *chain))
    ):
        raise ValueError(
            f"a chain cut at {chain} does not rise through some of the windows {q.windows} to the "
            "last"
        )
    slices = [
        (a, b, q.selection_selectivity if a >= q.unselected_window else 1.0)
        for a, b in pairwise((0.0, *chain))
    ]
    return StrategyCost(
        state_tuples=sum((1 + s) * q.rate * (b - a) for a, b, s in slices),
        probe=sum(q.compared_pairs(b - a, s) for a, b, s in slices),
        purge=2 * q.rate * len(slices),
        route=sum(
            q.join_selectivity * q.compared_pairs(b - a, s) * sum(a < w < b for w in q.windows)
            for a, b, s in slices
        ),
        filter=q.rate
        + sum(
            q.join_selectivity * q.compared_pairs(b - a)
            for a, b, _ in slices
            if a < q.unselected_window
        )
        if q.has_selection
        else 0.0,
        union=2 * q.rate * (len(q.windows) - 1),
    )


@dataclass(frozen=True)
class Savings:
    """Savings of the chain, as a fraction of the cost of the other strategy (Eq. 5.2)."""

    memory_pull_up: float
    memory_partition: float
    cpu_pull_up: float
    cpu_partition: float


def chain_savings(rho: float, sigma: float, join: float) -> Savings:
    """Return Eq. 5.2: two queries, rho = W_1 / W_2, without terms linear in lambda.

    Raises ValueError unless 0 < rho < 1.
    """
    if not 0 < rho < 1:
        raise ValueError(f"rho is {rho}; the ratio of the windows lies between 0 and 1")
    return Savings(
        memory_pull_up=(1 - rho) * (1 - sigma) / 2,
        memory_partition=rho / (1 + 2 * rho + (1 - rho) * sigma),
        cpu_pull_up=((1 - rho) * (1 - sigma) + (2 - rho) * join) / (1 + 2 * join),
        cpu_partition=sigma * join / (rho * (1 - sigma) + sigma + sigma * join + rho * join),
    )


def unfiltered_statistics(
    rates: tuple[float, float], join: float, overhead: float, windows: int, lookup: bool = False
) -> ChainStatistics:
    """Return the statistics of one query for each window, without selections."""
    return ChainStatistics(rates, join, ((1.0,) * windows,) * 2, overhead, (1,) * windows, lookup)
