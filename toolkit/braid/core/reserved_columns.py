"""The names of the columns that Braid adds to the user's own (a user's column never begins with two
underscores), and the nullability of all columns: each may be NULL, at every depth.
"""

from __future__ import annotations

from functools import lru_cache

import pyarrow as pa

TIME = "__time"
"""Event time, in microseconds."""
ROUTING = "__key"
"""The routing key."""
MARK = "__query_bitmap"
"""The column of a shared run's blocks that says, bit by bit, which queries' selections a tuple
passed.
"""
QUERIES = "__queries"
"""The column of a shared run's results with the queries that each serves."""
DRAW = "__draw"
"""The hash of a tuple by which it is drawn, in a run that sheds load."""
WORTH = "__worth"
"""What a tuple is worth, in a run that sheds load by utility."""
KEPT = "__kept"
"""The share of tuples that came in when this one did."""
COIN = "__coin"
"""What partial results were drawn by, on their way to another task."""
WEIGHT = "weight"
"""The column of results with one over the chance that each had, in a run that sheds load."""


def make_nullable(schema: pa.Schema) -> pa.Schema:
    """Return the schema with every field nullable: columns, struct fields, list items and map
    values, at every depth. Map keys are never NULL and stay as they are.

    Spark declares a field NOT NULL for the case that its parent is not NULL, while Arrow's writers
    and casts look at the field alone. A NULL struct with a NOT NULL field is therefore valid in
    Spark and refused by Arrow, so nullability is no part of Braid's types.
    """
    return pa.schema(map(_make_field_nullable, schema), metadata=schema.metadata)


def make_column_nullable(column: pa.Array) -> pa.Array:
    """Return the column with every field below it nullable; the values are not copied."""
    if not pa.types.is_nested(column.type):
        return column
    return column.cast(make_type_nullable(column.type))


def make_type_nullable(kind: pa.DataType) -> pa.DataType:
    """Return the type with every field below it nullable, as in ``make_nullable``."""
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
