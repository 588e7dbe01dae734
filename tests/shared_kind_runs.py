"""Random shared runs with queries of every kind, and their results from the tuple-level model."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
from braid.core.join_kinds import INNER, parse_kind
from braid.core.match_rules import MATCHES, MatchRule
from braid.core.query import Query
from braid.core.query_waiting import list_waiting_by_query
from braid.core.reserved_columns import QUERIES
from braid.papers.slices.chain import Chain
from braid.storage.block_files import read_parquet
from models.asof import LEFT, RIGHT, AsOfRules
from models.asof import _Run as AsOfModel
from models.clocks import Clock
from models.kinds import JoinRules, Progress, Tuple, _Run
from unit.test_sharing import SELECTIONS, WINDOWS, Shared

Ids = tuple[int | None, ...]
HOWS = ("inner", "left", "right", "full", "semi", "anti")
CHAINS = (Chain("memory"), Chain("cpu"), Chain("auto", hosts=3), Chain("memory", hosts=2))


class _SharedProgress(Progress):
    """The event time of a shared run: clocks advance with all tuples of a stream."""

    arriving: list[list[list[int]]]
    """Event times by batch and stream."""

    def take_batch(self, batch: int, new: Any) -> list[Any]:
        for stream, times in enumerate(self.arriving[batch] if batch < len(self.arriving) else ()):
            self.ticking[stream].take_batch(times)
        self.batch = batch
        self.find_times()
        return []


class _SharedAsOf(AsOfModel):
    """An as-of query of a shared run: clocks advance with all tuples of a stream."""

    def __init__(self, rules: AsOfRules, arriving: list[list[list[int]]]) -> None:
        super().__init__(rules)
        self.arriving = arriving

    def take_batch(self, tuples: Any) -> None:
        ticking, self.ticking = self.ticking, [Clock(None), Clock(None)]
        for mine, all_tuples in zip(self.ticking, ticking, strict=True):
            mine.time = all_tuples.time
        super().take_batch(tuples)
        self.ticking = ticking
        for stream, times in enumerate(self.arriving[self.batch]):
            self.ticking[stream].take_batch(times)


class SharedKinds(Shared):
    """A shared run of two streams in this process, whose queries are of any kind.

    - ``numbers``: numbers of the batches with tuples.
    - ``has_late``: whether tuples may come late.
    """

    has_late = False

    def __init__(self, folder: str, chain: Chain, queries: tuple[Query, ...]) -> None:
        self.numbers: list[int] = []
        super().__init__(folder, 2, chain, queries)

    def batch(self, rows: list[tuple[int, int, int, int]]) -> None:
        self.numbers.append(self.engine.state.batch + 1)
        super().batch(rows)

    def count_waiting(self) -> dict[str, dict[str, int]]:
        """Return the tuples that wait, by query and stream."""
        state = self.engine.state
        return list_waiting_by_query(state.waiting_by_query, state.queries, "ab")

    def close(self) -> None:
        """Answer all that waits."""
        self.numbers.append(self.engine.state.batch + 1)
        columns = self._make_nothing()
        self.engine.close(lambda: columns)

    def _make_nothing(self) -> pa.Table:
        made: list[Any] = []
        run = self.engine._execute_and_commit
        self.engine._execute_and_commit = lambda frame, *_: made.append(frame)  # type: ignore[method-assign]
        super().batch([])
        self.engine._execute_and_commit = run  # type: ignore[method-assign]
        return made[0]

    def list_rows(self, q: Query, first: int, end: int | None) -> Counter[Ids]:
        """Return the rows that a query has got in some batches."""
        rows: Counter[Ids] = Counter()
        for file in self.engine.store.results.result_files(first, end):
            for row in read_parquet(file).to_pylist():
                if row[QUERIES] >> q.bitmap_position & 1:
                    rows[tuple(row[a] and row[a]["id"] for a in "ab")] += 1
        return rows

    def answer(
        self, q: Query, first: int, end: int | None, since: tuple[int | None, ...]
    ) -> tuple[Counter[Ids], Counter[Ids]]:
        """Return the rows that a query must get in those batches, and further ones that it may get.

        A query that comes later answers the tuples that come from then on.
        """
        if q.match is not None:
            return self._answer_asof(q, first, end, since)
        run, tuples = self._run_model(q)
        begun = sum(number < first for number in self.numbers)
        over = len(self.numbers) if end is None else sum(n < end for n in self.numbers)
        must, may = Counter[Ids](), Counter[Ids]()

        def is_known(stream: int, id: int) -> bool:
            t = tuples[stream, id]
            return t.batch >= begun or since[stream] is None or t.time >= since[stream]

        for batch, ids in run.outcome.pairs if q.kind.writes_pairs else ():
            if begun <= batch < over:
                (must if all(map(is_known, (0, 1), ids)) else may)[ids] += 1
        for a in run.outcome.answers:
            t = tuples[a.stream, a.id]
            if a.is_matched != q.kind.writes_matched or not begun <= a.batch < over:
                continue
            ids = tuple(a.id if s == a.stream else None for s in (0, 1))
            other = since[1 - a.stream]
            # Its partners may be missing.
            is_late = other is not None and t.time < other + q.windows[1 - a.stream]
            if t.batch >= begun and not is_late:
                must[ids] += 1
            elif t.batch >= begun and q.kind.writes_matched:
                may[ids] += 1
        return must, may

    def _answer_asof(
        self, q: Query, first: int, end: int | None, since: tuple[int | None, ...]
    ) -> tuple[Counter[Ids], Counter[Ids]]:
        """Return the same of an as-of query: each new tuple of a takes its best partner of b."""
        run, tuples = self._run_asof_model(q)
        begun = sum(number < first for number in self.numbers)
        over = len(self.numbers) if end is None else sum(n < end for n in self.numbers)
        must, may = Counter[Ids](), Counter[Ids]()
        for a in run.answers:
            t = tuples[LEFT, a.left]
            floor = None if since[RIGHT] is None else since[RIGHT] + q.windows[RIGHT]
            if not begun <= a.batch < over or t.batch < begun:
                continue
            if floor is not None and t.time < floor:
                continue
            earlier = [row[3] for b, row in self.came[LEFT] if b < self.numbers[t.batch]]
            if begun and t.time < max(earlier, default=t.time):  # late, perhaps without partners
                may.update((a.left, id) for s, id in [*tuples, (RIGHT, None)] if s == RIGHT)
            else:
                must[a.left, a.right] += 1
        return must, may

    def _run_asof_model(self, q: Query) -> tuple[_SharedAsOf, dict[tuple[int, int], Tuple]]:
        rule = q.match
        assert rule is not None
        tuples, arriving = self._list_tuples(q), self._list_arriving()
        rules = AsOfRules(
            rule.match,
            lambda a, b: a.values["k"] == b.values["k"],
            lambda t: t.values["k"],
            lambda t: t.id,
            tolerance=max(q.windows) - 1,
            is_strict=rule.is_strict,
            keeps_left=not q.kind.is_inner,
            forgets_dominated=False,
        )
        run = _SharedAsOf(rules, [*arriving, [[], []]])
        for n in range(len(self.numbers) - 1):
            run.take_batch([t for t in tuples if t.batch == n])
        run.is_closed = True
        run.take_batch([])
        assert not run.waiting
        return run, {(t.stream, t.id): t for t in tuples}

    def _list_arriving(self) -> list[list[list[int]]]:
        """Return the event times by batch and stream, with those that no query selects."""
        place = {number: n for n, number in enumerate(self.numbers)}
        return [
            [[row[3] for b, row in came if place[b] == n] for came in self.came]
            for n in range(len(self.numbers) - 1)
        ]

    def _list_tuples(self, q: Query) -> list[Tuple]:
        """Return the tuples that a query selects."""
        place = {number: n for n, number in enumerate(self.numbers)}
        return [
            Tuple(s, row[0], place[b], row[3], {"k": row[1]})
            for s, came in enumerate(self.came)
            for b, row in came
            if SELECTIONS[q.selections[s]](row[2])
        ]

    def _run_model(self, q: Query) -> tuple[_Run, dict[tuple[int, int], Tuple]]:
        most = [w - 1 for w in q.windows]
        run = _Run(
            JoinRules(
                lambda a, b: a.values["k"] == b.values["k"],
                ((0, most[0]), (most[1], 0)),
                q.kind.name,
                closes=False,
            )
        )
        run.progress = progress = _SharedProgress(run.rules)
        progress.arriving, tuples = self._list_arriving(), self._list_tuples(q)
        for n in range(len(self.numbers) - 1):
            run.take_batch([t for t in tuples if t.batch == n])
        run.end_all_streams()
        run.take_batch([])
        return run, {(t.stream, t.id): t for t in tuples}

    def find_faults(self) -> Iterator[str]:
        """Yield a sentence for each wrong answer of a closed run."""
        for name, counts in self.count_waiting().items():
            if any(counts.values()):
                yield f"{name} still waits for {counts}"
        for q, first, end, since in (span for spans in self.served.values() for span in spans):
            is_inner = q.kind.is_inner and q.match is None
            if is_inner and self.has_late:  # longer windows may find more of them
                continue
            found, (must, may) = self.list_rows(q, first, end), self.answer(q, first, end, since)
            name = f"{q.name} {q.kind.name} {q.windows} {q.selections} {first}-{end}"
            if lost := must - found:
                yield f"{name} lost {[*lost.elements()][:3]} of {must.total()}"
            if extra := found - must - may:
                yield f"{name}: {[*extra.elements()][:3]} too many"


def draw_query(rng: random.Random, name: str, bit: int = 0, how: str | None = None) -> Query:
    """Return a random query."""
    windows, where = rng.choices(WINDOWS, k=2), rng.choices([*SELECTIONS], k=2)
    if how is None and rng.random() < 0.4:
        return draw_asof_query(rng, name, bit)
    kind = parse_kind(how or rng.choice(HOWS), ["a", "b"])
    return Query(name, tuple(windows), tuple(where), bit, (None, None), kind)


def draw_asof_query(rng: random.Random, name: str, bit: int = 0) -> Query:
    """Return a random as-of query."""
    where, kind = rng.choices([*SELECTIONS], k=2), parse_kind(rng.choice(HOWS[:2]), ["a", "b"])
    rule = MatchRule(
        rng.choice(MATCHES),
        tolerance=rng.choice((0, 3, *WINDOWS)),
        is_strict=rng.random() < 0.3,
        ties=("id",),
    )
    windows = rule.limit_windows((None, None))
    return Query(name, windows, tuple(where), bit, (None, None), kind, rule)  # type: ignore[arg-type]


def run_random_queries(seed: int, folder: Path) -> Iterator[str]:
    """Run random batches with changes of queries and restarts, and yield each fault."""
    rng = random.Random(seed)
    queries = [draw_query(rng, f"q{bit}", bit) for bit in range(rng.randrange(1, 4))]
    full = draw_query(rng, "full", len(queries), "full")
    asof = replace(draw_asof_query(rng, "asof", full.bitmap_position + 1), selections=(None, None))
    run = SharedKinds(str(folder), rng.choice(CHAINS), (*queries, full, asof))
    for n in range(rng.randrange(4, 12)):
        backwards = 0 if rng.random() < 0.7 else rng.randrange(6)
        rows = [
            (rng.randrange(2), rng.randrange(3), rng.randrange(10), rng.randrange(-backwards, 4))
            for _ in range(rng.randrange(1, 14))
        ]
        run.has_late |= backwards > 0
        run.batch(rows)
        served = [q.name for q in run.engine.state.queries]
        if rng.random() < 0.3:
            new = draw_query(rng, f"n{n}")
            run.add(new.name, new.windows, new.selections, new.kind, new.match)
        if rng.random() < 0.2 and len(served) > 1:
            run.remove(rng.choice(served))
        if rng.random() < 0.2:
            run.restart()
    run.close()
    yield from run.find_faults()


__all__ = ["HOWS", "INNER", "SharedKinds", "draw_query", "run_random_queries"]
