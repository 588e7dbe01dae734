"""Recompute a stopped run's results from its input, and compare them with its result files.

``braid check`` verifies files by their checksums: whether a run is complete and undamaged. This
module verifies that its results are right. It shares no code with the kernels, the compiler of
conditions, or any placement, except for parsing:

- For a run of tables, DuckDB evaluates the condition, translated by ``braid.answer_check_sql``.
- For a run on Spark, Spark's batch join evaluates it.

Windows are applied to all pairs at once, and rows are compared as multisets. Results with a late
member are optional, because some of its partners may have expired. The report counts them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from braid import answer_check_kinds as kinds
from braid.answer_check_input import (
    FILE,
    StoredInput,
    list_input_batches,
    list_input_files,
    list_late_limits,
)
from braid.answer_check_partners import NUMBER, PartnerSql
from braid.answer_check_queries import ServedQuery, list_served_queries
from braid.answer_check_spark import join_row_numbers
from braid.answer_check_sql import translate_condition
from braid.answer_check_text import format_text_list, make_sign_sql, quote_text, set_session_zone
from braid.answer_report import AnswerReport, DifferingRow, QueryReports, format_row
from braid.core.join_kinds import INNER, parse_kind
from braid.core.reserved_columns import CHANGE_TYPE
from braid.hub.hub_answer_check import check_hub_answers
from braid.storage.run_files import result_file_batch
from braid.storage.run_store import RunStore, open_store
from braid.time_arguments import UNBOUNDED
from braid.util.durations import parse_duration
from braid.util.validation import format_value

_EXAMPLES = 5  # differing rows that a report shows
_PARTS = 1_000_000
"""Range of the hash from which a sample is drawn."""
_CHANGE_SIGN = f"CASE r.{CHANGE_TYPE} WHEN 'insert' THEN 1 ELSE -1 END"


def check_answers(path: str | Path, sample: float = 1.0) -> AnswerReport | QueryReports:
    """Recompute the results of the stopped run at ``path`` and compare them with its result files.

    ``sample`` is the share of the first stream's distinct rows to check. Default: 1. The results of
    shared runs and hubs are compared by query.

    Raises ValueError for a run or hub whose input is not kept, for a sample of a shared run or a
    hub, and for a condition that the oracle cannot evaluate.
    """
    if not isinstance(sample, int | float) or not 0 < sample <= 1:
        raise ValueError(f"sample is {format_value(sample)}; it must be a share above 0, at most 1")
    store = open_store(path)
    settings = store.read_settings() or {}
    if sample < 1 and ("hub" in settings or "chain" in settings):
        folder = "hub" if "hub" in settings else "shared run"
        raise ValueError(f"sample is {sample}, but a {folder} is checked as a whole; it must be 1")
    if "hub" in settings:
        return check_hub_answers(path)
    if "chain" not in settings:
        settings = kinds.read_checkable_settings(store)
    store.fetch_all()
    if "chain" in settings:
        return _check_queries(store, settings)
    return _compare_results(store, settings, float(sample))


def _check_queries(store: RunStore, settings: Mapping[str, Any]) -> QueryReports:
    """Return the reports on the queries of a shared run, by name and batches."""
    reports = {}
    for served in list_served_queries(store, settings):
        reports[served.title] = _compare_results(store, served.settings, 1.0, served)
    return QueryReports(reports)


def _compare_results(
    store: RunStore, query: Mapping[str, Any], sample: float, served: ServedQuery | None = None
) -> AnswerReport:
    with duckdb.connect() as database:
        set_session_zone(database, query)
        try:
            return _Recomputation(database, store, query, sample, served).compare_results()
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
        served: ServedQuery | None = None,
    ) -> None:
        self.database, self.store, self.query = database, store, query
        self.served = served
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
        last_epoch = -1 if state is None else state.epoch
        batches = list_input_batches(store, last_epoch) if served is None else served.batches
        landed = query.get("sources", {})
        self.input = StoredInput(database, store, self.aliases, batches, self.is_table_run, landed)
        self.last_batch = batches[-1] if batches else -1
        self.match: Mapping[str, Any] | None = query.get("match")
        self.has_pending_pairs = not self.match and kinds.has_pending_pairs(store, query, self.kind)
        self.released_until = None if state is None else state.releases.until
        self.is_closed = state is not None and all(state.ended)
        self.is_answered = self.is_closed and state is not None and not any(state.answers.waiting)
        if served is not None:
            self.released_until = served.released_until
            self.is_closed = self.is_closed and served.end is None
            self.is_answered = self.is_answered and served.end is None
        if sample < 1 and {*self.kind.preserved} - {0}:
            raise ValueError(
                f"sample is {sample}, but the run answers tuples without a partner in the first "
                "stream; it must be 1"
            )
        spans = {a: span for a, span in query["windows"].items() if span != UNBOUNDED}
        self.windows = {a: parse_duration(span, f"window of {a}") for a, span in spans.items()}

    def compare_results(self) -> AnswerReport:
        """Return the differences. Raises ValueError for changes whose sum is not known."""
        if self.has_change_types and (
            self.has_pending_pairs or self.store.log.first_retained_batch
        ):
            raise ValueError(
                f"the answers of {self.store.where} cannot be checked: changes are compared by "
                "their sums, and results are removed, or pending because a change of placement is "
                "in progress"
            )
        served = self.served
        span = () if served is None else (served.first, served.end)
        self._register_results(self.store.results.result_files(*span))
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
        source = f"read_parquet({format_text_list(files)}, filename = '{FILE}')"
        described = self.database.sql(f"DESCRIBE SELECT * FROM {source}").fetchall()
        self.kinds = {name: kind for name, kind, *_ in described if name in self.aliases}
        of_query = "" if self.served is None else f" WHERE {self.served.make_result_filter()}"
        structs = ", ".join(
            f"r.{quote_text(alias)} AS {struct}" for alias, struct in self.written.items()
        ) + (f", {_CHANGE_SIGN} AS sign" if self.has_change_types else "")
        self.database.execute(
            f"CREATE TEMP VIEW results AS SELECT * FROM (SELECT {structs}, b.of AS batch FROM "
            f"{source} r JOIN result_batches b ON b.file = r.{FILE}{of_query}) "
            f"WHERE {self.sample >= _PARTS} OR hash({self.structs[0]}) % {_PARTS} < {self.sample}"
        )

    # Streams

    def _register_stream(self, alias: str) -> None:
        """Create the view ``__stream_0`` of the first stream, and so on. The first is sampled.

        Columns: those of the stream, ``__row``, ``__batch``, the event time in microseconds as
        ``__time``, and all columns as the struct of the results, ``__struct``.
        """
        source, names = self.input.read_stream(alias)
        time = self._find_time_columns.get(alias)
        micros_of_row = "NULL::BIGINT"
        if time is not None:
            micros_of_row = f"epoch_us({quote_text(time)}::TIMESTAMPTZ)"
        struct_names = [name for name in names if name != self.changes.get(alias)]
        packed = ", ".join(f"{quote_text(n)} := {quote_text(n)}" for n in struct_names)
        struct = f"CAST(struct_pack({packed}) AS {self.kinds.get(alias, 'VARCHAR')})"
        is_sampled = alias == self.aliases[0] and self.kinds and self.sample < _PARTS
        is_numbered = self.match or self.kind.preserved
        number = f", row_number() OVER () AS {NUMBER}" if is_numbered else ""
        kind = "TABLE" if is_numbered else "VIEW"  # so that a row keeps its number
        where = f" WHERE hash(__struct) % {_PARTS} < {self.sample}" if is_sampled else ""
        if self.served is not None and (rows := self.served.selected.get(alias)) is not None:
            name = f"__selected_{self.aliases.index(alias)}"
            self.database.register(name, rows)
            where = f" WHERE __row IN (SELECT row FROM {name})"
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

    # Pairs

    def _register_expected(self) -> None:
        """Create the table ``expected`` of all combinations within the windows.

        Columns: the structs, the batch of the last member, and whether a member was late.
        """
        rows = list_late_limits(self.store, self.query, self.last_batch)
        self.lateness = rows  # a registered table must live on
        self.database.register("__lateness", rows)
        given = (
            self._find_pairs_with_duckdb() if self.is_table_run else self._find_pairs_with_spark()
        )
        structs = ", ".join(
            f"{quote_text(alias)}.__struct AS {struct}"
            for alias, struct in zip(self.aliases, self.structs, strict=True)
        )
        batch = f"greatest({', '.join(f'{quote_text(a)}.__batch' for a in self.aliases)})"
        late = " OR ".join(self._make_late_sql(a) for a in self.aliases)
        first = quote_text(self.aliases[0])
        if self.served is not None:
            missing = self.served.make_missing_sql([*map(quote_text, self.aliases)])
            late = f"{late} OR {missing}"
            begins = batch if self.match is None else f"{first}.__batch"
            given = f"{given} AND {begins} >= {self.served.first}"
        if self.match is not None:
            partners = self._make_partner_sql(self.match)
            given = " AND ".join([given, *partners.list_conditions()])
            depends = partners.make_dependence_sql(*map(self._make_late_sql, self.aliases))
            given = f"{given} {partners.make_choice_sql(depends)}"
            waits = self._make_waiting_sql(partners)
            late = f"{waits} OR {depends}"
            structs += f", {first}.{NUMBER} AS number, {depends} AS depends_on_late"
        structs += f", {make_sign_sql(self.changes)} AS sign" if self.changes else ""
        structs += kinds.list_numbers(self.kind, [*map(quote_text, self.aliases)])
        self.database.execute(
            f"CREATE TEMP TABLE expected AS SELECT {structs}, {batch} AS batch, "
            f"coalesce({late}, false) AS is_late FROM {given}"
        )

        if self.kind.preserved:
            is_answered = self.is_early or self.is_answered
            is_complete = is_answered and not self.store.log.first_retained_batch
            kinds.replace_pairs(self.database, self.kind, self.structs, is_complete, self.served)
        if self.match is not None and self.query["how"] == "left":
            self._add_alone(f"{waits} OR {self._make_late_sql(self.aliases[0])}")
        if self.served is not None and self.served.end is not None:
            self.database.execute(f"DELETE FROM expected WHERE batch >= {self.served.end}")

    def _add_alone(self, waiting_sql: str) -> None:
        """Add the rows of the first stream without partners, or perhaps without, to ``expected``.

        ``waiting_sql``: SQL for whether a row may not be answered.
        """
        begun = "" if self.served is None else f" AND __batch >= {self.served.first}"
        self.database.execute(
            f"INSERT INTO expected SELECT __struct, NULL, {NUMBER}, false, __batch, {NUMBER} IN "
            f"(SELECT number FROM expected) OR coalesce({waiting_sql}, false) FROM __stream_0 "
            f"{quote_text(self.aliases[0])} WHERE {NUMBER} NOT IN (SELECT number FROM expected "
            f"WHERE NOT depends_on_late){begun}"
        )

    def _make_waiting_sql(self, partners: PartnerSql) -> str:
        """Return SQL for whether a row of the first stream may not be answered."""
        waits = "false"
        if not self.is_closed:
            waits = f"NOT {partners.make_released_sql(self.released_until, self.last_batch)}"
        if self.served is None:
            return waits
        return f"{waits} OR {self.served.make_floor_sql(0, quote_text(self.aliases[0]))}"

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
        count = len(self.input.batches)
        files = {a: list_input_files(self.store, a, count) for a in self.aliases}
        if self.served is None:
            pairs = join_row_numbers(self.store.input, files, self.query["on"])
        else:
            pairs = self.served.pairs
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
        not_null = [f"{t} IS NOT NULL" for t in times]
        return not_null + [
            f"{latest} - {quote_text(a)}.__time < {w}" for a, w in self.windows.items()
        ]

    # Lateness

    def _make_late_sql(self, alias: str) -> str:
        """Return SQL for whether a stream's tuple was late."""
        if not self.windows and not self.query.get("expires", False):
            return "false"
        arrival_batch = f"{quote_text(alias)}.__batch"
        place = self.aliases.index(alias)
        bound = (
            f"(SELECT before FROM __lateness WHERE stream = {place} AND batch = {arrival_batch})"
        )
        return f"{quote_text(alias)}.__time < {bound}"

    # Comparison

    def _make_report(self) -> AnswerReport:
        names = ", ".join(self.written.values())
        since = self.store.log.first_retained_batch
        may_miss = "shed" in self.query and self.query["shed"] is not None
        notes = []
        if may_miss:
            notes.append("the run sheds load: rows that are missing were not counted")
        if self.has_pending_pairs:
            may_miss = True
            notes.append(
                "a change of placement is in progress, and its pending pairs are joined later: "
                "rows that are missing were not counted"
            )
        must = "0" if may_miss else f"(NOT is_late AND batch >= {since})::INT * {self.sign}"
        written = (
            f"SELECT {names}, batch, {'sign' if self.has_change_types else 1} AS found, 0 AS must, "
            "0 AS may, 0 AS late FROM results UNION ALL"
        )
        self.database.execute(
            f"CREATE TEMP TABLE differing AS SELECT {names}, max(batch) AS batch, "
            "sum(found) AS found, sum(must) AS must, sum(may) AS may, sum(late) AS late FROM "
            f"({written if self.kinds else ''} SELECT {names}, batch, 0 AS found, {must} AS must, "
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
