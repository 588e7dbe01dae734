"""Explain why tuples are joined for a query of a hub, or are not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from braid.answer_check_partners import NUMBER as ROW_NUMBER
from braid.answer_check_text import quote_text
from braid.core.combination_facts import PairFacts, PartFacts, RunFacts, TupleFacts
from braid.core.join_kinds import INNER, parse_kind
from braid.core.pair_access import AccessPaths
from braid.errors import QueryError
from braid.hub.flat_results import flat_column_name, flat_columns, read_flat
from braid.hub.hub_answer_check import (
    HubRecomputation,
    StoredHub,
    load_hub_input,
    open_stored_hub,
)
from braid.hub.hub_backend import AnswerPart, StreamReader
from braid.hub.hub_state import RegisteredQuery, ServingInterval
from braid.hub.operator_instance import read_operator_spec
from braid.pair_facts import PairSearch
from braid.papers.reuse.query_definition import ASOF, ASOF_LEFT, UNBOUNDED
from braid.result_explanation import Why, check_question, explain_chosen_pairs
from braid.row_selectors import Selector, list_conjuncts
from braid.storage.hub_files import check_pin, open_operator, operator_key
from braid.storage.run_files import result_file_batch
from braid.storage.run_store import RunStore
from braid.stored_tuples import BATCH, NUMBER, STRUCT, StoredTuples
from braid.util.batch_numbers import display_batch, display_batch_range
from braid.util.durations import format_instant
from braid.util.validation import format_value


def explain_hub_rows(
    store: RunStore,
    settings: dict[str, Any],
    rows: Mapping[str, Selector],
    limit: int,
    query: str | None,
    blocks: bool = False,
    spark_reader: StreamReader | None = None,
) -> Why:
    """Return why tuples are joined for a query of a hub, or are not, as ``braid.why`` does.

    ``rows``: selectors by alias of the query, or by stream. ``blocks``: whether to name the
    operators that have answered the query, and their compensation filters. ``spark_reader``: the
    reader of a running hub on Spark, for expressions that DuckDB cannot evaluate; None: none.

    Raises ValueError for a query that the hub has not been asked, and if a hub on Spark keeps no
    tuple of one of its streams.
    """
    store.fetch_all()
    store.log.read_new_entries()
    hub = open_stored_hub(store, settings)
    served = _find_query(hub, query)
    with duckdb.connect() as database:
        database.execute("SET TimeZone = 'UTC'")
        load_hub_input(database, store, hub)
        recomputation = HubRecomputation(database, hub, served)
        stored = HubTuples(store, recomputation, spark_reader)
        by_alias = recomputation.query.aliases
        named = {by_alias.get(name, name): each for name, each in dict(rows).items()}
        check_question(named, stored.aliases, limit)
        answer = explain_chosen_pairs(HubPairSearch(stored, named, limit, stored.spark))
        return replace(answer, blocks=(*_describe_operators(hub, served),)) if blocks else answer


def _find_query(hub: StoredHub, name: str | None) -> RegisteredQuery:
    """Return the last query of a name, or with an id. Raises ValueError if there is none."""
    queries = hub.ledger.queries
    chosen = [q for q in queries if name in (q.name, f"{q.name} (id {q.number})")]
    if not chosen:
        missing = "query is missing" if name is None else f"there is no query {format_value(name)}"
        names = ", ".join(dict.fromkeys(q.name for q in queries)) or "none"
        raise ValueError(f"{missing}; the hub in {hub.path} has the queries {names}")
    return chosen[-1]


def _describe_operators(hub: StoredHub, served: RegisteredQuery) -> list[str]:
    """Return which operators have answered a query, in which batches, and after which filter."""
    lines = []
    for span in served.serving_intervals:
        end = hub.ledger.epoch if span.end_epoch is None else span.end_epoch - 1
        filtered = f", after the filter {span.compensation}" if span.compensation else ""
        lines.append(
            f"{served.name}: answered by operator {span.operator} (version {span.version}) in "
            f"{display_batch_range(span.first_epoch, end)}{filtered}"
        )
    return lines


class HubTuples(StoredTuples):
    """The tuples of a query's streams, of the batches that its hub has committed.

    ``recomputation``: what the query has to answer. ``spark_reader``: see ``explain_hub_rows``.
    """

    def __init__(
        self,
        store: RunStore,
        recomputation: HubRecomputation,
        spark_reader: StreamReader | None = None,
    ) -> None:
        query, definition = recomputation.query, recomputation.definition
        left = definition.left_stream
        self.database, self.store, self.recomputation = recomputation.database, store, recomputation
        self.hub = recomputation.hub
        self.aliases = sorted(query.aliases.values(), key=lambda stream: stream != left)
        parts = [
            f"({part})"
            for sql in [query.on, *query.filters.values()]
            for part in (list_conjuncts(sql) if sql else ())
        ]
        match = definition.match
        self.settings = {
            "streams": self.aliases,
            "on": " AND ".join(parts) or "true",
            "how": {ASOF: "inner", ASOF_LEFT: "left"}.get(definition.kind, definition.kind),
            "match": None if match is None else {**match.to_arguments(), "order": None},
            "time": self.hub.reader.time,
        }
        self.served = None
        self.columns = {s: [*self.hub.reader.schemas[s]] for s in self.aliases}
        self.complete_streams = {s for s in self.aliases if s not in self.hub.recent_tuples}
        self.traced_streams: set[str] = set()
        self.result_types: dict[str, str] = {}
        self.unread_batches: set[str] = set()
        """Batches whose matches only Spark can tell."""
        self.spark_reader, self.spark = spark_reader, getattr(spark_reader, "spark", None)
        self._register_matches()
        for stream, alias in enumerate(self.aliases):
            self._register_hub_stream(stream, alias)

    @property
    def last_batch(self) -> int:
        """The last committed batch."""
        return self.hub.ledger.epoch

    def _register_hub_stream(self, stream: int, alias: str) -> None:
        source = f"__stream_{[*self.hub.reader.schemas].index(alias)}"
        packed = self._pack_read_columns(alias)
        select = f"SELECT *, {packed} AS {STRUCT} FROM {source}"
        if alias not in self.complete_streams and alias in self.result_types:
            name, time = quote_text(alias), quote_text(self.hub.reader.time)
            select += (
                f" UNION ALL BY NAME SELECT DISTINCT {name}.*, epoch_us({name}.{time}::TIMESTAMP) "
                f"AS __time, {name} AS {STRUCT} FROM results WHERE {name} IS NOT NULL AND {name} "
                f"NOT IN (SELECT {packed} FROM {source})"
            )
        self.database.execute(f"CREATE TEMP VIEW stream_{stream} AS {select}")

    def _pack_read_columns(self, alias: str) -> str:
        """Return SQL for the columns that matches have, as one struct of their type."""
        names = map(quote_text, self._list_read_columns(alias))
        packed = f"struct_pack({', '.join(f'{n} := {n}' for n in names)})"
        kind = self.result_types.get(alias)
        return f"CAST({packed} AS {kind})" if kind else packed

    def _list_read_columns(self, alias: str) -> list[str]:
        columns = self.recomputation.query.columns_read(self.hub.reader.time)[alias]
        return [name for name in self.columns[alias] if name in columns]

    # Matches

    def _register_matches(self) -> None:
        """Create the table ``results``: structs by stream and the batch, of the query's matches."""
        spans = self.recomputation.served.serving_intervals
        tables = [table for span in spans for table in self._read_matches(span)]
        if not tables:
            return
        self.database.register("__matches", pa.concat_tables(tables))
        self.database.execute("CREATE TEMP VIEW results AS FROM __matches")
        described = self.database.sql("DESCRIBE SELECT * FROM results").fetchall()
        self.result_types = {name: kind for name, kind, *_ in described if name in self.aliases}

    def _read_matches(self, span: ServingInterval) -> list[pa.Table]:
        """Return the matches of an interval, by batch."""
        pin = self.hub.ledger.operators[operator_key(span.operator, span.version)]
        store = open_operator(self.hub.path, pin)
        check_pin(store, pin)
        spec = read_operator_spec(store)
        end = pin.batch + 1
        if span.end_epoch is not None:
            end = min(end, spec.batch_of_epoch(span.end_epoch))
        query, spans = self.recomputation.query, self.recomputation.served.serving_intervals
        has_past = query.slide is not None and span is spans[0]  # ticks have earlier matches
        first, tables = 0 if has_past else spec.batch_of_epoch(span.first_epoch), []
        for file in store.results.result_files(first, end, True) if first < end else []:
            part = AnswerPart([file], spec.result_shape, span.bit, span.compensation)
            rows = self._read_part(part, span)
            epoch = result_file_batch(Path(file).name) - spec.batch_of_epoch(0)
            if rows is not None:
                tables.append(self._nest_matches(rows, epoch))
        return tables

    def _read_part(self, part: AnswerPart, span: ServingInterval) -> pa.Table | None:
        """Return the matches in a file after compensation; None: none, or only Spark can tell."""
        rows = read_flat(part.files, part.shape, part.bit)
        if rows is None or part.compensation is None:
            return rows
        reader = self.spark_reader or self.hub.reader
        wanted = {"passes": part.compensation}
        try:
            passes = reader.compute_columns(rows, flat_columns(part.shape), wanted)["passes"]
        except (QueryError, duckdb.Error):
            end = self.last_batch if span.end_epoch is None else span.end_epoch - 1
            self.unread_batches.add(display_batch_range(span.first_epoch, end))
            return None
        return rows.filter(passes)

    def _nest_matches(self, rows: pa.Table, epoch: int) -> pa.Table:
        """Return flat matches with a struct for each stream, NULL for an absent member."""
        structs: dict[str, pa.Array] = {}
        for alias in self._list_written_streams():
            names = self._list_read_columns(alias)
            parts = [rows[flat_column_name(alias, n)].combine_chunks() for n in names]
            absent = pa.array([True] * rows.num_rows)
            for part in parts:
                absent = pc.and_(absent, pc.is_null(part))
            structs[alias] = pa.StructArray.from_arrays(parts, names, mask=absent)
        return pa.table({**structs, BATCH: pa.array([epoch] * rows.num_rows, pa.int64())})

    def find_late_tuples(self, stream: int, alias: str, chosen: str) -> dict[int, int | None]:
        """Return by how many microseconds chosen tuples of a stream were late, by number."""
        rows = self.database.execute(
            f'SELECT c.{NUMBER}, l."before" - c.__time FROM {chosen} c JOIN __limits l ON '
            f'l.stream = ? AND l.batch = c.{BATCH} WHERE c.__time < l."before"',
            [alias],
        ).fetchall()
        return dict(rows)


