"""The claims of Elseidy 2014, section 5, against the tables of ``theta_figures``: Table 2, Fig. 5
but for 5k, whose claims are in ``theta_dynamics``. Times, throughput and latency are modelled.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from braid.papers.theta.printed import GROWTH
from braid.studies.claim import Claim, Verdict, figures, verdict
from braid.studies.theta import PAPER
from braid.studies.theta_figures import MB, TIMED, settled


@dataclass(frozen=True)
class Figures:
    """The tables that the claims are about: ``times`` of ``table_2``, ``runs`` of ``performance``,
    ``mapped`` of ``mappings``, ``scaled`` of ``weak_scaling``, ``disk`` of the same without memory,
    ``swung`` of ``fluctuating``.
    """

    times: pd.DataFrame
    runs: pd.DataFrame
    mapped: pd.DataFrame
    scaled: pd.DataFrame
    disk: pd.DataFrame
    swung: pd.DataFrame

    @cached_property
    def ends(self) -> pd.DataFrame:
        """Fig. 5b, 5d to 5f: the runs at their end, the mean over seeds, by query and operator."""
        numbers = ["stored_mean", "stored_max", "seconds_modelled", "latency_ms_modelled"]
        return settled(self.runs).groupby(["query", "operator"], sort=False)[numbers].mean()

    def of(self, operator: str, column: str) -> pd.Series:
        """Fig. 5b, 5d to 5f: one number of one operator, by query."""
        return self.ends[column].xs(operator, level="operator")

    def seconds(self, query: str, operator: str) -> pd.Series:
        """Table 2: seconds by skew."""
        rows = self.times[(self.times["query"] == query) & (self.times["operator"] == operator)]
        return rows.set_index("skew")["seconds_modelled"]

    def growth(self, operator: str) -> float:
        """Fig. 5a: MB on the fullest machine for each percent of the input, EQ5."""
        rows = self.runs[(self.runs["query"] == "EQ5") & (self.runs["operator"] == operator)]
        return float(np.polyfit(rows["percent"], rows["stored_max"] * MB, 1)[0])


def _check(where: str, says: str, found: str, holds: object, why: str = "") -> Claim:
    """A claim that must hold."""
    return Claim(PAPER, where, says, found, verdict(holds), why, must=True)


def _tell(where: str, says: str, found: str, holds: object, why: str) -> Claim:
    """A claim that is told, with the reason when it does not hold."""
    return Claim(PAPER, where, says, found, verdict(holds), "" if holds else why)


def resilient_check(f: Figures) -> Claim:
    """Table 2: skew leaves Dynamic alone."""
    found = {q: f.seconds(q, "Dynamic") for q in TIMED}
    slower = {q: by.iloc[-1] / by.iloc[0] for q, by in found.items()}
    says = "Dynamic takes as long with skew as without: Z4 / Z0"
    return _check("Table 2", says, figures(slower), max(slower.values()) <= 1.25)


def hash_check(f: Figures) -> Claim:
    """Table 2: at the greatest skew SHJ is slower than Dynamic."""
    last = {q: f.seconds(q, "SHJ").iloc[-1] / f.seconds(q, "Dynamic").iloc[-1] for q in TIMED}
    says = "at the greatest skew SHJ is at least twice as slow as Dynamic: SHJ / Dynamic"
    return _check("Table 2", says, figures(last), min(last.values()) >= 2)


def square_check(f: Figures) -> Claim:
    """Table 2: StaticMid is slower than Dynamic, at any skew."""
    ratio = {q: (f.seconds(q, "StaticMid") / f.seconds(q, "Dynamic")).min() for q in TIMED}
    says = "StaticMid is slower than Dynamic at any skew: least ratio"
    return _check("Table 2", says, figures(ratio), min(ratio.values()) > 1.05)


def even_claim(f: Figures) -> Claim:
    """Table 2: without skew SHJ is faster, for it copies nothing."""
    first = {q: f.seconds(q, "SHJ").iloc[0] / f.seconds(q, "Dynamic").iloc[0] for q in TIMED}
    why = (
        "in the grid's best mapping (1, 16) only the suppliers are copied, 0.5 % more tuples on a "
        "machine; the paper's factor of two is no cost of copies, and a hash is not quite even"
    )
    says = "without skew SHJ is faster, for it copies nothing: SHJ / Dynamic"
    return _tell("Table 2", says, figures(first), max(first.values()) < 1, why)


def collapse_claim(f: Figures) -> Claim:
    """Table 2: SHJ runs out of memory from Z2 (EQ5) and Z3 (EQ7)."""
    shj = f.times[f.times["operator"] == "SHJ"]
    full = {q: shj[(shj["query"] == q) & (shj["overflow"] > 0)]["skew"].tolist() for q in TIMED}
    found = ", ".join(f"{q}: {' '.join(skews) or 'never'}" for q, skews in full.items())
    why = (
        "with z = 0.5 the most frequent of a thousand suppliers has 1.6 % of the lines, a quarter "
        "of a machine's share: memory that holds the mean three times over holds that"
    )
    holds = "Z2" in full["EQ5"] and "Z3" in full["EQ7"]
    says = "SHJ overflows to disk from Z2 (EQ5) and Z3 (EQ7) on"
    return _tell("Table 2", says, found, holds, why)


def overflow_check(f: Figures) -> Claim:
    """Table 2: on 16 machines EQ5 overflows under StaticMid, and not under Dynamic."""
    rows = f.times[f.times["query"] == "EQ5"].groupby("operator")["overflow"]
    found = figures(rows.mean())
    holds = rows.min()["StaticMid"] == 1 and rows.max()["Dynamic"] == 0
    says = "on 16 machines EQ5 overflows under StaticMid and never under Dynamic: share of runs"
    return _check("Table 2", says, found, holds)


def growth_check(f: Figures) -> Claim:
    """Fig. 5a: the input load grows by so much for each percent of the input."""
    found = {name: f.growth(name) for name in GROWTH}
    text = ", ".join(f"{n} {mb:.1f} (printed {GROWTH[n]:g})" for n, mb in found.items())
    says = "MB a percent of the input: SHJ more than StaticMid, StaticMid more than Dynamic"
    holds = found["SHJ"] > found["StaticMid"] > found["Dynamic"]
    return _check("Fig. 5a", says, text, holds)


def linear_check(f: Figures) -> Claim:
    """Fig. 5a, 5c: input load and time grow linearly."""
    rows = f.runs[(f.runs["query"] == "EQ5") & (f.runs["operator"] != "SHJ")]
    by = rows.groupby("operator")
    bends = {n: max(bend(r, "stored_max"), bend(r, "seconds_modelled")) for n, r in by}
    says = "input load and time are linear in the input: greatest distance from the line"
    return _check("Fig. 5a, 5c", says, figures(bends), max(bends.values()) < 0.1)


def bend(rows: pd.DataFrame, column: str) -> float:
    """How far a curve over percent is from the line between its ends, as a share of its rise."""
    x, y = rows["percent"].to_numpy() / 100, rows[column].to_numpy()
    return float(np.abs(y / y[-1] - x).max())


def load_claim(f: Figures) -> Claim:
    """Fig. 5b: StaticMid stores three to seven times as much as Dynamic."""
    ratio = f.of("StaticMid", "stored_mean") / f.of("Dynamic", "stored_mean")
    says = "StaticMid stores about 3 to 7 times what Dynamic does"
    return _check("Fig. 5b", says, figures(ratio), ratio.between(2.5, 8.5).all())


def busiest_claim(f: Figures) -> Claim:
    """Fig. 5b: SHJ is up to 13 times the others."""
    ratio = (f.of("SHJ", "stored_max") / f.of("Dynamic", "stored_max")).dropna()
    says = "SHJ loads a machine with up to 13 times what Dynamic does"
    holds: Verdict = "under reading" if 5 <= ratio.max() <= 20 else "no"
    why = "of the fullest machine: in the mean SHJ stores least, a tuple once"
    return Claim(PAPER, "Fig. 5b", says, figures(ratio), holds, why, must=True)


def oracle_check(f: Figures) -> Claim:
    """Fig. 5d, 5e: Dynamic is close to the oracle's grid in time and throughput."""
    ratio = f.of("Dynamic", "seconds_modelled") / f.of("StaticOpt", "seconds_modelled")
    says = "Dynamic takes about as long as StaticOpt"
    return _check("Fig. 5d, 5e", says, figures(ratio), ratio.max() <= 1.25)


