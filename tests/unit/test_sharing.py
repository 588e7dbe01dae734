"""Shared joins: every query gets its own results, whenever it comes, and the state has no useless
tuple.

The engine runs here without Spark on threads of this process. Python evaluates the selections
instead of Spark.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Sequence
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from braid.condition.access_paths import IndexCondition
from braid.condition.predicate import Predicate
from braid.core.asof_releases import LEFT
from braid.core.horizon import reach_of_windows
from braid.core.join_kinds import INNER, JoinKind
from braid.core.match_rules import MatchRule
from braid.core.plan import Block
from braid.core.query import Query
from braid.core.reserved_columns import MARK, QUERIES, ROUTING, TIME
from braid.core.stream_clocks import find_watermarks
from braid.execution.engine import Engine
from braid.kernels.join_spec import JoinSpec, StreamLayout
from braid.kernels.query_bitmaps import QueryBitmaps
from braid.papers.slices import chain as chains
from braid.papers.slices.chain import Chain
from braid.shared import calibrate
from braid.shared.block_marking import make_writer, plan_rewrite, report_from_row
from braid.shared.query_changes import add_query, remove_query
from braid.storage.block_files import read_parquet
from braid.storage.block_readers import open_replica
from braid.storage.run_store import RunStore
from braid_lab.slices.overhead import measure_quartiles
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, multiple, rule
from stages import AlternatingExecutor

SELECTIONS = {
    None: lambda v: True,
    "v < 3": lambda v: v < 3,
    "v >= 5": lambda v: v >= 5,
    "v = 9": lambda v: v == 9,
}
"""Selections of queries on a stream, as Spark SQL and as a Python function."""
WINDOWS = (4, 7, 12, 20)
COLUMNS = {"id": pa.int64(), "k": pa.int64(), "v": pa.int64(), TIME: pa.int64(), MARK: pa.int64()}
Tuple = tuple[int, int, int, int]
"""A tuple: id, k, v, time."""


Codes = npt.NDArray[np.int64]
"""Results, each with the ids of its tuples in one number. Ids are unique, so results are."""


def code(ids: Sequence[Codes]) -> Codes:
    """Return one number for each combination of ids below a million."""
    return reduce(lambda left, right: left * 1_000_000 + right, ids)


def decoded(codes: Codes, streams: int) -> list[tuple[int, ...]]:
    """Return the ids of a number, for messages."""
    places = [1_000_000**s for s in reversed(range(streams))]
    return [tuple(c // p % 1_000_000 for p in places) for c in codes.tolist()]


class Shared:
    """A shared run in this process, with all tuples that it was given: (batch, tuple) by stream."""

    def __init__(self, folder: str, streams: int, chain: Chain, queries: tuple[Query, ...]) -> None:
        self.folder, self.streams, self.chain = folder, streams, chain
        self.came: list[list[tuple[int, Tuple]]] = [[] for _ in range(streams)]
        self.clock, self.ids = 0, 0
        self.before: list[Block] = []
        self.purged: tuple[int | None, ...] = ()
        RunStore(folder).create_run({})
        self.served: dict[str, list[tuple[Query, int, int | None, tuple[int | None, ...]]]] = {}
        self.first, self.engine = queries, self.open(queries)
        for q in queries:
            self.served[q.name] = [(q, 0, None, (None,) * streams)]

    def open(self, queries: tuple[Query, ...] = ()) -> Engine:
        links = tuple(
            IndexCondition((a, "k"), (b, "k"), 0, 0)
            for a in range(self.streams)
            for b in range(a + 1, self.streams)
        )
        empty: tuple[dict[str, str], ...] = tuple({} for _ in range(self.streams))
        predicate = Predicate(
            tuple("abcd")[: self.streams], (None,) * self.streams, empty, empty, links, ()
        )
        layout = StreamLayout(tuple((name, name) for name in COLUMNS), ())
        spec = JoinSpec(
            predicate,
            (("id",),) * self.streams,
            (layout,) * self.streams,
            reach_of_windows((None,) * self.streams),
            self.folder,
            2,
            result_types=(pa.struct([("id", pa.int64())]),) * self.streams,
        )
        return Engine(
            spec,
            self.chain,
            RunStore(self.folder),
            (0,) * self.streams,
            True,
            lambda events: None,
            AlternatingExecutor(),
            queries,
        )

    def batch(self, rows: list[tuple[int, int, int, int]]) -> None:
        """Process tuples (stream, k, v, time since the last one) as one batch."""
        number = self.engine.state.batch + 1
        self.before, self.purged = (
            [*self.engine.state.blocks.values()],
            find_watermarks(self.engine.state.clocks, (0,) * self.streams),
        )
        lines = []
        for stream, k, v, later in rows:
            self.clock += later
            row = (self.ids, k, v, self.clock)
            self.ids += 1
            self.came[stream].append((number, row))
            mark = sum(
                1 << q.bitmap_position
                for q in self.engine.state.queries
                if SELECTIONS[q.selections[stream]](v)
            )
            if mark:
                lines.append((stream, *row, mark))
        columns = [
            pa.array([line[n] for line in lines], kind)
            for n, kind in enumerate((pa.int32(), *COLUMNS.values()))
        ]
        batch = pa.record_batch(
            [*columns, pa.array(np.zeros(len(lines), np.int32))],
            names=["__stream", *COLUMNS, ROUTING],
        )
        latest = [max((t[3] for _, t in came), default=None) for came in self.came]
        self.engine._execute_and_commit(pa.Table.from_batches([batch]), number, lambda: latest)

    def change(self, queries: tuple[Query, ...]) -> None:
        """Change the queries, as SharedRun does."""
        old, job = self.engine.state.queries, plan_rewrite(self.engine, queries)
        new = [q for q in queries if q not in old]
        parts = []
        for block, host in job.replica_addresses:
            rows, stream = job.stored_rows(block, host), job.streams[block]
            chosen = rows.key_mask()
            values = rows.numpy_column("v") if chosen is None else rows.numpy_column("v")[chosen]
            marking = [q for q in new if q.match is None or stream != LEFT]
            fresh = [
                sum(1 << q.bitmap_position for q in marking if SELECTIONS[q.selections[stream]](v))
                for v in values.tolist()
            ]
            columns = [
                np.full(len(fresh), block),
                np.full(len(fresh), host, np.int32),
                np.array(fresh, np.int64),
            ]
            parts.append(
                pa.record_batch(
                    [pa.array(c) for c in columns], names=["__block", "__host", "fresh"]
                )
            )
        reports = make_writer(job)(iter(parts))
        lines = [report_from_row(row) for report in reports for row in report.to_pylist()]
        for line in lines:  # they take what they would if they arrived like this
            (made,), (seal,) = line.replicas, line.files.values()
            file = str(self.engine.store.blocks.folder / made.address.file)
            assert made.size.size_bytes == open_replica(file, made.address, seal).nbytes
        self.engine.commit_change(queries, self.engine.state.placement_state, lines, [], 0.0)

    def add(
        self,
        name: str,
        windows: tuple[int, ...],
        where: tuple[str | None, ...],
        kind: JoinKind = INNER,
        match: MatchRule | None = None,
    ) -> None:
        state = self.engine.state
        queries = add_query(
            state.queries,
            Query(name, windows, where, kind=kind, match=match),
            find_watermarks(state.clocks, (0,) * self.streams),
            state.clocks,
        )
        self.change(queries)
        self.served.setdefault(name, []).append(
            (queries[-1], self.engine.state.batch + 1, None, queries[-1].complete_since)
        )

    def remove(self, name: str) -> None:
        self.change(remove_query(self.engine.state.queries, name))
        q, first, _, since = self.served[name][-1]
        self.served[name][-1] = (q, first, self.engine.state.batch, since)

    def read_results(self, q: Query, first: int, end: int | None) -> Codes:
        """Return the results of a query in some batches."""
        parts = [np.empty(0, np.int64)]
        for file in self.engine.store.results.result_files(first, end):
            rows = read_parquet(file).combine_chunks()
            mine = rows[QUERIES].to_numpy() >> q.bitmap_position & 1 != 0
            members = [rows[a].combine_chunks().field("id") for a in "abcd"[: self.streams]]
            parts.append(code([m.to_numpy()[mine] for m in members]))
        return np.concatenate(parts)

    def truth(
        self, q: Query, first: int, end: int | None, since: tuple[int | None, ...]
    ) -> tuple[Codes, Codes]:
        """Return the results that a query must get in those batches, and those that it may get.

        All combinations of tuples with a common key are checked against the definition.
        """
        parts = []
        for key in {t[1] for came in self.came for _, t in came}:
            axes = []
            for s, came in enumerate(self.came):
                mine = [
                    (b, t[0], t[3])
                    for b, t in came
                    if t[1] == key and SELECTIONS[q.selections[s]](t[2])
                ]
                axes.append(np.array(mine, np.int64).reshape(-1, 3).T)
            batches, ids, times = (np.ix_(*each) for each in zip(*axes, strict=True))
            last, now = reduce(np.maximum, batches), reduce(np.maximum, times)
            may = (first <= last) & (last < (np.inf if end is None else end))
            for t, w in zip(times, q.windows, strict=True):
                may = may & (now - t < w)
            must = may
            for b, t, s in zip(batches, times, since, strict=True):
                must = must & (s is None or (b >= first) | (t >= s))
            codes = code(ids)
            parts.append((codes[must], codes[may]))
        none = np.empty(0, np.int64)
        musts, mays = zip(*parts, strict=True) if parts else ((none,), (none,))
        return np.concatenate(musts), np.concatenate(mays)

    def check(self) -> None:
        for q, first, end, since in (span for spans in self.served.values() for span in spans):
            found, (must, may) = self.read_results(q, first, end), self.truth(q, first, end, since)
            once, times = np.unique(found, return_counts=True)
            lost, extra = np.setdiff1d(must, once), np.setdiff1d(once, may)
            assert not lost.size, f"{q} lost {decoded(lost, self.streams)}"
            assert not extra.size, f"{q} has too many: {decoded(extra, self.streams)}"
            assert (times == 1).all(), f"{q} got twice {decoded(once[times > 1], self.streams)}"

    def check_state(self) -> None:
        """Check that every tuple is held once, in a slice within the windows of some query that it
        serves.
        """
        state, held = self.engine.state, Counter()
        job = plan_rewrite(self.engine, state.queries)
        bitmaps = QueryBitmaps.from_queries(state.queries)
        for block, host in state.replica_addresses:
            b, rows = state.blocks[block], job.stored_rows(block, host)
            assert len(b.hosts) == 1
            chosen = rows.key_mask()
            keep = np.arange(rows.batch.num_rows) if chosen is None else np.flatnonzero(chosen)
            held.update((b.stream, id) for id in rows.numpy_column("id")[keep].tolist())
            lives = bitmaps.lifetimes(b.stream)[
                bitmaps.longest_window_rank(b.stream, rows.numpy_column(MARK)[keep])
            ]
            assert (rows.numpy_column(MARK)[keep] != 0).all()
            limit = (
                self.purged[b.stream]
                if b in self.before and state.placement_state.mode == "memory"
                else None
            )
            assert limit is None or (b.event_time_range[1] + lives > limit).all(), (
                "a block that was there holds what no query can use"
            )
        assert max(held.values(), default=1) == 1

    def restart(self) -> None:
        self.engine = self.open(self.first)


queries = st.tuples(
    st.lists(st.sampled_from(WINDOWS), min_size=3, max_size=3),
    st.lists(st.sampled_from([*SELECTIONS]), min_size=3, max_size=3),
)
batches = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 1), st.integers(0, 9), st.integers(0, 3)),
    min_size=1,
    max_size=12,
)


class SharedRuns(RuleBasedStateMachine):
    """Random batches, and between them changes of queries and slices, and restarts."""

    names = Bundle("names")

    @initialize(
        target=names,
        streams=st.sampled_from((2, 2, 3)),
        hosts=st.sampled_from((1, 1, 3)),
        mode=st.sampled_from(("memory", "cpu", "auto")),
        first=st.lists(queries, min_size=1, max_size=4),
    )
    def begin(self, streams: int, hosts: int, mode: Any, first: Any) -> Any:
        self.folder = tempfile.TemporaryDirectory()
        served: tuple[Query, ...] = ()
        for n, query in enumerate(first):
            served = add_query(served, Query(f"q{n}", *(tuple(part[:streams]) for part in query)))
        self.run = Shared(f"{self.folder.name}/run", streams, Chain(mode, hosts=hosts), served)
        self.count = len(first)
        return multiple(*(q.name for q in served))

    @rule(rows=batches)
    def some_tuples(self, rows: Any) -> None:
        self.run.batch([(s % self.run.streams, *rest) for s, *rest in rows])

    @rule(target=names, query=queries)
    def one_more(self, query: Any) -> str:
        windows, where = (tuple(part[: self.run.streams]) for part in query)
        self.run.add(f"q{self.count}", windows, where)
        self.count += 1
        return f"q{self.count - 1}"

    @rule(name=names)
    def one_less(self, name: str) -> None:
        alive = [q.name for q in self.run.engine.state.queries]
        if name in alive and len(alive) > 1:
            self.run.remove(name)

    @rule(
        age=st.sampled_from((2, 4, 5, 7, 10, 12)),
        stream=st.sampled_from((None, 0, 1)),
        how=st.sampled_from(("split_slice", "merge_slices")),
    )
    def another_slice(self, age: int, stream: int | None, how: str) -> None:
        state = self.run.engine.state
        try:
            policy = getattr(chains, how)(state.placement_state, age, stream)
        except ValueError:
            return
        self.run.engine.commit_change(state.queries, policy, None, [], 0.0)
        self.run.before = []

    @rule(mode=st.sampled_from(("memory", "cpu", "auto")))
    def another_chain(self, mode: Any) -> None:
        state = self.run.engine.state
        self.run.engine.commit_change(
            state.queries, chains.request_rebalance(state.placement_state, mode), None, [], 0.0
        )
        self.run.before = []

    @rule()
    def restart(self) -> None:
        self.run.restart()

    @invariant()
    def the_state_holds_what_is_of_use(self) -> None:
        if hasattr(self, "run"):
            self.run.check_state()

    def teardown(self) -> None:
        if hasattr(self, "folder"):
            with self.folder:
                self.run.check()


SharedRuns.TestCase.settings = settings(max_examples=40, stateful_step_count=25, deadline=None)
TestSharedRuns = SharedRuns.TestCase


def test_selections_are_pushed_into_the_chain(tmp_path: Path) -> None:
    """Mem-Opt with selections (Theorem 6) holds exactly the tuples that a query can still use."""
    served = add_query((), Query("young", (4, 4), ("v < 3", None)))
    served = add_query(served, Query("old", (20, 20), ("v >= 5", "v = 9")))
    run, draw = Shared(str(tmp_path / "run"), 2, Chain("memory"), served), np.random.default_rng(5)
    sizes = []
    for _ in range(40):
        limit = find_watermarks(run.engine.state.clocks, (0,) * run.streams)
        run.batch([(s, int(draw.integers(2)), int(draw.integers(10)), s) for s in (0, 1)])
        held = Counter(b.stream for b in run.engine.state.blocks.values() for _ in range(b.rows))
        for s, bound in enumerate(limit):
            lives = [
                (
                    t[3],
                    max(
                        (q.windows[s] for q in served if SELECTIONS[q.selections[s]](t[2])),
                        default=0,
                    ),
                )
                for _, t in run.came[s]
            ]
            least, most = (
                sum(
                    life > 0 and (bound is None or time + life + spans.get(life, 0) > bound)
                    for time, life in lives
                )
                for spans in (
                    {},
                    {4: 4 // 4, 20: (20 - 4) // 4},
                )  # merged blocks span a quarter of their slice
            )
            assert least <= held[s] <= most
        sizes.append(held[0])
    assert 0 < max(sizes[20:]) < 20, "a window of twenty holds twenty tuples where nothing selects"
    run.check()


def test_no_query_makes_another_hold_more(tmp_path: Path) -> None:
    """Theorem 5: without selections a shared chain holds no more than the largest window alone."""
    windows, held = (4, 7, 12, 20), []
    for n, mine in enumerate((windows, windows[-1:])):
        served: tuple[Query, ...] = ()
        for w in mine:
            served = add_query(served, Query(f"w{w}", (w, w), (None, None)))
        run, draw = (
            Shared(str(tmp_path / str(n)), 2, Chain("memory"), served),
            np.random.default_rng(5),
        )
        for _ in range(40):
            run.batch([(s, int(draw.integers(2)), 0, s) for s in (0, 1)])
        held.append(
            [sum(b.rows for b in run.engine.state.blocks.values() if b.stream == s) for s in (0, 1)]
        )
        run.check()
    assert all(20 <= chain <= alone for chain, alone in zip(*held, strict=True))


def fed(run: Shared, batches: int, rate: int, seed: int = 5) -> list[list[int]]:
    """Run batches of a unit of time with these numbers of tuples of each stream.

    Return the ends of the chain of stream 0 after each batch.
    """
    draw, ends = np.random.default_rng(seed), []
    for _ in range(batches):
        rows = [(n % 2, int(draw.integers(2)), int(draw.integers(10)), 0) for n in range(2 * rate)]
        run.batch([*rows[:-1], (1, 0, 0, 1)])
        ends.append([*run.engine.state.placement_state.ends[0]])
    return ends


def four(where: tuple[str | None, str | None] = (None, None)) -> tuple[Query, ...]:
    """Return a query for each window; the longer ones have selections."""
    served: tuple[Query, ...] = ()
    for w in WINDOWS:
        served = add_query(
            served, Query(f"w{w}", (w, w), where if w > WINDOWS[0] else (None, None))
        )
    return served


def test_the_chain_follows_what_slices_cost_and_what_is_seen(tmp_path: Path) -> None:
    """CPU-Opt (7.2) by measured rates and selectivities: only expensive slices are merged."""
    chosen = {}
    for name, overhead in (("cheap", 0.0), ("dear", 1e6)):
        run = Shared(str(tmp_path / name), 2, Chain("cpu", slice_overhead=overhead), four())
        ends = fed(run, 20, 6)
        assert ends[0] == [*WINDOWS], "Mem-Opt as long as nothing has been seen"
        chosen[name] = ends[-1]
        run.check()
    assert chosen == {"cheap": [*WINDOWS], "dear": [WINDOWS[-1]]}


def test_the_chain_is_built_anew_when_the_statistics_change(tmp_path: Path) -> None:
    """With few tuples slices are expensive and routing is cheap; with many, the reverse."""
    run = Shared(str(tmp_path / "run"), 2, Chain("cpu", slice_overhead=40.0), four())
    quiet = fed(run, 20, 1)[-1]
    busy = fed(run, 30, 24)[-1]
    assert len(quiet) < len(busy) == len(WINDOWS)
    run.check()


def test_auto_spends_comparisons_to_save_state(tmp_path: Path) -> None:
    """ "auto" keeps Mem-Opt if a merged chain would hold much more, and merges if not (7.4.2)."""
    chosen = {}
    for name, where in (("selective", ("v = 9", "v = 9")), ("plain", (None, None))):
        run = Shared(str(tmp_path / name), 2, Chain("auto", slice_overhead=1e6), four(where))
        chosen[name] = fed(run, 20, 6)[-1]
        run.check()
    assert chosen == {"selective": [*WINDOWS], "plain": [WINDOWS[-1]]}


def test_a_ring_is_shared_out_by_what_selections_leave(tmp_path: Path) -> None:
    """Chapter 21: if only young tuples are numerous, they get most of the hosts.

    No host keeps the state of two.
    """
    run = Shared(str(tmp_path / "run"), 2, Chain("memory", hosts=4), four(("v = 9", "v = 9")))
    fed(run, 60, 12)
    held = np.zeros(4)
    for b in run.engine.state.blocks.values():
        held[b.hosts[0]] += b.rows
    assert held.max() < 2 * held.mean()
    run.check()


@pytest.mark.parametrize("overhead", [float("inf"), float("nan"), -1.0])
def test_an_overhead_that_cannot_be_kept_is_refused(overhead: float) -> None:
    with pytest.raises(ValueError, match="slice_overhead is .*; it must be comparisons, 0 or more"):
        Chain("cpu", slice_overhead=overhead)


def test_what_a_slice_costs_is_one_number() -> None:
    """C_sys of this machine, in comparisons."""
    cost = calibrate.measure_slice_overhead()
    assert type(cost) is float and cost >= 0


def test_what_a_slice_costs_has_a_spread() -> None:
    low, middle, high = measure_quartiles(3)
    assert 0 <= low <= middle <= high
