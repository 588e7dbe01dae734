"""Random joins of every kind, run in this process and compared with the tuple-level model.

A case is drawn from a seed: kind, placement, condition, windows, lateness, tuples with NULL and late
ones, and batches whose delivery fails, after which the run is started anew.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import pyarrow as pa
from braid.core.placement import Placement
from braid.core.run_events import BatchPlanned
from braid.stream_join import JoinRun, StreamJoin
from models.kinds import JoinRules, Outcome, Tuple, list_early_changes, run_join
from oracle import PLACEMENTS
from stages import AlternatingExecutor

SECOND = 1_000_000
Row = tuple[int, tuple[Any, ...]]
"""A result: its batch, and the ids of its members (None: absent), and its change if it has one."""


class Condition(NamedTuple):
    """A condition, as SQL and as functions of the values of tuples.

    - ``reach``: bounds of event times that it implies, in seconds.
    - ``meets``: by stream, whether a tuple can be in a pair.
    """

    sql: str
    holds: Callable[[Tuple, Tuple], bool]
    meets: tuple[Callable[[Mapping[str, Any]], bool], ...]
    reach: tuple[tuple[int | None, ...], ...] = ((0, None), (None, 0))
    has_equality: bool = True


def _has(*names: str) -> Callable[[Mapping[str, Any]], bool]:
    return lambda values: all(values[name] is not None for name in names)


def _match_keys(a: Tuple, b: Tuple) -> bool:
    return bool(a.values["k"] == b.values["k"])


CONDITIONS = (
    Condition("a.k = b.k", _match_keys, (_has("k"), _has("k"))),
    Condition(
        "a.k = b.k AND a.n > 2",
        _match_keys,
        (lambda v: _has("k", "n")(v) and v["n"] > 2, _has("k")),
    ),
    Condition(
        "a.k = b.k AND b.n > 2 AND a.n < 9",
        _match_keys,
        (lambda v: _has("k", "n")(v) and v["n"] < 9, lambda v: _has("k", "n")(v) and v["n"] > 2),
    ),
    Condition(
        "a.n < b.n",
        lambda a, b: bool(a.values["n"] < b.values["n"]),
        (_has("n"), _has("n")),
        has_equality=False,
    ),
    Condition(
        "a.n - b.n BETWEEN -1 AND 1",
        lambda a, b: bool(abs(a.values["n"] - b.values["n"]) <= 1),
        (_has("n"), _has("n")),
        has_equality=False,
    ),
    Condition(
        "a.k = b.k AND b.ts BETWEEN a.ts - INTERVAL 5 SECONDS AND a.ts + INTERVAL 20 SECONDS",
        _match_keys,
        (_has("k"), _has("k")),
        ((0, 20), (5, 0)),
    ),
    Condition(
        "a.k = b.k AND (a.n + b.n) % 3 = 0",
        lambda a, b: (
            _has("n")(a.values)
            and _has("n")(b.values)
            and _match_keys(a, b)
            and (a.values["n"] + b.values["n"]) % 3 == 0
        ),
        (_has("k"), _has("k")),
    ),
)
WINDOWS = (None, None, {"a": 20, "b": 30}, {"a": 15}, {"b": 40}, {"a": 8, "b": 8})


def make_stream_table(tuples: Iterable[Tuple], stream: int) -> pa.Table:
    """Return the tuples of a stream, with a column "batch"."""
    mine = [t for t in tuples if t.stream == stream]
    return pa.table(
        {
            "id": pa.array([t.id for t in mine], pa.int64()),
            "batch": pa.array([t.batch for t in mine], pa.int32()),
            "ts": pa.array([t.time for t in mine], pa.timestamp("us")),
            "k": pa.array([t.values["k"] for t in mine], pa.int32()),
            "n": pa.array([t.values["n"] for t in mine], pa.int64()),
            "s": pa.array([f"tuple {t.id}" for t in mine], pa.string()),
        }
    )


@dataclass(frozen=True)
class KindCase:
    """One run.

    - ``windows``, ``lateness``, ``idle``, ``ahead``: seconds.
    - ``failing``: batches whose delivery fails once.
    - ``has_stages``: whether batches alternate between two threads and the stages of Spark tasks.
    """

    how: str
    placement: Placement
    condition: Condition
    windows: Mapping[str, int] | None
    lateness: tuple[int, int]
    tuples: tuple[Tuple, ...]
    failing: frozenset[int]
    has_stages: bool = False
    emit: str = "final"
    idle: int | None = None
    ahead: int = 86_400
    checks_plans: bool = True

    def list_tables(self) -> dict[str, pa.Table]:
        """Return the streams, with a column "batch"."""
        return {alias: make_stream_table(self.tuples, stream) for stream, alias in enumerate("ab")}

    def choose_executor(self) -> AbstractContextManager[Any]:
        """Return a context in which a run starts with the executor of the case."""
        if not self.has_stages:
            return nullcontext()
        return patch("braid.arrow_join.make_executor", lambda way: AlternatingExecutor())

    def make_join(
        self, streams: Mapping[str, Any] | None = None, executor: str = "auto"
    ) -> StreamJoin:
        """Return the join, of tables unless other ``streams`` are given."""
        windows = self.windows and {a: f"{w} seconds" for a, w in self.windows.items()}
        slack = {a: f"{s} seconds" for a, s in zip("ab", self.lateness, strict=True)}
        return StreamJoin(
            self.list_tables() if streams is None else streams,
            self.condition.sql,
            self.placement,
            windows,
            "ts",
            slack,
            check=self.checks_plans,
            executor=executor,
            how=self.how,
            emit=self.emit,
            idle=None if self.idle is None else f"{self.idle} seconds",
            ahead=f"{self.ahead} seconds",
        )

    def make_rules(self) -> JoinRules:
        """Return the rules of the model."""
        ends = tuple(
            max([t.batch for t in self.tuples if t.stream == s], default=-1) for s in (0, 1)
        )
        return JoinRules(
            lambda a, b: self.condition.holds(a, b),
            self.find_reach(),
            self.how,
            tuple(seconds * SECOND for seconds in self.lateness),
            self.ahead * SECOND,
            None if self.idle is None else self.idle * SECOND,
            ends,
        )

    def can_match(self, stream: int, id: int) -> bool:
        """Return whether a tuple can be in a pair, but for its event time."""
        values = next(t.values for t in self.tuples if (t.stream, t.id) == (stream, id))
        return self.condition.meets[stream](values)

    def find_reach(self) -> tuple[tuple[int | None, ...], ...]:
        """Return the bounds of event times in microseconds."""
        windows = [(self.windows or {}).get(alias) for alias in "ab"]

        def find_bound(i: int, j: int) -> int | None:
            implied = self.condition.reach[i][j]
            given = None if windows[i] is None else windows[i] * SECOND - 1
            limits = [given, None if implied is None else implied * SECOND]
            return min((limit for limit in limits if limit is not None), default=None)

        return ((0, find_bound(0, 1)), (find_bound(1, 0), 0))


def draw_case(seed: int, hows: tuple[str, ...] = ("left", "right", "full", "anti")) -> KindCase:
    """Draw a case."""
    draw = random.Random(seed)
    condition = draw.choice(CONDITIONS)
    usable = [
        p
        for p in PLACEMENTS.values()
        if p.supports_streams(2) and (p.routing_key_source == "tuple" or condition.has_equality)
    ]
    batches = draw.randint(3, 12)
    lateness = draw.choice([(0, 0), (5, 5), (0, 12)])
    first = Tuple(0, 0, 0, 1000 * SECOND, {"k": 1, "n": 1})
    tuples = (first, *_draw_tuples(draw, batches, max(lateness)))
    windows = None if condition.reach[0][1] is not None else draw.choice(WINDOWS)
    failing = frozenset(draw.sample(range(batches), draw.choice([0, 0, 1, 2])))
    how = draw.choice(hows)
    placement, has_stages = draw.choice(usable), draw.random() < 0.4
    return KindCase(how, placement, condition, windows, lateness, tuples, failing, has_stages)


def _draw_tuples(draw: random.Random, batches: int, slack: int) -> Iterator[Tuple]:
    ids, later = [1, 0], draw.random() < 0.3
    swing = draw.random() < 0.5
    for batch in range(batches):
        for stream in (0, 1):
            most = draw.choice([0, 2, 5]) * (6 if swing and stream == (batch > batches // 2) else 1)
            for _ in range(draw.randint(0, most)):
                time = batch * 10 + draw.randint(0, 9) - (draw.randint(0, slack) if slack else 0)
                if later and draw.random() < 0.15:
                    time -= draw.randint(10, 60)
                values = {
                    "k": None if draw.random() < 0.1 else draw.randint(0, 6),
                    "n": None if draw.random() < 0.1 else draw.randint(0, 10),
                }
                at = None if draw.random() < 0.05 else (1000 + time) * SECOND
                yield Tuple(stream, ids[stream], batch, at, values)
                ids[stream] += 1


def run_model(case: KindCase) -> Outcome:
    """Return the outcome of a case by the model."""
    meets = case.condition.meets
    tuples = [t._replace(meets=meets[t.stream](t.values)) for t in case.tuples]
    return run_join(tuples, case.make_rules())


class KindRun(NamedTuple):
    """The results of a run, and what it left."""

    rows: list[Row]
    run: JoinRun
    has_migrated: bool


class _Failure(RuntimeError):
    pass


def run_case(
    case: KindCase,
    folder: Path,
    streams: Mapping[str, Any] | None = None,
    executor: str = "auto",
) -> KindRun:
    """Run a case to its end, starting it anew after each failure.

    ``streams``: Spark's frames in the place of tables.
    """
    delivered: dict[int, list[tuple[Any, ...]]] = {}
    left = set(case.failing)

    def collect_rows(results: Any, batch: int) -> None:
        rows = results.toArrow() if streams else results
        delivered[batch] = [*map(partial(_list_ids, case.how), rows.to_pylist())]
        if batch in left:
            left.remove(batch)
            raise _Failure(f"batch {batch} is not taken")

    for _ in range(len(case.failing) + 1):
        with case.choose_executor():
            run = case.make_join(streams, executor).start(
                folder, batches="batch", durability="process", foreachBatch=collect_rows
            )
        try:
            run.awaitTermination()
            break
        except RuntimeError as error:
            if not isinstance(error.__cause__, _Failure) and not isinstance(error, _Failure):
                raise
    rows = [(batch, ids) for batch, each in delivered.items() for ids in each]
    plans = [e for e in run.events() if isinstance(e, BatchPlanned)]
    migrated = any(not route.is_fresh for plan in plans for route in plan.routes)
    return KindRun(rows, run, migrated)


def _list_ids(how: str, row: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the ids of a result, and its change if it has one."""
    names = "a" if how in ("semi", "anti") else "ab"
    ids = tuple(None if row[name] is None else row[name]["id"] for name in names)
    return (*ids, row["_change_type"]) if "_change_type" in row else ids


