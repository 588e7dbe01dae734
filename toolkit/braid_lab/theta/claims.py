"""The claims of Elseidy 2014, section 5, against the tables of ``figures``: Table 2, Fig. 5.

Those about runs are in ``experiments`` and ``dynamics``. Times, throughput and latency are
modelled.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from braid_lab.common.claims import (
    ClaimRegistry,
    Finding,
    format_values,
    judge,
    judge_reading,
)
from braid_lab.theta import compared_operators, dynamics
from braid_lab.theta.figures import MB, TIMED, final_batches
from braid_lab.theta.printed import GROWTH

CLAIMS = ClaimRegistry(compared_operators.PAPER)
"""All claims: of one run, of the competitors, and of the modelled cluster."""
CLAIMS.include_claims(compared_operators.CLAIMS)
CLAIMS.include_claims(dynamics.CLAIMS)


@dataclass(frozen=True)
class ThetaFigures:
    """The tables behind the claims.

    ``times`` are of ``table_2``, ``runs`` of ``performance_runs``, ``mapping_runs`` of
    ``mapping_curves``, ``scaling_runs`` of ``weak_scaling``, ``disk`` of the same without memory,
    and ``fluctuation_runs`` of ``fluctuation_progress``.
    """

    times: pd.DataFrame
    runs: pd.DataFrame
    mapping_runs: pd.DataFrame
    scaling_runs: pd.DataFrame
    disk: pd.DataFrame
    fluctuation_runs: pd.DataFrame

    @cached_property
    def final_rows(self) -> pd.DataFrame:
        """Fig. 5b, 5d to 5f: the runs at their end, the mean over seeds, by query and operator."""
        numbers = ["stored_mean", "stored_max", "seconds_modelled", "latency_ms_modelled"]
        return final_batches(self.runs).groupby(["query", "operator"], sort=False)[numbers].mean()

    def column_by_query(self, operator: str, column: str) -> pd.Series:
        """Return Fig. 5b, 5d to 5f: one number of one operator, by query."""
        return self.final_rows[column].xs(operator, level="operator")

    def seconds_by_skew(self, query: str, operator: str) -> pd.Series:
        """Return Table 2: seconds by skew."""
        rows = self.times[(self.times["query"] == query) & (self.times["operator"] == operator)]
        return rows.set_index("skew")["seconds_modelled"]

    def load_per_percent(self, operator: str) -> float:
        """Return Fig. 5a: MB on the fullest machine for each percent of the input, EQ5."""
        rows = self.runs[(self.runs["query"] == "EQ5") & (self.runs["operator"] == operator)]
        return float(np.polyfit(rows["percent"], rows["stored_max"] * MB, 1)[0])


@CLAIMS.claim("Table 2", "Dynamic takes as long with skew as without: Z4 / Z0", is_required=True)
def resilient_check(f: ThetaFigures) -> Finding:
    """Table 2: skew does not affect Dynamic."""
    seconds = {q: f.seconds_by_skew(q, "Dynamic") for q in TIMED}
    slower = {q: by.iloc[-1] / by.iloc[0] for q, by in seconds.items()}
    return judge(format_values(slower), max(slower.values()) <= 1.25)


@CLAIMS.claim(
    "Table 2",
    "at the greatest skew SHJ is at least twice as slow as Dynamic: SHJ / Dynamic",
    is_required=True,
)
def skewed_hash_check(f: ThetaFigures) -> Finding:
    """Table 2: at the greatest skew SHJ is slower than Dynamic."""
    last = {
        q: f.seconds_by_skew(q, "SHJ").iloc[-1] / f.seconds_by_skew(q, "Dynamic").iloc[-1]
        for q in TIMED
    }
    return judge(format_values(last), min(last.values()) >= 2)


@CLAIMS.claim(
    "Table 2", "StaticMid is slower than Dynamic at any skew: least ratio", is_required=True
)
def square_check(f: ThetaFigures) -> Finding:
    """Table 2: StaticMid is slower than Dynamic, at any skew."""
    ratio = {
        q: (f.seconds_by_skew(q, "StaticMid") / f.seconds_by_skew(q, "Dynamic")).min()
        for q in TIMED
    }
    return judge(format_values(ratio), min(ratio.values()) > 1.05)


@CLAIMS.claim("Table 2", "without skew SHJ is faster, for it copies nothing: SHJ / Dynamic")
def unskewed_hash_claim(f: ThetaFigures) -> Finding:
    """Table 2: without skew SHJ is faster, because it copies nothing."""
    first = {
        q: f.seconds_by_skew(q, "SHJ").iloc[0] / f.seconds_by_skew(q, "Dynamic").iloc[0]
        for q in TIMED
    }
    why = (
        "in the grid's best mapping (1, 16) only the suppliers are copied, 0.5 % more tuples on a "
        "machine; the paper's factor of two is no cost of copies, and a hash is not quite even"
    )
    return judge(format_values(first), max(first.values()) < 1, failure=why)


@CLAIMS.claim("Table 2", "SHJ overflows to disk from Z2 (EQ5) and Z3 (EQ7) on")
def collapse_claim(f: ThetaFigures) -> Finding:
    """Table 2: SHJ runs out of memory from Z2 (EQ5) and Z3 (EQ7)."""
    shj = f.times[f.times["operator"] == "SHJ"]
    full = {q: shj[(shj["query"] == q) & (shj["overflow"] > 0)]["skew"].tolist() for q in TIMED}
    result = ", ".join(f"{q}: {' '.join(skews) or 'never'}" for q, skews in full.items())
    why = (
        "with z = 0.5 the most frequent of a thousand suppliers has 1.6 % of the lines, a quarter "
        "of a machine's share: memory that holds the mean three times over holds that"
    )
    holds = "Z2" in full["EQ5"] and "Z3" in full["EQ7"]
    return judge(result, holds, failure=why)


@CLAIMS.claim(
    "Table 2",
    "on 16 machines EQ5 overflows under StaticMid and never under Dynamic: share of runs",
    is_required=True,
)
def overflow_check(f: ThetaFigures) -> Finding:
    """Table 2: on 16 machines EQ5 overflows under StaticMid, and not under Dynamic."""
    rows = f.times[f.times["query"] == "EQ5"].groupby("operator")["overflow"]
    result = format_values(rows.mean())
    holds = rows.min()["StaticMid"] == 1 and rows.max()["Dynamic"] == 0
    return judge(result, holds)


@CLAIMS.claim(
    "Fig. 5a",
    "MB a percent of the input: SHJ more than StaticMid, StaticMid more than Dynamic",
    is_required=True,
)
def growth_check(f: ThetaFigures) -> Finding:
    """Fig. 5a: the input load grows by a printed number of MB for each percent of the input."""
    growth = {name: f.load_per_percent(name) for name in GROWTH}
    text = ", ".join(f"{n} {mb:.1f} (printed {GROWTH[n]:g})" for n, mb in growth.items())
    holds = growth["SHJ"] > growth["StaticMid"] > growth["Dynamic"]
    return judge(text, holds)


@CLAIMS.claim(
    "Fig. 5a, 5c",
    "input load and time are linear in the input: greatest distance from the line",
    is_required=True,
)
def linear_check(f: ThetaFigures) -> Finding:
    """Fig. 5a, 5c: input load and time grow linearly."""
    rows = f.runs[(f.runs["query"] == "EQ5") & (f.runs["operator"] != "SHJ")]
    by = rows.groupby("operator")
    bends = {
        n: max(nonlinearity(r, "stored_max"), nonlinearity(r, "seconds_modelled")) for n, r in by
    }
    return judge(format_values(bends), max(bends.values()) < 0.1)


def nonlinearity(rows: pd.DataFrame, column: str) -> float:
    """Return the distance of a curve over percent from the line between its ends.

    It is a share of the curve's rise.
    """
    x, y = rows["percent"].to_numpy() / 100, rows[column].to_numpy()
    return float(np.abs(y / y[-1] - x).max())


@CLAIMS.claim("Fig. 5b", "StaticMid stores about 3 to 7 times what Dynamic does", is_required=True)
def load_claim(f: ThetaFigures) -> Finding:
    """Fig. 5b: StaticMid stores three to seven times as much as Dynamic."""
    ratio = f.column_by_query("StaticMid", "stored_mean") / f.column_by_query(
        "Dynamic", "stored_mean"
    )
    return judge(format_values(ratio), ratio.between(2.5, 8.5).all())


@CLAIMS.claim(
    "Fig. 5b", "SHJ loads a machine with up to 13 times what Dynamic does", is_required=True
)
def busiest_claim(f: ThetaFigures) -> Finding:
    """Fig. 5b: SHJ is up to 13 times the others."""
    ratio = (
        f.column_by_query("SHJ", "stored_max") / f.column_by_query("Dynamic", "stored_max")
    ).dropna()
    why = "of the fullest machine: in the mean SHJ stores least, a tuple once"
    return judge_reading(format_values(ratio), 5 <= ratio.max() <= 20, why)


@CLAIMS.claim("Fig. 5d, 5e", "Dynamic takes about as long as StaticOpt", is_required=True)
def oracle_check(f: ThetaFigures) -> Finding:
    """Fig. 5d, 5e: Dynamic is close to the oracle's grid in time and throughput."""
    ratio = f.column_by_query("Dynamic", "seconds_modelled") / f.column_by_query(
        "StaticOpt", "seconds_modelled"
    )
    return judge(format_values(ratio), ratio.max() <= 1.25)


