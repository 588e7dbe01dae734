"""Expectations of a report's figures: ``--expect "median seconds < 2"``."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from braid_lab.reports.report_figures import Figure, format_number

_COMPARISONS: dict[str, Callable[[float, float], bool]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "!=": operator.ne,
    "==": operator.eq,
    "<": operator.lt,
    ">": operator.gt,
    "=": operator.eq,
}
_TEXT = re.compile(r"\s*(\S.*?)\s*(<=|>=|!=|==|<|>|=)\s*(-?\d[\d,_]*(?:\.\d+)?)\s*")


@dataclass(frozen=True, slots=True)
class Expectation:
    """A figure, named in full or in part, and the bound that its value must keep."""

    name: str
    comparison: str
    bound: float

    @classmethod
    def parse(cls, text: str) -> Expectation:
        """Return the expectation of a text such as "seconds < 2".

        Raises ValueError for a text of another form.
        """
        if (match := _TEXT.fullmatch(text)) is None:
            raise ValueError(
                f"--expect takes a figure, one of {' '.join(_COMPARISONS)} and a number, such as "
                f"'seconds < 2'; found {text!r}"
            )
        return cls(match[1], match[2], float(re.sub("[,_]", "", match[3])))

    @property
    def text(self) -> str:
        """The expectation in one form, however it was written."""
        return f"{self.name} {self.comparison} {format_number(self.bound)}"

    def explain_failure(self, figures: Sequence[Figure]) -> str:
        """Return why the figures fail the expectation; empty if they meet it."""
        same = [f for f in figures if f.name == self.name]
        alike = same or [f for f in figures if self.name.lower() in f.name.lower()]
        if len(alike) != 1:
            names = ", ".join(f.name for f in alike or figures) or "none"
            count = "several figures are" if alike else "no figure is"
            return f"{count} named {self.name!r}; there are: {names}"
        figure = alike[0]
        if _COMPARISONS[self.comparison](figure.value, self.bound):
            return ""
        return (
            f"expected {figure.name} {self.comparison} {format_number(self.bound)}; "
            f"it is {format_number(figure.value)}"
        )


def judge_expectations(
    expectations: Sequence[Expectation], figures: Sequence[Figure], seconds: float, failed: int
) -> tuple[tuple[str, str], ...]:
    """Return the text of each expectation, and why it is not met; empty: it is.

    "report seconds" and "failed checks" are figures too, if they are named in full.

    - ``seconds``: duration of the report.
    - ``failed``: number of checks that failed.
    """
    totals = [Figure("report seconds", seconds, "s"), Figure("failed checks", failed)]
    names = {f.name for f in totals}
    return tuple(
        (e.text, e.explain_failure([*figures, *totals] if e.name in names else figures))
        for e in expectations
    )
