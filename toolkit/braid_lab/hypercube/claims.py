"""Claims about the hypercube, against counted joins of tables in this process.

The text of the paper is not at hand: the claims state what follows from its idea.
"""

from __future__ import annotations

import pandas as pd
from braid.papers.hypercube.shares import CubeSize, count_received_tuples, find_best_shares

from braid_lab.common.claims import ClaimRegistry, Finding, judge
from braid_lab.hypercube.experiments import FIXED

CLAIMS = ClaimRegistry(
    "Ullman 2010",
    {
        "": "HyperCube, ATR, CTR and PSP on 16 hosts, a chain of three streams in 36 batches with "
        "windows of 6, whose rates change half-way, one seed, counted in joins of tables in this "
        "process"
    },
)
CHAIN = ((0, 1), (1, 2))
LEAST_GAIN = 0.75
"""What shares by rates receive at most, over a square's, if one stream has eight times the rate of
the others."""


def select_halves(table: pd.DataFrame, name: str) -> pd.DataFrame:
    """Return the rows of one placement by half."""
    return table[table["placement"] == name].set_index("half")


@CLAIMS.claim("Shares", "Shares by the rates send less than equal shares", is_required=True)
def first_rates_claim(table: pd.DataFrame) -> Finding:
    """A chain of three at 8:1:1."""
    return _judge_half(table, 1)


@CLAIMS.claim(
    "Shares", "Other rates need other shares, which follow while the join runs", is_required=True
)
def later_rates_claim(table: pd.DataFrame) -> Finding:
    """The same after the rates have changed, with the stored tuples that moved."""
    return _judge_half(table, 2)


def _judge_half(table: pd.DataFrame, half: int) -> Finding:
    cube, square = (select_halves(table, n).loc[half] for n in ("HyperCube", FIXED))
    ratio = cube["received"] / square["received"]
    result = (
        f"at {cube['rates']}, {cube['received']:.2f} hosts receive a tuple, with equal shares "
        f"{square['received']:.2f}: {ratio:.2f} times"
    )
    return judge(result, ratio <= LEAST_GAIN)


@CLAIMS.claim(
    "Shares",
    "Hosts receive the sum over streams of the rate times the shares that it lacks",
    is_required=True,
)
def formula_claim(table: pd.DataFrame, hosts: int) -> Finding:
    """The counted tuples against the formula, with the best shares of the measured rates."""
    off = []
    size = CubeSize(hosts, hosts)
    for _, row in select_halves(table, "HyperCube").iterrows():
        rates = [int(n) for n in str(row["rates"]).split(":")]
        best = find_best_shares(size, CHAIN, rates)
        expected = count_received_tuples(best, CHAIN, rates) / sum(rates)
        off.append(float(row["received"]) / expected - 1)
    return judge(f"off by {max(map(abs, off)):.1%} at most", max(map(abs, off)) < 0.01)


@CLAIMS.claim("One round", "All placements find the same results of a chain", is_required=True)
def same_results_claim(table: pd.DataFrame) -> Finding:
    """Results are exact while shares change."""
    counts = table.groupby("half")["results"].nunique()
    return judge(f"{table['results'].sum():,.0f} results in all", (counts == 1).all())
