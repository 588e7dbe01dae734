"""The queries of a shared run: how one comes, what it can be promised, and what its coming or going
does to stored tuples.

Source: Wang 2008, sections 7.3 (queries enter and leave) and 7.4 (marks). No Spark.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from braid.core.query import MOST, Query
from braid.core.reserved_columns import MARK, ROUTING, TIME
from braid.kernels.block_builder import build_block, replace_column
from braid.kernels.block_rows import BlockRows
from braid.kernels.query_bitmaps import QueryBitmaps

Queries = tuple[Query, ...]


def add_query(
    queries: Queries,
    new: Query,
    watermarks: Sequence[int | None] = (),
    latest: Sequence[int | None] = (),
) -> Queries:
    """The queries with one more, on a bit of its own. ``watermarks`` is that fact, and
    ``latest`` the latest event times, of a join that is running.

    Raises ValueError when the name is taken or there are too many.
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
    queries: Queries, new: Query, stream: int, limit: int | None, now: int | None
) -> int | None:
    """The event time (microseconds) from which on the state has all tuples of a stream that a new
    query can use; None: all.

    What a query with no selection there or the same one keeps is certain; that of other selections
    is not counted on.
    """
    if now is None:
        return None
    since = now + 1
    for q in queries:
        if q.selections[stream] in (None, new.selections[stream]):
            known = [] if q.complete_since[stream] is None else [q.complete_since[stream]]
            if limit is not None and q.windows[stream] < new.windows[stream]:
                known.append(limit - q.windows[stream] + 1)
            if not known:
                return None
            since = min(since, max(t for t in known if t is not None))
    return since


def remove_query(queries: Queries, name: str) -> Queries:
    """The queries without one. Raises ValueError when it is not there."""
    if name not in (q.name for q in queries):
        raise ValueError(
            f"no query is named {name!r}; there are: {', '.join(q.name for q in queries) or 'none'}"
        )
    return tuple(q for q in queries if q.name != name)


def rewrite_bitmaps(
    rows: BlockRows,
    fresh: np.ndarray,
    kept: int,
    bitmaps: QueryBitmaps,
    stream: int,
    limit: int | None,
    indexes: Sequence[str],
) -> pa.RecordBatch | None:
    """A stored block for another set of queries: marks are the ``kept`` bits of the old ones and
    the ``fresh`` bits, by chosen row.

    Tuples that no query can use any more are left out: of no query's selection, or older than every
    window that is left for them at ``limit``, the earliest event time still expected of the other
    streams. None when nothing is left.
    """
    chosen = rows.key_mask()
    batch = rows.batch if chosen is None else rows.batch.filter(pa.array(chosen))
    marks = (batch.column(MARK).to_numpy() & kept) | fresh
    ranks = bitmaps.longest_window_rank(stream, marks)
    alive = marks != 0
    if limit is not None:
        alive &= batch.column(TIME).to_numpy() + bitmaps.lifetimes(stream)[ranks] > limit
    batch = replace_column(replace_column(batch, MARK, pa.array(marks)), ROUTING, pa.array(ranks))
    return (
        build_block(batch.filter(pa.array(alive)), indexes, ordered=True) if alive.any() else None
    )


def query_bitmap(queries: Iterable[Query]) -> int:
    """The bitmap with the bits of these queries."""
    return sum(1 << q.bitmap_position for q in queries)


def queries_by_selection(queries: Iterable[Query], stream: int) -> dict[str | None, int]:
    """The queries, as bits, by their selection on a stream, so that each is evaluated once
    (7.4).
    """
    found: dict[str | None, int] = {}
    for q in queries:
        found[q.selections[stream]] = found.get(q.selections[stream], 0) | 1 << q.bitmap_position
    return found