@CLAIMS.claim(
    "Fig. 5d, 5e",
    "Dynamic has at least twice the throughput of StaticMid, but for BCI",
    is_required=True,
)
def throughput_check(f: ThetaFigures) -> Finding:
    """Fig. 5d, 5e: at least twice the throughput of StaticMid, except for BCI."""
    ratio = f.column_by_query("StaticMid", "seconds_modelled") / f.column_by_query(
        "Dynamic", "seconds_modelled"
    )
    return judge(format_values(ratio), ratio.drop("BCI", errors="ignore").min() >= 2)


@CLAIMS.claim("Fig. 5d", "the gap between StaticMid and Dynamic is small for BCI", is_required=True)
def result_bound_check(f: ThetaFigures) -> Finding:
    """Fig. 5d: the gap is small if the join is bound by its results."""
    ratio = f.column_by_query("StaticMid", "seconds_modelled") / f.column_by_query(
        "Dynamic", "seconds_modelled"
    )
    return judge(f"{ratio['BCI']:.3g}", 1.01 < ratio["BCI"] < 1.5)


@CLAIMS.claim("Fig. 5c, 5e", "SHJ takes two orders of magnitude longer than Dynamic")
def disk_claim(f: ThetaFigures) -> Finding:
    """Fig. 5c, 5e: SHJ on 64 machines is two orders of magnitude slower."""
    ratio = (
        f.column_by_query("SHJ", "seconds_modelled")
        / f.column_by_query("Dynamic", "seconds_modelled")
    ).dropna()
    why = (
        "its fullest machine has ten times the tuples of Dynamic's and keeps them in memory, just; "
        "the rest of the paper's factor is disk"
    )
    return judge(format_values(ratio), ratio.max() >= 50, failure=why)


