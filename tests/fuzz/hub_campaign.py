"""Answer statements by a hub and compare them with DuckDB's answers."""

from __future__ import annotations

import math
import random
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
from duck import connect_duckdb
from hub_cases import BATCHES, SteppedHub

from fuzz.cases import StatementCase
from fuzz.outcomes import kind_of_sentence, to_answer
from fuzz.statements import random_statement, streams


def answer_in_duckdb(case: StatementCase) -> Counter[tuple[Any, ...]]:
    """Return the right answer of a statement that has one."""
    assert case.truth is not None
    with connect_duckdb() as db:
        for name, rows in streams(case.seed).items():
            db.register(name, rows.drop_columns(["batch"]))
        return Counter(db.execute(case.truth).fetchall())


def wrong_answers(
    cases: Sequence[StatementCase], counts: Counter[str] | None = None
) -> dict[int, str]:
    """Return the faults of one hub's answers to statements over the same streams, by position.

    ``counts`` counts verdicts and refusals.
    """
    counts = Counter() if counts is None else counts
    wrong: dict[int, str] = {}
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        hub = SteppedHub(Path(folder), streams(cases[0].seed))
        taken = []
        for place, case in enumerate(cases):
            try:
                hub.submit(case.statement, f"q{place}")
                taken.append(place)
            except Exception as error:
                found = to_answer(error, False)
                counts[
                    found.kind if found.kind != "refused" else kind_of_sentence(found.sentence)
                ] += 1
                if found.kind != "refused":
                    wrong[place] = f"unclear error: {found.sentence}"
        try:
            for _ in range(BATCHES):
                hub.step()
        except Exception as error:
            return wrong | {taken[0]: f"the hub failed: {type(error).__name__}: {error}"}
        for place in taken:
            reported = _judged(hub, f"q{place}", cases[place])
            counts["wrong" if reported else "equal"] += 1
            wrong |= {place: reported} if reported else {}
    return wrong


def _judged(hub: SteppedHub, name: str, case: StatementCase) -> str:
    if case.truth is None:
        return "it is answered, and must be refused"
    truth = answer_in_duckdb(case)
    try:
        found = hub.answered(name)
    except Exception as error:
        return f"it has no answer: {type(error).__name__}: {error}"
    found, truth = _comparable(found), _comparable(truth)
    lost, extra = truth - found, found - truth
    if not lost and not extra:
        return ""
    return f"{lost.total()} of {truth.total()} lost, as {[*lost][:2]}; {extra.total()} too many, as {[*extra][:2]}"


def _comparable(rows: Counter[tuple[Any, ...]]) -> Counter[tuple[Any, ...]]:
    """Return a row with reals rounded to twelve digits, because their order of addition is free."""
    made: Counter[tuple[Any, ...]] = Counter()
    for row, count in rows.items():
        made[tuple(_rounded(v) for v in row)] += count
    return made


def _rounded(value: Any) -> Any:
    return float(f"{value:.12g}") if isinstance(value, float) and math.isfinite(value) else value


@dataclass
class StatementReport:
    """Findings: ``counts`` by verdict and sentence, and the ``wrong`` cases."""

    statements: int = 0
    seconds: float = 0.0
    counts: Counter[str] = field(default_factory=Counter)
    wrong: list[StatementCase] = field(default_factory=list)

    def __str__(self) -> str:
        rate = self.statements / self.seconds if self.seconds else 0.0
        lines = [
            f"{self.statements:,} statements in {self.seconds:.0f} s, {rate:.1f} a second; "
            f"{len(self.wrong)} wrong"
        ]
        return "\n".join([*lines, *(f"  {n:,} {what}" for what, n in self.counts.most_common(20))])


class StatementCampaign:
    """All statements of one seed, twenty to a hub."""

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def run(self, minutes: float | None = None, count: int | None = None) -> StatementReport:
        """Draw statements for ``minutes``, or ``count`` of them."""
        report, began, number = StatementReport(), time.monotonic(), 0
        while (count is None or report.statements < count) and (
            minutes is None or time.monotonic() - began < 60 * minutes
        ):
            draw = random.Random(f"{self.seed} {number}")
            cases = [random_statement(draw, draw.randrange(4)) for _ in range(1)]
            cases += [random_statement(draw, cases[0].seed) for _ in range(19)]
            for place, why in wrong_answers(cases, report.counts).items():
                report.wrong.append(msgspec.structs.replace(cases[place], why=why))
            report.statements += len(cases)
            report.seconds = time.monotonic() - began
            number += 1
        return report
