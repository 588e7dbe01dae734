"""A hub of tables, without Spark: every query's answer is DuckDB's answer to that query alone.

Queries come and go, operators move, nodes fail, and the hub crashes at any point.
"""

from __future__ import annotations

import random
import threading
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from braid.core.run_state import FileChecksum
from braid.errors import QueryError
from braid.hub import hub_batch_loop, operator_moves, running_operators
from braid.hub.flat_results import rename_columns
from braid.hub.hub import QueryHub
from braid.hub.hub_log import HubLog
from braid.hub.operator_instance import OperatorInstance
from braid.hub.query_registry import QueryRegistry
from braid.hub.reoptimizer import Reoptimizer
from braid.hub.running_operators import OperatorRuntime
from braid.papers.reuse.deployment_codec import deployment_from_plain, deployment_to_plain
from braid.papers.reuse.network import Network, Node
from braid.storage.log_entries import FileRef
from braid.storage.manifest_log import ManifestLog
from braid.storage.run_store import RunStore
from hub_cases import (
    ARRIVES,
    AT,
    BATCHES,
    COUNTED,
    CROSS,
    ENOUGH,
    GROUPED,
    LONG,
    NARROW,
    NETWORK,
    SECOND,
    THREE,
    TICKED,
    WIDE,
    SteppedHub,
    end_of_ticks,
    expect_rows,
    make_hub_tables,
    query_rows,
    random_query,
    stored_state,
)

pytestmark = pytest.mark.unit


def test_queries_from_the_start_get_what_duckdb_finds_for_each_alone(tmp_path: Path) -> None:
    data = make_hub_tables(1)
    asked = {
        "wide": WIDE, "narrow": NARROW, "cross": CROSS, "long": LONG, "three": THREE,
        "ticked": TICKED, "grouped": GROUPED, "counted": COUNTED, "enough": ENOUGH,
    }  # fmt: skip
    run = QueryHub(data, "ts").start(tmp_path / "hub", "batch", asked)
    run.awaitTermination()
    stores = [instance.store for instance in run._registry.works.instances.values()]
    assert stores and all(s.blocks._removing is None for s in stores), (
        "nothing is removed after the end"
    )
    matches = {q.name: q.reuse_kind for q in run.queries.values()}
    assert matches == dict.fromkeys(asked, "holds") | {
        "wide": "new", "long": "relaxed", "three": "new"
    }  # fmt: skip
    for name, sql in asked.items():
        truth = expect_rows(data, sql, until=end_of_ticks(data, sql))
        assert truth and query_rows(run, name) == truth, name
    end = end_of_ticks(data, COUNTED)
    assert any(row[1:] == (0, None) for row in expect_rows(data, COUNTED, until=end)), "of no rows"


def test_a_hub_has_the_status_of_a_run(tmp_path: Path) -> None:
    data = make_hub_tables(1)
    run = QueryHub(data, "ts").start(tmp_path / "hub", "batch", {"wide": WIDE}, pace=3600)
    while run.isActive and not run.seconds:
        threading.Event().wait(0.002)
    running = run.status
    run.stop()
    assert (running["state"], running["batch"], running["batches"]) == ("running", 1, BATCHES)
    first = sum(pc.sum(pc.equal(t["batch"], 0)).as_py() for t in data.values())
    assert (running["tuples"], run.status["state"]) == (first, "stopped")


@pytest.mark.parametrize("killed", [False, True])
def test_of_queries_from_the_start_all_are_there_or_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, killed: bool
) -> None:
    """One has no plan, because no path leads to its sink or its join is unsupported.

    Or the start is killed after one of them.
    """
    nodes = (*NETWORK.nodes, Node("S9", "sink", (9.0, 9.0)))
    hub = QueryHub(make_hub_tables(1), "ts", network=Network(nodes, NETWORK.links), at=AT)
    asked = {name: {"sql": sql, "sink": "S1"} for name, sql in (("one", WIDE), ("two", NARROW))}
    if killed:
        submit, calls = QueryRegistry.register_query, count()
        monkeypatch.setattr(
            QueryRegistry, "register_query", lambda *a: submit(*a) if next(calls) < 1 else 1 / 0
        )
        with pytest.raises(ZeroDivisionError):
            hub.start(tmp_path / "hub", "batch", asked)
        monkeypatch.setattr(QueryRegistry, "register_query", submit)
    else:
        with pytest.raises(QueryError):
            hub.start(tmp_path / "hub", "batch", {**asked, "two": {"sql": CROSS, "sink": "S9"}})
        assert not stored_state(tmp_path / "hub").queries
        odd = "SELECT f.num FROM flights f [RANGE 1 MINUTE], checkins c [RANGE 1 MINUTE] WHERE "
        months = "CASE WHEN f.num IS NULL THEN INTERVAL 1 MONTH ELSE INTERVAL 2 MONTHS END"
        odd += f"f.num = c.flight AND coalesce(f.ts, c.ts) + {months} >= c.ts"
        with pytest.raises(ValueError, match="not known to mean the same"):
            QueryHub(make_hub_tables(1), "ts", reuse="separate").start(
                tmp_path / "odd", queries=[WIDE, odd]
            )
        assert not stored_state(tmp_path / "odd").queries
    run = hub.start(tmp_path / "hub", "batch", asked)
    run.awaitTermination()
    assert set(run.queries) == set(asked)
    for name, query in asked.items():
        assert query_rows(run, name) == expect_rows(make_hub_tables(1), query["sql"])


