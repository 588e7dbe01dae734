"""Claims about the hypercube, against counted joins of tables in this process.

Only the paper's abstract is at hand. Its relations are stored; that rates change while a join
runs goes beyond it. What the shares should send is computed here anew, without the policy's code.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod

import pandas as pd

from braid_lab.common.claims import ClaimRegistry, Finding, judge
from braid_lab.hypercube.experiments import FIXED

CHAINS = (
    "with {values} values of a column; {batches} batches with windows of {window_batches}, seed "
    "{seed}, counted in joins of tables in this process"
)
RUNS = (
    "on {hosts} hosts, a chain of three streams of {first} tuples a batch, and from half-way of "
    f"{{later}}, {CHAINS}"
)
CUBE = (
    "HyperCube (shares change if by others hosts receive less than {threshold} times the "
    "tuples, by mean rates of {memory} batches)"
)
BOTH = f"{CUBE}, beside one with shares of equal rates, "
CLAIMS = ClaimRegistry("Ullman 2010")
OFF = 0.01
"""By how much counted tuples may differ from those that follow from shares."""
CHAIN = ((0, 1), (1, 2))
"""By dimension of the chain, the streams that have it."""


def _count_received(shares: Sequence[int], rates: Sequence[int]) -> int:
    """Return the sum over streams of the rate times the shares of the dimensions that it lacks."""
    return sum(
        rate * prod(p for p, streams in zip(shares, CHAIN, strict=True) if stream not in streams)
        for stream, rate in enumerate(rates)
    )


def _list_best_shares(hosts: int, rates: Sequence[int]) -> list[tuple[int, ...]]:
    """Return all shares of this number of hosts with the fewest received tuples."""
    each = [
        shares
        for shares in product(range(1, hosts + 1), repeat=len(CHAIN))
        if prod(shares) == hosts
    ]
    least = min(_count_received(shares, rates) for shares in each)
    return [shares for shares in each if _count_received(shares, rates) == least]


def select_halves(table: pd.DataFrame, name: str) -> pd.DataFrame:
    """Return the rows of one placement by half."""
    return table[table["placement"] == name].set_index("half")


@CLAIMS.claim(
    "Abstract",
    "shares are optimized for a fixed number of processes: fewest tuples received",
    is_required=True,
    setting=f"{BOTH}on {{hosts}} hosts, a chain of three streams of {{first}} tuples a batch, "
    f"{CHAINS}; the last {{counted}} batches of the first half",
)
def first_rates_claim(table: pd.DataFrame, hosts: int) -> Finding:
    """A chain of three at the first rates."""
    return _judge_half(table, hosts, 1)


@CLAIMS.claim(
    "beyond the paper: rates that change",
    "shares follow the rates while the join runs: fewest tuples received, less than with equal "
    "shares",
    is_required=True,
    setting=f"{BOTH}{RUNS}; the last {{counted}} batches",
)
def later_rates_claim(table: pd.DataFrame, hosts: int) -> Finding:
    """The same after the rates have changed, with the stored tuples that moved."""
    return _judge_half(table, hosts, 2)


def _judge_half(table: pd.DataFrame, hosts: int, half: int) -> Finding:
    cube, square = (select_halves(table, n).loc[half] for n in ("HyperCube", FIXED))
    rates = [int(n) for n in str(cube["rates"]).split(":")]
    least = _count_received(_list_best_shares(hosts, rates)[0], rates) / sum(rates)
    result = (
        f"at {cube['rates']}, {cube['received']:.3f} hosts receive a tuple, by the best of all "
        f"shares {least:.3f} (within {OFF:.0%} counts), with equal ones {square['received']:.3f}"
    )
    is_least = abs(cube["received"] / least - 1) <= OFF
    return judge(result, is_least and cube["received"] < square["received"], result)


@CLAIMS.claim(
    "Abstract",
    "tuples are replicated by the shares of the attributes that their relation lacks, in the mean "
    "of all tuples",
    is_required=True,
    setting=f"HyperCube with shares of equal rates, {RUNS}; the last {{counted}} batches of each "
    "half",
)
def formula_claim(table: pd.DataFrame, hosts: int) -> Finding:
    """The counted tuples of equal shares against the product of the shares that a stream lacks."""
    equal = _list_best_shares(hosts, (1, 1, 1))
    off, each = [], []
    for _, row in select_halves(table, FIXED).iterrows():
        rates = [int(n) for n in str(row["rates"]).split(":")]
        all_expected = [_count_received(shares, rates) / sum(rates) for shares in equal]
        expected = min(all_expected, key=lambda hosts: abs(row["received"] / hosts - 1))
        off.append(abs(row["received"] / expected - 1))
        each.append(f"{row['received']:.3f} at {row['rates']}, by the shares {expected:.3f}")
    result = f"hosts that receive a tuple: {'; '.join(each)}; within {OFF:.0%} counts"
    return judge(result, max(off) <= OFF, result)


@CLAIMS.claim(
    "beyond the paper: rates that change",
    "all placements find as many results of a chain while shares change",
    is_required=True,
    setting=f"{CUBE}, also with shares of equal rates, ATR, CTR and PSP {RUNS}",
)
def same_results_claim(table: pd.DataFrame) -> Finding:
    """Results are exact while shares change."""
    results = table.groupby("half")["results"]
    moved = select_halves(table, "HyperCube").loc[2, "moved"]
    each = ", ".join(
        f"{name} {' and '.join(f'{n:,.0f}' for n in rows)}"
        for name, rows in table.groupby("placement", sort=False)["results"]
    )
    result = (
        f"results in the halves: {each}; the tuples that HyperCube moves are {moved:.0%} of those "
        "that come in the second"
    )
    return judge(result, (results.nunique() == 1).all() and moved > 0, result)
