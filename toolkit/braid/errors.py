"""The exceptions that Braid raises.

Each derives from ``BraidError`` and, where a built-in exception describes it, from that one too.
Invalid arguments raise plain ``ValueError``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


class BraidError(Exception):
    """Base of all exceptions that Braid defines."""


class DamagedRunError(BraidError, ValueError):
    """A file of a run is missing or damaged."""


class UnknownEventError(BraidError, ValueError):
    """An event of a kind that neither this version of Braid nor a plugin has."""


class FencedError(BraidError, RuntimeError):
    """Another driver has taken over the run."""


class PredicateError(BraidError, ValueError):
    """A condition that is not supported. The message names what was found and what is accepted."""


class NarrowWindow(UserWarning):
    """A window is narrower than the condition, so that results which satisfy it are lost."""


class OtherWatermark(UserWarning):
    """A join uses another event time or a shorter lateness than a frame's watermark."""


class PendingPairs(UserWarning):
    """Some pairs are joined later, because a change of placement is in progress."""


class ContradictionError(BraidError):
    """Some conjuncts exclude each other."""

    def __init__(self, conjuncts: Sequence[str]) -> None:
        super().__init__()
        self.conjuncts = tuple(conjuncts)


class QueryError(BraidError, ValueError):
    """A query is invalid. The message says what was found and what is accepted."""


class PluginError(BraidError, ValueError):
    """A plugin of an installed package cannot be used; the message gives the reason."""


class PlanningError(BraidError, ValueError):
    """No plan exists; the message gives the reason."""


class CoverageError(BraidError, AssertionError):
    """A plan that would lose or duplicate a result.

    ``blocks`` are the ids of the blocks concerned. If a batch is being planned
    (``batch_step.plan_batch``), notes of the error describe their state.
    """

    def __init__(self, sentence: str, *blocks: int) -> None:
        super().__init__(sentence)
        self.blocks = blocks


class RefusedColumnError(BraidError, ValueError):
    """A column that a stream cannot use.

    - ``problem``: for example "holds int and str".
    - ``remedy``: for example "give it one type".
    """

    def __init__(self, stream: str, column: str, problem: str, remedy: str) -> None:
        super().__init__(f"column {column} of stream {stream} {problem}; {remedy}")
        self.stream, self.column = stream, column


class NotSparkError(BraidError, ValueError):
    """A token that neither begins nor continues an expression of Spark SQL.

    ``at``: its position among the tokens.
    """

    def __init__(self, message: str, at: int) -> None:
        super().__init__(message)
        self.at = at


class UnsupportedExpressionError(BraidError, ValueError):
    """An expression that DuckDB may evaluate differently from Spark: its text and the reason."""

    def __init__(self, text: str, why: str = "") -> None:
        super().__init__(f"{text!r}{why}")
        self.text, self.why = text, why


class EvaluationFailure(BraidError, ArithmeticError):
    """An expression that overflows or has no value otherwise. The message is a sentence."""


@dataclass
class ExpressionError(BraidError):
    """An expression failed on tuples.

    - ``query``: the query it belongs to; empty: an operator's expression failed.
    - ``operator``, ``bit``: the operator's demand whose queries are affected; bit None: all its
      demands.
    """

    error: Exception
    operator: int = -1
    bit: int | None = None
    query: str = ""


@dataclass
class LostTuples(BraidError):
    """A file of a stream's tuples of one epoch, from which operators are built, is damaged."""

    stream: str
    epoch: int
    error: DamagedRunError


class CollectLimitExceeded(BraidError):
    """A batch exceeds the limit. ``size``: bytes received before collecting stopped."""

    def __init__(self, size: int, message: str = "") -> None:
        super().__init__(message or f"{size} bytes came")
        self.size = size


class SparkResultLimitExceeded(CollectLimitExceeded):
    """Spark gave up a batch, because it returns at most ``limit`` bytes to the driver.

    Spark counts what whole tasks return, before this process has received any of it.
    """

    def __init__(self, limit: int) -> None:
        super().__init__(
            limit,
            f"a batch has more than the {limit} bytes that spark.driver.maxResultSize lets Spark "
            'hand to this process; raise that setting, or take executor="auto" or "spark"',
        )
