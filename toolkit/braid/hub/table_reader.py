"""A hub's streams as tables, without Spark: batches are files, answers are Arrow tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

import duckdb
import pyarrow as pa

from braid.condition.failing import OverflowFailure
from braid.condition.residual import answer
from braid.condition.sqltypes import type_of
from braid.engine import microbatches
from braid.engine.files import parquet
from braid.hub.flat import columns_of, flattened
from braid.hub.query import StreamQuery
from braid.hub.reader import Part, Reader, Ticks, Turn
from braid.hub.table_answers import TableAnswer, named
from braid.papers.reuse.definition import Column
from braid.tables import Turns


class TableReader(Reader):
    """Reads tables that were cut into ``batches`` files each, in ``folder``/STREAM."""

    faults = (duckdb.Error, OverflowFailure)
    checks_input = True

    def __init__(
        self, fields: Mapping[str, pa.Schema], time: str, folder: Path, batches: int
    ) -> None:
        types = {s: {f.name: type_of(f.type) for f in schema} for s, schema in fields.items()}
        super().__init__(types, time, batches)
        self.fields, self.folder, self.batches = fields, folder, batches
        self._answers: dict[str, TableAnswer] = {}

    def frame(self, columns: Mapping[str, Column]) -> pa.Schema:
        return pa.schema(
            [pa.field(n, self.fields[s].field(c).type) for n, (s, c) in columns.items()]
        )

    def batch(self, source: Any, wanted: Mapping[str, Mapping[str, str]]) -> Mapping[str, pa.Table]:
        read = {s: parquet(microbatches.file(self.folder / s, source)) for s in wanted}
        return {s: self.extended(s, rows, wanted[s]) for s, rows in read.items()}

    def elsewhere(
        self, rows: pa.Table, columns: Mapping[str, Column], wanted: Mapping[str, str]
    ) -> NoReturn:
        raise AssertionError(f"queries were judged, and yet {wanted} is not known to DuckDB")

    def judge(self, query: StreamQuery) -> None:
        self._answer(query)

    def _answer(self, query: StreamQuery) -> TableAnswer:
        key = f"{query.sql} {query.windows} {query.every}"
        if key not in self._answers:
            self._answers[key] = TableAnswer(query, self.schemas, self.time)
        return self._answers[key]

    def answer(self, query: StreamQuery, parts: Sequence[Part], ticks: Ticks) -> pa.Table:
        matches = named(query, [self._plain(p) for p in parts], self.schemas, self.time)
        made = self._answer(query)
        return answer(made.sql(ticks), matches).rename_columns(made.names)

    def _plain(self, part: Part) -> pa.Table:
        columns = columns_of(part.shape)
        rows = flattened(part.files, part.shape, part.bit)
        if rows is None:
            return self.frame(columns).empty_table()
        if part.where is not None:
            rows = rows.filter(self.computed(rows, columns, {"passes": part.where})["passes"])
        return rows

    def start(self, turn: Turn, folder: Path, done: int, trigger: Mapping[str, Any]) -> Turns:
        if trigger:
            raise ValueError(f"a hub of tables has no trigger; got {', '.join(trigger)}")
        return Turns(lambda number: turn(number, number), range(done + 1, self.batches))
