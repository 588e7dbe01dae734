"""Long runs of Gu 2007, section 5, and the table of them that is kept: a thousand seconds and five
seeds, as the paper has them, for as many points as a small machine can do.

``python -m braid.studies.diffusion_kept --minutes 4`` adds runs that the table lacks, one after the
other, and stops after the minutes. Everything in the table is modelled.
"""

from __future__ import annotations

import csv
import time
from argparse import ArgumentParser
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import pandas as pd

from braid.studies.claim import Claim, Verdict, figures, verdict
from braid.studies.diffusion import READINGS, SCANNED, VISITED, Setting, outcome, placement, run
from braid.studies.diffusion_frames import PAPER

_PACKAGED = Path(__file__).parents[1] / "reports" / "data" / "studies"
FOLDER = _PACKAGED if _PACKAGED.exists() else Path(__file__).parents[3] / "data" / "studies"
"""Of an installed package, else of the checkout."""
FILE = FOLDER / "gu2007-long.csv"
SECONDS, SEEDS = 1000, 5
BESIDE = ("throughput", "work", "mbits", "stored")
COLUMNS = ("figure", "x", "reading", "placement", "seed", *BESIDE, "seconds", "date")


@dataclass(frozen=True)
class Run:
    """One run: what it is of, the placement by the paper's name, L as a number of copies (0: the
    square root of J) and the setting, whose seed it has.
    """

    figure: str
    x: str
    placement: str
    setting: Setting
    reading: str = VISITED

    @property
    def key(self) -> tuple[str, ...]:
        """What tells it from the others in the table."""
        told = f"{self.placement}, L = {self.setting.copies}"
        label = told if self.placement.startswith("CTR") else self.placement
        return self.figure, self.x, self.reading, label, str(self.setting.seed)


def runs() -> Iterator[Run]:
    """Those of the table, the most telling first: Fig. 11 and 12 from a first length that is not
    the best, the ends of Fig. 13 and 15, and Fig. 4 where 300 seconds of work may wait.
    """
    for seed in range(SEEDS):
        s = Setting(4, 30.0, hosts=20, length=5, seconds=SECONDS, seed=seed)
        for name in ("ATR", "ATR-unoptimized"):
            yield Run("11, 12", "J = 20, T0 = 5", name, s)
    for seed in range(2):
        for length in (1, 3, 5, 8):
            s = Setting(4, 30.0, hosts=20, length=length, seconds=SECONDS, patience=300, seed=seed)
            yield Run("4", f"T = {length}, patience 300", "ATR-unoptimized", s)
    for seed in range(SEEDS):
        for n in (3, 6):
            s = Setting(n, 20.0, selectivity=0.15, seconds=SECONDS, seed=seed, copies=15)
            yield from _pair("13", f"n = {n}", s)
    for seed in range(SEEDS):
        for sigma in (0.2, 1.0):
            s = Setting(3, 30.0, selectivity=sigma, seconds=SECONDS, seed=seed, copies=15)
            yield from _pair("15", f"σ = {sigma:g}", s)


def _pair(figure: str, x: str, s: Setting) -> Iterator[Run]:
    """ATR and CTR with L = J/2 under either reading of what a probe costs."""
    for reading in (SCANNED, VISITED):
        for name in ("ATR", "CTR"):
            yield Run(figure, x, name, replace(s, costs=READINGS[reading]), reading)


def table() -> pd.DataFrame:
    """The runs that are kept, with COLUMNS; ``date`` is the day on which each was made."""
    return pd.read_csv(FILE)


def summary() -> pd.DataFrame:
    """The mean, least and greatest throughput (results per second, modelled) of the runs that are
    kept, over seeds, and the mean of what is sent (Mbit/s).
    """
    by = table().groupby(["figure", "x", "reading", "placement"], sort=False)
    found = by["throughput"].agg(["count", "mean", "min", "max"])
    found.columns = pd.Index(["seeds", "results per second", "least", "most"])
    return found.assign(**{"Mbit/s": by["mbits"].mean()}).reset_index()


def claims(kept: pd.DataFrame) -> list[Claim]:
    """What the long runs say of Fig. 4, 11, 12, 13 and 15; nothing of a figure that has no run."""
    made = {"11, 12": _searched, "4": _interior, "13": _streams, "15": _selectivity}
    of = {figure: kept[kept["figure"] == figure] for figure in made}
    return [claim for figure, rows in of.items() if len(rows) for claim in made[figure](rows)]


def _ratio(rows: pd.DataFrame, value: str, a: str, b: str, by: list[str]) -> pd.Series:
    """One placement over another, by some columns: the mean of the seeds that both have."""
    keys = [*by, *(["seed"] if "seed" not in by else [])]
    seeds = rows.pivot_table(value, keys, "placement", sort=False)
    table = seeds[[a, b]].dropna().groupby(level=by, sort=False).mean()
    return table[a] / table[b]


