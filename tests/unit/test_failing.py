"""Sides of AND and OR that may fail are looked at only where nothing before them decides, and what
they say is what SQL says.
"""

from __future__ import annotations

from itertools import product

import duckdb
import pyarrow as pa
import pytest
from braid.condition.compiler import Compiler
from braid.condition.residual import cursor
from braid.condition.sqltypes import BIGINT, BOOLEAN, INT

pytestmark = pytest.mark.unit

COMPILER = Compiler({("", c): BOOLEAN for c in "abc"} | {("", "n"): INT, ("", "m"): BIGINT})
TRUTHS = [dict(zip("abc", t, strict=True)) for t in product((True, False, None), repeat=3)]


def told(sql: str, rows: list[dict[str, object]]) -> list[bool | None]:
    kinds = dict.fromkeys("abc", pa.bool_()) | {"n": pa.int32(), "m": pa.int64()}
    tuples = pa.Table.from_pylist(rows, pa.schema(kinds.items()))
    with cursor() as db:
        db.register("tuples", tuples)
        found = db.sql(f"SELECT {COMPILER.text(sql)[0]} FROM tuples").fetchall()
    return [value for (value,) in found]


@pytest.mark.parametrize(
    "how", ["{} AND {} AND {}", "{} OR {} OR {}", "{} AND ({} OR {})", "{} OR {} AND {}"]
)
def test_what_is_looked_at_in_turn_says_what_sql_says(how: str) -> None:
    rows = [row | {"n": 1} for row in TRUTHS]
    plain = how.format("a", "b", "c")
    turned = how.format("(a AND n + 1 > 0)", "(n + 1 > 0 AND b)", "(NOT NOT c OR n + 1 < 0)")
    assert "CASE" in COMPILER.text(turned)[0] and "CASE" not in COMPILER.text(plain)[0]
    assert told(turned, rows) == told(plain, rows)


def test_what_is_decided_does_not_fail_and_what_is_not_does() -> None:
    rows = [{"n": 1, "m": 5}, {"n": 2_000_000_000, "m": None}]
    assert told("n < 9 AND n + n < 9", rows) == [True, False]
    assert told("n > 9 OR n + n > 9", rows) == [False, True]
    assert told("n < 9 AND m > 3 AND n + n < 9", rows) == [True, False]
    for sql in ("m > 3 AND n + n < 9", "n + n < 9 AND n < 9", "m <= 3 OR n + n < 9"):
        with pytest.raises(duckdb.Error, match="Overflow"):
            told(sql, rows)