@CLAIMS.claim("Fig. 5f", "adaptivity adds at most 20 ms to the mean latency", is_required=True)
def latency_check(f: ThetaFigures) -> Finding:
    """Fig. 5f: adaptivity costs at most 20 ms of latency."""
    more = f.column_by_query("Dynamic", "latency_ms_modelled") - f.column_by_query(
        "StaticMid", "latency_ms_modelled"
    )
    return judge(f"{format_values(more)} ms", more.max() <= 20)


@CLAIMS.claim(
    "Fig. 5g",
    "the gap in input load closes as the best mapping nears the square one",
    is_required=True,
)
def mappings_check(f: ThetaFigures) -> Finding:
    """Fig. 5g, 5h: the gap closes as the best mapping nears the square."""
    by = f.mapping_runs.pivot(index="optimum", columns="operator", values="stored_mean")
    order = f.mapping_runs["optimum"].unique()
    gap = (by["StaticMid"] / by["Dynamic"]).loc[order]
    holds = gap.is_monotonic_decreasing and gap.iloc[0] > 2 and abs(gap.iloc[-1] - 1) < 0.05
    return judge(format_values(gap), holds)


@CLAIMS.claim("Fig. 5h", "the gap in time closes with it", is_required=True)
def mapping_times_check(f: ThetaFigures) -> Finding:
    """Fig. 5h: the gap in time closes too; in the square Dynamic is no better."""
    by = f.mapping_runs.pivot(index="optimum", columns="operator", values="seconds_modelled")
    gap = (by["StaticMid"] / by["Dynamic"]).loc[f.mapping_runs["optimum"].unique()]
    holds = gap.is_monotonic_decreasing and gap.iloc[0] > 2 and gap.iloc[-1] <= 1.01
    return judge(format_values(gap), holds)


