"""Braid's columns that repeat the values of a user's column, such as event time in microseconds.

They are views of that column: neither sent nor stored in addition.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import NamedTuple

import pyarrow as pa


class GeneratedColumn(NamedTuple):
    """A column that has the values of its ``source`` column, as this Arrow type."""

    name: str
    source: str
    arrow_type: str


_VIEWS = b"braid.views"
"""Metadata key of a schema: position, name, source and type of each omitted column."""


def drop_generated_columns(
    batch: pa.RecordBatch, echoes: Sequence[GeneratedColumn]
) -> pa.RecordBatch:
    """Return the batch without generated columns that can be views. Its metadata lists them."""
    schema = batch.schema
    views = sorted(
        (schema.get_field_index(name), name, source, kind)
        for name, source, kind in echoes
        if _has_same_bytes(schema.field(source).type, kind)
    )
    if not views:
        return batch
    metadata = {**(schema.metadata or {}), _VIEWS: json.dumps(views).encode()}
    return batch.drop_columns([name for _, name, *_ in views]).replace_schema_metadata(metadata)


def restore_generated_columns(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the batch with the dropped columns restored at their positions."""
    metadata = dict(batch.schema.metadata or {})
    views = metadata.pop(_VIEWS, None)
    if views is None:
        return batch
    names, columns = list(batch.schema.names), list(batch.columns)
    for n, name, source, kind in json.loads(views):
        names.insert(n, name)
        columns.insert(n, batch.column(source).view(kind))
    return pa.record_batch(columns, names=names, metadata=metadata or None)


def _has_same_bytes(source: pa.DataType, kind: str) -> bool:
    """Return whether values of both types are represented by the same bytes."""
    times = pa.types.is_timestamp(source) and kind == "int64"
    return times or bool(source == pa.type_for_alias(kind))
