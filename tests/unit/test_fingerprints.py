"""A folder resumes only with the rows that it started with, and refuses others."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from braid.core.run_events import RunStarted
from braid.core.run_state import RunState
from braid.errors import DamagedRunError
from braid.papers.baselines.centralized import Centralized
from braid.sources.input_fingerprints import (
    InputFingerprint,
    check_sockets,
    fingerprint_table,
    warn_of_sockets,
)
from braid.storage.run_store import RunStore
from braid.stream_join import StreamJoin
from hypothesis import given
from hypothesis import strategies as st

FLOATS = st.lists(st.sampled_from([None, 0.0, -0.0, 1.0, float("nan")]), max_size=5)
VALUES = st.one_of(st.none(), st.integers(0, 3))
ROWS = st.lists(st.tuples(VALUES, st.lists(VALUES, max_size=2)), max_size=8)


def table(values: list[int]) -> pa.Table:
    return pa.table(
        {"k": pa.array(values, pa.int64()), "batch": pa.array([0] * len(values), pa.int64())}
    )


def join(a: pa.Table, b: pa.Table) -> StreamJoin:
    return StreamJoin({"a": a, "b": b}, "a.k = b.k", Centralized())


def typed(rows: list[tuple[Any, Any]]) -> pa.Table:
    kind = pa.struct([("k", pa.int64()), ("l", pa.list_(pa.int64()))])
    return pa.Table.from_struct_array(pa.array([{"k": k, "l": each} for k, each in rows], kind))


@given(ROWS, ROWS)
def test_fingerprints_are_equal_where_rows_are(
    one: list[tuple[Any, Any]], other: list[tuple[Any, Any]]
) -> None:
    equal = sorted(map(repr, one)) == sorted(map(repr, other))
    assert (fingerprint_table(typed(one)) == fingerprint_table(typed(other))) == equal
    split = fingerprint_table(typed(one)).add(fingerprint_table(typed(other)))
    assert split == fingerprint_table(typed([*other, *one])) and 0 <= split.hash_sum < 1 << 64


@given(FLOATS, FLOATS, st.sampled_from([pa.float32(), pa.float64()]))
def test_a_negative_zero_is_another_value(
    one: list[float | None], other: list[float | None], kind: pa.DataType
) -> None:
    equal = sorted(map(repr, one)) == sorted(map(repr, other))
    tables = [pa.table({"x": pa.array(values, kind)}) for values in (one, other)]
    assert (fingerprint_table(tables[0]) == fingerprint_table(tables[1])) == equal


def test_an_old_folder_refuses_other_rows(tmp_path: Path) -> None:
    old, new = table([1, 2]), table([7, 8, 9])
    assert join(old, old).start(tmp_path).awaitTermination()
    with pytest.raises(ValueError) as refused:
        join(new, new).start(tmp_path)
    assert str(refused.value) == (
        f"stream a has 3 rows where the run in {tmp_path} began with 2 others; use a new folder, "
        "or StreamJoin.resume(...) to go on with the old input"
    )
    with pytest.raises(ValueError, match="stream b has 2 rows where the run in .* with 2 others"):
        join(old, table([1, 3])).start(tmp_path)
    with pytest.raises(ValueError, match="stream b has 0 rows where"):
        join(old, table([])).start(tmp_path)
    again = join(table([2, 1]), old).start(tmp_path)  # in any order
    assert again.awaitTermination() and again.results().num_rows == 2


def test_a_resumed_run_looks_at_no_rows_and_says_so(tmp_path: Path) -> None:
    old, new = table([1, 2]), table([7, 8, 9])
    first = join(old, old).start(tmp_path)
    assert first.awaitTermination() and "resumed with" not in repr(first)
    run = StreamJoin.resume(tmp_path, {"a": new, "b": new})
    assert run.awaitTermination() and run.results().num_rows == 2
    assert repr(run).endswith("resumed with the input that it began with)")
    started = [e.resumed for r in (first, run) for e in r.events() if isinstance(e, RunStarted)]
    assert started == [False, True]


def test_an_old_folder_refuses_other_batches(tmp_path: Path) -> None:
    old = table([1, 2])
    assert join(old, old).start(tmp_path, batches=2).awaitTermination()
    for asked in (3, "batch"):
        with pytest.raises(ValueError, match=f"batches is {asked!r} where the run in .* with 2;"):
            join(old, old).start(tmp_path, batches=asked)
    for wrong in (2.0, True, 0):
        with pytest.raises(ValueError, match=f"batches is {wrong}; it must be a whole number"):
            join(old, old).start(tmp_path, batches=wrong)  # type: ignore[arg-type]
    for same in (2, None):
        assert join(old, old).start(tmp_path, batches=same).awaitTermination()


def test_an_empty_table_has_a_fingerprint() -> None:
    assert fingerprint_table(table([])) == InputFingerprint(0, 0)
    assert fingerprint_table(pa.table({"k": [1]}).select([])) == InputFingerprint(1, 0)


TAMPERED: list[tuple[str, Any, str]] = [
    ("seed", -1, "expected `int` >= 0"),
    ("seed", "x", "expected `int`, got `str`"),
    ("partitions", 0, "expected `int` >= 1"),
    ("streams", ["a"], "expected `array` of length >= 2"),
    ("batches", 1.5, "expected `int | null`, got `float`"),
    ("cut", 0, "expected `int` >= 1"),
    ("windows", None, "expected `object`, got `null`"),
    ("lateness", 3, "expected `str | object`, got `int`"),
    ("ready", 1, "expected `bool`, got `int`"),
    ("fingerprints", {"a": [2, "zz"], "b": [2, "zz"]}, "expected `str` matching regex"),
    ("another", 1, "object contains unknown field `another`"),
]


@pytest.mark.parametrize(("field", "value", "says"), TAMPERED)
def test_a_sealed_field_that_cannot_be_is_a_sentence(
    tmp_path: Path, field: str, value: Any, says: str
) -> None:
    old = table([1, 2])
    assert join(old, old).start(tmp_path).awaitTermination()
    query = RunStore(tmp_path).read_settings()
    assert query is not None
    RunStore(tmp_path).create_run({**query, field: value})
    says = f"^run.json of the run in .* is not accepted: {re.escape(says)}"
    for go_on in (
        lambda: join(old, old).start(tmp_path),
        lambda: StreamJoin.resume(tmp_path, {"a": old, "b": old}),
    ):
        with pytest.raises(ValueError, match=says):
            go_on()


@pytest.mark.parametrize(
    ("field", "values", "missing"),
    [
        ("batches", [None], "batches"),
        ("fingerprints", [{}, {"b": [2, "0" * 16]}], "the fingerprint of stream a"),
    ],
)
def test_a_missing_field_of_a_run_that_is_ready_is_named(
    field: str, values: list[Any], missing: str, tmp_path: Path
) -> None:
    rows = table([1, 2])
    assert join(rows, rows).start(tmp_path).awaitTermination()
    settings = RunStore(tmp_path).read_settings()
    assert settings is not None
    without = {name: value for name, value in settings.items() if name != field}
    for changed in [without, *({**settings, field: value} for value in values)]:
        RunStore(tmp_path).create_run(changed)
        for go_on in (
            lambda: join(rows, rows).start(tmp_path),
            lambda: StreamJoin.resume(tmp_path, {"a": rows, "b": rows}),
        ):
            with pytest.raises(DamagedRunError, match=f"is not accepted: {missing} is missing$"):
                go_on()


SOURCES = {
    "a": {"type": "kafka", "subscribe": "socket"},
    "b": {"type": "parquet", "path": "/in", "1.type": "socket", "1.host": "there", "1.port": "99"},
}
"""A topic with the name of a socket is no socket; a union may read one beside files."""


def test_a_stream_that_reads_a_socket_is_warned_of() -> None:
    with pytest.warns(UserWarning) as warned:
        warn_of_sockets(SOURCES)
    (said,) = (str(each.message) for each in warned)
    assert said.startswith("stream b reads a socket, which cannot be read again: ")


def test_a_run_that_reads_a_socket_is_not_resumed_within_a_batch(tmp_path: Path) -> None:
    store, offsets = RunStore(tmp_path), tmp_path / "checkpoint" / "offsets"
    store.create_run({})
    offsets.mkdir(parents=True)
    for batch in range(2):
        (offsets / str(batch)).touch()
        says = f"begun micro-batch {batch} and not committed it, and stream b reads a socket, which"
        with pytest.raises(ValueError, match=says):
            check_sockets(SOURCES, store)
        check_sockets({"a": SOURCES["a"]}, store)
        store.commit_batch(batch, store.states.write_state(RunState(batch, epoch=batch)), {}, [])
        check_sockets(SOURCES, store)
