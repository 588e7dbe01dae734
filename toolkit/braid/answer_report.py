"""The report on a run's recomputed answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from braid.util.batch_numbers import display_batch
from braid.util.validation import format_value


@dataclass(frozen=True)
class DifferingRow:
    """A missing or wrong result, with its batch, if it is known, and values."""

    is_missing: bool
    batch: int | None
    values: str

    def __str__(self) -> str:
        batch = "" if self.batch is None else f", batch {display_batch(self.batch)}"
        return f"{'missing' if self.is_missing else 'not right'}{batch}: {self.values}"


@dataclass(frozen=True)
class AnswerReport:
    """The outcome of ``check_answers``.

    Parameters
    ----------
    oracle
        Evaluator of the condition, "DuckDB" or "Spark".
    results
        Result rows that were compared.
    missing
        Expected rows that the run lacks; always 0 for a run that sheds load.
    wrong
        Rows that the run has and should not have. Surplus copies of a row count one each.
    late
        Rows with a late member. They are optional.
    examples
        The first differing rows.
    notes
        Sentences on what could not be checked.
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


@dataclass(frozen=True)
class QueryReports:
    """The outcome of ``check_answers`` for a run of many queries: ``reports`` by query.

    ``unchecked``: by query, why its answers cannot be recomputed.
    """

    reports: Mapping[str, AnswerReport]
    unchecked: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_right(self) -> bool:
        """Whether all queries are checked, and no row of any differs."""
        return not self.unchecked and all(r.is_right for r in self.reports.values())

    def __str__(self) -> str:
        lines = [f"{name}: {report}" for name, report in self.reports.items()]
        return "\n".join(lines + [f"{n}: not checked: {why}" for n, why in self.unchecked.items()])


def format_row(aliases: Sequence[str], structs: Sequence[Any]) -> str:
    """Return a result row as text, such as ``a(id=1, k='x') b(id=2)``."""
    return " ".join(map(_format_struct, aliases, structs))


def _format_struct(alias: str, struct: Any) -> str:
    if not isinstance(struct, Mapping):  # text, if no result file gives the types
        return f"{alias}{struct}"
    return (
        f"{alias}({', '.join(f'{name}={format_value(value)}' for name, value in struct.items())})"
    )
