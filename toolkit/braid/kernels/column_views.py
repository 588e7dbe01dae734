"""Columns of Braid's that have the values of another column. They are neither copied nor stored.

Such a column, for example event time in microseconds or a numeric join key, refers to the memory of
the other one. So it is found by its address, whatever made it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
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
    names = {view.name for view in views}
    schema, columns = batch.schema, batch.columns
    stored = [n for n, name in enumerate(schema.names) if name not in names]
    metadata = {**(schema.metadata or {}), _VIEWS: json.dumps(views).encode()}
    fields = pa.schema([schema.field(n) for n in stored], metadata)
    return pa.record_batch([columns[n] for n in stored], schema=fields)


def restore_views(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the batch with the dropped columns at their positions."""
    metadata = dict(batch.schema.metadata or {})
    listed = metadata.pop(_VIEWS, None)
    if listed is None:
        return batch
    names, columns = list(batch.schema.names), list(batch.columns)
    for position, name, source, kind in _decode_views(listed):
        columns.insert(position, batch.column(source).view(kind))
        names.insert(position, name)
    return pa.record_batch(columns, names=names, metadata=metadata or None)


def take_without_views(batch: pa.RecordBatch, at: np.ndarray) -> pa.RecordBatch:
    """Return the rows at these positions, without a bounds check. Views stay views."""
    return restore_views(pc.take(drop_views(batch), pa.array(at), boundscheck=False))


def concat_without_views(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """Return the rows of several batches with equal columns. Views of all of them stay views."""
    several = [batch for batch in batches if batch.num_rows] or batches[:1]
    if len(several) == 1:
        return several[0]
    without_views = [*map(drop_views, several)]
    if len({*map(list_stored_columns, without_views)}) == 1:
        return restore_views(pa.concat_batches(without_views))
    return pa.concat_batches(several)


def list_stored_columns(batch: pa.RecordBatch) -> tuple[tuple[str, ...], bytes]:
    """Return the columns of a batch without views, and the encoded list of these views."""
    return tuple(batch.schema.names), (batch.schema.metadata or {}).get(_VIEWS, b"")


def _find_views(batch: pa.RecordBatch) -> list[_View]:
    first: dict[tuple[int | None, ...], str] = {}
    views: list[_View] = []
    for n, (name, column) in enumerate(zip(batch.schema.names, batch.columns, strict=True)):
        kind = column.type
        if not pa.types.is_primitive(kind) or not batch.num_rows:
            continue
        addresses = (buffer and buffer.address for buffer in column.buffers())
        source = first.setdefault((*addresses, column.offset, kind.bit_width), name)
        is_number = pa.types.is_integer(kind) or pa.types.is_floating(kind)
        if source != name and name.startswith(_RESERVED) and is_number:
            views.append(_View(n, name, source, str(kind)))
    return views


@lru_cache(64)
def _decode_views(listed: bytes) -> tuple[_View, ...]:
    return tuple(_View(*view) for view in json.loads(listed))