def check_case(case: KindCase, folder: Path, **given: Any) -> KindRun:
    """Run a case and compare it with the model. ``given``: see ``run_case``."""
    found, model = run_case(case, folder, **given), run_model(case)
    assert found.run._engine.state.answers.waiting == (0, 0)
    check_irregular_rows(case, found, model)
    if not found.has_migrated:
        assert sorted(found.rows, key=repr) == sorted(model.results, key=repr)
    elif not any(each.reason == "late" for each in model.irregular):
        assert Counter(ids for _, ids in found.rows) == Counter(ids for _, ids in model.results)
    else:
        check_answered_once(case, found.rows)
    return found


def check_irregular_rows(case: KindCase, found: KindRun, model: Outcome) -> None:
    """Compare the late, untimed and early tuples of a run, as rows, with those of the model.

    Untimed tuples that can be in no pair anyway, or that need no time, may be among the rows.
    """
    rows = found.run.late()
    listed = (rows if isinstance(rows, pa.Table) else rows.toArrow()).to_pylist()
    irregular = Counter(
        (r["batch"], r["reason"], r["stream"], r["row"][r["stream"]]["id"], r["behind"])
        for r in listed
        if r["reason"] != "untimed"
    )
    expected = Counter(
        (e.batch, e.reason, "ab"[e.stream], e.id, e.behind and timedelta(microseconds=e.behind))
        for e in model.irregular
        if e.reason != "untimed"
    )
    assert irregular == expected
    untimed = {
        (r["stream"], r["row"][r["stream"]]["id"]) for r in listed if r["reason"] == "untimed"
    }
    assert untimed >= {
        ("ab"[e.stream], e.id)
        for e in model.irregular
        if e.reason == "untimed" and case.can_match(e.stream, e.id)
    }


