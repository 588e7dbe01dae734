"""Evaluate residuals and table queries with DuckDB."""

from __future__ import annotations

import atexit
import re
import threading
import warnings
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from braid.condition.overflow_guards import OVERFLOW, describe_failure
from braid.condition.residual_predicate import FallibleExpression, ResidualPredicate
from braid.errors import EvaluationFailure

_FEW = 10_000
"""Up to this many rows, optimizing a query takes longer than running it, and creating a relation
takes longer than copying the result.
"""
_TEXT, _HERE = "Arrow output on a DB-API result", re.escape(__name__)
_COPIES = ("ignore", re.compile(_TEXT, re.IGNORECASE), UserWarning, re.compile(_HERE), 0)
"""Python's filter that ignores DuckDB's warning in this module."""
_OWN = threading.local()
"""By thread, its cursors of the process's DuckDB: for few and for many candidates."""


@cache
def _open_database() -> Any:
    """Return this process's DuckDB. Opening one takes longer than a small micro-batch."""
    import duckdb

    atexit.register(_open_database.cache_clear)  # otherwise a leak is reported
    connection = duckdb.connect(config={"threads": 1})
    connection.execute("SET GLOBAL TimeZone = 'UTC'")  # for all later cursors
    # The rewriter would move the constant of x + 1 > y to the other side and lose the overflow.
    connection.execute("SET GLOBAL disabled_optimizers = 'expression_rewriter'")
    return connection


def duckdb_cursor() -> Any:
    """Return a new cursor of this process's DuckDB, in UTC. It has its own registered tables."""
    return _open_database().cursor()


def _thread_cursor(candidates: int) -> Any:
    if not hasattr(_OWN, "cursors"):
        _OWN.cursors = [duckdb_cursor() for _ in range(2)]
        _OWN.cursors[0].execute("PRAGMA disable_optimizer")
    return _OWN.cursors[candidates > _FEW]


def query_table(sql: str, rows: pa.Table) -> pa.Table:
    """Return the result of a query on a table, which is named ``tuples`` in the SQL."""
    tuples = rows  # noqa: F841  DuckDB finds it by this name
    with duckdb_cursor() as db:
        if rows.num_rows > _FEW:
            return db.sql(sql).to_arrow_table()
        if _COPIES not in warnings.filters:  # not added yet, or reset by catch_warnings
            warnings.filterwarnings("ignore", _TEXT, UserWarning, _HERE)
        return db.execute(sql).to_arrow_table()


def evaluate_residual(
    residual: ResidualPredicate,
    aliases: Sequence[str],
    columns: Mapping[tuple[int, str], pa.Array | pa.ChunkedArray],
    measured: Sequence[pa.Array | pa.ChunkedArray] = (),
) -> np.ndarray:
    """Return, for each candidate pair, whether the residual is true.

    ``columns`` are aligned columns by (stream, name); ``measured`` are the values of its measures.

    Raises EvaluationFailure if a part of it has no value, as in Spark, and duckdb.Error if DuckDB
    fails otherwise.
    """
    if residual.equal_columns is not None:
        a, b = (columns[end] for end in residual.equal_columns)
        return np.asarray(pc.fill_null(pc.equal(a, b), False))
    names = [*(f"{aliases[s]}.{name}" for s, name in columns), *map(str, range(len(measured)))]
    rows = pa.table([*columns.values(), *measured], names=names)
    # DuckDB finds this variable by name. Registering it or creating a relation takes twice as long.
    candidates = rows.to_reader()  # noqa: F841
    try:
        result = _thread_cursor(rows.num_rows).execute(
            f"SELECT coalesce({residual.sql}, false) AS holds FROM candidates"
        )
        return np.asarray(result.fetchnumpy()["holds"])
    except Exception as error:
        raise_failure(error, residual.fallible_parts, rows)
        raise


def raise_failure(
    error: Exception, fallible: Iterable[FallibleExpression], rows: pa.Table, place: str = ""
) -> None:
    """Raise EvaluationFailure if DuckDB's ``error`` says that an expression has no value.

    Its sentence names the first of the ``fallible`` expressions that fails on these rows, and ends
    with the ``place``.
    """
    import duckdb

    overflows = (duckdb.OutOfRangeException, duckdb.ConversionException)
    failures = (*overflows, duckdb.InvalidInputException)  # the last is raised by error()
    if not isinstance(error, failures):
        return
    for part in fallible:
        try:
            query_table(f"SELECT {part.sql} AS it FROM tuples", rows)
        except failures as failure:
            is_overflow = isinstance(failure, overflows)
            reason = OVERFLOW if is_overflow else _read_reason(failure)
            sentence = describe_failure(part.display_text, reason, part.is_ansi)
            raise EvaluationFailure(sentence + place) from error


def _read_reason(error: Exception) -> str:
    """Return the argument of the call of ``error`` that raised this exception."""
    return str(error).splitlines()[0].removeprefix("Invalid Input Error: ")
