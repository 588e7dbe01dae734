"""Lay out the streams of a join as one DataFrame with few columns.

Each column costs time on the way from Spark to Arrow. The union of the streams has the columns
``__stream``, ``__key`` and slots ``__c0``, ``__c1``, ... Streams share slots: the n-th column of a
type uses the n-th slot of that type.

A plain copy of another column, such as event time in microseconds or a numeric join key, is not
sent; the receiver makes it. So is a routing key that is the hash of such a copy.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame
from pyspark.sql import types as T

from braid.core.reserved_columns import ROUTING
from braid.kernels.join_spec import GeneratedColumn, StreamLayout

_GENERATED = {
    r"cast\(\(`([^`]+)`\) as bigint\)": (
        (T.ByteType, T.ShortType, T.IntegerType, T.LongType),
        "int64",
    ),
    r"cast\(\(`([^`]+)`\) as double\)": (
        (T.IntegerType, T.LongType, T.FloatType, T.DoubleType),
        "float64",
    ),
    r"unix_micros\(\(`([^`]+)`\)\)": ((T.TimestampType,), "int64"),
}
"""Spark SQL that copies a column, the column types it copies, and the copy's Arrow type."""


def make_layouts(
    frames: Sequence[DataFrame],
    expressions: Sequence[Mapping[str, str]],
    omitted: Sequence[str | None] = (),
) -> tuple[StreamLayout, ...]:
    """Return the layout of every stream.

    ``expressions``: Spark SQL by column name, over the stream's own columns. ``omitted``: by
    stream, a column that is not sent; None: all are.
    """
    slots: dict[str, list[str]] = {}
    layouts = []
    omitted = omitted or (None,) * len(frames)
    for frame, wanted, unsent in zip(frames, expressions, omitted, strict=True):
        generated = [
            GeneratedColumn(name, *same)
            for name, sql in wanted.items()
            if (same := _match_generated_column(frame, sql))
        ]
        generated_names = {column.name for column in generated}
        computed = frame.selectExpr(
            *(f"{sql} AS `{name}`" for name, sql in wanted.items() if name not in generated_names)
        )
        used: dict[str, int] = {}
        stream_columns = []
        sent_fields = [field for field in frame.schema.fields if field.name != unsent]
        for field in [*sent_fields, *computed.schema.fields]:
            kind = field.dataType.simpleString()
            n = used[kind] = used.get(kind, 0) + 1
            if n > len(slots.setdefault(kind, [])):
                slots[kind].append(f"__c{sum(map(len, slots.values()))}")
            stream_columns.append((field.name, slots[kind][n - 1]))
        layouts.append(StreamLayout(tuple(stream_columns), tuple(generated)))
    return tuple(layouts)


def _match_generated_column(frame: DataFrame, sql: str) -> tuple[str, str] | None:
    """Return the column that an expression copies and the copy's Arrow type; None: no copy."""
    for pattern, (types, arrow) in _GENERATED.items():
        if same := re.fullmatch(pattern, sql):
            field = next(f for f in frame.schema.fields if f.name.lower() == same[1].lower())
            return (field.name, arrow) if isinstance(field.dataType, types) else None
    return None


def project_stream(
    stream: int, frame: DataFrame, key: str | None, wanted: Mapping[str, str], layout: StreamLayout
) -> DataFrame:
    """Return one stream's part of the union.

    ``key``: Spark SQL of its routing key, if the key is sent.

    SQL text goes to Spark in one call, whereas a column takes one for each of its parts. Computed
    columns follow the columns they read: Spark's optimizer doubles what it knows of an expression
    with every column renamed after it.
    """
    slots = (f"{wanted.get(name, f'`{name}`')} AS `{slot}`" for name, slot in layout.column_slots)
    keys = [] if key is None else [f"{key} AS `{ROUTING}`"]
    return frame.selectExpr(f"{stream} AS `__stream`", *slots, *keys)
