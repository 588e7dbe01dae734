"""The queries of a shared run, each with what the check of its answers recomputes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from braid.answer_check_input import list_input_batches, list_input_files
from braid.answer_check_spark import join_row_numbers, select_row_numbers
from braid.core.reserved_columns import QUERIES
from braid.core.run_events import QueryAdded, QueryRemoved
from braid.storage.run_store import RunStore
from braid.util.batch_numbers import display_batch
from braid.util.durations import format_duration, format_instant


@dataclass(frozen=True)
class ServedQuery:
    """A query of a shared run, while it was served.

    - ``title``: its name, with the batches if it was added or removed while the run was active.
    - ``name``: its name.
    - ``settings``: those of a run of this query alone, as ``run.json`` has them.
    - ``bit``: its bit in ``QUERIES``.
    - ``first``, ``end``: first batch, and end of the batches, exclusive; None: it is still served.
    - ``since``: by stream, the event time from which the state held its tuples; None: it held all.
    - ``floors``: by stream, the event time below which it may not answer a tuple.
    - ``batches``: by micro-batch, the batch of the run.
    - ``released_until``: of an as-of query, the event time below which tuples of batches before the
      last one have taken their partners.
    - ``selections``: by alias, Spark SQL over the columns of the stream; None: every tuple.
    - ``pairs``: row numbers that the condition combines; None: they are not computed.
    - ``selected``: by alias, the numbers of the rows that the query selects; no entry: all.
    """

    title: str
    name: str
    settings: Mapping[str, Any]
    bit: int
    first: int
    end: int | None
    since: tuple[int | None, ...]
    floors: tuple[int | None, ...]
    batches: Sequence[int]
    released_until: int | None
    selections: Mapping[str, str | None]
    pairs: pa.Table | None = None
    selected: Mapping[str, pa.Table] = field(default_factory=dict)

    def make_result_filter(self) -> str:
        """Return SQL for whether a row of a result file ``r`` is of the query."""
        return f"(r.{QUERIES} >> {self.bit}) & 1 = 1"

    def make_missing_sql(self, aliases: Sequence[str]) -> str:
        """Return SQL for whether the state may have lacked a member of a pair.

        ``aliases``: those of the streams, quoted.
        """
        each = zip(aliases, self.since, strict=True)
        held = [
            f"({a}.__batch < {self.first} AND {a}.__time < {t})" for a, t in each if t is not None
        ]
        return " OR ".join(["false", *held])

    def make_floor_sql(self, stream: int, alias: str = "") -> str:
        """Return SQL for whether a tuple of a stream, which the query answers, may be left out."""
        floor, of = self.floors[stream], f"{alias}." if alias else ""
        return "false" if floor is None else f"coalesce({of}__time < {floor}, false)"

    def describe_missed_answer(
        self,
        batch: int,
        members: Sequence[tuple[int, int | None, int | None]],
        answered: Sequence[tuple[int, int | None]],
    ) -> str:
        """Return why the query may have left out a combination; empty: it must have answered it.

        Parameters
        ----------
        batch
            The batch from which it could be answered.
        members
            The stream, batch and event time of each member.
        answered
            The stream and event time of the members that the query answers by themselves.
        """
        if batch < self.first:
            return f"the query is served from batch {display_batch(self.first)} on"
        if self.end is not None and (answered or batch >= self.end):
            return f"the query was removed after batch {display_batch(self.end - 1)}"
        held = [
            since
            for stream, arrived, time in members
            if (since := self.since[stream]) is not None
            and (arrived is None or arrived < self.first)
            and (time is None or time < since)
        ]
        floors = [self.floors[stream] for stream, _ in answered]
        held += [
            floor
            for floor, (_, time) in zip(floors, answered, strict=True)
            if floor is not None and (time is None or time < floor)
        ]
        if not held:
            return ""
        return (
            f"when the query came, its tuples were held from {format_instant(max(held))} on, and "
            "what it says of earlier ones is not complete"
        )


def list_served_queries(store: RunStore, settings: Mapping[str, Any]) -> Iterator[ServedQuery]:
    """Yield the queries of a shared run whose results are retained, each time it was served.

    Raises ValueError if the input is not kept, or its batches are not known any more.
    """
    aliases, served = settings["streams"], [*describe_served_queries(store, settings)]
    if not served:
        return
    micro_batches = len(served[0].batches)
    files = {a: list_input_files(store, a, micro_batches) for a in aliases}
    if not all(files.values()):
        missing = next(a for a in aliases if not files[a])
        raise ValueError(
            f"the input of stream {missing} is not kept in its final files, so the answers of "
            f"{store.where} cannot be recomputed"
        )
    pairs = join_row_numbers(store.input, files, settings["on"])
    selected = {}
    for alias in aliases:
        wanted = sorted({sql for query in served if (sql := query.selections[alias]) is not None})
        numbers = select_row_numbers(store.input, alias, files[alias], wanted)
        selected.update({(alias, sql): rows for sql, rows in numbers.items()})
    for query in served:
        given = {a: selected[a, s] for a, s in query.selections.items() if s is not None}
        yield replace(query, pairs=pairs, selected=given)


def find_served_query(
    store: RunStore, settings: Mapping[str, Any], query: str | None
) -> ServedQuery | None:
    """Return the query of a run with a name or title, the last of that name; None: it has none.

    Raises ValueError if a shared run has no such query, or if none is named, and if the ``query``
    of another run is asked for.
    """
    if "chain" not in settings:
        if query is not None:
            raise ValueError(f"{store.where} is no shared run, so it has no query {query!r}")
        return None
    served = [*describe_served_queries(store, settings)]
    chosen = [each for each in served if query in (each.title, each.name)]
    if not chosen:
        missing = "query is missing" if query is None else f"there is no query {query!r}"
        names = ", ".join(each.title for each in served)
        raise ValueError(f"{missing}; the shared run in {store.where} has the queries {names}")
    return chosen[-1]


def describe_served_queries(store: RunStore, settings: Mapping[str, Any]) -> Iterator[ServedQuery]:
    """Yield the same queries without their pairs and selected rows, which need the input.

    Raises ValueError if the batches of the input are not known any more.
    """
    aliases, state = settings["streams"], store.last_state()
    if store.log.first_retained_batch:
        raise ValueError(
            f"the events of early batches of {store.where} are removed, so that its answers cannot "
            "be recomputed"
        )
    batches = list_input_batches(store, -1 if state is None else state.epoch)
    for added, end in _find_spans(store, settings):
        first, windows = added.batch + 1, [added.windows[a] for a in aliases]
        if end is not None and end <= store.log.first_retained_batch:
            continue
        since = tuple(added.complete_since[a] for a in aliases)
        asof = None if state is None else state.query_releases.get(added.bitmap_position)
        last = "now" if end is None else display_batch(end - 1)
        span = f" (batches {display_batch(first)} to {last})"
        yield ServedQuery(
            added.name + (span if first or end is not None else ""),
            added.name,
            {
                **settings,
                "how": added.how,
                "match": None if added.match is None else {"order": None, **added.match},
                "windows": {a: format_duration(w, exact=True) for a, w in added.windows.items()},
            },
            added.bitmap_position,
            first,
            end,
            since,
            _find_floors(since, windows),
            batches,
            None if asof is None else asof.until,
            added.selections,
        )


def _find_spans(
    store: RunStore, settings: Mapping[str, Any]
) -> Iterator[tuple[QueryAdded, int | None]]:
    """Yield when queries were added, each with the end of its batches."""
    begun = {event.name: event for event in _list_first_queries(settings)}
    kinds = QueryAdded, QueryRemoved
    events = [e for kind in kinds for e in store.archive.committed_events_of_type(kind)]
    for event in sorted(events, key=lambda e: e.batch):
        if isinstance(event, QueryAdded):
            begun[event.name] = event
        else:
            yield begun.pop(event.name), event.batch
    yield from ((added, None) for added in begun.values())


def _list_first_queries(settings: Mapping[str, Any]) -> Iterator[QueryAdded]:
    """Yield the queries that a run was started with, from its settings."""
    aliases = settings["streams"]
    for name, windows, selections, bit, since, how, match in settings["queries"]:
        yield QueryAdded(
            -1,
            name,
            bit,
            dict(zip(aliases, windows, strict=True)),
            dict(zip(aliases, selections, strict=True)),
            dict(zip(aliases, since, strict=True)),
            how,
            match,
        )


def _find_floors(since: Sequence[int | None], windows: Sequence[int]) -> tuple[int | None, ...]:
    """Return, by stream, the event time below which partners may have been missing."""
    reached = [None if t is None else t + w for t, w in zip(since, windows, strict=True)]
    others = ([t for s, t in enumerate(reached) if s != stream] for stream in range(len(since)))
    return tuple(max((t for t in each if t is not None), default=None) for each in others)
