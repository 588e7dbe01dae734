"""Residuals: conjuncts that DuckDB, or NumPy for vectors and sets, evaluates on candidate pairs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

VectorFunction = Literal["vector_l2_distance", "vector_inner_product", "vector_cosine_similarity"]
Function = VectorFunction | Literal["set_overlap", "set_inner"]
FUNCTIONS: dict[str, Function] = {name: name for name in get_args(VectorFunction)}


@dataclass(frozen=True)
class Measure:
    """A function of vectors or sets, applied to two streams' (stream, column)."""

    function: Function
    left: tuple[int, str]
    right: tuple[int, str]


@dataclass(frozen=True)
class FallibleExpression:
    """A part of an expression that has no value for some tuples, as in Spark.

    - ``sql``: its DuckDB SQL.
    - ``display_text``: its text and type for a message.
    - ``is_ansi``: whether the session's SQL is ANSI.
    - ``fails_in_spark``: False if only DuckDB's version of it may fail.
    """

    sql: str
    display_text: str
    is_ansi: bool = True
    fails_in_spark: bool = True


@dataclass(frozen=True)
class ResidualPredicate:
    """A residual: DuckDB SQL over columns named "alias.column".

    - ``streams``: the streams that it names.
    - ``columns``: (stream, column) pairs that it reads.
    - ``measures``: functions of vectors or sets, computed in advance. They are the columns "0",
      "1", ... of its SQL.
    - ``equal_columns``: the two columns if the residual is an equality of two text or binary
      columns; otherwise None.
    - ``fallible_parts``: parts that may fail, innermost first.
    """

    sql: str
    streams: frozenset[int]
    columns: tuple[tuple[int, str], ...]
    measures: tuple[Measure, ...] = ()
    equal_columns: tuple[tuple[int, str], tuple[int, str]] | None = None
    fallible_parts: tuple[FallibleExpression, ...] = ()