def test_a_hub_that_fails_waits_for_what_it_removes_and_can_be_started_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, asked, real = make_hub_tables(1), {"wide": WIDE, "three": THREE}, hub_batch_loop.run_batch

    def fails(registry: Any, source: Any, epoch: int) -> None:
        if epoch == BATCHES - 1:
            raise MemoryError("no more")
        real(registry, source, epoch)

    with monkeypatch.context() as patched:
        patched.setattr(hub_batch_loop, "run_batch", fails)
        run = QueryHub(data, "ts").start(tmp_path / "hub", "batch", asked)
        with pytest.raises(MemoryError):
            run.awaitTermination()
    stores = [instance.store for instance in run._registry.works.instances.values()]
    assert stores and all(s.blocks._removing is None for s in stores)
    again = QueryHub(data, "ts").start(tmp_path / "hub", "batch")
    again.awaitTermination()
    for name, sql in asked.items():
        assert query_rows(again, name) == expect_rows(data, sql), name


@contextmanager
def crash(monkeypatch: Any, owner: Any, name: str, nth: int, before: bool) -> Iterator[None]:
    """Interrupt the hub right before or after the nth call of a method, in any thread."""
    real, calls = getattr(owner, name), count(1)

    def cut(*args: Any, **kwargs: Any) -> Any:
        mine = next(calls)
        if mine == nth and before:
            raise KeyboardInterrupt
        found = real(*args, **kwargs)
        if mine == nth:
            raise KeyboardInterrupt
        return found

    monkeypatch.setattr(owner, name, cut)
    yield
    monkeypatch.setattr(owner, name, real)


def safe(flights: pa.Table) -> pa.Table:
    """Return the flights on which ARRIVES does not fail."""
    most = (2**63 - 1) // 50_000_000_000
    return flights.filter(pc.less_equal(flights["ts"].cast(pa.int64()), most))


POINTS: list[tuple[Any, str]] = [
    (OperatorInstance, "run_batch"),
    (HubLog, "append_state"),
    (HubLog, "publish_events"),
    (ManifestLog, "append_entry"),
    (OperatorRuntime, "adopt_built"),
    (OperatorRuntime, "read_arrivals"),
    (OperatorRuntime, "build_operators"),
]


def _count_events(registry: QueryRegistry) -> int:
    return sum(
        len(registry.log.store.log.read_entry(k.entry).events)
        for k in registry.log.store.log.commits
    )


