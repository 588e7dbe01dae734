"""Columns of Braid's own that have the values of a user's column, such as event time in
microseconds. They are views of it: neither copied with it nor stored beside it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import NamedTuple

import pyarrow as pa


class GeneratedColumn(NamedTuple):
    """A column ``name`` that has the values of another, its ``source``, as Arrow type ``kind``."""

    name: str
    source: str
    arrow_type: str


_VIEWS = b"braid.views"
"""In a schema's metadata: of each column that was left out its place, name, source and type."""


def drop_generated_columns(
    batch: pa.RecordBatch, echoes: Sequence[GeneratedColumn]
) -> pa.RecordBatch:
    """The batch without those of the echoes that can be views; its metadata tells of them."""
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
    """The batch that was shorn, with all columns in their places."""
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
    """Whether values of both types are the same bytes."""
    times = pa.types.is_timestamp(source) and kind == "int64"
    return times or bool(source == pa.type_for_alias(kind))
