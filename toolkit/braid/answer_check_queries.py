"""The queries of a shared run, each with what the check of its answers recomputes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from braid.answer_check_input import list_input_files
from braid.answer_check_spark import join_row_numbers, select_row_numbers
from braid.core.reserved_columns import QUERIES
from braid.core.run_events import BatchCommitted, QueryAdded, QueryRemoved
from braid.storage.run_store import RunStore
from braid.util.batch_numbers import display_batch
from braid.util.durations import format_duration


@dataclass(frozen=True)
class ServedQuery:
    """A query of a shared run, while it was served.

    - ``title``: its name, with the batches if it was added or removed while the run was active.
    - ``settings``: those of a run of this query alone, as ``run.json`` has them.
    - ``bit``: its bit in ``QUERIES``.
    - ``first``, ``end``: first batch, and end of the batches, exclusive; None: it is still served.
    - ``since``: by stream, the event time from which the state held its tuples; None: it held all.
    - ``floors``: by stream, the event time below which it may not answer a tuple.
    - ``batches``: by micro-batch, the batch of the run.
    - ``released_until``: of an as-of query, the event time below which tuples of batches before the
      last one have taken their partners.
    - ``pairs``: row numbers that the condition combines.
    - ``selected``: by alias, the numbers of the rows that the query selects; no entry: all.
    """

    title: str
    settings: Mapping[str, Any]
    bit: int
    first: int
    end: int | None
    since: tuple[int | None, ...]
    floors: tuple[int | None, ...]
    batches: Sequence[int]
    released_until: int | None
    pairs: pa.Table
    selected: Mapping[str, pa.Table]

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


def list_served_queries(store: RunStore, settings: Mapping[str, Any]) -> Iterator[ServedQuery]:
    """Yield the queries of a shared run whose results are retained, each time it was served.

    Raises ValueError if the batches of the input are not known any more.
    """
    aliases, state = settings["streams"], store.last_state()
    micro_batches = 0 if state is None else state.epoch + 1
    batches = _list_data_batches(store, micro_batches)
    spans = [*_find_spans(store, settings)]
    files = {a: list_input_files(store, a, micro_batches) for a in aliases}
    if not all(files.values()):
        missing = next(a for a in aliases if not files[a])
        raise ValueError(
            f"the input of stream {missing} is not kept in its final files, so the answers of "
            f"{store.where} cannot be recomputed"
        )
    pairs = join_row_numbers(store.input, files, settings["on"])
    texts = {a: [e.selections[a] for e, _ in spans] for a in aliases}
    wanted = {a: sorted({sql for sql in each if sql is not None}) for a, each in texts.items()}
    selected = {
        (a, sql): rows
        for a in aliases
        for sql, rows in select_row_numbers(store.input, a, files[a], wanted[a]).items()
    }
    for added, end in spans:
        first, windows = added.batch + 1, [added.windows[a] for a in aliases]
        if end is not None and end <= store.log.first_retained_batch:
            continue
        since = tuple(added.complete_since[a] for a in aliases)
        asof = None if state is None else state.query_releases.get(added.bitmap_position)
        last = "now" if end is None else display_batch(end - 1)
        span = f" (batches {display_batch(first)} to {last})"
        yield ServedQuery(
            added.name + (span if first or end is not None else ""),
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
            pairs,
            {a: selected[a, sql] for a, sql in added.selections.items() if sql is not None},
        )


def _list_data_batches(store: RunStore, micro_batches: int) -> list[int]:
    """Return, by micro-batch, the batch of the run; a change of queries is a batch, too."""
    events = store.archive.committed_events_of_type(BatchCommitted)
    batches = [e.batch for e in events if e.executor][:micro_batches]
    if len(batches) < micro_batches or store.log.first_retained_batch:
        raise ValueError(
            f"the events of early batches of {store.where} are removed, so that its answers cannot "
            "be recomputed"
        )
    return batches


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
