"""What a hub reads its streams with and computes by: Spark, or DuckDB where they are tables."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from braid.condition.duckdb_compiler import DuckDBCompiler
from braid.condition.residual_evaluation import query_table
from braid.condition.sql_types import BIGINT
from braid.condition.typed_expressions import UnsupportedExpressionError
from braid.core.reserved_columns import QUERIES
from braid.hub.flat_results import Shape
from braid.hub.query_conditions import Schemas
from braid.hub.query_expressions import depends_on_time_zone, has_float, may_fail
from braid.hub.query_parser import StreamQuery
from braid.papers.reuse.definition import Column

Turn = Callable[[Any, int], None]
"""What is done with a batch: what it is read from, and its number."""


@dataclass(frozen=True)
class AnswerPart:
    """Of the answer to a query, what one operator told: result files, their shape, the demand's
    bit, and Spark SQL over the plain table that compensates.
    """

    files: Sequence[str]
    shape: Shape
    bit: int
    compensation: str | None


@dataclass(frozen=True)
class TickRange:
    """Event times (microseconds) between which a query's ticks are told: after ``since``, before
    ``until``; None: there is none yet. ``start`` is when all its streams had begun.
    """

    since: int | None
    until: int | None
    start: int | None

    def tick_numbers(self, every: int) -> range:
        """The ticks at which there is an answer, whether anything matches or not."""
        first = self.since if self.since is not None else self.start
        if first is None or self.until is None:
            return range(0)
        begin = first // every + 1 if self.since is not None else -(-first // every)
        return range(begin, -(-self.until // every))


class StreamReader(ABC):
    """Reads batches, computes Spark SQL of tuples, and reads answers. ``faults`` are the errors
    that expressions of queries may end in.
    """

    evaluation_errors: tuple[type[Exception], ...]
    ours = True
    """Whether DuckDB may hash: nothing else does, then."""
    ansi = True
    """Whether expressions fail where Spark's do by its default, and are not NULL or wrong there."""
    utc = True
    """Whether times are read in UTC."""

    checks_input = False
    """Whether all bytes of copied input are looked at before a batch: Spark checks pages itself."""

    def __init__(self, schemas: Schemas, time: str, batches: int | None = None) -> None:
        """``batches`` is how many there are of streams that all end."""
        self.schemas, self.time = schemas, time
        self.last_batch = None if batches is None else batches - 1
        self._compiled: dict[tuple[Any, ...], str | None] = {}

    @abstractmethod
    def empty_frame(self, columns: Mapping[str, Column]) -> Any:
        """What has the types of these columns: conditions are judged by it."""

    @abstractmethod
    def read_batch(
        self, source: Any, wanted: Mapping[str, Mapping[str, str]]
    ) -> Mapping[str, pa.Table]:
        """The tuples of a batch, of the streams in ``wanted``, with what is computed of them: Spark
        SQL by name.
        """

    @abstractmethod
    def check_query(self, query: StreamQuery) -> None:
        """Raises QueryError for a query that is not taken."""

    @abstractmethod
    def answer_query(
        self, query: StreamQuery, parts: Sequence[AnswerPart], ticks: TickRange
    ) -> Any:
        """The rows of a query: without a SLIDE one for each match; with one, what holds at each
        tick, grouped if the query groups.
        """

    @abstractmethod
    def start_batches(self, turn: Turn, folder: Path, done: int, trigger: Mapping[str, Any]) -> Any:
        """Give batch after batch, those after ``done``; what ends and waits as Spark's queries."""

    @abstractmethod
    def compute_in_spark(
        self, rows: pa.Table, columns: Mapping[str, Column], wanted: Mapping[str, str]
    ) -> pa.Table:
        """What ``computed`` does, for what is not known to mean the same in DuckDB."""

    def compute_columns(
        self, rows: pa.Table, columns: Mapping[str, Column], wanted: Mapping[str, str]
    ) -> pa.Table:
        """What Spark SQL says of each tuple, by name. ``columns`` are those of ``rows``; results
        have ``QUERIES`` besides.
        """
        chosen = self._compile_all_to_duckdb(columns, wanted, QUERIES in rows.column_names)
        if chosen is None:
            return self.compute_in_spark(rows, columns, wanted)
        select = ", ".join(f'{sql} AS "{name}"' for name, sql in chosen.items())
        return query_table(f"SELECT {select} FROM tuples", rows)

    def with_computed_columns(
        self, stream: str, rows: pa.Table, wanted: Mapping[str, str]
    ) -> pa.Table:
        """Tuples of a stream with what is computed of them."""
        made = self.compute_columns(rows, {c: (stream, c) for c in rows.column_names}, wanted)
        for name in made.column_names:
            rows = rows.append_column(name, made[name])
        return rows

    def _compile_all_to_duckdb(
        self, columns: Mapping[str, Column], wanted: Mapping[str, str], told: bool = False
    ) -> dict[str, str] | None:
        """DuckDB SQL by name; None if some of it is not known to mean the same. ``told``: of
        results.
        """
        found = {
            n: self._compile_to_duckdb(sql, tuple(columns.items()), told)
            for n, sql in wanted.items()
        }
        known = {name: sql for name, sql in found.items() if sql is not None}
        return known if len(known) == len(found) else None

    def _compile_to_duckdb(
        self, sql: str, columns: tuple[tuple[str, Column], ...], told: bool
    ) -> str | None:
        """DuckDB SQL for Spark SQL; None for what is not known to mean the same."""
        key = sql, columns, told
        if key not in self._compiled:
            types = {("", n): self.schemas[s][c] for n, (s, c) in columns}
            types |= {("", QUERIES): BIGINT} if told else {}
            loose = not self.ansi and (may_fail(sql, types) or has_float(sql, types))
            if loose or (not self.utc and depends_on_time_zone(sql, types)):
                return self._compiled.setdefault(key, None)
            try:
                self._compiled[key] = DuckDBCompiler(types, ours=self.ours).compile_text(sql)[0]
            except UnsupportedExpressionError:
                self._compiled[key] = None
        return self._compiled[key]
