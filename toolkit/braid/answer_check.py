"""Recompute a stopped run's results from its input, and compare them with its result files.

``braid check`` verifies files by their checksums: whether a run is complete and undamaged. This
module verifies that its results are right. It shares no code with the kernels, the compiler of
conditions, or any placement, except for parsing:

- For a run of tables, DuckDB evaluates the condition, translated by ``braid.answer_check_sql``.
- For a run on Spark, Spark's batch join evaluates it.

Windows are applied to all pairs at once, and rows are compared as multisets. A late tuple may meet
fewer partners than its windows allow, because some have expired. Results with a late member are
therefore optional, and the report counts them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from braid import answer_check_kinds as kinds
from braid.answer_check_partners import NUMBER, PartnerSql, check_no_late_tuples
from braid.answer_check_spark import ROWS_A_BATCH, join_row_numbers
from braid.answer_check_sql import translate_condition
from braid.answer_check_text import format_text_list, make_sign_sql, quote_text
from braid.answer_report import AnswerReport, DifferingRow, format_row
from braid.core.join_kinds import INNER, parse_kind
from braid.core.reserved_columns import CHANGE_TYPE
from braid.core.run_events import BatchCommitted
from braid.storage import micro_batch_files
from braid.storage.run_files import result_file_batch
from braid.storage.run_store import RunStore, open_store
from braid.time_arguments import UNBOUNDED, parse_lateness
from braid.util.durations import parse_duration
from braid.util.validation import format_value

_EXAMPLES = 5  # differing rows that a report shows
_PARTS = 1_000_000
"""Range of the hash from which a sample is drawn."""
_UNKNOWN = 1 << 62
"""Value for an unknown clock, later than every event time."""
_CHANGE_SIGN = f"CASE r.{CHANGE_TYPE} WHEN 'insert' THEN 1 ELSE -1 END"
_FILE = "__file"
"""Name of the column with the file of a row."""


def check_answers(path: str | Path, sample: float = 1.0) -> AnswerReport:
    """Recompute the results of the stopped run at ``path`` and compare them with its result files.

    ``sample`` is the share of the first stream's distinct rows to check. Default: 1.

    Raises ValueError for a run whose input is not kept, for shared runs, hubs and as-of
    joins with late tuples, and for a condition that the oracle cannot evaluate.
    """
    if not isinstance(sample, int | float) or not 0 < sample <= 1:
        raise ValueError(f"sample is {format_value(sample)}; it must be a share above 0, at most 1")
    store = open_store(path)
    query = kinds.read_checkable_settings(store)
    store.fetch_all()
    with duckdb.connect() as database:
        database.execute("SET TimeZone = 'UTC'")
        try:
            return _Recomputation(database, store, query, float(sample)).compare_results()
        except duckdb.Error as error:
            line = str(error).splitlines()[0]
            raise ValueError(
                f"the answers of {store.where} cannot be recomputed by DuckDB: {line}"
            ) from None


class _Recomputation:
    """The DuckDB views of one run: its streams, the expected results, and the actual results."""

    def __init__(
        self,
        database: duckdb.DuckDBPyConnection,
        store: RunStore,
        query: Mapping[str, Any],
        sample: float,
    ) -> None:
        self.database, self.store, self.query = database, store, query
        self.aliases: list[str] = query["streams"]
        self.structs = [f"struct_{place}" for place in range(len(self.aliases))]
        """Columns of tables of results: an alias might be the name of another column."""
        self.kind = INNER if query.get("match") else parse_kind(query["how"], self.aliases)
        written = [self.structs[stream] for stream in self.kind.structs] or self.structs
        self.written = dict(zip(self.aliases, written, strict=False))
        self.changes: dict[str, str] = query.get("changes") or {}
        self.sign = "sign" if self.changes else "1"
        self.is_early = query["emit"] == "early"
        self.has_change_types = bool(self.changes) or self.is_early
        self.joined = ", ".join(
            f"__stream_{place} AS {quote_text(alias)}" for place, alias in enumerate(self.aliases)
        )
        self.is_table_run = "" in query["schemas"]
        self.sample = round(sample * _PARTS)
        state = store.last_state()
        self.epoch = -1 if state is None else state.epoch
        self.match: Mapping[str, Any] | None = query.get("match")
        self.owes = not self.match and kinds.owes_pairs(store, query, self.kind)
        self.released_until = None if state is None else state.releases.until
        self.is_closed = state is not None and all(state.ended)
        self.is_answered = self.is_closed and state is not None and not any(state.answers.waiting)
        if sample < 1 and {*self.kind.preserved} - {0}:
            raise ValueError(
                f"sample is {sample}, but the run answers tuples without a partner in the first "
                "stream; it must be 1"
            )
        if state is not None and self.match:
            check_no_late_tuples(store.where, state.irregular.late)
        spans = {a: span for a, span in query["windows"].items() if span != UNBOUNDED}
        self.windows = {a: parse_duration(span, f"window of {a}") for a, span in spans.items()}

    def compare_results(self) -> AnswerReport:
        """Return the differences. Raises ValueError for changes whose sum is not known."""
        if self.has_change_types and (self.owes or self.store.log.first_retained_batch):
            raise ValueError(
                f"the answers of {self.store.where} cannot be checked: changes are compared by "
                "their sums, and results are removed, or pending because a change of placement is "
                "in progress"
            )
        self._register_results(self.store.results.result_files())
        for alias in self.aliases:
            self._register_stream(alias)
        self._register_expected()
        return self._make_report()

    # Result files

    def _register_results(self, files: Sequence[str]) -> None:
        """Create the view ``results``: a struct for each stream, and the batch of the file."""
        self.kinds: dict[str, str] = {}
        if not files:
            return
        batches = pa.table(
            {"file": [*files], "of": [result_file_batch(Path(f).name) for f in files]}
        )
        self.database.register("result_batches", batches)
        source = f"read_parquet({format_text_list(files)}, filename = '{_FILE}')"
        described = self.database.sql(f"DESCRIBE SELECT * FROM {source}").fetchall()
        self.kinds = {name: kind for name, kind, *_ in described if name in self.aliases}
        structs = ", ".join(
            f"r.{quote_text(alias)} AS {struct}" for alias, struct in self.written.items()
        ) + (f", {_CHANGE_SIGN} AS sign" if self.has_change_types else "")
        self.database.execute(
            f"CREATE TEMP VIEW results AS SELECT * FROM (SELECT {structs}, b.of AS batch FROM "
            f"{source} r JOIN result_batches b ON b.file = r.{_FILE}) "
            f"WHERE {self.sample >= _PARTS} OR hash({self.structs[0]}) % {_PARTS} < {self.sample}"
        )

    # Streams

    def _register_stream(self, alias: str) -> None:
        """Create the view ``__stream_0`` of the first stream, and so on. The first is sampled.

        Columns: those of the stream, ``__row``, ``__batch``, the event time in microseconds as
        ``__time``, and all columns as the struct of the results, ``__struct``.
        """
        source, names = self._read_input(alias)
        time = self._find_time_columns.get(alias)
        micros_of_row = "NULL::BIGINT"
        if time is not None:
            micros_of_row = f"epoch_us({quote_text(time)}::TIMESTAMP)"
        struct_names = [name for name in names if name != self.changes.get(alias)]
        packed = ", ".join(f"{quote_text(n)} := {quote_text(n)}" for n in struct_names)
        struct = f"CAST(struct_pack({packed}) AS {self.kinds.get(alias, 'VARCHAR')})"
        is_sampled = alias == self.aliases[0] and self.kinds and self.sample < _PARTS
        is_numbered = self.match or self.kind.preserved
        number = f", row_number() OVER () AS {NUMBER}" if is_numbered else ""
        kind = "TABLE" if is_numbered else "VIEW"  # so that a row keeps its number
        where = f" WHERE hash(__struct) % {_PARTS} < {self.sample}" if is_sampled else ""
        self.database.execute(
            f"CREATE TEMP {kind} __stream_{self.aliases.index(alias)} AS SELECT * FROM (SELECT *, "
            f"{micros_of_row} AS __time, {struct} AS __struct{number} FROM ({source})){where}"
        )

    @property
    def _find_time_columns(self) -> dict[str, str]:
        time = self.query["time"]
        if time is None:
            return {}
        return dict(time) if isinstance(time, Mapping) else dict.fromkeys(self.aliases, time)

    def _read_input(self, alias: str) -> tuple[str, list[str]]:
        """Return SQL for a stream's rows with ``__batch`` and ``__row``, and its column names."""
        if self.is_table_run:
            return self._read_table(alias)
        if (self.store.input.folder / f"{alias}.arrow").exists():
            raise ValueError(
                f"the input of stream {alias} is not in its final files yet; resume the run in "
                f"{self.store.where} once, then check its answers"
            )
        files = self.input_files(alias)
        if not files:
            raise ValueError(
                f"stream {alias} does not end and its input is not kept, so the answers of "
                f"{self.store.where} cannot be recomputed"
            )
        table, names = self._input_table(alias), [*self.store.input.stream_schema(alias).names]
        if "file_row_number" in names:
            raise ValueError(
                f"stream {alias} has a column file_row_number, as DuckDB calls the number of a row "
                f"in its file, so the answers of {self.store.where} cannot be recomputed"
            )
        self.database.register(table, pa.table({"file": files, "of": [*range(len(files))]}))
        columns = ", ".join(f"r.{quote_text(n)}" for n in names)
        row = f"b.of * {ROWS_A_BATCH} + r.file_row_number"
        of_file = f"filename = '{_FILE}', file_row_number = true"
        source = f"read_parquet({format_text_list(files)}, {of_file})"
        joined = f"{source} r JOIN {table} b ON b.file = r.{_FILE}"
        return f"SELECT {columns}, b.of AS __batch, {row} AS __row FROM {joined}", names

    def _input_table(self, alias: str) -> str:
        return f"__input_{self.aliases.index(alias)}"

    def _read_table(self, alias: str) -> tuple[str, list[str]]:
        """Return the same for a table."""
        batches = range(self.epoch + 1)
        parts = [self.store.input.read_table_batch(alias, number) for number in batches]
        sizes = [part.num_rows for part in parts]
        rows = pa.concat_tables([*parts, self.store.input.stream_schema(alias).empty_table()])
        names = [*rows.column_names]
        rows = rows.append_column("__batch", pa.array(np.repeat(batches, sizes), pa.int64()))
        self.database.register(self._input_table(alias), rows)
        return f"SELECT *, 0 AS __row FROM {self._input_table(alias)}", names

    def input_files(self, alias: str) -> list[str]:
        """Return the files of a stream's committed micro-batches, in order."""
        folder = self.store.input.folder / alias
        files = [micro_batch_files.batch_file(folder, n) for n in range(self.epoch + 1)]
        return [str(f) for f in files if f.exists()]

    # Pairs

    def _register_expected(self) -> None:
        """Create the table ``expected`` of all combinations within the windows.

        Columns: the structs, the batch of the last member, and whether a member was late.
        """
        self._register_lateness()
        given = (
            self._find_pairs_with_duckdb() if self.is_table_run else self._find_pairs_with_spark()
        )
        structs = ", ".join(
            f"{quote_text(alias)}.__struct AS {struct}"
            for alias, struct in zip(self.aliases, self.structs, strict=True)
        )
        batch = f"greatest({', '.join(f'{quote_text(a)}.__batch' for a in self.aliases)})"
        late = " OR ".join(self._make_late_sql(a) for a in self.aliases)
        if self.match is not None:
            partners = self._make_partner_sql(self.match)
            given = " AND ".join([given, *partners.list_conditions()])
            given = f"{given} {partners.make_choice_sql()}"
            done = partners.make_released_sql(self.released_until, self.epoch)
            late = "false" if self.is_closed else f"NOT {done}"
            structs += f", {quote_text(self.aliases[0])}.{NUMBER} AS number"
        structs += f", {make_sign_sql(self.changes)} AS sign" if self.changes else ""
        structs += kinds.list_numbers(self.kind, [*map(quote_text, self.aliases)])
        self.database.execute(
            f"CREATE TEMP TABLE expected AS SELECT {structs}, {batch} AS batch, "
            f"coalesce({late}, false) AS is_late FROM {given}"
        )

        if self.kind.preserved:
            is_answered = self.is_early or self.is_answered
            is_complete = is_answered and not self.store.log.first_retained_batch
            kinds.replace_pairs(self.database, self.kind, self.structs, is_complete)
        if self.match is not None and self.query["how"] == "left":
            first = quote_text(self.aliases[0])
            self.database.execute(
                f"INSERT INTO expected SELECT __struct, NULL, {NUMBER}, __batch, {late} FROM "
                f"__stream_0 {first} WHERE {NUMBER} NOT IN (SELECT number FROM expected)"
            )

    def _make_partner_sql(self, match: Mapping[str, Any]) -> PartnerSql:
        times = [quote_text(self._find_time_columns[alias]) for alias in self.aliases]
        columns = [*self.store.input.stream_schema(self.aliases[1]).names]
        quoted = [[quote_text(name) for name in names] for names in (self.aliases, columns)]
        return PartnerSql(match, quoted[0], times, quoted[1], self._name_type)

    def _find_pairs_with_duckdb(self) -> str:
        try:
            condition = translate_condition(self.query["on"], self._name_type)
        except ValueError as error:
            raise ValueError(
                f"the answers of {self.store.where} cannot be recomputed without Spark: {error}"
            ) from None
        return f"{self.joined} WHERE {' AND '.join([condition, *self._keep_within_windows()])}"

    def _name_type(self, sql: str) -> str:
        """Return DuckDB's name of the type of an expression of the streams' columns."""
        described = self.database.execute(f"DESCRIBE SELECT {sql} AS value FROM {self.joined}")
        return str(described.fetchall()[0][1])

    def _find_pairs_with_spark(self) -> str:
        files = {a: self.input_files(a) for a in self.aliases}
        pairs = join_row_numbers(self.store.input, files, self.query["on"])
        self.database.register("__pairs", pairs)
        same = [f"{quote_text(a)}.__row = __pairs.{quote_text(a)}" for a in self.aliases]
        where = " AND ".join([*same, *self._keep_within_windows()])
        return f"__pairs, {self.joined} WHERE {where}"

    def _keep_within_windows(self) -> list[str]:
        """Return the condition T - T_i < W_i for every stream i with a window.

        T is the latest event time.
        """
        if not self.windows:
            return []
        times = [f"{quote_text(a)}.__time" for a in self.aliases]
        latest = f"greatest({', '.join(times)})"
        known = [f"{t} IS NOT NULL" for t in times]
        return known + [f"{latest} - {quote_text(a)}.__time < {w}" for a, w in self.windows.items()]

    # Lateness

    def _register_lateness(self) -> None:
        """Create the table ``__lateness``: the event time before which a tuple is late.

        Rows are by position of the stream and by micro-batch.

        It is the stream's clock after the batch before, read from the run's events, minus the
        stream's lateness. If the events of a batch are trimmed, all its tuples count as late.
        """
        allowed = parse_lateness(self.query["lateness"], self.aliases)
        events = self.store.archive.committed_events()
        committed = {e.batch: e.clocks for e in events if isinstance(e, BatchCommitted)}
        rows = []
        for place, alias in enumerate(self.aliases):
            slack = allowed[alias]
            for batch in range(1, self.epoch + 1):
                clocks = committed.get(batch - 1)
                clock = _UNKNOWN if clocks is None else clocks[place]
                rows.append((place, batch, None if clock is None else clock - slack))
        columns = [*zip(*rows, strict=True)] or [(), (), ()]
        arrays = [pa.array(column, pa.int64()) for column in columns]
        self.lateness = pa.table(arrays, names=["stream", "batch", "before"])
        self.database.register("__lateness", self.lateness)

    def _make_late_sql(self, alias: str) -> str:
        """Return SQL for whether a stream's tuple was late."""
        if not self.windows and not self.query.get("expires", False):
            return "false"
        own = f"{quote_text(alias)}.__batch"
        place = self.aliases.index(alias)
        bound = f"(SELECT before FROM __lateness WHERE stream = {place} AND batch = {own})"
        return f"{quote_text(alias)}.__time < {bound}"

    # Comparison

    def _make_report(self) -> AnswerReport:
        names = ", ".join(self.written.values())
        since = self.store.log.first_retained_batch
        may_miss = "shed" in self.query and self.query["shed"] is not None
        notes = []
        if may_miss:
            notes.append("the run sheds load: rows that are missing were not counted")
        if self.owes:
            may_miss = True
            notes.append(
                "a change of placement is in progress, and its pending pairs are joined later: "
                "rows that are missing were not counted"
            )
        must = "0" if may_miss else f"(NOT is_late AND batch >= {since})::INT * {self.sign}"
        found = (
            f"SELECT {names}, batch, {'sign' if self.has_change_types else 1} AS found, 0 AS must, "
            "0 AS may, 0 AS late FROM results UNION ALL"
        )
        self.database.execute(
            f"CREATE TEMP TABLE differing AS SELECT {names}, max(batch) AS batch, "
            "sum(found) AS found, sum(must) AS must, sum(may) AS may, sum(late) AS late FROM "
            f"({found if self.kinds else ''} SELECT {names}, batch, 0 AS found, {must} AS must, "
            f"{self.sign} AS may, is_late::INT AS late FROM expected) GROUP BY {names}"
        )
        (row,) = self.database.execute(
            "SELECT coalesce(sum(found), 0), coalesce(sum(greatest(must - found, 0)), 0), "
            "coalesce(sum(greatest(found - may, 0)), 0), coalesce(sum(late), 0) FROM differing"
        ).fetchall()
        results, missing, wrong, late = map(int, row)
        examples = self.database.execute(
            f"SELECT found < must, batch, {names} FROM differing "
            f"WHERE found < must OR found > may ORDER BY batch LIMIT {_EXAMPLES}"
        ).fetchall()
        return AnswerReport(
            "DuckDB" if self.is_table_run else "Spark",
            *(results, missing, wrong, late),
            tuple(DifferingRow(m, b, format_row([*self.written], v)) for m, b, *v in examples),
            tuple(notes),
        )
