"""A cache of long modelled runs in tables, ``data/studies/*.csv``.

The key of a run is a text with its settings. Its outcome is stored with the day, and with ``code``,
a digest of the outcomes of short runs. The digest changes if the model or a policy behaves
differently; outcomes of other code are ignored.
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
from functools import cached_property, partial
from pathlib import Path
from typing import Generic, ParamSpec

P = ParamSpec("P")
_PACKAGED = Path(__file__).parents[1] / "reports" / "data" / "studies"
FOLDER = _PACKAGED if _PACKAGED.exists() else Path(__file__).parents[3] / "data" / "studies"
"""The folder of tables in an installed package, else in the checkout."""

Outcome = Mapping[str, float]
"""The numbers that a run results in, by name."""


def fingerprint_outcomes(outcomes: Iterable[Outcome]) -> str:
    """Return a digest of outcomes: eight letters and digits, from five digits of each number."""
    numbers = "\n".join(f"{k} {v:.5g}" for outcome in outcomes for k, v in outcome.items())
    return hashlib.sha256(numbers.encode()).hexdigest()[:8]


@dataclass(frozen=True)
class CachedOutcome:
    """The outcome of a run, and the day on which it was cached; "": it was not."""

    outcome: Outcome
    date: str = ""


@dataclass
class ResultCache(Generic[P]):
    """A table of runs: a ``file`` under FOLDER with outcomes of these ``columns``.

    - ``fingerprint``: returns the digest of the present code.
    - ``make_key``, ``compute``: return the key and the outcome of a run, from its arguments.
    """

    file: str
    columns: tuple[str, ...]
    fingerprint: Callable[[], str]
    make_key: Callable[P, str]
    compute: Callable[P, Outcome]

    @property
    def file_path(self) -> Path:
        """The path of the table."""
        return FOLDER / self.file

    @cached_property
    def code_fingerprint(self) -> str:
        """The digest of the present code."""
        return self.fingerprint()

    @cached_property
    def cached_rows(self) -> dict[str, CachedOutcome]:
        """The cached runs of the present code, by key."""
        if not self.file_path.exists():
            return {}
        with self.file_path.open(encoding="utf-8", newline="") as file:
            rows = [row for row in csv.DictReader(file) if row["code"] == self.code_fingerprint]
        return {
            r["run"]: CachedOutcome({n: float(r[n]) for n in self.columns}, r["date"]) for r in rows
        }

    def make_source(self, fresh: bool = False) -> Callable[P, CachedOutcome]:
        """Return a source of outcomes: the table. Missing runs, or all if ``fresh``, are made."""

        def get_or_run(*args: P.args, **kwargs: P.kwargs) -> CachedOutcome:
            cached = None if fresh else self.cached_rows.get(self.make_key(*args, **kwargs))
            return cached or CachedOutcome(self.compute(*args, **kwargs))

        return get_or_run

    def list_requests(
        self, request: Callable[[Callable[P, CachedOutcome]], object]
    ) -> dict[str, Callable[[], Outcome]]:
        """Return, by key, the runs that a function asks a source for. None is run.

        Each outcome is 1 in all columns.
        """
        requests: dict[str, Callable[[], Outcome]] = {}

        def note_request(*args: P.args, **kwargs: P.kwargs) -> CachedOutcome:
            run = partial(self.compute, *args, **kwargs)
            requests.setdefault(self.make_key(*args, **kwargs), run)
            return CachedOutcome(dict.fromkeys(self.columns, 1.0))

        request(note_request)
        return requests

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

    def fill(self, runs: Mapping[str, Callable[[], Outcome]], minutes: float) -> tuple[int, int]:
        """Add missing runs, one after the other, until the minutes are over.

        Return how many were added, and how many are still missing.
        """
        lacking = [run for run in runs if run not in self.cached_rows]
        until, added = time.monotonic() + 60 * minutes, 0
        for run in lacking:
            if time.monotonic() > until:
                break
            self.store(run, runs[run]())
            added += 1
        return added, len(lacking) - added


def run_cache_command(
    table: ResultCache[P], runs: Mapping[str, Callable[[], Outcome]], about: str | None
) -> None:
    """Run the command that adds missing runs to a table, for ``--minutes``."""
    parser = ArgumentParser(description=about)
    parser.add_argument("--minutes", type=float, default=4.0, help="by default 4")
    minutes = parser.parse_args().minutes
    gc.disable()  # runs make no cycles; collection takes up to 25 % of the time
    added, lacking = table.fill(runs, minutes)
    print(f"{added} runs added, {lacking} lacking still")


def describe_cache_dates(dates: Iterable[str]) -> str:
    """Return a sentence on how many of some runs were cached, and since when.

    ``dates`` are those of ``CachedOutcome``.
    """
    every = list(dates)
    days = sorted(d for d in every if d)
    if not days:
        return f"{len(every)} runs, all made now (modelled)"
    since = days[0] if days[0] == days[-1] else f"{days[0]} to {days[-1]}"
    rest = "; the others made now" if len(days) < len(every) else ""
    return f"{len(every)} runs (modelled): {len(days)} kept, of {since}{rest}"
