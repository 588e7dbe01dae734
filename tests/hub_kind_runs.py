"""Random hubs with joins of every kind, and their answers from the tuple-level model.

Queries come and go while tuples arrive late, without event time and without key.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
from braid.hub.hub_state import RegisteredQuery
from braid.hub.operator_instance import OperatorInstance
from hub_cases import BATCHES, SECOND, SteppedHub
from models.clocks import find_late_limit
from models.kinds import JoinRules, Progress, Tuple, _Run

Row = dict[str, Any]
Bag = Counter[tuple[int | None, ...]]
SIDES = ("flights", "checkins")
KEYS = {"flights": "num", "checkins": "flight"}
JOINS = {"inner": "JOIN", "left": "LEFT JOIN", "right": "RIGHT JOIN", "full": "FULL OUTER JOIN", "semi": "SEMI JOIN", "anti": "ANTI JOIN"}  # fmt: skip
DAY = 86_400 * SECOND


@dataclass(frozen=True)
class KindQuery:
    """A query of two streams.

    - ``windows``: seconds by stream; None: unbounded.
    - ``on``, ``where``: by stream, an upper bound of ``x`` in ON and in WHERE; None: none.
    - ``differs``: whether ``x`` of both must differ.
    - ``is_nested``: whether a semi or anti join is written as a subquery.
    - ``first``, ``end``: it comes before batch ``first`` and is withdrawn before ``end``.
    """

    how: str
    windows: tuple[int | None, int | None]
    on: tuple[int | None, int | None]
    where: tuple[int | None, int | None]
    differs: bool
    is_nested: bool
    first: int
    end: int | None

    @property
    def sql(self) -> str:
        """The text of the query."""
        f, c = (
            f"{s} [RANGE {'UNBOUNDED' if w is None else f'{w} SECONDS'}] {s[0]}"
            for s, w in zip(SIDES, self.windows, strict=True)
        )
        on = ["f.num = c.flight", *_format_bounds(self.on)] + ["f.x <> c.x"] * self.differs
        where = _format_bounds(self.where)
        select = "f.id" if self.how in ("semi", "anti") else "f.id, c.id AS c"
        if self.is_nested:
            test = "EXISTS" if self.how == "semi" else "NOT EXISTS"
            where.append(f"{test} (SELECT 1 FROM {c} WHERE {' AND '.join(on)})")
            return f"SELECT {select} FROM {f} WHERE {' AND '.join(where)}"
        rest = f" WHERE {' AND '.join(where)}" if where else ""
        return f"SELECT {select} FROM {f} {JOINS[self.how]} {c} ON {' AND '.join(on)}{rest}"

    def rules(self, lateness: tuple[int, int]) -> JoinRules:
        """The rules of the join in the model."""
        most = [None if w is None else w * SECOND - 1 for w in self.windows]
        return JoinRules(
            lambda f, c: (
                f.values["key"] == c.values["key"]
                and (not self.differs or f.values["x"] != c.values["x"])
            ),
            ((0, most[0]), (most[1], 0)),
            self.how,
            lateness,
            DAY,
            ends=(BATCHES - 1, BATCHES - 1),
        )


def _format_bounds(below: tuple[int | None, int | None]) -> list[str]:
    return [f"{s[0]}.x < {n}" for s, n in zip(SIDES, below, strict=True) if n is not None]


class _HubProgress(Progress):
    """The event time of a hub: clocks advance with all tuples of a stream."""

    arriving: list[list[list[int]]]
    """Event times by batch and stream."""
    late: set[tuple[int, int]]
    """Tuples that may have missed partners."""

    def take_batch(self, batch: int, new: Any) -> list[Any]:
        for stream, tuples in enumerate(new):
            limit = find_late_limit(stream, self.horizons, self.rules.reach)
            timed = [t for t in tuples if limit is not None and t.time is not None]
            self.late |= {(stream, t.id) for t in timed if t.time < limit}
        if batch < len(self.arriving):
            for stream, times in enumerate(self.arriving[batch]):
                self.ticking[stream].take_batch(times)
        self.batch = batch
        self.find_times()
        return []


class Answered(NamedTuple):
    """The rows of a query's answer, with their batches.

    ``optional``: rows that may be missing, of tuples that are older than what the query is sure to
    know, or that came late before the query. ``late``: tuples that may have missed partners.
    """

    rows: list[tuple[int, tuple[int | None, ...]]]
    optional: list[tuple[int | None, ...]]
    late: set[tuple[int, int]]

    def count_comparable(self, query: KindQuery, rows: Bag) -> Bag:
        """Return the rows whose presence is sure.

        The operator of an inner join may be wider than the query, and then forgets less.
        """
        left = rows - Counter(self.optional)
        if query.how != "inner":
            return left
        return Counter({r: n for r, n in left.items() if self.late.isdisjoint(enumerate(r))})


def answer_query(
    query: KindQuery,
    data: Mapping[str, list[Row]],
    lateness: tuple[int, int],
    since: Mapping[str, int | None],
) -> Answered:
    """Return the answer to a query.

    ``since``: by stream, the event time from which on it is complete.
    """
    run, times = _run_model(query, data, lateness)
    end = BATCHES if query.end is None else query.end
    reported = Answered([], [], run.progress.late)

    def is_known(stream: int, id: int) -> bool:
        limit, time = since[SIDES[stream]], times[stream, id]
        return limit is None or time is None or time >= limit

    def is_served(came: int, batch: int) -> bool:
        # The batch that ends all streams belongs to the last one.
        return came <= batch < (BATCHES + 1 if end == BATCHES else end)

    for batch, ids in run.outcome.pairs if query.how not in ("semi", "anti") else []:
        if is_served(query.first, batch):
            known = all(is_known(s, id) for s, id in enumerate(ids))
            reported.rows.append((batch, ids)) if known else reported.optional.append(ids)
    for a in run.outcome.answers:
        # A match is written in the batch after it was made.
        first = query.first + (1 if query.how == "semi" and query.first else 0)
        if a.is_matched == (query.how == "semi") and is_served(first, a.batch):
            ids = tuple(a.id if s == a.stream else None for s in (0, 1))
            ids = ids[:1] if query.how in ("semi", "anti") else ids
            if query.first and (a.stream, a.id) in run.progress.late:
                reported.optional.append(ids)
            elif is_known(a.stream, a.id):
                reported.rows.append((a.batch, ids))
    return reported


def _run_model(
    query: KindQuery, data: Mapping[str, list[Row]], lateness: tuple[int, int]
) -> tuple[_Run, dict[tuple[int, int], int | None]]:
    """Return the finished run of the model, and the times of all tuples."""
    run = _Run(query.rules(lateness))
    run.progress = progress = _HubProgress(run.rules)
    progress.late, progress.arriving = (
        set(),
        [
            [[r["ts"] for r in data[s] if r["batch"] == b and r["ts"] is not None] for s in SIDES]
            for b in range(BATCHES)
        ],
    )
    tuples = [t for stream in (0, 1) for t in _make_tuples(query, data, stream)]
    for batch in range(BATCHES):
        run.take_batch([t for t in tuples if t.batch == batch])
    if run.waiting:
        run.take_batch([])
    return run, {(t.stream, t.id): t.time for t in tuples}


def _make_tuples(query: KindQuery, data: Mapping[str, list[Row]], stream: int) -> Iterator[Tuple]:
    for row in data[SIDES[stream]]:
        below, met = query.where[stream], query.on[stream]
        key = row[KEYS[SIDES[stream]]]
        if below is None or row["x"] < below:
            is_timed = row["ts"] is not None  # which a window needs, also an unbounded one
            meets = is_timed and key is not None and (met is None or row["x"] < met)
            values = {"key": key, "x": row["x"]}
            yield Tuple(stream, row["id"], row["batch"], row["ts"], values, meets)


def draw_data(rng: random.Random) -> dict[str, list[Row]]:
    """Return rows of both streams: some late, some without event time or key."""
    worst = rng.choice((0, 30, 90, 200))
    step = rng.choice((20, 60))

    def draw_row(stream: str, id: int) -> Row:
        batch = rng.randrange(BATCHES)
        late = rng.randrange(worst + 1) if worst and rng.random() < 0.3 else 0
        at = (batch + 1) * step - rng.randrange(step) - late
        key = None if rng.random() < 0.1 else rng.randrange(rng.choice((3, 12)))
        time = None if rng.random() < 0.05 else at * SECOND + 10 * DAY
        return {"id": id, KEYS[stream]: key, "x": rng.randrange(4), "ts": time, "batch": batch}

    return {s: [draw_row(s, id) for id in range(rng.randrange(5, 60))] for s in SIDES}


def draw_query(rng: random.Random, how: str | None = None) -> KindQuery:
    """Return a random query."""
    how = how or rng.choice([*JOINS])
    bound = lambda: rng.choice((None, None, 2, 3))  # noqa: E731
    windows = rng.choice((20, 45, 90, 150, None)), rng.choice((20, 45, 90, 150, None))
    where = {"right": (None, bound()), "full": (None, None)}.get(how, (bound(), None))
    first = rng.choice((0, 0, rng.randrange(1, BATCHES)))
    end = rng.randrange(first + 1, BATCHES) if first + 1 < BATCHES and rng.random() < 0.2 else None
    nested = how in ("semi", "anti") and rng.random() < 0.5
    return KindQuery(
        how, windows, (bound(), bound()), where, rng.random() < 0.3, nested, first, end
    )


def make_tables(data: Mapping[str, list[Row]]) -> dict[str, pa.Table]:
    """Return the rows as tables."""
    return {
        s: pa.Table.from_pylist(
            rows,
            pa.schema(
                {
                    "id": pa.int32(),
                    KEYS[s]: pa.int32(),
                    "x": pa.int32(),
                    "ts": pa.timestamp("us", "UTC"),
                    "batch": pa.int32(),
                }
            ),
        )
        for s, rows in data.items()
    }


class KindScenario:
    """A hub of tables with random queries, which is opened again at random.

    - ``lateness``: in microseconds, by stream.
    """

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.data = draw_data(self.rng)
        queries = [draw_query(self.rng) for _ in range(self.rng.randrange(2, 7))]
        twins = [q for q in queries if self.rng.random() < 0.3]
        later = [self._draw_later(q) for q in twins]
        self.queries = {f"q{n}": q for n, q in enumerate([*queries, *later])}
        self.lateness = tuple(self.rng.choice((0, 0, 30, 100)) * SECOND for _ in SIDES)
        self.history = self.rng.choice((0, 0, 600 * SECOND))

    def _draw_later(self, query: KindQuery) -> KindQuery:
        """Return the same query, which comes later and may use the same operator."""
        first = self.rng.randrange(BATCHES)
        return KindQuery(*[*vars(query).values()][:6], first, None)

    def run(self, folder: Path) -> Iterator[str]:
        """Run the hub, and yield a sentence for each wrong answer."""
        settings = dict(history=self.history, lateness=dict(zip(SIDES, self.lateness, strict=True)))
        tables = make_tables(self.data)
        hub = SteppedHub(folder, tables, **settings)
        for batch in range(BATCHES):
            for name, query in self.queries.items():
                if query.first == batch:
                    hub.submit(query.sql, name)
                if query.end == batch:
                    hub.registry.withdraw_query(name)
            if self.rng.random() < 0.2:
                hub = SteppedHub(folder, tables, **settings)
            hub.step()
        for name, query in self.queries.items():
            served = hub.registry.last_query(name)
            yield from self._compare(name, query, served, hub.answered(name))

    def _compare(
        self, name: str, query: KindQuery, served: RegisteredQuery, found: Bag
    ) -> Iterator[str]:
        reported = answer_query(query, self.data, self.lateness, served.complete_since)
        expected = reported.count_comparable(query, Counter(ids for _, ids in reported.rows))
        found = reported.count_comparable(query, found)
        if lost := expected - found:
            yield f"{name} {query.sql}: lost {[*lost.elements()][:3]} of {expected.total()}"
        if extra := found - expected:
            yield f"{name} {query.sql}: {[*extra.elements()][:3]} too many"


def check_all_plans(monkeypatch: Any) -> None:
    """Check every plan of the operators against the cover rule and the record of answers."""
    monkeypatch.setattr(OperatorInstance, "checks_plans", True)
