"""A comparison of two streams has Spark's meaning, however it is spelled.

NaN is the largest number and equals itself, NULL matches nothing, and two types are compared in
their common type.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from math import inf, isnan, nan
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from braid.condition.arrow_type_checker import ArrowAnalyzer
from braid.condition.parser import parse_predicate
from braid.condition.predicate import computed_columns
from braid.condition.residual_evaluation import query_table
from braid.core.reserved_columns import TIME
from braid.kernels.block_builder import build_block
from braid.kernels.host_block_rows import BlockRows
from hypothesis import given
from hypothesis import strategies as st
from oracle import kernel_pairs

pytestmark = pytest.mark.unit
TIMES = [datetime(1, 1, 1), datetime(1969, 12, 31, 23, 59, 59, 7), datetime(9999, 12, 31)]
DAYS = [time.date() for time in TIMES]
VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "boolean": (pa.bool_(), [False, True]),
    "tinyint": (pa.int8(), [-127, -1, 0, 1, 127]),
    "int": (pa.int32(), [-(2**31) + 1, -1, 0, 1, 2, 2**31 - 1]),
    "bigint": (pa.int64(), [-(2**63) + 1, -1, 0, 1, 2**53, 2**53 + 1, 2**63 - 1]),
    "float": (pa.float32(), [nan, -inf, inf, -0.0, 0.0, 0.5, 1.0, -1.0, 2.0**24, 1.5e30]),
    "double": (pa.float64(), [nan, -inf, inf, -0.0, 0.0, 0.5, 1.0, -1.0, 2.0**53, 1e300]),
    "decimal": (pa.decimal128(10, 2), [Decimal(v) for v in ("-1.00", "0.00", "0.50", "1.01")]),
    "string": (pa.string(), ["", "a", "B", "é"]),
    "date": (pa.date32(), DAYS),
    "timestamp": (pa.timestamp("us", "UTC"), [t.replace(tzinfo=UTC) for t in TIMES]),
    "timestamp_ntz": (pa.timestamp("us"), TIMES),
}
"""Values by type, with edge cases, but without the least integer, whose negation overflows."""
NUMBERS = ("tinyint", "int", "bigint", "float", "double", "decimal")
PAIRS = [(k, k) for k in VALUES] + [(a, b) for a in NUMBERS for b in NUMBERS if a != b]
SIGNS: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "=": operator.eq,
    "<=>": operator.eq,
}
TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "<=>": "<=>"}
OPPOSITE = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "=": "<>"}
Arithmetic = Callable[[float, float], tuple[float, float]]
MOVED: dict[str, Arithmetic] = {
    "a.x {} b.y + 1": lambda x, y: (x, y + 1),
    "b.y + 1D {} a.x": lambda x, y: (y + 1, x),
    "1 - a.x {} b.y": lambda x, y: (1 - x, y),
    "a.x {} 1 - b.y": lambda x, y: (x, 1 - y),
    "b.y {} 1 - a.x": lambda x, y: (y, 1 - x),
    "1 - b.y {} a.x": lambda x, y: (1 - y, x),
    "1 - a.x {} 2 - b.y": lambda x, y: (1 - x, 2 - y),
    "a.x - b.y {} 1": lambda x, y: (x - y, 1),
    "1 {} b.y - a.x": lambda x, y: (1, y - x),
    "a.x + b.y {} 1": lambda x, y: (x + y, 1),
    "-(a.x - b.y) {} 0.5D": lambda x, y: (-(x - y), 0.5),
    "-a.x + b.y {} -b.y": lambda x, y: (-x + y, -y),
    "abs(a.x - b.y) {} 1": lambda x, y: (abs(x - y), 1),
    "1 {} abs(b.y - a.x)": lambda x, y: (1, abs(y - x)),
}
"""Sides over two doubles, by their text; Spark and Python compute them alike."""


def order(x: Any) -> tuple[bool, Any]:
    """Return a value in comparable form: NaN is larger than any number, and equals itself."""
    missing = isinstance(x, float) and isnan(x)
    return missing, 0 if missing else x


def common(x: Any, y: Any) -> tuple[Any, Any]:
    """Return two values as Spark compares them: a float with another number as doubles."""
    if isinstance(x, float) or isinstance(y, float):
        return float(x), float(y)
    return x, y


def is_true_in_spark(sign: str, x: Any, y: Any) -> bool:
    """Return Spark's value of a comparison."""
    if x is None or y is None:
        return sign == "<=>" and x is y
    left, right = common(x, y)
    return SIGNS[sign](order(left), order(right))