class Script:
    """A random script against a hub, which is reopened after each interruption."""

    def __init__(
        self, seed: int, folder: Path, monkeypatch: Any, network: bool, reuse: Any = "relaxed"
    ) -> None:
        self.rng, self.data = random.Random(seed), make_hub_tables(seed)
        self.folder, self.monkeypatch = folder, monkeypatch
        self.settings: dict[str, Any] = dict(reuse=reuse)
        self.settings |= dict(network=NETWORK, at=AT) if network else {}
        self.network, self.crashes = network, 0
        self.hub = self.opened()
        self.asked: dict[str, tuple[str, int]] = {}

    def opened(self) -> SteppedHub:
        return SteppedHub(self.folder, self.data, **self.settings)

    @property
    def registry(self) -> QueryRegistry:
        return self.hub.registry

    def safely(self, act: Callable[..., Any], *arguments: Any) -> None:
        """Perform an action, interrupted now and then; then the hub is read from its folder."""
        if self.rng.random() > 0.35:
            act(self.hub, *arguments)
            return
        owner, name = self.rng.choice(POINTS)
        before, nth = self.rng.random() < 0.5, self.rng.randint(1, 2)
        with crash(self.monkeypatch, owner, name, nth, before):
            try:
                act(self.hub, *arguments)
            except KeyboardInterrupt:
                self.crashes += 1
            else:
                return
        before_it = self.registry.current_deployment
        self.hub = self.opened()
        assert (
            deployment_from_plain(deployment_to_plain(self.registry.current_deployment))
            == self.registry.current_deployment
        )
        assert before_it is not None and len(
            self.registry.log.store.events.read_since(0)
        ) == _count_events(self.registry)

    def play(self) -> None:
        for epoch in range(BATCHES):
            self.changes()
            while self.registry.ledger.epoch < epoch:
                self.safely(SteppedHub.step)

    def changes(self) -> None:
        rng = self.rng
        for name in [q.name for q in self.registry.ledger.serving_queries if rng.random() < 0.2]:
            self.safely(lambda hub, name: hub.registry.withdraw_query(name), name)
        for _ in range(rng.randint(0, 2)):
            sql = rng.choice([random_query(rng)] * 4 + [TICKED, GROUPED, COUNTED, ARRIVES])
            name, first = f"q{len(self.asked)}", self.registry.ledger.epoch + 1
            self.safely(self.submit, sql, name, rng.choice(["S1", "S2"]) if self.network else None)
            if any(q.name == name for q in self.registry.ledger.queries):
                self.asked[name] = sql, first
        if self.network:
            self.shake()

    @staticmethod
    def submit(hub: SteppedHub, sql: str, name: str, at: str | None) -> None:
        """Submit a query; one that fails on received tuples is refused."""
        try:
            hub.submit(sql, name, at)
        except QueryError as error:
            assert sql == ARRIVES and "fails on tuples received so far" in str(error)

    def shake(self) -> None:
        """Move an operator, make a node fail or recover, or re-plan everything."""
        rng = self.rng
        if rng.random() < 0.4 and self.registry.current_deployment.operators:
            operator = rng.choice(list(self.registry.current_deployment.operators))
            up = [n for n in ("N1", "N2", "N3", "N4") if n not in self.registry.ledger.failed_nodes]
            self.safely(
                lambda hub, *a: operator_moves.move_operator(hub.registry, *a),
                operator,
                rng.choice(up),
            )
        if self.registry.ledger.failed_nodes:
            self.safely(
                lambda hub: operator_moves.restore_node(
                    hub.registry, hub.registry.ledger.failed_nodes[0]
                )
            )
        elif rng.random() < 0.4:
            self.safely(
                lambda hub, node: operator_moves.fail_node(hub.registry, node),
                rng.choice(["N1", "N4"]),
            )
        if rng.random() < 0.3:
            self.safely(lambda hub: operator_moves.replan_queries(hub.registry))

    def check(self) -> int:
        """Check every answer against DuckDB, and its completeness if declared; return the number of
        rows.
        """
        rows = 0
        for name, (sql, first) in self.asked.items():
            served, query = (
                self.registry.last_query(name),
                self.registry.query_reader.restore_query(self.registry.last_query(name)),
            )
            ticked = query.slide is not None
            end = BATCHES if ticked or served.end_epoch is None else served.end_epoch
            until = end_of_ticks(self.data, sql) if served.end_epoch is None else served.end_time
            found = self.hub.answered(name)
            data = self.data | ({"flights": safe(self.data["flights"])} if sql == ARRIVES else {})
            truth = partial(
                expect_rows, data, sql, first, end, since=served.start_time, until=until
            )
            rows += sum(found.values())
            if not any(served.complete_since.values()):
                assert found == truth(), (name, sql)
            elif not query.aggregates:
                assert not found - truth(), f"{sql} was told what is not so"
                assert not truth(complete=served.complete_since) - found, (
                    f"{sql} lacks what is complete"
                )
        return rows


