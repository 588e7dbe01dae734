"""Replay Arrow tables as streams of micro-batches, without Spark.

DuckDB computes what Spark would compute of each batch.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Protocol

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from braid.condition.arrow_type_checker import ArrowAnalyzer
from braid.condition.change_columns import check_signs, make_sign_sql
from braid.condition.predicate import Predicate
from braid.condition.residual_evaluation import query_table, raise_failure
from braid.condition.sql_types import sql_type_of_arrow
from braid.core.placement import Placement
from braid.core.reserved_columns import DRAW, MEETS, ROUTING, SIGN, TIME, WORTH
from braid.core.shedding_plan import SheddingPlan
from braid.sources.equality_numbers import combine_numbers
from braid.sources.integer_routing import find_routing_hashes
from braid.sources.plain_columns import PlainColumns, find_plain_columns
from braid.sources.tuple_filter import guard_untimed_column, make_tuple_filter
from braid.storage import durable_files, micro_batch_files, table_input
from braid.util.batch_numbers import display_batch
from braid.util.file_system import current_file_system

_PLACE = "__place"


def measure_extent(rows: pa.Table, time: str | None) -> tuple[int, int]:
    """Return the number of rows and the microseconds between the first and last event time."""
    if time is None or not rows.num_rows:
        return rows.num_rows, 0
    ends = pc.min_max(rows[time].cast(pa.timestamp("us")).cast(pa.int64())).as_py()
    return rows.num_rows, (ends["max"] or 0) - (ends["min"] or 0)


def read_event_times(rows: pa.Table, time: str | None) -> np.ndarray:
    """Return the event times of a table in microseconds, without NULL; 0 if there is no column."""
    if time is None:
        return np.zeros(rows.num_rows, np.int64)
    times = rows[time].cast(pa.timestamp("us")).cast(pa.int64()).drop_null()
    return np.asarray(times.combine_chunks().to_numpy(zero_copy_only=False))


def most_frequent_share(alias: str, rows: pa.Table, predicate: Predicate) -> float:
    """Return the share of the most frequent join value among the tuples that take part in the join.

    0 if there is no such value, or if some tuple's cannot be computed.
    """
    stream = predicate.aliases.index(alias)
    analyser, keys = ArrowAnalyzer({alias: rows}), predicate.key_columns[stream]
    columns = {name: analyser.compile_expression(alias, sql)[0] for name, sql in keys.items()}
    where = make_tuple_filter(
        columns, keys, _compile_filter(analyser, alias, predicate.filters[stream])
    )
    assert predicate.equality is not None
    value = columns[predicate.equality[stream]]
    chosen = f"SELECT {value} AS value FROM tuples WHERE {' AND '.join(where)}"
    counts = f"SELECT count(*) AS n FROM ({chosen}) GROUP BY value"
    try:
        table = query_table(f"SELECT max(n) / sum(n) AS share FROM ({counts})", rows)
    except duckdb.Error:  # the run fails there too, and names the expression, batch and stream
        return 0.0
    return float(table["share"][0].as_py() or 0.0)


@dataclass(frozen=True)
class ArrowReplay:
    """Tables to replay in micro-batches, by stream. See ``static_replay`` for Spark's frames.

    ``batches``: number of micro-batches, or the column that numbers them. ``undivided``: streams
    that come whole in the first micro-batch, unless a column numbers them.

    Raises ValueError unless that column numbers the micro-batch of every row, from 0.
    """

    streams: Mapping[str, pa.Table]
    event_time_columns: Mapping[str, str]
    batches: int | str
    undivided: Collection[str] = ()

    def __post_init__(self) -> None:
        if isinstance(self.batches, str):
            for alias, rows in self.streams.items():
                _check_batch_column(alias, rows, self.batches)

    def write_input(
        self, folder: Path, check: Callable[[], None] = durable_files.skip_check
    ) -> micro_batch_files.MicroBatches:
        """Write each table to a file in ``folder``. Return their extent.

        ``check`` raises FencedError if another driver has taken over the run.
        """
        numbers = self._assign_micro_batches()
        extent = micro_batch_files.count_batches(numbers, self.batches)
        current_file_system().make_folder(folder)
        for alias, rows in self.streams.items():
            columns = rows.drop_columns([self.batches]) if isinstance(self.batches, str) else rows
            path = folder / f"{alias}.arrow"
            table_input.write_table(columns, numbers[alias], extent.batches, path, check)
        micro_batch_files.remove_extra_files(folder, self.streams, extent.batches, check)
        return extent

    def _assign_micro_batches(self) -> dict[str, np.ndarray]:
        """Return the micro-batch of every tuple, by alias."""
        streams, batches = self.streams, self.batches
        if isinstance(batches, str):
            return {a: t[batches].to_numpy().astype(np.int64) for a, t in streams.items()}
        first = {a: np.zeros(streams[a].num_rows, np.int64) for a in self.undivided}
        if not self.event_time_columns:
            return {
                a: first.get(a, np.arange(t.num_rows) * batches // max(1, t.num_rows))
                for a, t in streams.items()
            }
        at = {
            a: streams[a][name].cast(pa.timestamp("us")).cast(pa.int64())
            for a, name in self.event_time_columns.items()
        }
        return first | micro_batch_files.number_by_time(at, batches)


def _check_batch_column(alias: str, rows: pa.Table, column: str) -> None:
    if column not in rows.column_names:
        raise ValueError(f"stream {alias} has no column {column!r} that numbers its micro-batches")
    kind = rows.schema.field(column).type
    if not pa.types.is_integer(kind):
        raise ValueError(
            f"the column {alias}.{column} is of type {kind}; to number micro-batches it must be an "
            "integer"
        )
    micro_batch_files.check_numbering(alias, column, rows[column])


def _quote_identifier(name: str) -> str:
    """Return a name quoted for DuckDB SQL."""
    return '"' + name.replace('"', '""') + '"'


def _routing_key_sql(
    placement: Placement, seed: int, row_columns: Sequence[str], value: str
) -> str:
    """Return DuckDB SQL for the routing key: a seeded hash of the tuple, the join value, or both.

    If join values have several keys, a hash of the tuple selects one of them.

    ``value``: SQL for the value that an equality joins on; empty: there is none.
    """

    def hashed(columns: Sequence[str], keys: int) -> str:
        return f"hash({', '.join([str(seed), *columns])}) % {keys}"

    keys, keys_per_value = placement.key_space_size, placement.keys_per_value
    if keys == 1:
        return "0"
    if placement.routing_key_source == "tuple" or not value:
        return hashed(row_columns, keys)
    by_value = hashed([value], keys // keys_per_value)
    if keys_per_value == 1:
        return by_value
    return f"{by_value} * {keys_per_value} + {hashed(row_columns, keys_per_value)}"


def _hash_number_sql(
    seed: int, columns: Mapping[str, str], dimension: int, column: str, numbers: int
) -> str:
    """Return DuckDB SQL for the number of a value in a dimension."""
    return f"hash({seed}, {dimension}, {columns[column]}) % {numbers}"


def _make_select_sql(columns: Mapping[str, str], where: Sequence[str]) -> str:
    chosen = ", ".join(f"{sql} AS {_quote_identifier(name)}" for name, sql in columns.items())
    return f"SELECT {_PLACE}, {chosen} FROM tuples WHERE {' AND '.join(where) or 'true'}"


class TableBatches(Protocol):
    """Micro-batches of streams, such as the copy of a run's static input."""

    def read_table_batch(self, alias: str, number: int) -> pa.Table:
        """Return the rows of a stream in a micro-batch."""
        ...


