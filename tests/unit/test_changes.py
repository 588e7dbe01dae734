"""Joins of streams of changes: the net of their results is the join of the rows that exist."""

from __future__ import annotations

import random
from collections import Counter
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from braid import AdaptiveGrid, HashPartition, QueryHub, Shed, StaticGrid
from braid.answer_check import check_answers
from braid.core.placement import Placement
from braid.core.run_events import BatchCommitted
from braid.errors import PendingPairs
from braid.papers.baselines.centralized import Centralized
from braid.stream_join import StreamJoin
from oracle import PLACEMENTS, killed_before

pytestmark = pytest.mark.unit
BATCHES = 4
WORDS = {1: ("insert", "update_postimage"), -1: ("delete", "update_preimage")}
CHANGES = {"a": "_change_type", "b": "op"}
ON = {"ab": "a.k = b.k AND a.x <= b.x", "abc": "a.k = b.k AND b.k = c.k AND a.x <= c.x"}
Net = Counter[tuple[tuple[int, int], ...]]


def draw_changes(draw: random.Random, size: int) -> list[tuple[int, int, int, int]]:
    """Return batch, sign, key and value of changes: only rows that exist are deleted."""
    changes, alive = [], list[tuple[int, int]]()
    for batch in range(BATCHES):
        for _ in range(draw.randrange(size)):
            if alive and draw.random() < 0.4:
                changes.append((batch, -1, *alive.pop(draw.randrange(len(alive)))))
            else:
                row = draw.randrange(4), draw.randrange(5)
                alive.append(row)
                changes.append((batch, 1, *row))
    return changes


def draw_streams(aliases: str, seed: int, size: int = 12) -> dict[str, list[Any]]:
    draw = random.Random(seed)
    streams = {alias: draw_changes(draw, size) for alias in aliases if alias != "c"}
    if "c" in aliases:  # a stream that is not of changes
        streams["c"] = [
            (draw.randrange(BATCHES), 1, draw.randrange(4), draw.randrange(5)) for _ in range(9)
        ]
        streams["c"].sort()
    return streams


def make_tables(streams: dict[str, list[Any]], seed: int = 0) -> dict[str, pa.Table]:
    """Return tables: ``a`` has words, ``b`` integers, and ``c`` no changes."""
    draw, tables = random.Random(seed), {}
    for alias, rows in streams.items():
        batch, sign, k, x = zip(*rows, strict=True) if rows else ((), (), (), ())
        columns = {
            "batch": pa.array(batch, pa.int32()),
            "k": pa.array(k, pa.int32()),
            "x": pa.array(x, pa.int64()),
        }
        if alias == "a":
            columns["_change_type"] = pa.array([draw.choice(WORDS[s]) for s in sign], pa.string())
        elif alias == "b":
            columns["op"] = pa.array(sign, pa.int8())
        tables[alias] = pa.table(columns)
    return tables


def make_join(streams: dict[str, list[Any]], **settings: Any) -> StreamJoin:
    settings = {"placement": Centralized(), "check": True, **settings}
    return StreamJoin(make_tables(streams), ON["".join(streams)], changes=CHANGES, **settings)


def join_existing(streams: dict[str, list[Any]], batch: int) -> Net:
    """Return the join of the rows that exist after a batch, by brute force."""
    existing = []
    for rows in streams.values():
        alive: Counter[tuple[int, int]] = Counter()
        for at, sign, k, x in rows:
            alive[k, x] += sign * (at <= batch)
        existing.append(alive.elements())
    pairs = product(*existing)
    return Counter(p for p in pairs if len({k for k, _ in p}) == 1 and p[0][1] <= p[-1][1])


def sum_results(rows: list[dict[str, Any]]) -> Net:
    net: Net = Counter()
    for row in rows:
        key = tuple((row[a]["k"], row[a]["x"]) for a in row if a != "_change_type")
        net[key] += {"insert": 1, "delete": -1}[row["_change_type"]]
    return Counter({key: n for key, n in net.items() if n})


SERVING = {
    (name, aliases): placement
    for name, placement in PLACEMENTS.items()
    for aliases in ON
    if placement.supports_streams(len(aliases))
}


ALTERNATING = [
    served[number % len(served)]
    for number, name in enumerate(PLACEMENTS)
    if (served := [each for each in SERVING if each[0] == name])
]
"""Each placement once, with two or three streams; `make fuzz ARGS=--queries` draws from all."""