@CLAIMS.claim(
    "Fig. 5i, 5j", "EQ5 and EQ7 take as long with four times data and machines", is_required=True
)
def scaling_check(f: ThetaFigures) -> Finding:
    """Fig. 5i, 5j: twice the data on twice the machines takes about as long."""
    by = f.scaling_runs.set_index(["hosts", "query"])["seconds_modelled"].unstack()
    longer = by.iloc[-1] / by.iloc[0]
    result = f"{format_values(longer)} times the seconds"
    return judge(result, longer[list(TIMED)].max() <= 1.15)


@CLAIMS.claim("Fig. 5i", "BNCI's input load grows by 42 % from 32 to 64 machines", is_required=True)
def replicated_load_check(f: ThetaFigures) -> Finding:
    """Fig. 5i: BNCI's input load grows from 1.61 to 2.29 million tuples from 32 to 64 machines."""
    loads = f.scaling_runs.set_index(["query", "hosts"])["stored_mean"] / 1e6
    first, last = loads["BNCI", 32], loads["BNCI", 64]
    result = f"{first:.2f} to {last:.2f} million tuples a machine (printed 1.61 to 2.29)"
    holds = abs(last / first - 1.42) < 0.03 and abs(first - 1.61) < 0.1
    return judge(result, holds)


@CLAIMS.claim(
    "Fig. 5i, 5j", "out of core the same scaling, an order of magnitude slower", is_required=True
)
def storage_claim(f: ThetaFigures) -> Finding:
    """Fig. 5i, 5j: out of core everything scales alike, an order of magnitude slower."""
    ratio = f.disk["seconds_modelled"] / f.scaling_runs["seconds_modelled"]
    spread = f.disk.set_index(["hosts", "query"])["seconds_modelled"].unstack()
    longer = (spread.iloc[-1] / spread.iloc[0])[list(TIMED)].max()
    result = f"{ratio.min():.3g} to {ratio.max():.3g} times; EQ5 and EQ7 grow {longer:.3g} times"
    why = "how much slower is a parameter of the model (disk); that it scales alike is not"
    return judge_reading(result, longer <= 1.15 and ratio.min() > 9, why)


@CLAIMS.claim(
    "Fig. 5l, Lemma 4.5",
    "migrations move fewer tuples than are sent, for every k, and some move",
    is_required=True,
)
def amortised_check(f: ThetaFigures) -> Finding:
    """Fig. 5l, Lemma 4.5: under fluctuations migrations cost less than the tuples themselves."""
    spent = {k: _compute_migration_share(rows) for k, rows in f.fluctuation_runs.groupby("k")}
    result = ", ".join(f"k = {k:g}: {share:.0%}" for k, share in spent.items())
    return judge(result, 0 < max(spent.values()) < 1)


def _compute_migration_share(rows: pd.DataFrame) -> float:
    """Return the tuples that migrations move over those sent, replicas included."""
    return float(rows["moved"].sum() / rows["sent"].sum())


@CLAIMS.claim(
    "Fig. 5l", "under every k the time is linear in the input: greatest distance from the line"
)
def progress_claim(f: ThetaFigures) -> Finding:
    """Fig. 5l: the curves are straight."""
    bends = {
        f"k = {k:g}": nonlinearity(rows, "seconds_modelled")
        for k, rows in f.fluctuation_runs.groupby("k")
    }
    why = "the smaller of the streams is copied more, so a tuple's cost changes with each swing"
    return judge(format_values(bends), max(bends.values()) < 0.1, failure=why)