class HubPairSearch(PairSearch):
    """The chosen tuples of a query's streams and their combinations."""

    stored: HubTuples

    @cached_property
    def run(self) -> RunFacts:
        """The facts about the query."""
        recomputation, store = self.stored.recomputation, self.stored.store
        match, progress = self._settings["match"], store.sink_progress
        return RunFacts(
            {s: w for s, w in recomputation.query.windows_by_stream.items() if w < UNBOUNDED},
            INNER if match else parse_kind(self._settings["how"], self._aliases),
            match["match"] if match else "",
            frozenset(self._aliases),
            delivered=progress.last_batch if progress.has_file() else None,
            keeping_setting='QueryHub(history="7 days")',
        )

    def list_pair_facts(self) -> Iterator[PairFacts]:
        """Yield the facts of all combinations of chosen tuples.

        Of tuples that are only in results, the columns that the condition reads may be gone.
        """
        reason = "it reads a tuple that is kept only in results, with their columns"
        streams = {part.text: part.streams for part in self.parts.parts}
        for pair in super().list_pair_facts():
            gone = {fact.alias for fact in pair.tuples if fact.batch is None}
            parts = (
                replace(p, reason=reason) if gone & streams.get(p.text, set()) else p
                for p in pair.parts
            )
            yield replace(pair, parts=tuple(parts)) if gone else pair

    def _list_unknown_parts(self) -> list[PartFacts]:
        """Return what is not known of any combination: matches that only Spark can read, and
        answers that depend on other tuples, if only Spark evaluates the condition.
        """
        reason = "DuckDB may evaluate a filter of the query differently from Spark; ask the hub's "
        reason += "own process, run.why(...), which has Spark"
        parts = [
            PartFacts(f"results of {batches}", None, reason=reason)
            for batches in sorted(self.stored.unread_batches)
        ]
        if (self.run.match or not self.kind.is_inner) and not self._has_expected_rows:
            reason = "it depends on all other tuples, and only Spark evaluates the query"
            parts.append(PartFacts("whether it is an answer", None, reason=reason))
        return [*super()._list_unknown_parts(), *parts]

    def _find_end_of_life(self, alias: str, batch: int | None, time: int | None) -> int | None:
        """Return the first batch after which a tuple may have been dropped; None: none yet."""
        window = self.run.windows.get(alias)
        if window is None or time is None:
            return None
        for event in self.stored.hub.events.values():
            passed = [event.passed_times.get(a) for a in self._aliases if a != alias]
            times = [t for t in passed if t is not None]
            is_past = len(times) == len(passed) and min(times, default=0) - time >= window
            if is_past and event.epoch >= (batch or 0):
                return event.epoch
        return None

    def _find_access(self, result: int | None, facts: Sequence[TupleFacts]) -> AccessPaths:
        return ()

    def _find_waiting(self, facts: Sequence[TupleFacts]) -> str:
        """Return the stream of a member whose answer is not final; empty: there is none."""
        recomputation = self.stored.recomputation
        if recomputation.served.end_epoch is not None:
            return ""
        preserved = recomputation.definition.preserved_streams
        waits = (f for f in facts if f.alias in preserved and not self._is_final(f))
        return next((f.alias for f in waits), "")

    def _is_final(self, fact: TupleFacts) -> bool:
        return bool(self._select_value(fact, self._final_sql[fact.alias]))

    @cached_property
    def _final_sql(self) -> dict[str, str]:
        """SQL for whether a tuple must have been final, by preserved stream."""
        query = self.stored.recomputation
        return {a: query.make_final_sql(a) for a in query.definition.preserved_streams}

    def _select_value(self, fact: TupleFacts, sql: str) -> Any:
        """Return the value of SQL for a chosen tuple."""
        if (fact.alias, sql) not in self._selected:
            table = f"{self._name_chosen_table(fact.alias)} AS {quote_text(fact.alias)}"
            rows = self._database.execute(f"SELECT {sql} FROM {table} ORDER BY {NUMBER}").fetchall()
            several = zip(self.tuples[fact.alias], rows, strict=True)
            self._selected[fact.alias, sql] = {id(each): value for each, (value,) in several}
        return self._selected[fact.alias, sql][id(fact)]

    @cached_property
    def _selected(self) -> dict[tuple[str, str], dict[int, Any]]:
        """Values of SQL for the chosen tuples of a stream, by the identity of their facts."""
        return {}

    @cached_property
    def _has_expected_rows(self) -> bool:
        """Whether the rows that the query has to answer can be recomputed."""
        try:
            self.stored.recomputation.find_expected_rows()
        except (ValueError, duckdb.Error):
            return False
        return True

    def _find_unserved_reason(self, facts: Sequence[TupleFacts]) -> str:
        """Return why the query need not answer a combination; empty: it must."""
        is_matched = self.kind.writes_unmatched and not self.kind.writes_pairs and len(facts) > 1
        if is_matched or self._find_waiting(facts):
            return ""
        if None in [fact.batch for fact in facts]:
            return self._describe_undated_tuples(facts)
        recomputation, streams = self.stored.recomputation, self.stored.recomputation.streams
        begun = max(fact.batch for fact in facts if fact.batch is not None)
        if len(facts) > 1 and self.kind.writes_pairs and not self.run.match:
            if begun < recomputation.first:
                return f"the query is answered from batch {display_batch(recomputation.first)} on"
            if begun >= recomputation.end:
                return f"the query was withdrawn after batch {display_batch(recomputation.end - 1)}"
        if not self._has_expected_rows:
            return self._describe_incomplete_history(facts) if self._has_older(facts) else ""
        wanted = []
        for fact in facts:
            is_answered = self.kind.writes_pairs or fact.alias == self._aliases[0]
            if is_answered and (not self.run.match or fact.alias == self._aliases[0]):
                number = self._select_value(fact, ROW_NUMBER)
                wanted.append(f"n{streams.index(fact.alias)} = {number}")
        rows = self._database.execute(
            f"SELECT is_optional FROM expected WHERE {' AND '.join(wanted)}"
        ).fetchall()
        if any(not is_optional for (is_optional,) in rows):
            return ""
        return self._describe_incomplete_history(facts)

    def _has_older(self, facts: Sequence[TupleFacts]) -> bool:
        """Return whether a tuple is older than the history from which the query was begun."""
        since = self.stored.recomputation.served.complete_since
        limits = [(fact.time, since.get(fact.alias)) for fact in facts]
        return any(limit is not None and (time or 0) < limit for time, limit in limits)

    def _describe_undated_tuples(self, facts: Sequence[TupleFacts]) -> str:
        """Return why the query may not have had to answer tuples without a batch; "": it had."""
        recomputation = self.stored.recomputation
        is_always = recomputation.first == 0 and recomputation.served.end_epoch is None
        if is_always and not self._has_older(facts):
            return ""
        return "the batch in which a tuple came is not known, and the query was not always served"

    def _describe_incomplete_history(self, facts: Sequence[TupleFacts]) -> str:
        """Return since when the answers of a query are complete."""
        recomputation = self.stored.recomputation
        served = recomputation.served
        limits = [served.complete_since.get(fact.alias) for fact in facts]
        since_times = [limit for limit in limits if limit is not None]
        batches = display_batch_range(recomputation.first, recomputation.end - 1)
        since = f", and complete from {format_instant(max(since_times))} on" if since_times else ""
        return f"the query need not answer it: it is answered in {batches}{since}"
