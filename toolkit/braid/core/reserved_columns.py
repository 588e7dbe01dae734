"""The names of the columns that Braid adds, and the nullability of all columns.

A user's column never begins with two underscores. Any column may be NULL, at every depth.
"""

from __future__ import annotations

from functools import lru_cache

import pyarrow as pa

TIME = "__time"
"""Event time, in microseconds."""
ROUTING = "__key"
"""Routing key."""
ROW = "__row"
"""Number of a tuple in the block that it was first stored in, if it is not its position."""
BIRTH = "__birth"
"""The block that ``__row`` counts in, in partial results that were copied."""
MATCHED = "__matched"
"""Whether a tuple is in some result, in files of match bitmaps."""
MATCHED_NOW = "__matched_now"
"""Whether it was in none before the last batch."""
MEETS = "__meets"
"""Whether an arriving tuple of a preserved stream can be in a pair."""
MARK = "__query_bitmap"
"""Bitmap of the queries whose selections a tuple passed, in blocks of a shared run."""
QUERIES = "__queries"
"""Bitmap of the queries that a result belongs to, in results of a shared run."""
NO_TIME = 1 << 62
"""Event time of an arriving tuple that has none, though its stream does and the join needs none."""
DRAW = "__draw"
"""Hash by which a tuple is sampled, in a run that sheds load."""
WORTH = "__worth"
"""Utility of a tuple, in a run that sheds load by utility."""
KEPT = "__kept"
"""Share of tuples admitted when this one arrived."""
SAMPLING_HASH = "__sampling_hash"
"""Hash by which a partial result was sampled, on its way to another task."""
SIGN = "__sign"
"""1 for a tuple that is inserted, -1 for one that is deleted, in blocks of a stream of changes."""
CHANGE_TYPE = "_change_type"
"""``insert`` or ``delete``, in results of a join of changes."""
PLACE = "__place"
"""Number of a released tuple, beside a partner on its way to another task."""
WEIGHT = "weight"
"""Weight of a result, 1 / its sampling probability, in a run that sheds load."""


def make_nullable(schema: pa.Schema) -> pa.Schema:
    """Return the schema with every field nullable, at every depth.

    Fields are columns, struct fields, list items and map values.

    Map keys are never NULL and stay unchanged. Spark declares a field NOT NULL for the case that
    its parent is not NULL, while Arrow's writers and casts check the field alone. A NULL struct
    with a NOT NULL field is therefore valid in Spark and refused by Arrow, so nullability is not
    part of Braid's types.
    """
    return pa.schema(map(_make_field_nullable, schema), metadata=schema.metadata)


def make_column_nullable(column: pa.Array) -> pa.Array:
    """Return the column with every nested field nullable. The values are not copied."""
    if not pa.types.is_nested(column.type):
        return column
    return column.cast(make_type_nullable(column.type))


def make_type_nullable(kind: pa.DataType) -> pa.DataType:
    """Return the type with every nested field nullable, as in ``make_nullable``."""
    return _make_nested_nullable(kind) if pa.types.is_nested(kind) else kind


def _make_field_nullable(field: pa.Field) -> pa.Field:
    return field.with_type(make_type_nullable(field.type)).with_nullable(True)


@lru_cache(maxsize=1024)
def _make_nested_nullable(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(kind):
        return pa.struct([_make_field_nullable(field) for field in kind])
    if pa.types.is_map(kind):
        key = kind.key_field.with_type(make_type_nullable(kind.key_type))
        return pa.map_(key, _make_field_nullable(kind.item_field), kind.keys_sorted)
    if pa.types.is_list(kind):
        return pa.list_(_make_field_nullable(kind.value_field))
    if pa.types.is_large_list(kind):
        return pa.large_list(_make_field_nullable(kind.value_field))
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(_make_field_nullable(kind.value_field), kind.list_size)
    return kind