def _long(figure: str, says: str, found: str, holds: Verdict, why: str = "") -> Claim:
    """A claim of long runs; it must hold if it did when they were kept."""
    says = f"{says} ({SECONDS} s, kept)"
    return Claim(PAPER, f"Fig. {figure}", says, found, holds, why, must=holds != "no")


def _searched(rows: pd.DataFrame) -> list[Claim]:
    pair = ("ATR", "ATR-unoptimized", ["seed"])
    more, sent = (_ratio(rows, value, *pair) for value in ("throughput", "mbits"))
    why = (
        "the search shortens the segments, which spreads the work and sends more; less is sent "
        "only where the best length is above T0"
    )
    return [
        _long(
            "11",
            "from T0 = 5 s ATR is above ATR-unoptimized, by seed",
            figures(more),
            verdict(more.min() > 1.01),
        ),
        _long(
            "12",
            "from T0 = 5 s ATR sends less than ATR-unoptimized, by seed",
            figures(sent),
            verdict(sent.max() < 0.99),
            why if sent.max() >= 0.99 else "",
        ),
    ]


def _interior(rows: pd.DataFrame) -> list[Claim]:
    by = rows.groupby("x", sort=False)["throughput"].mean()
    by.index = pd.Index([int(x.split(",")[0].removeprefix("T = ")) for x in by.index])
    inside = len(by) > 2 and by.idxmax() not in (by.index.min(), by.index.max())
    says = "throughput peaks at a length T* between extremes, 4-way: T / best"
    waits = "where 300 seconds of work may wait"
    why = (
        f"{waits}; with ten the shortest is the best"
        if inside
        else f"also {waits}, T = {by.idxmax()} s is the best of those tried"
    )
    holds: Verdict = "under reading" if inside else "no"
    return [_long("4", says, figures(by / by.max()), holds, why)]


def _ends(rows: pd.DataFrame, figure: str, says: str, first: int) -> list[Claim]:
    """CTR over ATR at two ends; ``first`` is -1 when CTR is to be behind at the first, else 1."""
    ctr = next((name for name in rows["placement"].unique() if name.startswith("CTR")), None)
    if ctr is None or rows["x"].nunique() < 2:
        return []
    ratio = _ratio(rows, "throughput", ctr, "ATR", ["reading", "x"])
    held = []
    for reading in ratio.index.unique("reading"):
        a, b = (ratio[reading].iloc[0] - 1) * first, (ratio[reading].iloc[-1] - 1) * first
        held += [str(reading)] if a > 0.01 and b < -0.01 else []
    found = "; ".join(f"{reading}, {x}: {value:.3g}" for (reading, x), value in ratio.items())
    both = ratio.index.unique("reading")
    holds: Verdict = "no" if not held else "yes" if len(held) == len(both) else "under reading"
    why = "" if holds == "yes" else "; ".join(held) or "at L = J/2 neither reading has both ends"
    return [_long(figure, f"{says}: CTR, L = J/2 / ATR", found, holds, why)]


def _streams(rows: pd.DataFrame) -> list[Claim]:
    return _ends(rows, "13", "ATR ahead for 3 streams, CTR for 6", -1)


def _selectivity(rows: pd.DataFrame) -> list[Claim]:
    return _ends(rows, "15", "CTR ahead at σ = 0.2, ATR at 1", 1)


def record(minutes: float) -> int:
    """Add runs that the table lacks until the minutes are over: how many were added."""
    until, added = time.monotonic() + 60 * minutes, 0
    FOLDER.mkdir(parents=True, exist_ok=True)
    if not FILE.exists():
        FILE.write_text(",".join(COLUMNS) + "\n", encoding="utf-8")
    with FILE.open(encoding="utf-8", newline="") as file:
        known = {tuple(row[c] for c in COLUMNS[:5]) for row in csv.DictReader(file)}
    for one in runs():
        if one.key in known:
            continue
        if time.monotonic() > until:
            break
        got = outcome(run(placement(one.placement, one.setting), one.setting), one.setting.window)
        day = datetime.now(UTC).date().isoformat()
        with FILE.open("a", encoding="utf-8", newline="") as file:
            numbers = (f"{got[name]:.6g}" for name in BESIDE)
            csv.writer(file, lineterminator="\n").writerow((*one.key, *numbers, SECONDS, day))
        added += 1
    return added


def main() -> None:
    """Add to the table."""
    parser = ArgumentParser("python -m braid.studies.diffusion_kept", description=__doc__)
    parser.add_argument("--minutes", type=float, default=4.0, help="by default 4")
    print(record(parser.parse_args().minutes), "runs added")


if __name__ == "__main__":
    main()
