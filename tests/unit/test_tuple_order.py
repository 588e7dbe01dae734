"""Tuples of a block are numbered alike wherever they arrive in whatever order."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from braid.core.reserved_columns import ROUTING, TIME
from braid.kernels.tuple_order import checksum_order, sort_by_contents
from hypothesis import given
from hypothesis import strategies as st

ROWS = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 2), st.sampled_from(["", "x", None])), min_size=1
)
SCHEMA = pa.schema(
    [(TIME, pa.int64()), (ROUTING, pa.int32()), ("v", pa.string()), ("w", pa.list_(pa.string()))]
)


def make_rows(tuples: Any) -> pa.RecordBatch:
    """Return tuples in the order of their routing keys, as they arrive."""
    rows = [(time, key, text, [text] * (key + 1)) for time, key, text in tuples]
    columns = zip(*sorted(rows, key=lambda row: row[1]), strict=True)
    return pa.RecordBatch.from_arrays(
        [pa.array(c, t) for c, t in zip(columns, SCHEMA.types, strict=True)], schema=SCHEMA
    )


@given(ROWS.flatmap(lambda rows: st.tuples(st.just(rows), st.permutations(rows))))
def test_tuples_in_any_order_are_sorted_and_checked_alike(both: Any) -> None:
    one, two = (sort_by_contents(make_rows(rows), ROUTING, SCHEMA.names) for rows in both)
    assert one.to_pylist() == two.to_pylist()
    assert checksum_order(one) == checksum_order(two)
    turned = one.take(pa.array(range(one.num_rows - 1, -1, -1)))
    ends = [(row[TIME], row[ROUTING]) for row in one.to_pylist()]
    assert (checksum_order(turned) == checksum_order(one)) == (ends == ends[::-1])
