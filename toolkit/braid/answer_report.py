"""Report how recomputed answers of a run differ from its result files."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class DifferingRow:
    """A result that is missing or not right: the batch that has it, or should, and its values."""

    is_missing: bool
    batch: int
    values: str

    def __str__(self) -> str:
        return f"{'missing' if self.is_missing else 'not right'}, batch {self.batch}: {self.values}"


@dataclass(frozen=True)
class AnswerReport:
    """The outcome of ``check_answers``.

    Parameters
    ----------
    oracle
        "DuckDB" or "Spark": what evaluated the condition.
    results
        Result rows that were compared.
    missing
        Rows that the run should have and has not; 0 for a run that sheds load.
    wrong
        Rows that the run has and should not have, counted as often as they occur too often.
    late
        Rows with a late member, which may be there or not.
    examples
        The first differing rows.
    notes
        Sentences that say what could not be checked.
    """

    oracle: str
    results: int
    missing: int
    wrong: int
    late: int
    examples: tuple[DifferingRow, ...]
    notes: tuple[str, ...]

    @property
    def is_right(self) -> bool:
        """Whether no row differs."""
        return not self.missing and not self.wrong

    def __str__(self) -> str:
        head = f"{self.results:,} results, recomputed from the input by {self.oracle}: "
        head += "all right" if self.is_right else f"{self.missing:,} missing, {self.wrong:,} wrong"
        late = f"; {self.late:,} with a late tuple may be there or not" if self.late else ""
        return "\n".join([head + late, *self.notes, *map(str, self.examples)])
