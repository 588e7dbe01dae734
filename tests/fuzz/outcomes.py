"""Answers of routes, truths of oracles, and their agreement."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Literal

Ids = Counter[tuple[Any, ...]]
"""Results by the numbers of their rows, in the order of the streams; None: no row of a stream."""


@dataclass(frozen=True)
class Answer:
    """The outcome of a route.

    - ``rows``: the results, if it succeeded.
    - ``sentence``: the reason, if it did not.
    - ``refused``: it was refused before anything started.
    - ``failed``: it failed during the run.
    - ``crashed``: it ended with an error that is no sentence for a user.
    """

    kind: Literal["rows", "refused", "failed", "crashed"]
    rows: Ids = field(default_factory=Counter)
    sentence: str = ""


@dataclass(frozen=True)
class Truth:
    """The right outcome.

    - ``rows``: the results, unless evaluation ``must_fail``.
    - ``may_fail``: failure depends on the order of evaluation of conjuncts.
    - ``is_known``: False if the oracle itself rejects the condition.
    """

    rows: Ids
    may_fail: bool = False
    must_fail: bool = False
    is_known: bool = True


UNKNOWN = Truth(Counter(), is_known=False)
_UNCLEAR = (
    *("KeyError", "TypeError", "AttributeError", "IndexError", "AssertionError", "NameError"),
    *("RecursionError", "UnboundLocalError", "InternalException", "FatalException"),
    *("ZeroDivisionError", "UnicodeDecodeError", "StopIteration", "ArrowKeyError"),
)


def to_answer(error: BaseException, has_started: bool) -> Answer:
    """Return an exception as an answer.

    Braid refuses by ValueError, in one line, before it starts.
    """
    sentence = f"{type(error).__name__}: {error}"
    cause: BaseException | None = error
    while cause is not None:
        if type(cause).__name__ in _UNCLEAR:
            return Answer("crashed", sentence=sentence)
        cause = cause.__cause__
    if "duckdb" in type(error).__module__:  # names no expression
        return Answer("crashed", sentence=sentence)
    if has_started:
        return Answer("failed", sentence=sentence)
    if not isinstance(error, ValueError) or "\n" in str(error):
        return Answer("crashed", sentence=sentence)
    return Answer("refused", sentence=str(error))


def judge(answer: Answer, truth: Truth) -> str:
    """Return the fault of an answer in a line, empty if it has none."""
    if answer.kind == "crashed":
        return f"unclear error: {answer.sentence}"
    if answer.kind == "refused" or not truth.is_known:
        return ""
    if answer.kind == "failed":
        return "" if truth.may_fail else f"it failed where Spark does not: {answer.sentence}"
    if truth.must_fail:
        return "it has results where Spark fails"
    lost, extra = truth.rows - answer.rows, answer.rows - truth.rows
    if not lost and not extra:
        return ""
    return (
        f"{lost.total()} of {truth.rows.total()} lost, as {[*lost][:3]}; "
        f"{extra.total()} too many, as {[*extra][:3]}"
    )


def kind_of_sentence(sentence: str) -> str:
    """Return a refusal without the details of its case, to count refusals by kind."""
    return re.sub(r"'[^']*'|\"[^\"]*\"|\d+|`[^`]*`", "…", sentence)[:110]
