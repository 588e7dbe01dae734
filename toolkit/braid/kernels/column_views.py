"""Columns of Braid's that have the values of another column. They are neither copied nor stored.

Such a column, for example event time in microseconds or a numeric join key, refers to the memory of
the other one. So it is found by its address, whatever made it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_VIEWS = b"braid.views"
"""Metadata key of a schema: position, name, source and type of each omitted column."""
_RESERVED = "__"


class _View(NamedTuple):
    """A column that has the bytes of its ``source``, as this Arrow type."""

    position: int
    name: str
    source: str
    arrow_type: str


def drop_views(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the batch without columns of Braid's that are views. Its metadata lists them."""
    views = _find_views(batch)
    if not views:
        return batch
    metadata = {**(batch.schema.metadata or {}), _VIEWS: _encode_views(views)}
    return _drop_columns(batch, views).replace_schema_metadata(metadata)


def restore_views(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the batch with the dropped columns at their positions."""
    metadata = dict(batch.schema.metadata or {})
    listed = metadata.pop(_VIEWS, None)
    return batch if listed is None else _add_views(batch, _decode_views(listed), metadata)


def take_without_views(batch: pa.RecordBatch, at: np.ndarray) -> pa.RecordBatch:
    """Return the rows at these positions, without a bounds check. Views stay views."""
    positions, views = pa.array(at), _find_views(batch)
    if not views:
        return pc.take(batch, positions, boundscheck=False)
    taken = pc.take(_drop_columns(batch, views), positions, boundscheck=False)
    return _add_views(taken, views, batch.schema.metadata)


def concat_without_views(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """Return the rows of several batches with equal columns. Views of all of them stay views."""
    several = [batch for batch in batches if batch.num_rows] or batches[:1]
    if len(several) == 1:
        return several[0]
    views = _find_views(several[0])
    if not views or any(_find_views(batch) != views for batch in several[1:]):
        return pa.concat_batches(several)
    stored = pa.concat_batches([_drop_columns(batch, views) for batch in several])
    return _add_views(stored, views, several[0].schema.metadata)


def concat_slices(slices: Sequence[tuple[pa.RecordBatch, int, int]]) -> pa.RecordBatch:
    """Return slices [begin, end) of batches with equal columns. Views of all of them stay views.

    The views of a batch are found once, whatever the number of its slices.
    """
    filled = [each for each in slices if each[1] < each[2]] or slices[:1]
    if len(filled) == 1:
        batch, begin, end = filled[0]
        return batch.slice(begin, end - begin)
    distinct = {id(batch): batch for batch, _, _ in filled}
    views, *others = map(_find_views, distinct.values())
    if any(each != views for each in others):
        views = ()
    stored = {at: _drop_columns(batch, views) for at, batch in distinct.items()}
    joined = pa.concat_batches(
        [stored[id(batch)].slice(begin, end - begin) for batch, begin, end in filled]
    )
    return _add_views(joined, views, filled[0][0].schema.metadata)


def list_stored_columns(batch: pa.RecordBatch) -> tuple[tuple[str, ...], bytes]:
    """Return the columns of a batch without views, and the encoded list of these views."""
    return tuple(batch.schema.names), (batch.schema.metadata or {}).get(_VIEWS, b"")


def _find_views(batch: pa.RecordBatch) -> tuple[_View, ...]:
    first: dict[int, int] = {}
    views: list[_View] = []
    columns = batch.columns if batch.num_rows else ()
    for n, column in enumerate(columns):
        buffers = column.buffers()
        if len(buffers) != 2 or buffers[1] is None:
            continue
        source = first.setdefault(buffers[1].address, n)
        if source != n and _is_view(batch, n, source):
            names = batch.schema.names
            views.append(_View(n, names[n], names[source], str(column.type)))
    return tuple(views)


def _is_view(batch: pa.RecordBatch, number: int, source: int) -> bool:
    """Return whether a column, which begins at the address of its source, has all of its bytes."""
    if not batch.schema.names[number].startswith(_RESERVED):
        return False
    column, other = batch.column(number), batch.column(source)
    kind, valid = column.type, [each.buffers()[0] for each in (column, other)]
    return (
        (pa.types.is_integer(kind) or pa.types.is_floating(kind))
        and pa.types.is_primitive(other.type)
        and kind.bit_width == other.type.bit_width
        and column.offset == other.offset
        and len({each and each.address for each in valid}) == 1
    )


def _drop_columns(batch: pa.RecordBatch, views: Sequence[_View]) -> pa.RecordBatch:
    if not views:
        return batch
    dropped = {view.position for view in views}
    return batch.select([n for n in range(batch.num_columns) if n not in dropped])


def _add_views(
    batch: pa.RecordBatch, views: Sequence[_View], metadata: Mapping[bytes, bytes] | None
) -> pa.RecordBatch:
    if not views:
        return batch
    fields, columns = list(batch.schema), list(batch.columns)
    sources = dict(zip(batch.schema.names, columns, strict=True))
    for view in views:
        column = sources[view.source].view(view.arrow_type)
        fields.insert(view.position, pa.field(view.name, column.type))
        columns.insert(view.position, column)
    return pa.record_batch(columns, schema=pa.schema(fields, metadata or None))


@lru_cache(64)
def _encode_views(views: tuple[_View, ...]) -> bytes:
    return json.dumps(views).encode()


@lru_cache(64)
def _decode_views(listed: bytes) -> tuple[_View, ...]:
    return tuple(_View(*view) for view in json.loads(listed))