def check_early_case(case: KindCase, folder: Path, **given: Any) -> KindRun:
    """Run a case with early answers and compare its changes, and their sum, with the model."""
    case = replace(case, emit="early")
    found, model = run_case(case, folder, **given), run_model(case)
    assert found.run._engine.state.answers.waiting == (0, 0)
    if not found.has_migrated:
        expected = list_early_changes(model, case.tuples, case.make_rules())
        assert sorted(found.rows, key=repr) == sorted(expected, key=repr)
    net: Counter[tuple[int | None, ...]] = Counter()
    for _, (*ids, change) in found.rows:
        net[tuple(ids)] += 1 if change == "insert" else -1
    assert min(net.values(), default=0) >= 0
    rows = [*(+net).elements()]
    summed = found.run.results(net=True)
    listed = summed.to_pylist() if isinstance(summed, pa.Table) else summed.toArrow().to_pylist()
    assert Counter(_list_ids(case.how, row)[:-1] for row in listed) == Counter(rows)
    if found.has_migrated and any(each.reason == "late" for each in model.irregular):
        check_answered_once(case, [(0, ids) for ids in rows])
    else:
        assert Counter(rows) == Counter(ids for _, ids in model.results)
    return found


def check_answered_once(case: KindCase, rows: list[Row]) -> None:
    """Check that each preserved tuple is in pairs or in one row without partners."""
    if case.how in ("semi", "anti"):
        assert max(Counter(ids for _, ids in rows).values(), default=0) <= 1
        return
    for stream in case.make_rules().preserved:
        alone = Counter(ids[stream] for _, ids in rows if ids[1 - stream] is None)
        paired = {ids[stream] for _, ids in rows if None not in ids}
        every = {t.id for t in case.tuples if t.stream == stream}
        assert max(alone.values(), default=0) <= 1 and not alone.keys() & paired
        assert alone.keys() | paired == every
