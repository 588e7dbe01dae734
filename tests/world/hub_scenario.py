"""Scenarios of hubs: streams, queries that are added and removed, a network, and answers."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any

import pyarrow as pa
from braid.hub.hub import QueryHub
from braid.papers.reuse.network import Network, Node
from braid.papers.reuse.planner import Reuse

from world.scenario import Row, draw_row, draw_rows, make_stream_table

Bag = Counter[tuple[Any, ...]]
SECOND = 1_000_000
FAULTS = ("kill", "cut", "error", "full", "flip", "zombie")
"""Faults of hubs. A zombie is a driver that sleeps, loses its lock and wakes after another began."""
NODES = ("N", "M", "L")
"""Nodes that may have operators."""
NETWORK = Network(
    (*(Node(n, "source") for n in "ABC"), *map(Node, NODES), Node("S", "sink")),
    (
        *(("A", "N", 1.0), ("B", "N", 3.0), ("B", "M", 1.0), ("C", "M", 2.0), ("C", "L", 1.0)),
        *(("N", "M", 2.0), ("M", "L", 2.0), ("N", "S", 4.0), ("M", "S", 1.0), ("L", "S", 5.0)),
        *(("A", "L", 6.0), ("A", "M", 5.0), ("B", "L", 6.0), ("C", "N", 7.0)),
    ),
)


@dataclass(frozen=True)
class Statement:
    """A query.

    - ``windows``: seconds, by stream.
    - ``below``: an upper bound on ``n`` of the first stream.
    - ``differs``: whether ``n`` of the first two must differ.
    - ``every``: seconds between ticks; None: matches alone.
    - ``tells``: matches, "groups" or a "count" at each tick.
    - ``first``, ``end``: it is added before batch ``first`` and removed before batch ``end``; None:
      never.
    - ``how``: kind of the join of a query of two streams that is never removed.
    """

    windows: Mapping[str, int]
    below: int | None
    differs: bool
    every: int | None
    tells: str
    first: int
    end: int | None
    how: str = "inner"

    @property
    def sql(self) -> str:
        """Return the query's text."""
        if self.how != "inner":
            return self._kind_sql
        chosen = {
            "matches": ", ".join(f"{s}.id AS {s}_id" for s in self.windows),
            "groups": "a.k AS k, count(*) AS n, max(b.n) AS most",
            "count": "count(*) AS n, sum(b.n) AS total",
        }[self.tells]
        where = [f"a.k = {s}.k" for s in [*self.windows][1:]]
        where += [f"a.n < {self.below}"] if self.below is not None else []
        where += ["a.n <> b.n"] if self.differs else []
        group = " GROUP BY a.k HAVING count(*) > 1" if self.tells == "groups" else ""
        streams = ", ".join(map(self._windowed, self.windows))
        return f"SELECT {chosen} FROM {streams} WHERE {' AND '.join(where)}{group}"

    @property
    def _kind_sql(self) -> str:
        chosen = "a.id AS a_id" if self.how in ("semi", "anti") else "a.id AS a_id, b.id AS b_id"
        on = "a.k = b.k" + (" AND a.n <> b.n" if self.differs else "")
        on += f" AND a.n < {self.below}" if self.below is not None else ""
        a, b = map(self._windowed, self.windows)
        return f"SELECT {chosen} FROM {a} {self.how.upper()} JOIN {b} ON {on}"

    def _windowed(self, stream: str) -> str:
        slide = f" SLIDE {self.every} SECONDS" if self.every and stream == "a" else ""
        return f"{stream} [RANGE {self.windows[stream]} SECONDS{slide}] {stream}"

    def holds(self, some: tuple[Row, ...]) -> bool:
        """Return whether the given rows satisfy its condition."""
        a = some[0]
        if self.below is not None and a["n"] >= self.below:
            return False
        if len(some) > 1 and self.differs and a["n"] == some[1]["n"]:
            return False
        return all(row["k"] == a["k"] for row in some)

    def span(self, some: tuple[Row, ...]) -> tuple[int, int]:
        """Return the event times between which the rows match, in microseconds."""
        ends = [row["ts"] + w for row, w in zip(some, self.windows.values(), strict=True)]
        return SECOND * max(row["ts"] for row in some), SECOND * min(ends)


@dataclass(frozen=True)
class Serving:
    """The batches in which a query was answered, from ``first`` up to but excluding ``end``.

    It also has, by stream, the event time from which on the query had all tuples (None: all).
    """

    first: int
    end: int | None
    complete: Mapping[str, int | None]

    @property
    def is_complete(self) -> bool:
        """Return whether the query had all tuples that it can use."""
        return all(since is None for since in self.complete.values())

    def covers(self, statement: Statement, some: tuple[Row, ...]) -> bool:
        """Return whether none of the rows is older than the query's tuples."""
        floors = [self.complete[s] for s in statement.windows]
        pairs = zip(some, floors, strict=True)
        return all(floor is None or row["ts"] * SECOND >= floor for row, floor in pairs)


