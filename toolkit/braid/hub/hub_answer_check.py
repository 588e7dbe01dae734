"""Recompute the answers of a stopped hub from its input, and compare them.

DuckDB evaluates each statement over the stored input, for the batches in which its query was
served. It uses only the hub's parser of statements and its reader of answers.
Rows are optional, and counted, if they depend on a late tuple, on a tuple that the hub had
forgotten when the query came, or on a tuple that need not be final yet.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import pyarrow as pa
import sqlglot
from sqlglot import exp

from braid.answer_check_input import StoredInput, assign_batches
from braid.answer_check_partners import NUMBER, PartnerSql
from braid.answer_check_sql import translate_condition
from braid.answer_check_text import quote_text
from braid.answer_report import AnswerReport, DifferingRow, QueryReports, format_row
from braid.condition.spark_dialect import SparkSql
from braid.core.stream_clocks import find_least_time
from braid.hub.arrow_backend import ArrowStreamReader
from braid.hub.hub_backend import TickRange
from braid.hub.hub_state import HubState, RegisteredQuery
from braid.hub.kept_hub_tuples import BATCH, StoredSparkReader, read_last_state
from braid.hub.query_answers import compose_answer
from braid.hub.query_parser import StreamQuery, parse_stream_query
from braid.papers.reuse.hub_events import HubBatchCommitted
from braid.papers.reuse.query_definition import ASOF, UNBOUNDED
from braid.storage.run_store import RunStore, open_store

_EXAMPLES = 5  # differing rows that a report shows
_NEVER = 1 << 62
"""Value for an unknown limit of lateness, later than every event time."""


class StoredHub(NamedTuple):
    """A stopped hub.

    - ``path``: its folder.
    - ``ledger``: its last state.
    - ``reader``: reader of its answers.
    - ``events``: its batches by number.
    - ``is_table_hub``: whether its streams are tables, and not Spark's.
    - ``recent_tuples``: the tuples that it keeps of streams that do not end, with their batches.
    """

    path: Path
    ledger: HubState
    reader: ArrowStreamReader
    events: dict[int, HubBatchCommitted]
    is_table_hub: bool
    recent_tuples: dict[str, pa.Table]


def check_hub_answers(path: str | Path) -> QueryReports:
    """Recompute the answers of the stopped hub at ``path``, and compare them by query.

    Queries that cannot be recomputed are in the report with the reason, and make it not right.

    Raises ValueError for a hub of streams that do not end, whose input is not kept.
    """
    store = open_store(path)
    settings = store.read_settings() or {}
    store.fetch_all()
    store.log.read_new_entries()
    hub = open_stored_hub(store, settings)
    if endless := [s for s in settings["hub"] if s not in hub.reader.last_batches]:
        raise ValueError(
            f"stream {endless[0]} does not end and its input is not kept, so the answers of the "
            f"hub in {store.where} cannot be recomputed"
        )
    with duckdb.connect() as database:
        database.execute("SET TimeZone = 'UTC'")
        load_hub_input(database, store, hub)
        reports, unchecked = {}, {}
        names = [query.name for query in hub.ledger.queries]
        for served in hub.ledger.queries:
            twice = names.count(served.name) > 1
            title = f"{served.name} (id {served.number})" if twice else served.name
            try:
                reports[title] = HubRecomputation(database, hub, served).compare_answers()
            except (ValueError, duckdb.Error) as error:
                unchecked[title] = str(error).splitlines()[0]
    return QueryReports(reports, unchecked)


def open_stored_hub(store: RunStore, settings: dict[str, Any]) -> StoredHub:
    """Return a hub with the state of its last commit.

    Its reader leaves out streams that do not end and have no kept tuple.
    """
    static, (state, recent) = settings["last_batches"], read_last_state(store, settings)
    fields = {s: [*store.input.stream_schema(s)] for s in static}
    fields |= {s: [f for f in rows.schema if f.name != BATCH] for s, rows in recent.items()}
    schemas = {s: pa.schema(fields[s]) for s in settings["hub"] if s in fields}
    kind = ArrowStreamReader if settings["tables"] else StoredSparkReader
    reader = kind(schemas, settings["time"], store.input, settings["batches"] or 0, static)
    events = store.archive.committed_events_of_type(HubBatchCommitted)
    by_batch = {event.epoch: event for event in events}
    return StoredHub(store.path, state, reader, by_batch, bool(settings["tables"]), recent)


def load_hub_input(database: duckdb.DuckDBPyConnection, store: RunStore, hub: StoredHub) -> None:
    """Create the table ``__stream_0`` of the first stream, and so on.

    Columns: those of the stream, ``__batch``, ``__time`` in microseconds, ``__number`` of the row,
    and ``__late``: whether it came after its time had passed.
    """
    committed = {event.micro_batch: event.epoch for event in hub.events.values()}
    streams, batches = [*hub.reader.schemas], assign_batches(hub.ledger.micro_batch, committed)
    stored = StoredInput(database, store, streams, batches, hub.is_table_hub)
    rows = [
        (stream, batch, hub.events[batch - 1].passed_times.get(stream))
        if batch - 1 in hub.events
        else (stream, batch, _NEVER)
        for stream in streams
        for batch in batches[1:]
    ]
    types = pa.string(), pa.int64(), pa.int64()
    columns = [pa.array([row[n] for row in rows], kind) for n, kind in enumerate(types)]
    limits = pa.table(dict(zip(("stream", "batch", "before"), columns, strict=True)))
    database.register("__limits", limits)
    for place, stream in enumerate(streams):
        if stream in hub.recent_tuples:
            database.register(f"__kept_rows_{place}", hub.recent_tuples[stream])
            source = f"SELECT DISTINCT * FROM __kept_rows_{place}"
        else:
            source, _ = stored.read_stream(stream)
        time = quote_text(hub.reader.time)
        database.execute(
            f"CREATE TEMP TABLE __stream_{place} AS SELECT s.*, row_number() OVER () AS {NUMBER}, "
            "coalesce(s.__time < l.before, false) AS __late FROM (SELECT *, "
            f"epoch_us({time}::TIMESTAMP) AS __time FROM ({source})) s LEFT JOIN __limits l "
            "ON l.stream = ? AND l.batch = s.__batch",
            [stream],
        )


class HubRecomputation:
    """The expected answer of one query, as the temporary table ``expected``.

    Its columns: the number of each stream's row, or NULL; the last batch of them; whether it is
    optional.
    """

    def __init__(
        self, database: duckdb.DuckDBPyConnection, hub: StoredHub, served: RegisteredQuery
    ) -> None:
        reader = hub.reader
        self.database, self.hub, self.served = database, hub, served
        arguments = served.windows, served.slide
        self.query: StreamQuery = parse_stream_query(
            served.sql, reader.schemas, reader.time, *arguments, stored=True
        )
        self.definition = self.query.definition
        self.streams = [*self.query.aliases.values()]
        spans = served.serving_intervals
        end = hub.ledger.epoch + 1 if served.end_epoch is None else served.end_epoch
        first = spans[0].first_epoch if spans else end
        # A match of a semi join is written in the batch after it was made.
        self.first = first - int(self.definition.kind == "semi" and first > 0)
        self.end = end
        last = hub.events.get(hub.ledger.epoch)
        waiting = {} if last is None else last.waiting_by_query.get(served.name, {})
        self.is_complete = (
            served.end_epoch is None
            and hub.ledger.has_ended(self.streams)
            and last is not None
            and not any(waiting.values())
        )

    def compare_answers(self) -> AnswerReport:
        """Return the differences. Raises ValueError for what DuckDB may evaluate differently."""
        if self.query.slide is not None:
            raise ValueError(
                "its answers are those of ticks (SLIDE), which are not recomputed; answers of "
                "queries without a SLIDE are"
            )
        self.find_expected_rows()
        return self._compare_rows()

    def find_expected_rows(self) -> None:
        """Create the table ``expected``. Raises ValueError as ``compare_answers`` does."""
        self.database.execute("DROP TABLE IF EXISTS expected")
        self._find_pairs()
        if self.definition.preserved_streams:
            self._add_final_rows()
        self.database.execute(f"DELETE FROM expected WHERE came < {self.first} AND NOT is_final")

    # Expected rows

    def _list_sources(self, names: Sequence[str]) -> list[str]:
        """Return the streams' tables under these names."""
        places = [[*self.hub.reader.schemas].index(stream) for stream in self.streams]
        return [f"__stream_{p} AS {quote_text(n)}" for p, n in zip(places, names, strict=True)]

    def _translate(self, sql: str, names: Sequence[str]) -> str:
        sources = ", ".join(self._list_sources(names))

        def name_type(part: str) -> str:
            described = self.database.execute(f"DESCRIBE SELECT {part} AS value FROM {sources}")
            return str(described.fetchall()[0][1])

        return translate_condition(sql, name_type)

    def _find_pairs(self) -> None:
        """Create ``expected`` of all combinations before the end, or the best ones if as-of."""
        quoted = [quote_text(stream) for stream in self.streams]
        conjuncts = [self._translate(sql, self.streams) for sql in self._list_conditions()]
        latest = f"greatest({', '.join(f'{q}.__time' for q in quoted)})"
        batch = f"greatest({', '.join(f'{q}.__batch' for q in quoted)})"
        conjuncts += [f"{q}.__time IS NOT NULL" for q in quoted] + [f"{batch} < {self.end}"]
        conjuncts += [
            f"{latest} - {q}.__time < {window}"
            for stream, q in zip(self.streams, quoted, strict=True)
            if (window := self.query.windows_by_stream[stream]) < UNBOUNDED
        ]
        unsure = [self._make_unsure_sql(stream) for stream in self.streams]
        optional, choice = " OR ".join(unsure), ""
        if (rule := self.definition.match) is not None:
            columns = [quote_text(c) for c in self.hub.reader.schemas[self.streams[1]]]
            time = quote_text(self.hub.reader.time)
            match = {**rule.to_arguments(), "order": None}
            partners = PartnerSql(match, quoted, [time] * 2, columns, lambda _: "TIMESTAMP")
            optional = partners.make_dependence_sql(*unsure)
            conjuncts += partners.list_conditions()
            choice = partners.make_choice_sql(optional)
        numbers = ", ".join(f"{q}.{NUMBER} AS n{place}" for place, q in enumerate(quoted))
        self.database.execute(
            f"CREATE TEMP TABLE expected AS SELECT {numbers}, {batch} AS came, "
            f"coalesce({optional}, false) AS is_optional, false AS is_final FROM "
            f"{', '.join(self._list_sources(self.streams))} WHERE {' AND '.join(conjuncts)} "
            f"{choice}"
        )

    def _list_conditions(self) -> Iterator[str]:
        """Yield the conditions of the statement, over the streams' names."""
        yield from filter(None, [self.query.on, *self.query.filters.values()])

    def _make_unsure_sql(self, stream: str) -> str:
        """Return SQL for whether a tuple may not have met all of its partners."""
        name, since = quote_text(stream), self.served.complete_since.get(stream)
        older = "" if since is None else f" OR coalesce({name}.__time < {since}, false)"
        return f"({name}.__late{older})"

    def _add_final_rows(self) -> None:
        """Add the answers that a tuple gets once it is final, and remove what is none."""
        kind, preserved = self.definition.kind, self.definition.preserved_streams
        selects = [self._select_final_rows(stream) for stream in preserved]
        self.database.execute(
            f"CREATE OR REPLACE TEMP TABLE final AS {' UNION ALL '.join(selects)}"
        )
        if kind in ("semi", "anti"):
            self.database.execute("DELETE FROM expected")
        if self.definition.match is not None:
            may_lack = self._make_lacking_sql(self.definition.left_stream)
            self.database.execute(
                "UPDATE expected SET is_final = true, is_optional = is_optional OR n0 IN (SELECT "
                f"{NUMBER} FROM {self._list_sources(self.streams)[0]} WHERE {may_lack})"
            )
        if kind != ASOF:
            self.database.execute("INSERT INTO expected SELECT * FROM final")

    def _select_final_rows(self, stream: str) -> str:
        """Return SQL for the tuples that are answered for their partners, or without one."""
        place, filters = self.streams.index(stream), self.query.filters.get(stream)
        passes = self._translate(filters, self.streams) if filters else "true"
        if self.definition.kind == "semi":
            early = self._make_early_sql(stream)
            wanted = f"(met >= {self.first} OR unsure OR {early} AND met IS NOT NULL)"
            optional = f"unsure OR earliest < {self.first} OR {early}"
            optional += "" if self.is_complete else f" OR met > {self.end - 2}"
        else:
            wanted = "(met IS NULL OR unsure)"
            optional = f"coalesce(unsure, false) OR {self._make_lacking_sql(stream)}"
        members = [f"{NUMBER if n == place else 'NULL'} AS n{n}" for n in range(2)]
        return (
            f"SELECT {', '.join(members)}, __batch AS came, {optional} AS is_optional, true AS "
            f"is_final FROM {self._list_sources(self.streams)[place]} LEFT JOIN (SELECT n{place} "
            "AS of, bool_and(is_optional) AS unsure, min(came) AS earliest, coalesce(min(came) "
            "FILTER (NOT is_optional), min(came)) AS met FROM expected GROUP BY 1) "
            f"ON of = {NUMBER} WHERE __batch < {self.end} AND {passes} AND {wanted}"
        )

    def _make_lacking_sql(self, stream: str) -> str:
        """Return SQL for whether a final tuple need not be answered by the query."""
        return f"({self._make_early_sql(stream)} OR NOT {self.make_final_sql(stream)})"

    def _make_early_sql(self, stream: str) -> str:
        """Return SQL for whether a tuple may have been final before the query, or forgotten."""
        name = quote_text(stream)
        before = f"({name}.__batch < {self.first} AND NOT {self._make_meeting_sql(stream)})"
        late = f" OR {name}.__late" if self.first else ""
        return f"({self._make_unsure_sql(stream)} OR {before}{late})"

    def _make_meeting_sql(self, stream: str) -> str:
        """Return SQL for whether a tuple may have partners at all. If not, it is final at once."""
        name, parts = quote_text(stream), ["true"]
        if self.query.on:
            tree = sqlglot.parse_one(self.query.on, dialect=SparkSql)
            each = [*tree.flatten()] if isinstance(tree, exp.And) else [tree]
            columns = [c for c in tree.find_all(exp.Column) if c.table == stream]
            parts += [f"{name}.{quote_text(column.name)} IS NOT NULL" for column in columns]
            parts += [
                self._translate(part.sql(dialect=SparkSql), self.streams)
                for part in each
                if {c.table for c in part.find_all(exp.Column)} <= {stream}
            ]
        return f"coalesce({name}.__time IS NOT NULL AND {' AND '.join(parts)}, false)"

    def make_final_sql(self, stream: str) -> str:
        """Return SQL for whether a tuple must have been final while the query was served."""
        if self.is_complete:
            return "true"
        name, window = quote_text(stream), self.query.windows_by_stream[stream]
        event = self.hub.events.get(self.end - 2)
        others = [s for s in self.streams if s != stream]
        passed = find_least_time(event.passed_times, others) if event else None
        if window >= UNBOUNDED or passed is None:
            return "false"
        timed = f"coalesce({name}.__time + {window} <= {passed}, true)"
        return f"({name}.__batch <= {self.end - 2} AND {timed})"

    # Comparison

    def _select_expected(self) -> tuple[str, list[str]]:
        """Return SQL for the expected rows as the statement selects them, and column names."""
        aliases = [*self.query.aliases]
        columns, names = [], []
        for sql in self.query.select:
            tree = sqlglot.parse_one(sql, dialect=SparkSql)
            for part in self._expand_star(tree):
                columns.append(self._translate(part.unalias().sql(dialect=SparkSql), aliases))
                names.append(part.alias_or_name or sql)
        chosen = ", ".join(f"{column} AS v{n}" for n, column in enumerate(columns))
        joins = " ".join(
            f"LEFT JOIN {source} ON {quote_text(alias)}.{NUMBER} = expected.n{place}"
            for place, (alias, source) in enumerate(
                zip(aliases, self._list_sources(aliases), strict=True)
            )
        )
        return f"SELECT {chosen}, came, is_optional FROM expected {joins}", names

    def _expand_star(self, tree: exp.Expr) -> list[exp.Expr]:
        if not isinstance(tree, exp.Column) or not isinstance(tree.this, exp.Star):
            return [tree]
        columns = self.hub.reader.schemas[self.query.aliases[tree.table]]
        return [exp.column(name, table=tree.table, quoted=True) for name in columns]

    def _compare_rows(self) -> AnswerReport:
        expected, names = self._select_expected()
        values = ", ".join(f"v{n}" for n in range(len(names)))
        spans = self.served.serving_intervals
        answer: pa.Table = compose_answer(
            self.hub, self.served, self.query, spans, TickRange(None, None, None)
        )
        answers = answer.rename_columns([f"v{n}" for n in range(len(names))])
        self.database.register("answers", answers)
        self.database.execute(
            f"CREATE OR REPLACE TEMP TABLE differing AS SELECT {values}, max(batch) AS batch, "
            "sum(found) AS found, sum(must) AS must, sum(may) AS may, sum(may - must) AS late FROM "
            f"(SELECT {values}, NULL AS batch, 1 AS found, 0 AS must, 0 AS may FROM answers "
            f"UNION ALL SELECT {values}, came, 0, (NOT is_optional)::INT, 1 FROM ({expected})) "
            f"GROUP BY {values}"
        )
        (row,) = self.database.execute(
            "SELECT coalesce(sum(found), 0), coalesce(sum(greatest(must - found, 0)), 0), "
            "coalesce(sum(greatest(found - may, 0)), 0), coalesce(sum(late), 0) FROM differing"
        ).fetchall()
        examples = self.database.execute(
            f"SELECT found < must, batch, {values} FROM differing WHERE found < must OR "
            f"found > may ORDER BY ALL LIMIT {_EXAMPLES}"
        ).fetchall()
        rows = [DifferingRow(m, b, _format_values(names, v)) for m, b, *v in examples]
        results, missing, wrong, late = map(int, row)
        return AnswerReport("DuckDB", results, missing, wrong, late, tuple(rows), ())


def _format_values(names: Sequence[str], values: Sequence[Any]) -> str:
    return format_row(["row"], [dict(zip(names, values, strict=True))])