@pytest.mark.parametrize(("name", "aliases"), ALTERNATING)
def test_the_net_of_the_results_is_the_join_of_what_exists(
    name: str, aliases: str, tmp_path: Path
) -> None:
    """After every batch, unless the placement has joined fewer pairs because it moves state."""
    placement, streams = SERVING[name, aliases], draw_streams(aliases, len(name) % 2)
    run = make_join(streams, placement=placement).start(tmp_path, batches="batch")
    run.awaitTermination()
    assert sum_results(run.results().to_pylist()) == join_existing(streams, BATCHES) != Net()
    net = run.results(net=True).to_pylist()
    assert {row["_change_type"] for row in net} <= {"insert"}
    assert Counter(sum_results(net)) == join_existing(streams, BATCHES)
    if type(placement).has_pending_pairs is Placement.has_pending_pairs:
        before: Net = Counter()
        for batch in range(run.results_since(0)[1]):
            before.update(sum_results(run._read_batch_results(batch).to_pylist()))
            left = Counter({key: n for key, n in before.items() if n})
            assert left == join_existing(streams, batch)


def test_a_result_has_no_change_column_of_its_members(tmp_path: Path) -> None:
    run = make_join(draw_streams("abc", 1)).start(tmp_path / "run", batches="batch")
    run.awaitTermination()
    schema = run.results().schema
    assert schema.names == ["a", "b", "c", "_change_type"]
    assert [f.name for f in schema.field("a").type] == ["k", "x"]
    assert [f.name for f in schema.field("b").type] == ["k", "x"]


def test_a_killed_run_goes_on_with_the_same_changes(tmp_path: Path) -> None:
    streams = draw_streams("ab", 4)
    for batch in (0, 3):
        with killed_before(batch), pytest.raises(OSError, match="killed"):
            make_join(streams).start(tmp_path / "run", batches="batch").awaitTermination()
    run = StreamJoin.resume(tmp_path / "run", make_tables(streams))
    run.awaitTermination()
    assert sum_results(run.results().to_pylist()) == join_existing(streams, BATCHES)
    assert check_answers(tmp_path / "run").is_right


def test_the_check_of_answers_sees_a_wrong_sign(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("braid.storage.block_files._CHANGES", pa.array(["insert", "insert"]))
    make_join(draw_streams("ab", 2)).start(tmp_path / "run", batches="batch").awaitTermination()
    report = check_answers(tmp_path / "run")
    assert report.wrong > 0 and not report.missing


def test_rows_of_equal_columns_are_summed_whatever_their_types(tmp_path: Path) -> None:
    values = {
        "f": pa.array([float("nan"), float("nan"), 0.0, -0.0]),
        "n": pa.array([None, None, 1, 1], pa.int8()),
    }
    a = pa.table({"k": pa.array([1, 1, 1, 1], pa.int32()), **values, "op": pa.array([1, -1, 1, 1])})
    b = pa.table({"k": pa.array([1], pa.int32()), "l": pa.array([[1, None]])})
    run = StreamJoin({"a": a, "b": b}, "a.k = b.k", changes={"a": "op"}).start(tmp_path / "run")
    run.awaitTermination()
    net = run.results(net=True)
    assert net.schema == run.results().schema and net.num_rows == 2
    assert [row["a"]["f"] for row in net.to_pylist()] == [0.0, 0.0]


@pytest.mark.parametrize("placement", [StaticGrid(4), HashPartition(3)], ids=str)
def test_a_row_that_is_updated_again_and_again_is_held_about_once(
    placement: Placement, tmp_path: Path
) -> None:
    """20 batches update 20 of 50 rows each: 850 changes, and some of them equal."""
    draw, rows, changes = random.Random(1), [[k, 0] for k in range(50)], []
    changes = [(0, 1, *row) for row in rows]
    for batch in range(1, 21):
        for k in draw.sample(range(50), 20):
            changes.append((batch, -1, *rows[k]))
            rows[k][1] = draw.randrange(5)
            changes.append((batch, 1, *rows[k]))
    other = [(batch, 1, draw.randrange(50), 2) for batch in range(21)]
    streams = {"a": changes, "b": other}
    run = make_join(streams, placement=placement).start(tmp_path / "run", batches="batch")
    run.awaitTermination()
    held = [event.live_tuples[0] for event in run.events() if isinstance(event, BatchCommitted)]
    assert max(held) < 800 < len(changes) and held[16] < 400, held
    assert sum_results(run.results().to_pylist()) == join_existing(streams, 20)
    assert check_answers(tmp_path / "run").is_right


def test_what_is_deleted_without_being_there_is_a_deletion(tmp_path: Path) -> None:
    streams: dict[str, Any] = {"a": [(0, -1, 1, 1), (1, -1, 1, 1)], "b": [(0, 1, 1, 1)]}
    run = make_join(streams).start(tmp_path / "run", batches="batch")
    run.awaitTermination()
    assert [row["_change_type"] for row in run.results(net=True).to_pylist()] == ["delete"] * 2


@pytest.mark.parametrize(
    ("column", "value"),
    [("_change_type", "upsert"), ("_change_type", None), ("op", 0), ("op", None)],
)
def test_another_word_fails_the_batch_and_names_the_row(
    column: str, value: Any, tmp_path: Path
) -> None:
    kind = pa.string() if column == "_change_type" else pa.int64()
    good = "insert" if column == "_change_type" else 1
    a = pa.table({"k": [1, 2, 3], column: pa.array([good, value, good], kind)})
    run = StreamJoin(
        {"a": a, "b": pa.table({"k": [1, 2]})}, "a.k = b.k", changes={"a": column}
    ).start(tmp_path / "run", batches=1)
    with pytest.raises(
        ValueError,
        match=rf"a\.{column} has another value in the row \(k=2, {column}={value!r}\) of batch 1; it must be one of insert",
    ):
        run.awaitTermination()


def test_pairs_that_are_owed_are_told_beside_the_net(tmp_path: Path) -> None:
    grid = next(p for p in PLACEMENTS.values() if isinstance(p, AdaptiveGrid))
    run = make_join(draw_streams("ab", 3), placement=grid).start(tmp_path / "run", batches="batch")
    run.awaitTermination()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(grid), "has_pending_pairs", lambda self, state: True)
        with pytest.warns(PendingPairs, match="not those of one moment"):
            run.results(net=True)


