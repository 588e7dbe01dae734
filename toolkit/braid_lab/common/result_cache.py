"""Runs that are modelled for long are kept in tables, ``data/studies/*.csv``, and read there when
the same run is asked for again.

A run is told by a text that names its settings. Kept with what it came to are the day, and the
``code``: a digest of what short runs come to, which is another as soon as the model or a policy
does something else. What other code made is not read.
"""

from __future__ import annotations

import csv
import gc
import hashlib
import time
from argparse import ArgumentParser
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path

_PACKAGED = Path(__file__).parents[1] / "reports" / "data" / "studies"
FOLDER = _PACKAGED if _PACKAGED.exists() else Path(__file__).parents[3] / "data" / "studies"
"""Of an installed package, else of the checkout."""

Outcome = Mapping[str, float]
"""What a run comes to, by name."""


def fingerprint_outcomes(outcomes: Iterable[Outcome]) -> str:
    """What tells outcomes from others: eight letters and digits, by five digits of each number."""
    told = "\n".join(f"{k} {v:.5g}" for outcome in outcomes for k, v in outcome.items())
    return hashlib.sha256(told.encode()).hexdigest()[:8]


@dataclass(frozen=True)
class CachedOutcome:
    """What a run came to, and the day on which it was made if it was kept, else ""."""

    outcome: Outcome
    date: str = ""


@dataclass
class ResultCache:
    """The runs of one ``file`` under FOLDER, with outcomes of these ``names``; ``fingerprint``
    tells the present code.
    """

    file: str
    columns: tuple[str, ...]
    fingerprint: Callable[[], str]

    @property
    def file_path(self) -> Path:
        """Where it lies."""
        return FOLDER / self.file

    @cached_property
    def code_fingerprint(self) -> str:
        """The present code."""
        return self.fingerprint()

    @cached_property
    def cached_rows(self) -> dict[str, CachedOutcome]:
        """The runs of the present code, by their texts."""
        if not self.file_path.exists():
            return {}
        with self.file_path.open(encoding="utf-8", newline="") as file:
            found = [row for row in csv.DictReader(file) if row["code"] == self.code_fingerprint]
        return {
            r["run"]: CachedOutcome({n: float(r[n]) for n in self.columns}, r["date"])
            for r in found
        }

    def get_or_run(
        self, run: str, make: Callable[[], Outcome], fresh: bool = False
    ) -> CachedOutcome:
        """A run as it was kept; made now if it was not, or if a ``fresh`` one is wanted."""
        return (None if fresh else self.cached_rows.get(run)) or CachedOutcome(make())

    def store(self, run: str, outcome: Outcome) -> None:
        """Add a run."""
        columns, new = ("run", *self.columns, "code", "date"), not self.file_path.exists()
        day = datetime.now(UTC).date().isoformat()
        self.file_path.parent.mkdir(parents=True, exist_ok=True)
        with self.file_path.open("a", encoding="utf-8", newline="") as file:
            lines = csv.writer(file, lineterminator="\n")
            if new:
                lines.writerow(columns)
            lines.writerow(
                (run, *(f"{outcome[n]:.6g}" for n in self.columns), self.code_fingerprint, day)
            )
        self.cached_rows[run] = CachedOutcome(outcome, day)

    def fill(self, asked: Mapping[str, Callable[[], Outcome]], minutes: float) -> tuple[int, int]:
        """Add those runs that it lacks, one after the other, until the minutes are over: how many
        were added, and how many are lacking still.
        """
        lacking = [run for run in asked if run not in self.cached_rows]
        until, added = time.monotonic() + 60 * minutes, 0
        for run in lacking:
            if time.monotonic() > until:
                break
            self.store(run, asked[run]())
            added += 1
        return added, len(lacking) - added


def run_cache_command(
    table: ResultCache, asked: Mapping[str, Callable[[], Outcome]], about: str | None
) -> None:
    """The command that adds to a table the runs that it lacks, for ``--minutes``."""
    parser = ArgumentParser(description=about)
    parser.add_argument("--minutes", type=float, default=4.0, help="by default 4")
    minutes = parser.parse_args().minutes
    gc.disable()  # a run makes no cycles, and to look for them takes up to a quarter of its time
    added, lacking = table.fill(asked, minutes)
    print(f"{added} runs added, {lacking} lacking still")


def describe_cache_dates(dates: Iterable[str]) -> str:
    """How many of some runs were kept, and since when, in a sentence; ``dates`` as ``Ran`` has
    them.
    """
    every = list(dates)
    days = sorted(d for d in every if d)
    if not days:
        return f"{len(every)} runs, all made now (modelled)"
    since = days[0] if days[0] == days[-1] else f"{days[0]} to {days[-1]}"
    rest = "; the others made now" if len(days) < len(every) else ""
    return f"{len(every)} runs (modelled): {len(days)} kept, of {since}{rest}"
