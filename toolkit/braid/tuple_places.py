"""Find where chosen tuples of a run were placed: their blocks, routing keys and sampling hashes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from braid.core.block_history_index import EventIndex
from braid.core.combination_facts import TupleFacts
from braid.core.narrative import describe_block_place, explain_tuple_meeting
from braid.core.reserved_columns import WORTH
from braid.join_analysis import analyze_join
from braid.join_config import JoinConfig
from braid.run_inspector import load_run
from braid.sources.arrow_replay import ArrowFeed
from braid.sources.stream_arguments import make_source
from braid.storage.run_store import RunStore
from braid.stored_tuples import HASHES, NUMBER, StoredTuples, TuplePlace


def _make_table_feed(store: RunStore, settings: Mapping[str, Any]) -> ArrowFeed | None:
    """Return the feed that has computed the hashes of a run of tables; None: it is of Spark."""
    if "" not in settings["schemas"] or settings.get("sources"):
        return None
    schemas = {alias: store.input.stream_schema(alias) for alias in settings["streams"]}
    source = make_source({a: s.empty_table() for a, s in schemas.items()})
    config = JoinConfig.from_json({**settings, "where": None}, source.read_columns())
    join = analyze_join(replace(config, resumed=True), source)
    feed: ArrowFeed = source.union_streams(join, schemas)[0]
    return feed


class TuplePlaces:
    """The places of chosen tuples.

    - ``stored``: the tuples of the run.
    - ``chosen``: by alias, the table of chosen tuples and their facts, by number.
    """

    def __init__(
        self, stored: StoredTuples, chosen: Mapping[str, tuple[str, Sequence[TupleFacts]]]
    ) -> None:
        self._stored, self._chosen = stored, chosen
        self._places: dict[str, Mapping[int, TuplePlace]] = {}
        self._copies: dict[str, Mapping[int, int]] = {}

    @cached_property
    def events(self) -> EventIndex:
        """The events of the run."""
        return load_run(self._stored.store.url or self._stored.store.path)

    @cached_property
    def _feed(self) -> ArrowFeed | None:
        return _make_table_feed(self._stored.store, self._stored.settings)

    def find_place(self, fact: TupleFacts) -> TuplePlace:
        """Return where a chosen tuple is, as far as is known."""
        if fact.alias not in self._places:
            self._places[fact.alias] = self._find_places(fact.alias)
        return self._places[fact.alias].get(self._find_number(fact), TuplePlace())

    def _find_number(self, fact: TupleFacts) -> int:
        return next(n for n, f in enumerate(self._chosen[fact.alias][1]) if f is fact)

    def find_stream(self, fact: TupleFacts) -> int:
        """Return the index of a tuple's stream."""
        return self._stored.aliases.index(fact.alias)

    def _find_places(self, alias: str) -> dict[int, TuplePlace]:
        table, _ = self._chosen[alias]
        held = self._stored.find_places(self._stored.aliases.index(alias), alias, table)
        if self._feed is None:
            return held
        rows = self._stored.database.sql(f"SELECT * FROM {table}").to_arrow_table()
        arrived = _compute_places(self._feed, self._stored.store, alias, rows)
        return held | {
            n: place._replace(block=held[n].block if n in held else None)
            for n, place in arrived.items()
        }

    def _find_routing_key(self, fact: TupleFacts) -> int | None:
        place = self.find_place(fact)
        if place.routing_number is None:
            return place.routing_key
        stream = self.find_stream(fact)
        return self.events.find_routing_key(fact.batch, stream, place.routing_number)

    def list_blocks(self, fact: TupleFacts) -> list[list[int]]:
        """Return the blocks that a tuple was in, one after another: the first and its heirs.

        Several, if it is not known in which block it came.
        """
        key, stream = self._find_routing_key(fact), self.find_stream(fact)
        born = self.events.list_fresh_blocks(fact.batch, stream, key)
        several = [self.events.list_blocks_with_key(id, key) for id in born]
        if (held := self.find_place(fact).block) is None:
            return several
        until_now = [ids[: ids.index(held) + 1] for ids in several if held in ids]
        return until_now or [[*sorted(self.events.find_ancestors(held)), held]]

    def is_unique(self, fact: TupleFacts) -> bool:
        """Return whether no equal tuple came in the same batch."""
        if fact.alias not in self._copies:
            table, stream = self._chosen[fact.alias][0], self.find_stream(fact)
            self._copies[fact.alias] = self._stored.count_equal_tuples(stream, table)
        return self._copies[fact.alias].get(self._find_number(fact)) == 1

    def describe_blocks(self, tuples: Sequence[TupleFacts]) -> list[str]:
        """Return which blocks have some tuples, and where each two of these blocks met."""
        lines, histories = [], []
        for fact in tuples:
            several = self.list_blocks(fact)
            if len(several) == 1:
                histories += several
                lines.append(describe_block_place(self.events, fact.label, several[0]))
            else:
                blocks = f"; it came in one of {len(several)} blocks" if several else ""
                lines.append(f"{fact.label}: no block holds it now{blocks}")
        for pair in combinations(histories, 2):
            lines += explain_tuple_meeting(self.events, *pair)
        return lines


def _compute_places(
    feed: ArrowFeed, store: RunStore, alias: str, tuples: pa.Table
) -> dict[int, TuplePlace]:
    """Return the hashes of a stream's tuples that can be in a result, by number.

    ``tuples``: its columns, and the numbers.
    """
    schema = store.input.stream_schema(alias)
    rows = tuples.select(schema.names).cast(schema).append_column(NUMBER, tuples[NUMBER])
    computed = feed.compute_tuples(alias, rows)
    if WORTH in computed.column_names:
        valued = pc.fill_null(computed[WORTH], np.nan)
        computed = computed.drop_columns([WORTH]).append_column(WORTH, valued)
    columns = [
        computed[name].to_pylist() if name in computed.column_names else [None] * len(computed)
        for name in (NUMBER, *HASHES)
    ]
    return {
        n: TuplePlace(None, number, None, *hashes)
        for n, number, *hashes in zip(*columns, strict=True)
    }