A = pa.table({"k": [1], "op": ["insert"], "ts": pa.array([0], pa.timestamp("us"))})
REFUSED = [
    (
        {"changes": "op"},
        r"changes is 'op'; it must be columns by alias, as \{'a': '_change_type'\}",
    ),
    ({"changes": {"c": "op"}}, r"changes are given for \['c'\]; the streams are a, b"),
    ({"changes": {"a": "od"}}, r"stream a has no change column 'od'; it has: k, op, ts"),
    ({"changes": {"a": None}}, "stream a has no change column None"),
    ({"changes": {"a": "ts"}}, "a.ts is of type timestamp.*; it must be text or an integer"),
    (
        {"changes": {"a": "op"}, "windows": "5 seconds", "time": "ts"},
        "rows of a expire.*windows='unbounded'",
    ),
    (
        {"changes": {"a": "op"}, "how": "left"},
        "changes are given, and how is 'left'.*how='inner'",
    ),
    (
        {"changes": {"a": "op"}, "shed": Shed(fraction=0.5)},
        "changes are given, and pairs are left out by shed",
    ),
]


@pytest.mark.parametrize(("given", "said"), REFUSED)
def test_what_changes_do_not_go_with_is_refused(given: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        StreamJoin({"a": A, "b": A}, "a.k = b.k", **given)


def test_a_condition_reads_no_change_column_and_may_bound_no_time() -> None:
    with pytest.raises(ValueError, match=r"'a\.op' in the join condition is a change col"):
        StreamJoin({"a": A, "b": A}, "a.k = b.k AND a.op = 'insert'", changes={"a": "op"})
    with pytest.raises(ValueError, match="where of a reads op, which says how a row changes"):
        StreamJoin({"a": A, "b": A}, "a.k = b.k", changes={"a": "op"}, where={"a": "OP <> 'x'"})
    near = "a.k = b.k AND abs(unix_micros(a.ts) - unix_micros(b.ts)) < 5"
    with pytest.raises(ValueError, match="rows of a expire"):
        StreamJoin({"a": A, "b": A}, near, changes={"a": "op"}, time="ts")
    StreamJoin({"a": A, "b": A}, near, changes={"a": "op"}, time="ts", windows="unbounded")


def test_net_is_for_changes_alone(tmp_path: Path) -> None:
    run = StreamJoin({"a": A, "b": A}, "a.k = b.k").start(tmp_path / "run")
    run.awaitTermination()
    with pytest.raises(ValueError, match="net is for joins of changes"):
        run.results(net=True)


def test_a_hub_has_no_changes() -> None:
    with pytest.raises(ValueError, match="the queries of a hub have windows"):
        QueryHub(streams={"a": A, "b": A}, time="ts", changes={"a": "op"})