def throughput_check(f: Figures) -> Claim:
    """Fig. 5d, 5e: at least twice the throughput of StaticMid, but for BCI."""
    ratio = f.of("StaticMid", "seconds_modelled") / f.of("Dynamic", "seconds_modelled")
    says = "Dynamic has at least twice the throughput of StaticMid, but for BCI"
    return _check(
        "Fig. 5d, 5e", says, figures(ratio), ratio.drop("BCI", errors="ignore").min() >= 2
    )


def computing_check(f: Figures) -> Claim:
    """Fig. 5d: the gap is small when the join is bound by its results."""
    ratio = f.of("StaticMid", "seconds_modelled") / f.of("Dynamic", "seconds_modelled")
    says = "the gap between StaticMid and Dynamic is small for BCI"
    return _check("Fig. 5d", says, f"{ratio['BCI']:.3g}", 1.01 < ratio["BCI"] < 1.5)


def disk_claim(f: Figures) -> Claim:
    """Fig. 5c, 5e: SHJ on 64 machines is two orders of magnitude slower."""
    ratio = (f.of("SHJ", "seconds_modelled") / f.of("Dynamic", "seconds_modelled")).dropna()
    why = (
        "its fullest machine has ten times the tuples of Dynamic's and keeps them in memory, just; "
        "the rest of the paper's factor is disk"
    )
    says = "SHJ takes two orders of magnitude longer than Dynamic"
    return _tell("Fig. 5c, 5e", says, figures(ratio), ratio.max() >= 50, why)


def latency_check(f: Figures) -> Claim:
    """Fig. 5f: adaptivity costs at most 20 ms of latency."""
    more = f.of("Dynamic", "latency_ms_modelled") - f.of("StaticMid", "latency_ms_modelled")
    says = "adaptivity adds at most 20 ms to the mean latency"
    return _check("Fig. 5f", says, f"{figures(more)} ms", more.max() <= 20)