class ArrowFeed:
    """Feed of micro-batches whose tuples are ready for the engine.

    It adds event time, routing key and the columns that the condition needs. Tuples that can never
    match are dropped, except those without event time, which are counted later.

    - ``placement``: None: all routing keys are 0.
    - ``worth``: Spark SQL for the value of a tuple, by stream, in a run that sheds load.
    - ``by_value``: whether load is shed by the values that an equality joins on.
    - ``preserved``: streams whose tuples are answered, even if they can never match.
    - ``changes``: change columns by alias. Tuples have signs instead.
    """

    def __init__(
        self,
        schemas: Mapping[str, pa.Schema],
        predicate: Predicate,
        times: Mapping[str, str],
        placement: Placement | None,
        seed: int,
        worth: Sequence[str | None] | None = None,
        by_value: bool = False,
        preserved: Sequence[int] = (),
        changes: Mapping[str, str] | None = None,
    ) -> None:
        self.preserved = {alias for n, alias in enumerate(schemas) if n in preserved}
        self.changes = changes or {}
        self.columns: dict[str, dict[str, str]] = {}
        self.where: dict[str, list[str]] = {}
        self.texts: dict[str, list[str]] = {}
        self.plain: dict[str, PlainColumns] = {}
        self.analyser = analyser = ArrowAnalyzer(schemas)
        self.routing = find_routing_hashes(analyser, predicate, placement, seed)
        for i, (alias, schema) in enumerate(schemas.items()):
            wanted = {TIME: times[alias]} | predicate.key_columns[i] | predicate.computed_columns[i]
            plain = {n: analyser.compile_expression(alias, sql)[0] for n, sql in wanted.items()}
            timed = f"({plain[TIME]}) IS NOT NULL"
            columns = {n: guard_untimed_column(wanted[n], sql, timed) for n, sql in plain.items()}
            names = [name for name in schema.names if name != self.changes.get(alias)]
            row_columns, equality = list(map(_quote_identifier, names)), predicate.equality
            value = columns[equality[i]] if equality else ""
            if placement is None:
                key = "0"
            elif placement.routing_key_source == "equalities":
                key = combine_numbers(
                    placement, predicate, i, partial(_hash_number_sql, seed, columns)
                )
            else:
                key = _routing_key_sql(placement, seed, row_columns, value)
            columns[ROUTING] = f"CAST({key} AS INTEGER)"
            if worth is not None:
                nested = [f.name for f in schema if pa.types.is_nested(f.type)]
                # The hash of a list ignores where it ends, and NULL hashes like an empty list.
                texts = (f'CAST("{n}" AS VARCHAR)' for n in nested)
                # Most routing keys use this hash of all columns too, so DuckDB computes it once.
                hash_parts = [str(i), f"hash({', '.join([str(seed), *row_columns])})", *texts]
                by = [str(seed), columns[equality[i]]] if by_value and equality else hash_parts
                columns[DRAW] = f"CAST(hash({', '.join(by)}) >> 1 AS BIGINT)"
                if any(worth):
                    columns[WORTH] = analyser.compile_expression(
                        alias, worth[i] or "cast(1 as double)"
                    )[0]
            if (change := self.changes.get(alias)) is not None:
                sign = make_sign_sql(change, str(sql_type_of_arrow(schema.field(change).type)))
                columns[SIGN] = analyser.compile_expression(alias, sign)[0]
            condition = predicate.filters[i]
            passes = _compile_filter(analyser, alias, condition)
            keys = predicate.key_columns[i]
            self.columns[alias] = columns
            self.where[alias] = make_tuple_filter(plain, keys, passes, plain[TIME])
            strict = make_tuple_filter(plain, keys, passes)
            self.plain[alias] = find_plain_columns({**columns, **plain}, strict, schema)
            worths = [worth[i]] if worth is not None else []
            selected = [condition, *wanted.values(), *worths]
            self.texts[alias] = [text for text in selected if text is not None]

    def read_batch(
        self, copied: TableBatches, number: int, harvest: SheddingPlan | None = None
    ) -> dict[int, list[pa.RecordBatch]]:
        """Return the tuples of a micro-batch, by stream.

        If ``harvest`` keeps all tuples, no sampling hash is needed in this batch or later, and it
        is 0.
        """
        batches: dict[int, list[pa.RecordBatch]] = {}
        for i, alias in enumerate(self.columns):
            rows = copied.read_table_batch(alias, number)
            if not rows.num_rows:
                continue
            all_take_part = harvest is not None and harvest.is_full_join(rows.num_rows)
            tuples = self.compute_tuples(alias, rows, number, all_take_part)
            if tuples.num_rows:
                batches[i] = tuples.combine_chunks().to_batches()
        return batches

    def compute_tuples(
        self, alias: str, rows: pa.Table, number: int = 0, undrawn: bool = False
    ) -> pa.Table:
        """Return the rows of a stream that may match, with their computed columns.

        Those of a preserved stream that cannot are marked. ``undrawn``: sampling hashes are 0.

        Raises EvaluationFailure if an expression has no value, ValueError if a change column has a
        value that is no change.
        """
        places = pa.array(np.arange(rows.num_rows))
        computed = self._compute_columns(
            alias, rows.append_column(_PLACE, places), number, not undrawn
        )
        is_whole = computed[_PLACE].equals(pa.chunked_array([places]))
        tuples = rows if is_whole else rows.take(computed[_PLACE])
        if (change := self.changes.get(alias)) is not None:
            check_signs(tuples, computed, alias, change, number)
            tuples = tuples.drop_columns([change])
        for name in self.columns[alias]:
            tuples = tuples.append_column(name, computed[name])
        if alias in self.preserved and tuples.num_rows < rows.num_rows:
            return _append_rejected(tuples, rows, computed[_PLACE])
        return tuples

    def _compute_columns(self, alias: str, rows: pa.Table, number: int, is_drawn: bool) -> pa.Table:
        """Return the computed columns of the rows that pass the filter, and their places."""
        plain, columns = self.plain[alias], self.columns[alias]
        is_plain = plain.can_take(rows)
        computed = plain.take_columns(rows) if is_plain else {}
        hashed, others = self.routing.get(alias), {*computed}
        others |= set() if hashed is None else {ROUTING}
        others |= set() if is_drawn else {DRAW}
        queried = {n: sql for n, sql in columns.items() if n not in others}
        if queried or not is_plain:
            query = _make_select_sql(queried, [] if is_plain else self.where[alias])
            evaluated = self._evaluate_columns(query, rows, alias, number)
            computed |= dict(zip(evaluated.column_names, evaluated.columns, strict=True))
        else:
            computed[_PLACE] = rows[_PLACE]
        if DRAW in columns and not is_drawn:
            computed[DRAW] = pa.array(np.zeros(len(computed[_PLACE]), np.int64))
        table = pa.table(computed)
        if hashed is None:
            return table
        return table.append_column(ROUTING, hashed.compute_keys(table, rows, computed[_PLACE]))

    def _evaluate_columns(self, query: str, rows: pa.Table, alias: str, number: int) -> pa.Table:
        """Return the computed columns of a micro-batch.

        Raises EvaluationFailure if an expression has no value, as in Spark.
        """
        try:
            return query_table(query, rows)
        except duckdb.Error as error:
            texts = self.texts[alias]
            parts = chain(*(self.analyser.find_fallible_parts(alias, sql) for sql in texts))
            raise_failure(error, parts, rows, f", batch {display_batch(number)}, stream {alias}")
            raise


def _append_rejected(tuples: pa.Table, rows: pa.Table, places: pa.ChunkedArray) -> pa.Table:
    """Return tuples with the rows at no ``places``, whose other columns are NULL; both marked."""
    is_rejected = np.ones(rows.num_rows, bool)
    is_rejected[places.to_numpy()] = False
    rejected = rows.filter(pa.array(is_rejected))
    parts = []
    for part, meets in ((tuples, True), (rejected, False)):
        marks = pa.repeat(pa.scalar(meets), part.num_rows)
        parts.append(part.append_column(MEETS, marks))
    return pa.concat_tables(parts, promote_options="default")


def _compile_filter(analyser: ArrowAnalyzer, alias: str, condition: str | None) -> str | None:
    return None if condition is None else analyser.compile_expression(alias, condition)[0]
