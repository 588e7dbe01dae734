"""Collect the facts about chosen tuples of a run, from which ``core.pair_verdicts`` judges."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any

import duckdb

from braid.answer_check_kinds import has_pending_pairs
from braid.answer_check_text import quote_text
from braid.condition_part_values import ConditionParts
from braid.core.combination_facts import PairFacts, PartFacts, RunFacts, TupleFacts
from braid.core.join_kinds import INNER, parse_kind
from braid.core.pair_access import AccessPaths, describe_access_paths
from braid.core.reserved_columns import CHANGE_TYPE
from braid.core.run_events import BatchCommitted
from braid.row_selectors import RowSelector, Selector, parse_selector
from braid.shedding_facts import SheddingSearch
from braid.stored_tuples import BATCH, NUMBER, STRUCT, TIME, StoredTuples
from braid.time_arguments import UNBOUNDED
from braid.tuple_places import TuplePlaces
from braid.util.batch_numbers import display_batch_range
from braid.util.durations import format_instant, parse_duration
from braid.util.validation import format_value

_MOST = 10_000
"""Combinations of tuples that are judged."""
_LABELS = 2
"""Columns in the label of a tuple."""


class PairSearch:
    """The chosen tuples of a run and their combinations.

    - ``stored``: the tuples of the run.
    - ``rows``: selectors by alias.
    - ``limit``: greatest number of tuples of each stream.
    - ``spark``: session for parts of the condition that DuckDB cannot evaluate; None: none.
    """

    def __init__(
        self, stored: StoredTuples, rows: Mapping[str, Selector], limit: int, spark: Any
    ) -> None:
        self.stored, self.limit, self.spark = stored, limit, spark
        self._database, self._settings = stored.database, stored.settings
        self._aliases = stored.aliases
        self.selectors: dict[str, RowSelector] = {}
        for alias, selector in rows.items():
            columns = stored.columns[alias]
            self.selectors[alias] = parse_selector(alias, selector, columns, self._name_type)
        kind = parse_kind(self._settings["how"], self._aliases)
        self.kind = INNER if self._settings["match"] else kind
        self.tuples: dict[str, list[TupleFacts]] = {}
        for alias, parsed in self.selectors.items():
            self._choose_selected_tuples(alias, parsed)
        self._choose_missing_partners()

    def _name_type(self, sql: str) -> str:
        streams = ", ".join(self._name_stream(alias) for alias in self._aliases)
        described = self._database.execute(f"DESCRIBE SELECT {sql} AS value FROM {streams}")
        return str(described.fetchall()[0][1])

    def _name_stream(self, alias: str) -> str:
        return f"stream_{self._aliases.index(alias)} AS {quote_text(alias)}"

    def _name_chosen_table(self, alias: str) -> str:
        return f"chosen_{self._aliases.index(alias)}"

    # Tuples

    def _choose_selected_tuples(self, alias: str, selector: RowSelector) -> None:
        """Create the table of a stream's chosen tuples, and their facts."""
        rows = f"SELECT * FROM {self._name_stream(alias)} WHERE {selector.sql}"
        ordered = f"{rows} ORDER BY {BATCH} NULLS LAST"
        self._keep_chosen(alias, ordered, selector.columns, selector.values)

    def _keep_chosen(
        self, alias: str, rows: str, named: Sequence[str] = (), values: Sequence[Any] = ()
    ) -> None:
        """Create the table of a stream's chosen tuples, and read their facts.

        ``rows``: SQL that selects the tuples, with the ``values``. ``named``: columns for labels.
        """
        self._database.execute(
            f"CREATE TEMP TABLE {self._name_chosen_table(alias)} AS SELECT row_number() OVER () - "
            f"1 AS {NUMBER}, * FROM ({rows} LIMIT {self.limit})",
            [*values],
        )
        self.tuples[alias] = [*self._read_facts(alias, named)]

    def _choose_missing_partners(self) -> None:
        """Create the same tables for streams without a selector: of tuples that fulfill the
        condition with chosen ones.
        """
        free = [alias for alias in self._aliases if alias not in self.selectors]
        if not free or not all(self.tuples.values()):
            return
        named = [f"{self._name_chosen_table(a)} AS {quote_text(a)}" for a in self.selectors]
        streams = ", ".join([*named, *map(self._name_stream, free)])
        condition = self.parts.translate_whole_condition()
        for alias in free if condition else ():
            distinct = f"SELECT DISTINCT {quote_text(alias)}.* FROM {streams} WHERE {condition}"
            with suppress(duckdb.Error):  # a run may not evaluate what fails for other tuples
                self._keep_chosen(alias, distinct)

    def _read_facts(self, alias: str, named: Sequence[str]) -> Iterator[TupleFacts]:
        """Yield the facts of a stream's chosen tuples, by number."""
        labels = [*named[:_LABELS]] or self.stored.columns[alias][:1]
        columns = ", ".join(map(quote_text, labels))
        chosen = self._name_chosen_table(alias)
        late = self.stored.find_late_tuples(self._aliases.index(alias), alias, chosen)
        rows = self._database.execute(
            f"SELECT {NUMBER}, {BATCH}, {TIME}, {columns} FROM {chosen} ORDER BY {NUMBER}"
        ).fetchall()
        for number, batch, time, *values in rows:
            pairs = zip(labels, values, strict=True)
            label = " ".join([alias, *(f"{name} {format_value(v, 40)}" for name, v in pairs)])
            behind = self._find_lateness(late, number, batch)
            yield TupleFacts(
                alias, label, batch, time, behind, self._find_end_of_life(alias, batch, time)
            )

    def _find_lateness(
        self, late: Mapping[int, int | None], number: int, batch: int | None
    ) -> int | None:
        """Return by how much a tuple was late; None: its batch's events are no longer kept."""
        if number in late:
            return late[number] or 1
        since = self.stored.store.log.first_retained_batch
        return None if since and (batch is None or batch < since) else 0

    def _find_end_of_life(self, alias: str, batch: int | None, time: int | None) -> int | None:
        """Return the first batch after which a tuple may have been dropped; None: none yet."""
        window = self.run.windows.get(alias)
        if window is None or time is None:
            return None
        stream = self._aliases.index(alias)
        for commit in self._committed_batches:
            expected = commit.watermarks[stream] if commit.watermarks else None
            if expected is not None and expected - time >= window and commit.batch >= (batch or 0):
                return commit.batch
        return None

    @cached_property
    def _committed_batches(self) -> list[BatchCommitted]:
        events = self.stored.store.archive.committed_events()
        return [event for event in events if isinstance(event, BatchCommitted)]

    def describe_absence(self, alias: str) -> tuple[str, str]:
        """Return the verdict on a stream of which no tuple was chosen, and a sentence."""
        text = self.selectors[alias].text
        stream = self._name_stream(alias)
        count, first = self._database.execute(
            f"SELECT count(*), min({TIME}) FROM {stream}"
        ).fetchall()[0]
        if alias in self.stored.complete_streams:
            batches = display_batch_range(0, self.stored.last_batch)
            where = (self._settings.get("where") or {}).get(alias)
            only = f", of those for which {where} is true" if where else ""
            if alias in self.stored.traced_streams:
                only += ", without those that have NULL where that leaves no partner"
            return (
                "never arrived",
                f"no tuple of {alias} with {text} is among the {count:,} of {batches}{only}",
            )
        since = "" if first is None else f", from {format_instant(first)} on"
        return (
            "unknown",
            f"no tuple of {alias} with {text} is among the {count:,} that are held, late or in "
            f"results{since}; other tuples of a stream that does not end are not kept, and "
            f"{self.run.keeping_setting} keeps them",
        )

    # Combinations

    @cached_property
    def parts(self) -> ConditionParts:
        """The parts of the condition."""
        return ConditionParts(self.stored, self._name_type, self.spark)

    @cached_property
    def run(self) -> RunFacts:
        """The facts about the run."""
        settings, store = self._settings, self.stored.store
        windows = {a: w for a, w in settings["windows"].items() if w != UNBOUNDED}
        progress, match = store.sink_progress, settings["match"]
        times = self.stored.time_columns
        return RunFacts(
            {a: parse_duration(w, f"window of {a}") for a, w in windows.items()},
            self.kind,
            match["match"] if match else "",
            frozenset(times if windows or match or settings.get("expires") else ()),
            not match and has_pending_pairs(store, settings, self.kind),
            store.log.first_retained_batch,
            progress.last_batch if progress.has_file() else None,
        )

    def list_pair_facts(self) -> Iterator[PairFacts]:
        """Yield the facts of all combinations of chosen tuples."""
        members = [alias for alias in self._aliases if self.tuples.get(alias)]
        absent = tuple(a for a in self._aliases if a in self.tuples and a not in members)
        chosen = {alias: self._name_chosen_table(alias) for alias in members}
        values = self.parts.evaluate_chosen_parts(chosen, _MOST)
        batches = self._find_results(members)
        alone = {alias: self._find_unmatched(alias) for alias in members}
        unexplored = self._list_unknown_parts()
        has_partners = any(alias not in self.selectors for alias in members)
        for numbers, parts in values:
            if has_partners and any(part.value is False for part in parts):
                continue  # chosen for another tuple
            facts = tuple(self.tuples[a][n] for a, n in zip(members, numbers, strict=True))
            unmatched = [
                (alias, alone[alias][n])
                for alias, n in zip(members, numbers, strict=True)
                if n in alone[alias]
            ]
            result = batches.get(tuple(numbers))
            yield PairFacts(
                facts,
                (*parts, *unexplored),
                result,
                unmatched[0] if unmatched else None,
                self._find_other_partner(members, numbers),
                self._find_waiting(facts),
                absent,
                tuple(a for a in absent if a not in self.stored.complete_streams),
                self._find_nearest_partner(members, numbers, absent),
                self._find_unserved_reason(facts),
                self._shedding.find_shedding(facts) if self._shedding and result is None else None,
                self._find_access(result, facts),
            )

    def _list_unknown_parts(self) -> list[PartFacts]:
        """Return what is not known of any combination."""
        return [
            PartFacts(f"tuples of {alias}", None, reason="the whole condition cannot be searched")
            for alias in self._aliases
            if alias not in self.tuples
        ]

    @cached_property
    def places(self) -> TuplePlaces:
        """The places of the chosen tuples."""
        named = {a: (self._name_chosen_table(a), facts) for a, facts in self.tuples.items()}
        return TuplePlaces(self.stored, named)

    @cached_property
    def _shedding(self) -> SheddingSearch | None:
        """The load shedding of the run; None: it sheds none."""
        return SheddingSearch(self.places) if self._settings.get("shed") else None

    def _find_access(self, result: int | None, facts: Sequence[TupleFacts]) -> AccessPaths:
        """Return by which access paths a result of a batch was found; empty: unknown."""
        commits = {commit.batch: commit for commit in self._committed_batches}
        if result is None or result not in commits:
            return ()
        dated = (fact for fact in facts if fact.batch is not None)
        arrivals = [(fact.batch, self._aliases.index(fact.alias)) for fact in dated]
        return describe_access_paths(
            self._aliases, self.places.events.start.condition_parts, commits[result], arrivals
        )

    def _find_nearest_partner(
        self, members: Sequence[str], numbers: Sequence[int], absent: Sequence[str]
    ) -> tuple[TupleFacts, tuple[PartFacts, ...]] | None:
        """Return the tuple of the other stream that comes closest to a chosen one, and the parts.

        None if there is no other tuple, or if there are more streams.
        """
        if len(self._aliases) > 2 or len(absent) != 1 or not self.parts.translate_whole_condition():
            return None
        ((member,), (number,), (alias,)) = members, numbers, absent
        chosen = f"(SELECT * FROM {self._name_chosen_table(member)} WHERE {NUMBER} = {number})"
        streams = f"{self._name_stream(alias)}, {chosen} AS {quote_text(member)}"
        label = self.stored.columns[alias][0]
        with suppress(duckdb.Error):  # a run may not evaluate what fails for other tuples
            self._database.execute(
                f"CREATE OR REPLACE TEMP TABLE nearest AS SELECT 0 AS {NUMBER}, "
                f"{quote_text(alias)}.* FROM {streams} ORDER BY {self.parts.rank_by_nearness()} "
                "LIMIT 1"
            )
            columns = f"{BATCH}, {TIME}, {quote_text(label)}"
            tuples = self._database.execute(f"SELECT {columns} FROM nearest").fetchall()
            evaluated = [*self.parts.evaluate_chosen_parts({member: chosen, alias: "nearest"}, 1)]
            if tuples:
                batch, time, value = tuples[0]
                text = f"{alias} {label} {format_value(value, 40)}"
                return TupleFacts(alias, text, batch, time), tuple(evaluated[0][1])
        return None

    def _find_results(self, members: Sequence[str]) -> dict[tuple[int, ...], int]:
        """Return the batch of the results that contain a combination, by its numbers."""
        written = [alias for alias in members if alias in self.stored.result_types]
        if not written or (self.kind.writes_unmatched and not self.kind.writes_pairs):
            return {}
        rows = self._select_results(written, members)
        return {tuple(numbers): batch for *numbers, batch in rows}

    def _find_unmatched(self, alias: str) -> dict[int, int]:
        """Return the batch of the results that have a tuple without a partner, by its number."""
        if not self.kind.writes_unmatched or alias not in self.stored.result_types:
            return {}
        others = [a for a in self.stored.result_types if a != alias]
        absent = [f"r.{quote_text(other)} IS NULL" for other in others]
        return dict(self._select_results([alias], [alias], absent))

    def _select_results(
        self, written: Sequence[str], members: Sequence[str], more: Sequence[str] = ()
    ) -> list[Any]:
        """Return numbers of chosen tuples and the first batch of the results that have them."""
        same = [
            f"r.{quote_text(alias)} IS NOT DISTINCT FROM {quote_text(alias)}.{STRUCT}"
            for alias in written
        ]
        chosen = ", ".join(f"{self._name_chosen_table(a)} AS {quote_text(a)}" for a in members)
        numbers = ", ".join(f"{quote_text(a)}.{NUMBER}" for a in members)
        described = self._database.execute("DESCRIBE SELECT * FROM results").fetchall()
        sign = f"CASE r.{CHANGE_TYPE} WHEN 'insert' THEN 1 ELSE -1 END"
        has_signs = any(name == CHANGE_TYPE for name, *_ in described)
        having = f" HAVING sum({sign}) > 0" if has_signs else ""
        return self._database.execute(
            f"SELECT {numbers}, min(r.{BATCH}) FROM results r, {chosen} "
            f"WHERE {' AND '.join([*same, *more])} GROUP BY {numbers}{having}"
        ).fetchall()

    def _find_other_partner(self, members: Sequence[str], numbers: Sequence[int]) -> str:
        """Return the partner of the first stream's tuple in an as-of join; empty: it has none."""
        if not self.run.match or members[0] != self._aliases[0]:
            return ""
        partner = self._chosen_partners_by_number.get(numbers[0])
        return "" if partner is None else f"{self._aliases[1]}{format_value(partner)}"

    @cached_property
    def _chosen_partners_by_number(self) -> dict[int, Any]:
        first, second = map(quote_text, self._aliases)
        if second not in map(quote_text, self.stored.result_types):
            return {}
        chosen = self._name_chosen_table(self._aliases[0])
        rows = self._database.execute(
            f"SELECT c.{NUMBER}, r.{second}::VARCHAR FROM results r JOIN {chosen} c "
            f"ON r.{first} IS NOT DISTINCT FROM c.{STRUCT} WHERE r.{second} IS NOT NULL"
        ).fetchall()
        return dict(rows)

    def _find_waiting(self, facts: Sequence[TupleFacts]) -> str:
        """Return the alias of a member whose answer is not final; empty: there is none."""
        state, served = self.stored.state, self.stored.served
        waits = any(state.answers.waiting) or any(state.waiting_by_query.values())
        has_ended = state.is_closed or (all(state.ended) and not waits)
        if has_ended or (served is not None and served.end is not None):
            return ""
        if self.run.match:
            first = facts[0]
            until = state.releases.until if served is None else served.released_until
            is_old = first.batch is not None and first.batch < self.stored.input.batches[-1]
            released = until is not None and is_old and (first.time or 0) < until
            return "" if released or first.alias != self._aliases[0] else first.alias
        preserved = {self._aliases[stream] for stream in self.kind.preserved}
        last = state.batch
        lasting = (f.alias for f in facts if f.let_go is None or f.let_go >= last)
        return next((alias for alias in lasting if alias in preserved), "")

    def _find_unserved_reason(self, facts: Sequence[TupleFacts]) -> str:
        """Return why the query of a shared run need not answer a combination; empty: it must."""
        served = self.stored.served
        if served is None:
            return ""
        preserved = {self._aliases[stream] for stream in self.kind.preserved}
        preserved |= {self._aliases[0]} if self.run.match else set()
        answered = [f for f in facts if f.alias in preserved]
        is_pair = self.kind.writes_pairs and not self.run.match and len(facts) > 1
        begun = [f.batch for f in (facts if is_pair or not answered else answered)]
        if None in begun and (served.first or served.end is not None):
            return (
                "the batch in which a tuple came is not known, and the query was not always served"
            )
        return served.describe_missed_answer(
            max((batch for batch in begun if batch is not None), default=served.first),
            [(self._aliases.index(f.alias), f.batch, f.time) for f in facts],
            [(self._aliases.index(f.alias), f.time) for f in answered],
        )
