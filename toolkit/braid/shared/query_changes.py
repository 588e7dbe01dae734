"""Add and remove queries of a shared run, and rewrite stored tuples for them.

Source: Wang 2008, sections 7.3 (queries enter and leave) and 7.4 (marks). No Spark.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from braid.condition.access_paths import Order
from braid.core.answer_state import to_limit
from braid.core.asof_releases import LEFT
from braid.core.query import MOST, Query
from braid.core.reserved_columns import MARK, ROUTING, ROW, TIME
from braid.core.stream_clocks import Clock
from braid.kernels.block_builder import (
    build_block,
    drop_plain_numbers,
    replace_column,
    take_numbered_rows,
)
from braid.kernels.host_block_rows import BlockRows
from braid.kernels.query_bitmaps import QueryBitmaps

Queries = tuple[Query, ...]


def add_query(
    queries: Queries,
    new: Query,
    watermarks: Sequence[Clock] = (),
    latest: Sequence[int | None] = (),
) -> Queries:
    """Return the queries with ``new`` added, on a free bit.

    ``watermarks``, ``latest``: watermark and latest event time by stream of a running join; empty
    before the start.

    Raises ValueError if the name is taken or there are too many queries.
    """
    if new.name in (q.name for q in queries):
        raise ValueError(
            f"a query named {new.name!r} is being served; remove it first, or choose another name"
        )
    if len(queries) == MOST:
        raise ValueError(
            f"{MOST} queries are being served, which is the most that one run can; start another "
            f"run for {new.name!r}"
        )
    bit = min(set(range(MOST)) - {q.bitmap_position for q in queries})
    since = [
        _complete_since(queries, new, s, limit, now)
        for s, (limit, now) in enumerate(zip(watermarks, latest, strict=True))
    ]
    return (
        *queries,
        replace(
            new, bitmap_position=bit, complete_since=tuple(since) or (None,) * len(new.windows)
        ),
    )


def _complete_since(
    queries: Queries, new: Query, stream: int, limit: Clock, now: int | None
) -> int | None:
    """Return the event time from which the state holds every tuple that a new query can use.

    Microseconds, for one stream; None: it holds all. Only queries with no selection on the stream,
    or with the same selection, guarantee tuples. Queries with other selections are ignored.
    """
    if now is None:
        return None
    since = now + 1
    for q in queries:
        if q.selections[stream] in (None, new.selections[stream]):
            times = [] if q.complete_since[stream] is None else [q.complete_since[stream]]
            if limit is not None and q.windows[stream] < new.windows[stream]:
                times.append(to_limit(limit) - q.windows[stream] + 1)
            if not times:
                return None
            since = min(since, max(t for t in times if t is not None))
    return since


def remove_query(queries: Queries, name: str) -> Queries:
    """Return the queries without ``name``. Raises ValueError if there is no such query."""
    if name not in (q.name for q in queries):
        raise ValueError(
            f"no query is named {name!r}; there are: {', '.join(q.name for q in queries) or 'none'}"
        )
    return tuple(q for q in queries if q.name != name)


def rewrite_bitmaps(
    rows: BlockRows,
    fresh: np.ndarray,
    kept_bits: int,
    bitmaps: QueryBitmaps,
    stream: int,
    limit: Clock,
    orders: Sequence[Order],
    is_numbered: bool = False,
    keeps_old: bool = False,
) -> pa.RecordBatch | None:
    """Return a stored block for another set of queries; None if no tuple is left.

    The new bitmap of a chosen row has the ``kept_bits`` of the old one and its ``fresh`` bits.
    Tuples that no query can use are dropped: those in no query's selection, and those older than
    each of their windows at ``limit``. ``limit`` is the earliest event time still expected of the
    other streams; None: drop none for their age. ``is_numbered``: some query preserves the stream,
    so that rows keep their numbers. ``keeps_old``: some query answers tuples of the stream, so that
    old ones stay until the next batch answers them.
    """
    chosen = None if is_numbered else rows.key_mask()
    batch = take_numbered_rows(rows) if is_numbered else rows.batch
    if chosen is not None:
        batch = batch.filter(pa.array(chosen))
    if not is_numbered and ROW in batch.schema.names:  # no query preserves the stream any more
        batch = batch.drop_columns([ROW])
    marks = (batch.column(MARK).to_numpy() & kept_bits) | fresh
    ranks = bitmaps.longest_window_rank(stream, marks)
    alive = marks != 0
    if limit is not None and not is_numbered and not keeps_old:
        alive &= batch.column(TIME).to_numpy() + bitmaps.lifetimes(stream)[ranks] > limit
    batch = replace_column(replace_column(batch, MARK, pa.array(marks)), ROUTING, pa.array(ranks))
    if not alive.any():
        return None
    block = build_block(batch.filter(pa.array(alive)), orders, ordered=True)
    return drop_plain_numbers(block) if is_numbered else block


def query_bitmap(queries: Iterable[Query]) -> int:
    """Return a bitmap with the bits of these queries."""
    return sum(1 << q.bitmap_position for q in queries)


def queries_by_selection(
    queries: Iterable[Query], stream: int, is_stored: bool = False
) -> dict[str | None, int]:
    """Return bitmaps of the queries with each selection on a stream.

    Each selection is then evaluated once (7.4). ``is_stored``: for tuples that came before these
    queries; as-of queries release none of them.
    """
    bitmaps: dict[str | None, int] = {}
    for q in queries:
        if is_stored and stream == LEFT and q.match is not None:
            continue
        bitmaps[q.selections[stream]] = (
            bitmaps.get(q.selections[stream], 0) | 1 << q.bitmap_position
        )
    return bitmaps