def mappings_check(f: Figures) -> Claim:
    """Fig. 5g, 5h: the gap closes as the best mapping nears the square."""
    by = f.mapped.pivot(index="optimum", columns="operator", values="stored_mean")
    order = f.mapped["optimum"].unique()
    gap = (by["StaticMid"] / by["Dynamic"]).loc[order]
    says = "the gap in input load closes as the best mapping nears the square one"
    holds = gap.is_monotonic_decreasing and gap.iloc[0] > 2 and abs(gap.iloc[-1] - 1) < 0.05
    return _check("Fig. 5g", says, figures(gap), holds)


def mapped_times_check(f: Figures) -> Claim:
    """Fig. 5h: and so does that in time; in the square Dynamic is no better."""
    by = f.mapped.pivot(index="optimum", columns="operator", values="seconds_modelled")
    gap = (by["StaticMid"] / by["Dynamic"]).loc[f.mapped["optimum"].unique()]
    says = "the gap in time closes with it"
    holds = gap.is_monotonic_decreasing and gap.iloc[0] > 2 and gap.iloc[-1] <= 1.01
    return _check("Fig. 5h", says, figures(gap), holds)


def scaling_check(f: Figures) -> Claim:
    """Fig. 5i, 5j: twice the data on twice the machines takes about as long."""
    by = f.scaled.set_index(["hosts", "query"])["seconds_modelled"].unstack()
    longer = by.iloc[-1] / by.iloc[0]
    says = "EQ5 and EQ7 take as long with four times data and machines"
    found = f"{figures(longer)} times the seconds"
    return _check("Fig. 5i, 5j", says, found, longer[list(TIMED)].max() <= 1.15)


def replicated_check(f: Figures) -> Claim:
    """Fig. 5i: BNCI's input load grows from 1.61 to 2.29 million tuples from 32 to 64 machines."""
    loads = f.scaled.set_index(["query", "hosts"])["stored_mean"] / 1e6
    first, last = loads["BNCI", 32], loads["BNCI", 64]
    found = f"{first:.2f} to {last:.2f} million tuples a machine (printed 1.61 to 2.29)"
    says = "BNCI's input load grows by 42 % from 32 to 64 machines"
    holds = abs(last / first - 1.42) < 0.03 and abs(first - 1.61) < 0.1
    return _check("Fig. 5i", says, found, holds)


def storage_claim(f: Figures) -> Claim:
    """Fig. 5i, 5j: out of core everything scales alike, an order of magnitude slower."""
    ratio = f.disk["seconds_modelled"] / f.scaled["seconds_modelled"]
    spread = f.disk.set_index(["hosts", "query"])["seconds_modelled"].unstack()
    longer = (spread.iloc[-1] / spread.iloc[0])[list(TIMED)].max()
    says = "out of core the same scaling, an order of magnitude slower"
    found = f"{ratio.min():.3g} to {ratio.max():.3g} times; EQ5 and EQ7 grow {longer:.3g} times"
    why = "how much slower is a parameter of the model (disk); that it scales alike is not"
    holds: Verdict = "under reading" if longer <= 1.15 and ratio.min() > 9 else "no"
    return Claim(PAPER, "Fig. 5i, 5j", says, found, holds, why, must=True)


def amortised_check(f: Figures) -> Claim:
    """Fig. 5l, Lemma 4.5: under fluctuations migrations cost less than the tuples themselves."""
    spent = {k: _migrating(rows) for k, rows in f.swung.groupby("k")}
    found = ", ".join(f"k = {k:g}: {share:.0%}" for k, share in spent.items())
    says = "migrations move fewer tuples than are sent, for every k, and some move"
    return _check("Fig. 5l, Lemma 4.5", says, found, 0 < max(spent.values()) < 1)


def _migrating(rows: pd.DataFrame) -> float:
    """Tuples that migrations move, over those sent, replicas and all."""
    return float(rows["moved"].sum() / rows["sent"].sum())


def progress_claim(f: Figures) -> Claim:
    """Fig. 5l: the curves are straight."""
    bends = {f"k = {k:g}": bend(rows, "seconds_modelled") for k, rows in f.swung.groupby("k")}
    says = "under every k the time is linear in the input: greatest distance from the line"
    why = "the smaller of the streams is copied more, so a tuple's cost changes with each swing"
    return _tell("Fig. 5l", says, figures(bends), max(bends.values()) < 0.1, why)


def claims(f: Figures) -> list[Claim]:
    """All of them, in the order of the paper."""
    made = (
        resilient_check,
        hash_check,
        square_check,
        overflow_check,
        even_claim,
        collapse_claim,
        growth_check,
        linear_check,
        load_claim,
        busiest_claim,
        oracle_check,
        throughput_check,
        computing_check,
        disk_claim,
        latency_check,
        mappings_check,
        mapped_times_check,
        scaling_check,
        replicated_check,
        storage_claim,
        amortised_check,
        progress_claim,
    )
    return [claim(f) for claim in made]
