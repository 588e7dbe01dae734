"""Interface to a hub's streams: Spark DataFrames, or tables read with DuckDB."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from braid.condition.duckdb_compiler import DuckDBCompiler
from braid.condition.residual_evaluation import query_table
from braid.condition.sql_types import BIGINT
from braid.core.reserved_columns import QUERIES
from braid.errors import UnsupportedExpressionError
from braid.hub.expression_properties import depends_on_time_zone, has_float, may_fail
from braid.hub.flat_results import Shape
from braid.hub.query_conditions import Schemas
from braid.hub.query_parser import StreamQuery
from braid.papers.reuse.query_definition import Column
from braid.sources.batch_drivers import BatchDriver

if TYPE_CHECKING:
    from braid.util.row_tables import RowTable


@dataclass(frozen=True)
class AnswerPart:
    """Part of an answer that comes from one operator.

    - ``files``: result files.
    - ``shape``: columns of the results.
    - ``bit``: bit of the demand.
    - ``compensation``: Spark SQL over flat results; None: all results are wanted.
    """

    files: Sequence[str]
    shape: Shape
    bit: int
    compensation: str | None


@dataclass(frozen=True)
class TickRange:
    """Event times between which ticks are answered, in microseconds.

    - ``since``: exclusive; None: from the start.
    - ``until``: exclusive; None: no tick is final.
    - ``start``: when all streams had begun; None: some has not.
    """

    since: int | None
    until: int | None
    start: int | None

    def tick_numbers(self, every: int) -> range:
        """Return the numbers of the ticks that have an answer, with or without matches."""
        first = self.since if self.since is not None else self.start
        if first is None or self.until is None:
            return range(0)
        begin = first // every + 1 if self.since is not None else -(-first // every)
        return range(begin, -(-self.until // every))


class StreamReader(ABC):
    """Reader of batches and answers, which also computes Spark SQL on tuples.

    ``evaluation_errors``: errors that expressions of queries may raise.
    """

    evaluation_errors: tuple[type[Exception], ...]
    may_hash = True
    """Whether DuckDB may hash values. It may only if nothing else does."""
    ansi = True
    """Whether expressions fail as in Spark's ANSI mode. Otherwise they may return NULL."""
    utc = True
    """Whether times are read in UTC."""

    def __init__(
        self,
        schemas: Schemas,
        time: str,
        batches: int | None = None,
        last_batches: Mapping[str, int] | None = None,
    ) -> None:
        """``batches``: number of batches, if all streams are finite.

        ``last_batches``: by finite stream, the batch with its last tuple. Default: the last one.
        """
        self.schemas, self.time = schemas, time
        self.last_batch = None if batches is None else batches - 1
        every = {} if batches is None else dict.fromkeys(schemas, batches - 1)
        self.last_batches = every if last_batches is None else dict(last_batches)
        self._compiled: dict[tuple[Any, ...], str | None] = {}

    def list_ended(self, epoch: int) -> set[str]:
        """Return the streams that have ended with a batch."""
        return {stream for stream, last in self.last_batches.items() if epoch >= last}

    @abstractmethod
    def empty_frame(self, columns: Mapping[str, Column]) -> Any:
        """Return an empty frame with the types of these columns, for checking conditions."""

    @abstractmethod
    def find_struct_type(self, columns: Mapping[str, Column]) -> pa.DataType:
        """Return the Arrow type of a struct of these columns in results."""

    @abstractmethod
    def read_batch(
        self, source: Any, wanted: Mapping[str, Mapping[str, str]]
    ) -> Mapping[str, pa.Table]:
        """Read a batch's tuples of the streams in ``wanted``.

        ``wanted``: Spark SQL of the computed columns, by stream and name.
        """

    @abstractmethod
    def read_irregular_rows(self, files: Mapping[str, Sequence[str]]) -> Any:
        """Return irregular rows from their files by stream, as ``HubRun.late`` has them."""

    @abstractmethod
    def check_query(self, query: StreamQuery) -> None:
        """Raise QueryError for an invalid query."""

    @abstractmethod
    def answer_query(
        self, query: StreamQuery, parts: Sequence[AnswerPart], ticks: TickRange
    ) -> Any:
        """Return the answer to a query.

        Without a SLIDE: one row per match. With one: the matches that hold at each tick, grouped if
        the query groups.
        """

    @abstractmethod
    def read_last_rows(self, answer: Any, limit: int, is_ticked: bool) -> RowTable:
        """Return the last rows of an answer, at most ``limit``; of ticks, the latest."""

    @abstractmethod
    def make_driver(
        self,
        folder: Path,
        done: int,
        trigger: Mapping[str, Any],
        is_stopped: Callable[[], bool],
    ) -> BatchDriver:
        """Return the driver of the batches after ``done``.

        ``is_stopped``: returns whether no further batch should run.
        """

    @abstractmethod
    def compute_in_spark(
        self, rows: pa.Table, columns: Mapping[str, Column], wanted: Mapping[str, str]
    ) -> pa.Table:
        """Compute columns as ``compute_columns`` does, if DuckDB cannot or may differ."""

    def compute_columns(
        self, rows: pa.Table, columns: Mapping[str, Column], wanted: Mapping[str, str]
    ) -> pa.Table:
        """Compute Spark SQL for each tuple, by name.

        ``columns``: columns of ``rows``. Results also have the column ``QUERIES``.
        """
        chosen = self._compile_all_to_duckdb(columns, wanted, QUERIES in rows.column_names)
        if chosen is None:
            return self.compute_in_spark(rows, columns, wanted)
        select = ", ".join(f'{sql} AS "{name}"' for name, sql in chosen.items())
        return query_table(f"SELECT {select} FROM tuples", rows)

    def with_computed_columns(
        self, stream: str, rows: pa.Table, wanted: Mapping[str, str]
    ) -> pa.Table:
        """Return tuples of a stream with their computed columns."""
        computed = self.compute_columns(rows, {c: (stream, c) for c in rows.column_names}, wanted)
        for name in computed.column_names:
            rows = rows.append_column(name, computed[name])
        return rows

    def _compile_all_to_duckdb(
        self, columns: Mapping[str, Column], wanted: Mapping[str, str], has_queries: bool = False
    ) -> dict[str, str] | None:
        """Return DuckDB SQL by name; None if an expression is not known to mean the same.

        ``has_queries``: the rows are results, which have the column ``QUERIES``.
        """
        translated = {
            n: self._compile_to_duckdb(sql, tuple(columns.items()), has_queries)
            for n, sql in wanted.items()
        }
        supported = {name: sql for name, sql in translated.items() if sql is not None}
        return supported if len(supported) == len(translated) else None

    def _compile_to_duckdb(
        self, sql: str, columns: tuple[tuple[str, Column], ...], has_queries: bool
    ) -> str | None:
        """Return DuckDB SQL for Spark SQL; None if it is not known to mean the same."""
        key = sql, columns, has_queries
        if key not in self._compiled:
            types = {("", n): self.schemas[s][c] for n, (s, c) in columns}
            types |= {("", QUERIES): BIGINT} if has_queries else {}
            loose = not self.ansi and (may_fail(sql, types) or has_float(sql, types))
            if loose or (not self.utc and depends_on_time_zone(sql, types)):
                return self._compiled.setdefault(key, None)
            try:
                self._compiled[key] = DuckDBCompiler(
                    types, is_generated=self.may_hash
                ).compile_text(sql)[0]
            except UnsupportedExpressionError:
                self._compiled[key] = None
        return self._compiled[key]