@pytest.mark.parametrize("network", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_any_script_gives_every_query_what_duckdb_finds(
    seed: int, network: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = Script(seed, tmp_path / "hub", monkeypatch, network)
    script.play()
    assert script.check() > 100


@pytest.mark.parametrize("reuse", ["exact", "contained", "separate"])
def test_whatever_may_be_reused_the_answers_are_the_same(
    reuse: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = Script(1, tmp_path / "hub", monkeypatch, True, reuse)
    script.play()
    assert script.check() > 100


def test_what_is_asked_between_a_crash_and_the_batch_that_it_hit_misses_no_tick(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = make_hub_tables(3)
    hub = SteppedHub(tmp_path / "hub", data)
    hub.submit(WIDE, "wide")
    hub.submit(THREE, "three")
    hub.step()
    with (
        crash(monkeypatch, OperatorInstance, "run_batch", 1, before=False),
        pytest.raises(KeyboardInterrupt),
    ):
        hub.step()  # one operator has the batch, the other does not
    hub = SteppedHub(tmp_path / "hub", data)
    assert hub.submit(NARROW, "narrow").reuse_kind == "holds"
    ticked = hub.submit(TICKED, "ticked")
    hub.registry.withdraw_query("wide")
    while hub.registry.ledger.epoch < BATCHES - 1:
        hub.step()
    assert hub.answered("wide") == expect_rows(data, WIDE, 0, 1)
    assert hub.answered("narrow") == expect_rows(data, NARROW, 1)
    end = end_of_ticks(data, TICKED)
    truth = expect_rows(data, TICKED, since=ticked.start_time, until=end)
    assert hub.answered("ticked") == truth


def test_a_column_alone_is_renamed_like_any_other() -> None:
    assert rename_columns("f.late", lambda stream, column: f"{stream}__{column}") == "`f__late`"


def test_operators_of_one_depth_run_side_by_side_and_one_that_reads_them_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, real = make_hub_tables(6), OperatorInstance.run_batch
    hub = SteppedHub(tmp_path / "hub", data, NETWORK, AT)
    hub.submit(WIDE, "wide", "S1")
    hub.submit(THREE, "three", "S2")
    other = WIDE.replace("f.num = c.flight", "f.num = c.seats")
    hub.submit(other, "other", "S2")
    one, *deeper = hub.registry.current_deployment.operators_by_depth()
    assert len(one) == 2 and [o.inputs for d in deeper for o in d], "a join reads another"
    both, done = threading.Barrier(2), set[int]()

    def run(self: OperatorInstance, *arguments: Any) -> None:
        if self.spec.operator in {o.id for o in one}:
            both.wait(60)
        else:
            assert done >= {o.id for o in one}
        real(self, *arguments)
        done.add(self.spec.operator)

    monkeypatch.setattr(Reoptimizer, "review_next", lambda *_: None)
    monkeypatch.setattr(running_operators, "available_cores", lambda: 2)
    monkeypatch.setattr(OperatorInstance, "run_batch", run)
    for _ in range(BATCHES):
        done.clear()
        hub.step()
    assert hub.answered("wide") == expect_rows(data, WIDE)
    assert hub.answered("three") == expect_rows(data, THREE)
    assert hub.answered("other") == expect_rows(data, other)


def test_a_lifetime_ends_a_query_and_history_answers_late_ones(tmp_path: Path) -> None:
    data = make_hub_tables(7)
    hub = SteppedHub(tmp_path / "hub", data, history=300 * SECOND)
    hub.submit(WIDE, "short", lifetime="2 minutes")
    for _ in range(4):
        hub.step()
    late = hub.submit(LONG, "late")
    assert late.complete_since == {"checkins": None, "flights": None}, (
        "history has all of 200 seconds"
    )
    longer = hub.submit(LONG.replace("200", "900"), "longer")
    while hub.registry.ledger.epoch < BATCHES - 1:
        hub.step()
    assert hub.answered("late") == expect_rows(data, LONG, 4)
    found, sql = hub.answered("longer"), LONG.replace("200", "900")
    assert not found - expect_rows(data, sql, 4)
    assert not expect_rows(data, sql, 4, complete=longer.complete_since) - found
    short = hub.registry.last_query("short")
    assert short.end_reason == "its lifetime of 2 min is over" and short.end_epoch is not None
    assert hub.answered("short") == expect_rows(data, WIDE, 0, short.end_epoch)
    assert 2 < short.end_epoch < 4


def test_history_is_let_go_when_no_query_needs_it(tmp_path: Path) -> None:
    hub = SteppedHub(tmp_path / "hub", make_hub_tables(8))
    hub.submit(WIDE, "wide")
    for _ in range(BATCHES):
        hub.step()
    kept = {
        s: [f.epoch for f in files] for s, files in hub.registry.ledger.backfill_batches.items()
    }
    names = {f.name for f in (tmp_path / "hub" / "history").iterdir()}
    last_two = [files for s in hub.registry.log.states for files in s.backfill_batches.values()]
    assert names == {file.name for files in last_two for file in files}
    assert kept["flights"] == [4, 5] and kept["baggage"] == [5]
    late = hub.submit(LONG, "late")
    assert late.complete_since["flights"] and late.complete_since["checkins"], (
        "200 seconds were not kept"
    )


def odd(data: dict[str, pa.Table], how: str) -> dict[str, pa.Table]:
    """Return unusual streams.

    One lags two batches behind, has no match for long, or has late tuples. Or all event times are
    equal within a minute, and the third and fourth batches are empty.
    """
    rng = random.Random(5)

    def changed(row: dict[str, Any]) -> dict[str, Any]:
        if how == "silent":
            return row | ({"flight": 99} if row["batch"] < 4 else {})
        if how == "ties":
            return row | {"ts": row["ts"].replace(second=0, microsecond=0)}
        later = 2 if how == "lagging" else rng.choice((0, 0, 1))
        return row | {"batch": min(BATCHES - 1, row["batch"] + later)}

    def change_rows(rows: pa.Table) -> pa.Table:
        found = (changed(row) for row in rows.to_pylist())
        here = [row for row in found if how != "ties" or row["batch"] not in (2, 3)]
        return pa.Table.from_pylist(here, rows.schema)

    streams = data if how == "ties" else ["checkins"]
    return {**data, **{s: change_rows(data[s]) for s in streams}}


@pytest.mark.parametrize("how", ["late", "lagging", "silent", "ties"])
def test_streams_that_are_late_lag_or_are_silent_are_answered_as_duckdb_does(
    how: str, tmp_path: Path
) -> None:
    data = odd(make_hub_tables(7), how)
    late = "2 minutes" if how == "late" else "0 seconds"
    asked = {"wide": dict(sql=WIDE, sink="S1"), "three": dict(sql=THREE, sink="S2")}
    hub = QueryHub(data, "ts", network=NETWORK, at=AT, lateness=late)
    run = hub.start(tmp_path / "hub", "batch", asked)
    run.awaitTermination()
    for name, query in asked.items():
        truth = expect_rows(data, query["sql"])
        assert truth and query_rows(run, name) == truth, name
    if how == "lagging":
        reads = [i for o in run.deployment.operators.values() for i in o.inputs]
        assert any(isinstance(i, int) for i in reads), "one reads another's results"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"batches": 0}, "batches is 0; it must be a whole number, 1 or more"),
        ({"batches": 2.5}, "batches is 2.5; it must be a whole number, 1 or more"),
        ({"batches": 10**9}, "batches is 1000000000; it must be .* at most"),
        ({"pace": -1}, "pace is -1; "),
        ({"pace": "soon"}, "pace is 'soon'; "),
        ({"availableNow": True}, "a run of tables has no trigger; got availableNow"),
    ],
)
def test_odd_arguments_are_refused_before_anything_is_written(
    tmp_path: Path, given: dict[str, Any], said: str
) -> None:
    hub = QueryHub(make_hub_tables(5), "ts")
    with pytest.raises(ValueError, match=said):
        hub.start(tmp_path / "hub", **given)
    assert not (tmp_path / "hub").exists()
    for path, reported in ((7, "it must be a path"), ("/dev/null/hub", "is no folder")):
        with pytest.raises(ValueError, match=reported):
            hub.start(path)


def test_a_hub_of_another_version_is_refused(tmp_path: Path) -> None:
    store, body = RunStore(tmp_path), b'{"format_version": 9}'
    store.create_run({})
    store.log.folder.joinpath("state-000000-0a1b2c3d.json").write_bytes(body)
    seal = FileChecksum(len(body), zlib.crc32(body))
    store.log.append_entry(FileRef("state-000000-0a1b2c3d.json", seal))
    with pytest.raises(ValueError, match="is of version 9; this version of Braid reads version"):
        stored_state(tmp_path)


def test_a_hub_whose_keys_were_made_otherwise_is_refused(tmp_path: Path) -> None:
    data = make_hub_tables(1)
    QueryHub(data, "ts").start(tmp_path, "batch", [WIDE]).awaitTermination()
    (file,) = (tmp_path / "operators").glob("*/run.json")
    query = RunStore(file.parent).read_settings()
    assert query is not None and query["keys"]
    RunStore(file.parent).create_run({"operator_spec": query["operator_spec"], "keys": [{}, {}]})
    with pytest.raises(ValueError, match="computed the keys of its condition in another"):
        QueryHub(data, "ts").start(tmp_path, "batch", [WIDE])
