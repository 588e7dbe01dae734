"""Read a hub's streams from tables, without Spark. Batches are files, answers are Arrow tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import duckdb
import pyarrow as pa

from braid.condition.residual_evaluation import query_table
from braid.condition.sql_types import sql_type_of_arrow
from braid.errors import EvaluationFailure
from braid.hub.duckdb_answers import TICK, DuckDBAnswer, nest_by_alias
from braid.hub.flat_results import flat_columns, read_flat
from braid.hub.hub_backend import AnswerPart, StreamReader, TickRange
from braid.hub.query_parser import StreamQuery
from braid.papers.reuse.query_definition import Column
from braid.run_results import collect_irregular_tables
from braid.sources.batch_drivers import BatchThread
from braid.storage.block_files import read_parquet
from braid.storage.static_input_copy import InputSnapshot
from braid.util.row_tables import to_row_table

if TYPE_CHECKING:
    from braid.util.row_tables import RowTable


class ArrowStreamReader(StreamReader):
    """Reader of ``copied`` tables in ``batches`` micro-batches, which are verified when read.

    ``last_batches``: see StreamReader.
    """

    evaluation_errors = (duckdb.Error, EvaluationFailure)

    def __init__(
        self,
        fields: Mapping[str, pa.Schema],
        time: str,
        copied: InputSnapshot,
        batches: int,
        last_batches: Mapping[str, int] | None = None,
    ) -> None:
        types = {
            s: {f.name: sql_type_of_arrow(f.type) for f in schema} for s, schema in fields.items()
        }
        super().__init__(types, time, batches, last_batches)
        self.fields, self.copied, self.batches = fields, copied, batches
        self._answers: dict[str, DuckDBAnswer] = {}

    def empty_frame(self, columns: Mapping[str, Column]) -> pa.Schema:
        return pa.schema(
            [pa.field(n, self.fields[s].field(c).type) for n, (s, c) in columns.items()]
        )

    def find_struct_type(self, columns: Mapping[str, Column]) -> pa.DataType:
        return pa.struct(list(self.empty_frame(columns)))

    def read_batch(
        self, source: Any, wanted: Mapping[str, Mapping[str, str]]
    ) -> Mapping[str, pa.Table]:
        read = {s: self.copied.read_table_batch(s, source) for s in wanted}
        return {s: self.with_computed_columns(s, rows, wanted[s]) for s, rows in read.items()}

    def compute_in_spark(
        self, rows: pa.Table, columns: Mapping[str, Column], wanted: Mapping[str, str]
    ) -> NoReturn:
        raise AssertionError(f"queries were judged, and yet {wanted} is not known to DuckDB")

    def read_irregular_rows(self, files: Mapping[str, Sequence[str]]) -> pa.Table:
        schema = pa.schema([(s, pa.struct(list(fields))) for s, fields in self.fields.items()])
        tables = {stream: [read_parquet(f) for f in each] for stream, each in files.items()}
        return collect_irregular_tables(schema, tables)

    def check_query(self, query: StreamQuery) -> None:
        self._cached_answer(query)

    def _cached_answer(self, query: StreamQuery) -> DuckDBAnswer:
        key = f"{query.sql} {query.windows_by_stream} {query.slide}"
        if key not in self._answers:
            self._answers[key] = DuckDBAnswer(query, self.schemas, self.time)
        return self._answers[key]

    def answer_query(
        self, query: StreamQuery, parts: Sequence[AnswerPart], ticks: TickRange
    ) -> pa.Table:
        matches = nest_by_alias(
            query, [self.read_flat_results(p) for p in parts], self.schemas, self.time
        )
        answer = self._cached_answer(query)
        return query_table(answer.make_sql(ticks), matches).rename_columns(answer.column_names)

    def read_last_rows(self, answer: pa.Table, limit: int, is_ticked: bool) -> RowTable:
        if is_ticked:
            answer = answer.sort_by(TICK)
        return to_row_table(answer.slice(max(0, len(answer) - limit)))

    def read_flat_results(self, part: AnswerPart) -> pa.Table:
        """Return the matches of a demand after compensation, as a flat table."""
        columns = flat_columns(part.shape)
        rows = read_flat(part.files, part.shape, part.bit)
        if rows is None:
            return self.empty_frame(columns).empty_table()
        if part.compensation is not None:
            rows = rows.filter(
                self.compute_columns(rows, columns, {"passes": part.compensation})["passes"]
            )
        return rows

    def make_driver(
        self,
        folder: Path,
        done: int,
        trigger: Mapping[str, Any],
        is_stopped: Callable[[], bool],
    ) -> BatchThread:
        if trigger:
            raise ValueError(f"a hub of tables has no trigger; got {', '.join(trigger)}")
        return BatchThread(range(done + 1, self.batches), is_stopped)
