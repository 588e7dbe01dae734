"""Routing keys of tables whose join values are integers, without a statement of SQL."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from braid.condition.arrow_type_checker import ArrowAnalyzer
from braid.condition.predicate import Predicate
from braid.condition.sql_types import INTEGRAL
from braid.core.placement import Placement
from braid.core.reserved_columns import TIME
from braid.kernels.hashing import xxhash64
from braid.kernels.join_spec import RoutingHash

_ODD = np.int64(-0x61C8864E7A143579)
"""An odd number by which a product, modulo 2**64, keeps the tuples of a value apart."""


class IntegerRouting(NamedTuple):
    """The routing hash of a stream.

    - ``value_hash``: hash of the join value.
    - ``keys_per_value``: number of routing keys of a value.
    - ``columns``: integers and timestamps of the stream. With the event time, they tell the tuples
      of one value apart.
    """

    value_hash: RoutingHash
    keys_per_value: int = 1
    columns: tuple[str, ...] = ()

    def compute_keys(self, computed: pa.Table, rows: pa.Table, places: pa.ChunkedArray) -> pa.Array:
        """Return the routing keys of tuples.

        ``computed`` has their computed columns, and ``places`` their places in ``rows``.
        """
        keys = self.value_hash.routing_keys(_to_integers(computed[self.value_hash.column]))
        if self.keys_per_value == 1:
            return keys
        seed, identity = self.value_hash.seed, rows.select(self.columns)
        if computed.num_rows < rows.num_rows:
            identity = identity.take(places)
        part = np.zeros(computed.num_rows, np.int64)
        for column in (computed[TIME], *identity.columns):
            numbers = _to_integers(column)
            numbers = pc.fill_null(numbers, 0) if numbers.null_count else numbers
            part = part * _ODD ^ numbers.to_numpy()
        part = xxhash64(seed, part) % self.keys_per_value
        return pa.array((keys.to_numpy() * self.keys_per_value + part).astype(np.int32))


def _to_integers(column: pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks().cast(pa.int64())


def find_routing_hashes(
    analyser: ArrowAnalyzer, predicate: Predicate, placement: Placement | None, seed: int
) -> dict[str, IntegerRouting]:
    """Return, by stream, the routing hash of join values that are integers; else none.

    It is computed without a statement of SQL. It depends on the schemas alone, since equal values
    must have equal routing keys in all batches. If values have several keys, each stream needs
    another integer or timestamp that tells tuples apart.
    """
    equality = predicate.equality
    if placement is None or equality is None or placement.routing_key_source != "join":
        return {}
    if placement.key_space_size == 1:
        return {}
    keys = zip(analyser.schemas, predicate.key_columns, equality, strict=True)
    kinds = [analyser.infer_type(alias, columns[name]) for alias, columns, name in keys]
    if any(kind is None or kind.name not in INTEGRAL for kind in kinds):
        return {}
    columns = {alias: _list_integers(schema) for alias, schema in analyser.schemas.items()}
    per_value = placement.keys_per_value
    if per_value > 1 and min(map(len, columns.values())) < 2:
        return {}
    return {
        alias: IntegerRouting(
            RoutingHash(name, seed, placement.key_space_size // per_value),
            per_value,
            columns[alias],
        )
        for alias, name in zip(analyser.schemas, equality, strict=True)
    }


def _list_integers(schema: pa.Schema) -> tuple[str, ...]:
    """Return the columns of signed integers and timestamps."""
    return tuple(
        field.name
        for field in schema
        if pa.types.is_signed_integer(field.type) or pa.types.is_timestamp(field.type)
    )