def find_pairs(on: str, **streams: pa.Table) -> Counter[Any]:
    """Return the pairs that the kernels find by the links, filters and residuals of a condition."""
    analyser, blocks = ArrowAnalyzer(streams), []
    predicate = parse_predicate(on, streams, (None, None), analyser)
    for stream, (alias, rows) in enumerate(streams.items()):
        computed = computed_columns(predicate)[stream].items()
        more = [
            f', {analyser.compile_expression(alias, sql)[0]} AS "{name}"' for name, sql in computed
        ]
        keys = [f'"{name}" IS NOT NULL' for name in predicate.key_columns[stream]]
        where = " AND ".join(["true", *keys])
        made = query_table(
            f"SELECT * FROM (SELECT *{''.join(more)} FROM tuples) WHERE {where}", rows
        )
        (batch,) = made.combine_chunks().to_batches() or [
            pa.RecordBatch.from_pylist([], made.schema)
        ]
        for name in ("__key", TIME):
            batch = batch.append_column(name, pa.array(np.zeros(batch.num_rows, np.int64)))
        blocks.append(BlockRows(build_block(batch, predicate.stream_orders(stream))))
    return kernel_pairs(predicate, *blocks)


def rows(name: str, values: list[Any], kind: pa.DataType) -> pa.Table:
    return pa.table({"id": range(len(values)), name: pa.array(values, kind)})


def drawn(draw: st.DataObject, kind: str) -> tuple[list[Any], pa.DataType]:
    """Return some values of a type as Arrow holds them."""
    given, values = VALUES[kind]
    chosen = draw.draw(st.lists(st.sampled_from([*values, None]), min_size=1, max_size=8))
    return pa.array(chosen, given).to_pylist(), given


@given(st.data(), st.sampled_from(PAIRS), st.sampled_from(sorted(SIGNS)))
def test_a_comparison_says_the_same_however_it_is_spelt(
    draw: st.DataObject, kinds: tuple[str, str], sign: str
) -> None:
    (x, one), (y, other) = (drawn(draw, kind) for kind in kinds)
    streams = {"a": rows("x", x, one), "b": rows("y", y, other)}
    wanted = pairs(x, y, lambda p, q: is_true_in_spark(sign, p, q))
    spellings = [f"a.x {sign} b.y", f"b.y {TURNED[sign]} a.x", f"NOT NOT a.x {sign} b.y"]
    if sign in OPPOSITE:
        spellings += [
            f"NOT a.x {OPPOSITE[sign]} b.y",
            f"NOT b.y {TURNED.get(OPPOSITE[sign], '<>')} a.x",
        ]
    for on in spellings:
        assert find_pairs(on, **streams) == wanted, on


@given(
    st.data(),
    st.sampled_from([p for p in PAIRS if {*p} <= {*NUMBERS}]),
    st.sampled_from(sorted(SIGNS)),
)
def test_negated_numbers_are_compared_as_they_are(
    draw: st.DataObject, kinds: tuple[str, str], sign: str
) -> None:
    """The negation of NaN is NaN, and still the largest."""
    (x, one), (y, other) = (drawn(draw, kind) for kind in kinds)
    streams = {"a": rows("x", x, one), "b": rows("y", y, other)}
    wanted = pairs(x, y, lambda p, q: is_true_in_spark(sign, negated(p), negated(q)))
    for on in (f"-a.x {sign} -b.y", f"-b.y {TURNED[sign]} -a.x"):
        assert find_pairs(on, **streams) == wanted, on


@given(st.data(), st.sampled_from(sorted(MOVED)), st.sampled_from(sorted(SIGNS)))
def test_what_is_added_up_is_compared_as_it_is_calculated(
    draw: st.DataObject, text: str, sign: str
) -> None:
    x, y = (drawn(draw, "double")[0] for _ in "ab")
    streams = {"a": rows("x", x, pa.float64()), "b": rows("y", y, pa.float64())}

    def holds(p: float | None, q: float | None) -> bool:
        if p is None or q is None:
            missing = [
                s
                for s in text.split("{}")
                if ("a.x" in s and p is None) or ("b.y" in s and q is None)
            ]
            return sign == "<=>" and len(missing) == 2
        return is_true_in_spark(sign, *MOVED[text](p, q))

    assert find_pairs(text.format(sign), **streams) == pairs(x, y, holds), text.format(sign)


def negated(x: Any) -> Any:
    return None if x is None else -x


def pairs(x: list[Any], y: list[Any], holds: Callable[[Any, Any], bool]) -> Counter[Any]:
    """Return the row numbers of the pairs that satisfy a condition."""
    return Counter((i, k) for i, p in enumerate(x) for k, q in enumerate(y) if holds(p, q))