@dataclass(frozen=True)
class HubScenario:
    """A hub, its queries by name, and its faults.

    - ``rows``: those of each stream, with ``batch``.
    - ``history``, ``lateness``: settings of QueryHub; lateness in seconds by stream.
    - ``down``: the batches between which a node is down.
    - ``turns``: the batches at which everything is re-planned or an operator is moved.
    - ``is_patient``: whether a client continues with the hub if its query is refused because the
      disk is full.

    See Scenario for the rest.
    """

    seed: int
    rows: Mapping[str, list[Row]] = field(repr=False)
    batches: int
    statements: Mapping[str, Statement]
    is_networked: bool
    reuse: Reuse
    history: str
    lateness: int
    down: tuple[str, int, int] | None
    turns: Mapping[int, str]
    is_patient: bool
    faults: tuple[str, ...]
    most: int
    spacing: int
    many = False
    durability, place, keep, has_sink = "power", "folder", None, False

    def hub(self) -> QueryHub:
        """Return the hub, ready to be started."""
        streams = {s: make_stream_table(rows) for s, rows in self.rows.items()}
        return QueryHub(
            streams,
            "ts",
            f"{self.lateness} seconds",
            self.reuse,
            NETWORK if self.is_networked else None,
            history=self.history,
        )

    @property
    def place_of_answers(self) -> dict[str, str]:
        """Return the clause that names the node of a query."""
        return {"sink": "S"} if self.is_networked else {}

    def streams(self) -> dict[str, pa.Table]:
        """Return the streams as tables."""
        return {s: make_stream_table(rows) for s, rows in self.rows.items()}

    def progress(self, statement: Statement, batch: int) -> int | None:
        """Return the event time that the streams of a query have passed with a batch.

        None if a stream has not started. Those that have ended are not waited for; if all have, it
        is the latest time.
        """
        came = {
            s: max((r["ts"] for r in self.rows[s] if r["batch"] <= batch), default=None)
            for s in statement.windows
        }
        lasting = [came[s] for s in came if not self.has_ended(s, batch)]
        if None in lasting:
            return None
        if not lasting:
            return max(t for t in came.values() if t is not None) * SECOND
        return (min(t for t in lasting if t is not None) - self.lateness) * SECOND

    def has_ended(self, stream: str, batch: int) -> bool:
        """Return whether a stream has no rows after a batch."""
        return all(row["batch"] <= batch for row in self.rows[stream])

    def matches(self, statement: Statement) -> Iterator[tuple[Row, ...]]:
        """Return the rows that a query finds, whenever it is answered."""
        found: list[tuple[Row, ...]] = [()]
        for stream in statement.windows:
            more = [(*some, row) for some in found for row in self.rows[stream]]
            found = [some for some in more if statement.holds(some)]
        for some in found:
            start, end = statement.span(some)
            if start < end:
                yield some

    def answer(self, statement: Statement, serving: Serving, is_sure: bool) -> Bag:
        """Return the answer to a query.

        With ``is_sure``, return only matches that it must have although it lost tuples.
        """
        if statement.how != "inner":
            return Counter(self._answer_kind(statement, serving, is_sure))
        found = [m for m in self.matches(statement) if not is_sure or serving.covers(statement, m)]
        came = [(some, max(row["batch"] for row in some)) for some in found]
        if statement.every is None:
            end = self.batches if serving.end is None else serving.end
            reported = [some for some, batch in came if serving.first <= batch < end]
            return Counter(tuple(row["id"] for row in some) for some in reported)
        if serving.end is not None:
            found = [some for some, batch in came if batch < serving.end]
        return Counter(self._at_ticks(statement, serving, found))

    def _answer_kind(
        self, statement: Statement, serving: Serving, is_sure: bool
    ) -> Iterator[tuple[Any, ...]]:
        """Yield the answer to a query that is no inner join.

        With ``is_sure``, without the tuples that may have been final before it came.
        """
        first, matches = dict[tuple[str, int], int](), [*self.matches(statement)]
        for some in matches:
            came = max(row["batch"] for row in some)
            for stream, row in zip(statement.windows, some, strict=True):
                place = stream, row["id"]
                first[place] = min(came, first.get(place, came))
            is_served = came >= serving.first and (not is_sure or serving.covers(statement, some))
            if is_served and statement.how in ("left", "full"):
                yield tuple(row["id"] for row in some)
        for place, stream in enumerate("ab" if statement.how == "full" else "a"):
            since = serving.complete[stream]
            for row in self.rows[stream]:
                is_known = since is None or row["ts"] * SECOND >= since
                if stream == "a" and statement.below is not None and row["n"] >= statement.below:
                    is_known &= row["batch"] >= serving.first  # final when it came
                is_known |= not is_sure
                came_first = first.get((stream, row["id"]))
                ids = tuple(row["id"] if n == place else None for n in range(2))
                if statement.how == "semi":
                    if came_first is not None and came_first >= serving.first and is_known:
                        yield ids[:1]
                elif came_first is None and is_known:
                    yield ids[:1] if statement.how == "anti" else ids

    def _at_ticks(
        self, statement: Statement, serving: Serving, found: list[tuple[Row, ...]]
    ) -> Iterator[tuple[Any, ...]]:
        spans = [(statement.span(some), some) for some in found]
        for tick in self._ticks(statement, serving):
            held = [some for (start, end), some in spans if start <= tick < end]
            if statement.tells == "matches":
                yield from ((tick, *(row["id"] for row in some)) for some in held)
            elif statement.tells == "count":
                yield tick, len(held), sum(b["n"] for _, b, *_ in held) if held else None
            else:
                yield from ((tick, *group) for group in _group(held))

    def _ticks(self, statement: Statement, serving: Serving) -> range:
        """Return the ticks of a query, from its addition to its removal.

        An aggregate of all rows also has ticks without matches.
        """
        assert statement.every is not None, "it has a SLIDE"
        every, streams = statement.every * SECOND, [self.rows[s] for s in statement.windows]
        since = self.progress(statement, serving.first - 1)
        begun = max(min(row["ts"] for row in rows) for rows in streams) * SECOND
        first = -(-begun // every) if since is None else since // every + 1
        until = self._until(statement)
        if serving.end is not None:
            has_ended = all(self.has_ended(s, serving.end - 1) for s in statement.windows)
            until = until if has_ended else self.progress(statement, serving.end - 1)
        return range(0) if until is None else range(first * every, until, every)

    def _until(self, statement: Statement) -> int | None:
        last = {s: max(row["ts"] for row in self.rows[s]) for s in statement.windows}
        over = min(last[s] + w for s, w in statement.windows.items())
        return SECOND * max(max(last.values()) + 1, over)


def _group(held: list[tuple[Row, ...]]) -> Iterator[tuple[int, int, int]]:
    by_key = sorted(held, key=lambda some: some[0]["k"])
    for key, group in groupby(by_key, lambda some: some[0]["k"]):
        values = [b["n"] for _, b, *_ in group]
        if len(values) > 1:
            yield key, len(values), max(values)


def hub_scenario(seed: int) -> HubScenario:
    """Return the scenario of a seed."""
    draw = random.Random(f"{seed} hub")
    streams = "abc"[: draw.choice((2, 3))]
    batches = draw.randint(3, 7)
    rows = {s: draw_rows(draw, batches) for s in streams}
    for stream in streams:  # so that each has something, and one has the last batch
        at = batches - 1 if stream == "a" else draw.randrange(batches)
        if stream == "a" or not rows[stream]:
            rows[stream].append(draw_row(draw, len(rows[stream]), at))
    names = [f"q{n}" for n in range(1, draw.randint(2, 4) + 1)]
    is_networked = draw.random() < 0.5
    first, last = sorted(draw.sample(range(batches + 1), 2))
    turns = {draw.randrange(batches): draw.choice(("plan", "move")) for _ in range(2)}
    return HubScenario(
        seed,
        rows,
        batches,
        _draw_kinds(
            seed, {name: _statement(draw, streams, batches) for name in names}, is_networked
        ),
        is_networked,
        draw.choice(("relaxed", "relaxed", "contained", "exact", "separate")),
        draw.choice(("0 seconds", "1 hour")),
        draw.choice((0, 0, 7)),
        (draw.choice(NODES), first, last) if is_networked and draw.random() < 0.5 else None,
        turns if is_networked else {},
        draw.random() < 0.5,
        tuple([f for f in FAULTS if draw.random() < 0.5] or ["kill"]),
        draw.randint(1, 5),
        draw.choice((20, 150, 600)),
    )


def _draw_kinds(
    seed: int, statements: Mapping[str, Statement], is_networked: bool
) -> dict[str, Statement]:
    """Return the statements, some of them joins of another kind than inner."""
    draw, found = random.Random(f"{seed} kinds"), dict(statements)
    for name, query in statements.items():
        if len(query.windows) == 2 and query.every is None and not is_networked:
            how = draw.choice(("inner", "left", "full", "semi", "anti"))
            end = query.end if how == "inner" else None
            found[name] = replace(query, how=how, end=end)
    return found


def _statement(draw: random.Random, streams: str, batches: int) -> Statement:
    tells = draw.choice(("matches", "matches", "groups", "count"))
    every = draw.choice((4, 10)) if tells != "matches" or draw.random() < 0.3 else None
    chosen = streams if draw.random() < 0.5 else streams[:2]
    first = draw.choice((0, 0, draw.randrange(batches)))
    end = draw.choice((None, None, draw.randint(first + 1, batches)))
    return Statement(
        {s: draw.choice((8, 15, 30)) for s in chosen},
        draw.choice((None, None, 10, 30)),
        draw.random() < 0.3,
        every,
        tells,
        first,
        None if end == batches else end,
    )
