"""Columns of a batch that no SQL computes are those that SQL would have computed."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from braid import HashPartition, HotKeys, StaticGrid
from braid.condition.parser import parse_predicate
from braid.core.reserved_columns import ROUTING
from braid.kernels.hashing import xxhash64
from braid.papers.baselines.centralized import Centralized
from braid.sources import arrow_replay
from braid.sources.arrow_replay import ArrowFeed
from braid.sources.arrow_streams import _time_sql
from braid.sources.plain_columns import PlainColumns
from hypothesis import given, settings
from hypothesis import strategies as st

_MICROSECONDS = st.integers(-(2**55), 2**55)
_VALUES = {
    "i": (pa.int32(), st.integers(-(2**31), 2**31 - 1)),
    "n": (pa.int64(), st.integers(-(2**62), 2**62)),
    "u": (pa.int8(), st.integers(-128, 127)),
    "f": (pa.float64(), st.floats()),
    "s": (pa.string(), st.text(max_size=3)),
    "d": (pa.date32(), st.dates()),
    "t": (pa.timestamp("us"), _MICROSECONDS),
    "z": (pa.timestamp("us", "UTC"), _MICROSECONDS),
    "m": (pa.timestamp("ms"), st.integers(-(2**40), 2**40)),
    "c": (pa.decimal128(6, 2), st.integers(-9999, 9999).map(lambda n: Decimal(n) / 100)),
    "b": (pa.bool_(), st.booleans()),
}
_CONDITIONS = [
    *(f"a.{name} = b.{name}" for name in "inufsdtzcb"),
    *(f"a.{name} < b.{name}" for name in "inufsdtzc"),
    "a.i = b.i AND a.t < b.t",
    "a.i = b.i OR a.s = b.s",
    "a.n = b.n OR a.n = b.i",
    "a.i = b.i AND a.f > 0",
    "a.i = b.i AND a.s IS NULL",
    "a.i = b.i AND a.s IS NOT NULL AND b.d IS NOT NULL",
    "a.i % 9 + 1 = b.i AND a.t < b.t",
    "a.i / 2 = b.i",
    "a.u <=> b.u",
    "a.I = b.I",
]
_ROWS = st.lists(
    st.fixed_dictionaries({name: st.none() | values for name, (_, values) in _VALUES.items()}),
    min_size=1,
    max_size=4,
)


def _table(rows: list[dict[str, object]]) -> pa.Table:
    return pa.table({n: pa.array([row[n] for row in rows], t) for n, (t, _) in _VALUES.items()})


def _feed(table: pa.Table, condition: str, time: str = "cast(0 as bigint)") -> ArrowFeed:
    schemas = {"a": table.schema, "b": table.schema}
    predicate = parse_predicate(condition, schemas, [None, None])
    return ArrowFeed(schemas, predicate, dict.fromkeys("ab", time), Centralized(), 0)


@given(_ROWS, st.sampled_from(_CONDITIONS), st.sampled_from("tz"), st.booleans())
@settings(deadline=None, max_examples=60)
def test_that_plain_columns_are_those_of_sql(
    rows: list[dict[str, object]], condition: str, time: str, is_needed: bool
) -> None:
    table = _table(rows)
    feed = _feed(table, condition, _time_sql(time, is_needed))
    found = {alias: feed.compute_tuples(alias, table) for alias in "ab"}
    feed.plain = dict.fromkeys("ab", PlainColumns({}, {}, None))
    for alias in "ab":
        expected = feed.compute_tuples(alias, table)
        assert found[alias].schema == expected.schema
        assert found[alias].to_pylist().__repr__() == expected.to_pylist().__repr__()


@pytest.mark.parametrize(
    ("condition", "statements"),
    [
        ("a.i = b.i", 0),
        ("a.i = b.i AND a.f < b.f", 0),
        ("a.n = b.n OR a.n = b.i", 0),
        ("a.i = b.i AND a.i > 0", 1),
        ("a.i = b.i AND a.t < b.t", 0),
        ("a.z < b.z", 0),
        ("a.i + 1 = b.i", 1),
        ("a.z = b.z", 0),
    ],
)
def test_that_plain_columns_need_no_statement(
    condition: str, statements: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = {"i": 1, "n": 1, "u": 1, "f": 1.0, "s": "x", "d": dt.date(2026, 1, 1), "b": True}
    table = _table([{**row, "t": 1, "z": 1, "m": 1, "c": Decimal(1)}])
    feed, asked = _feed(table, condition), []
    query_table = arrow_replay.query_table
    monkeypatch.setattr(arrow_replay, "query_table", lambda *a: asked.append(a) or query_table(*a))
    assert feed.compute_tuples("a", table).num_rows == 1
    assert len(asked) == statements


@pytest.mark.parametrize("time", ["t", "z"])
@pytest.mark.parametrize("is_needed", [True, False])
def test_that_event_time_is_plain_unless_the_year_is_far_off(time: str, is_needed: bool) -> None:
    sql = _time_sql(time, is_needed)
    row = {"i": 1, "n": 1, "u": 1, "f": 1.0, "s": "x", "d": None, "b": True, "m": 1, "c": None}
    for at, is_plain in ((2**59, True), (2**61, False), (2**63 - 1, False), (None, True)):
        table = _table([{**row, "t": at, "z": at}, {**row, "t": 5, "z": 6}])
        feed = _feed(table, "a.n = b.n", sql)
        assert feed.plain["a"].can_take(table) == is_plain
        found = feed.compute_tuples("a", table)
        feed.plain["a"] = PlainColumns({}, {}, None)
        assert found == feed.compute_tuples("a", table)


@given(_ROWS, _ROWS, st.sampled_from(["a.n = b.n", "a.n = b.i", "a.u = b.n", "a.i % 9 = b.n"]))
@settings(deadline=None, max_examples=25)
def test_equal_integers_have_equal_routing_keys_in_all_batches(
    rows: list[dict[str, object]], others: list[dict[str, object]], condition: str
) -> None:
    """Whether a batch needs a statement of SQL or not, and whatever the types of the keys are."""
    schemas = dict.fromkeys("ab", _table(rows).schema)
    predicate = parse_predicate(condition, schemas, [None, None])
    times = dict.fromkeys("ab", "cast(0 as bigint)")
    feed = ArrowFeed(schemas, predicate, times, HashPartition(7), 3)
    keys = dict[int, int]()
    for alias, column in zip("ab", predicate.equality or (), strict=True):
        for table in (_table(rows), _table(others), _table([*rows, *others])):
            tuples = feed.compute_tuples(alias, table)
            assert tuples.schema.field(ROUTING).type == pa.int32()
            for value, key in zip(*(tuples[n].to_pylist() for n in (column, ROUTING)), strict=True):
                assert keys.setdefault(value, key) == key and 0 <= key < 7
                assert key == int(xxhash64(3, np.array([value]))[0] % 7)


def test_only_keys_that_are_integers_are_hashed_without_sql() -> None:
    """Those of texts are hashes, and those of times are microseconds. Floats are left to SQL."""
    schemas = dict.fromkeys("ab", _table([]).schema)
    times = dict.fromkeys("ab", "cast(0 as bigint)")
    hashed = {}
    for condition in ("a.s = b.s", "a.f = b.f", "a.n = b.f", "a.n = b.n", "a.t = b.t"):
        predicate = parse_predicate(condition, schemas, [None, None])
        hashed[condition] = ArrowFeed(schemas, predicate, times, HashPartition(7), 3).routing
    some = [condition for condition, routing in hashed.items() if routing]
    assert some == ["a.s = b.s", "a.n = b.n", "a.t = b.t"]
    predicate = parse_predicate("a.n = b.n", schemas, [None, None])
    for placement in (HashPartition(1), StaticGrid(4, n=2, m=2)):
        assert not ArrowFeed(schemas, predicate, times, placement, 3).routing


def test_parts_of_a_value_are_told_apart_without_sql() -> None:
    """Tuples of one value have keys of that value in both streams, and nearly all of them."""
    rows = 4000
    table = pa.table({"n": np.full(rows, 5), "id": np.arange(rows), "s": ["x"] * rows})
    schemas = dict.fromkeys("ab", table.schema)
    predicate = parse_predicate("a.n = b.n", schemas, [None, None])
    placement, times = HotKeys(4), dict.fromkeys("ab", "cast(0 as bigint)")
    feed = ArrowFeed(schemas, predicate, times, placement, 3)
    whole = feed.compute_tuples("a", table)
    keys, per_value = whole[ROUTING].to_numpy(), placement.keys_per_value
    assert set(keys // per_value) == set(
        feed.compute_tuples("b", table)[ROUTING].to_numpy() // per_value
    )
    counts = np.bincount(keys % per_value, minlength=per_value)
    assert (
        len(set(keys // per_value)) == 1 and counts.min() > 0 and counts.max() < 3 * counts.mean()
    )
    some = feed.compute_tuples("a", table.slice(1000, 500))
    assert some[ROUTING].to_pylist() == keys[1000:1500].tolist()
    alone = dict.fromkeys("ab", table.select(["n", "s"]).schema)
    assert not ArrowFeed(alone, predicate, times, placement, 3).routing
