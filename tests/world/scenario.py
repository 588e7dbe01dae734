"""Scenarios drawn from a seed: streams, a condition, a placement, and settings."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import pyarrow as pa
import scatter  # noqa: F401 (placements of the tests' own, that register themselves)
from braid.core.placement import Placement
from braid.papers.hypercube.hypercube import HyperCube
from braid.stream_join import StreamJoin
from models.asof import AsOfRules, run_asof
from models.kinds import Tuple
from placement_checks import list_examples

Row = dict[str, int]
Ids = Counter[tuple[int | None, ...]]
_SPAN = 10
"""Seconds of event time of a micro-batch."""

CONDITIONS: dict[str, Callable[..., bool]] = {
    "a.k = b.k": lambda a, b: a["k"] == b["k"],
    "a.k = b.k AND a.n < b.n": lambda a, b: a["k"] == b["k"] and a["n"] < b["n"],
    "abs(a.n - b.n) <= 3": lambda a, b: abs(a["n"] - b["n"]) <= 3,
    "a.k = b.k OR a.n <= b.n AND b.n <= a.n + 3": lambda a, b: (
        a["k"] == b["k"] or 0 <= b["n"] - a["n"] <= 3
    ),
    "a.k = b.k AND b.k = c.k": lambda a, b, c=None: (
        a["k"] == b["k"] and (c is None or b["k"] == c["k"])
    ),
    "a.k = b.k AND abs(b.n - c.n) <= 3": lambda a, b, c=None: (
        a["k"] == b["k"] and (c is None or abs(b["n"] - c["n"]) <= 3)
    ),
    "a.k = b.k AND b.n = c.n": lambda a, b, c=None: (
        a["k"] == b["k"] and (c is None or b["n"] == c["n"])
    ),
}
"""By condition, whether the given rows satisfy it."""
_BAND, _EITHER, *_, _CHAIN = [*CONDITIONS][2:]


@dataclass(frozen=True)
class Scenario:
    """A run, and its possible faults.

    - ``rows``: those of each stream, with ``batch``.
    - ``windows``: seconds; None: no windows.
    - ``keep``: the setting of ``start``.
    - ``faults``: kinds of faults, at most ``most`` of them, about ``spacing`` steps apart.
    - ``many``: whether a batch has several tasks.
    - ``near``: seconds that b may be before a by the condition, and half of those after it; None:
      the condition has no bound.
    - ``match``: the arguments of an as-of join, with the tolerance in seconds; None: it is none.
    - ``untimed``: more rows of each stream, without event time, which it needs.
    - ``preserved``: streams whose rows come alone if they are in no result.
    - ``is_early``: whether they come at once, and are taken back.
    - ``deleted``: by stream of changes, rows that are deleted, with the batch of the deletion.
    """

    seed: int
    on: str
    rows: Mapping[str, list[Row]] = field(repr=False)
    batches: int
    placement: Placement
    windows: int | None
    keep: str | None
    durability: str
    place: str
    has_sink: bool
    faults: tuple[str, ...]
    most: int
    spacing: int
    many: bool
    slow: bool
    near: int | None = None
    match: tuple[str, int | None] | None = None
    untimed: Mapping[str, list[Row]] = field(default_factory=dict, repr=False)
    preserved: tuple[str, ...] = ()
    is_early: bool = False
    deleted: Mapping[str, list[Row]] = field(default_factory=dict, repr=False)

    def join(self) -> StreamJoin:
        """Return the join, ready to be started."""
        windows = None if self.windows is None else f"{self.windows} seconds"
        time = "ts" if self.windows or self.near or self.match else None
        more: dict[str, Any] = {} if time is None else {"lateness": f"{2 * _SPAN} seconds"}
        if self.match is not None:
            match, tolerance = self.match
            more |= {"match": match, "ties": "id"}
            more |= {} if tolerance is None else {"tolerance": f"{tolerance} seconds"}
        if self.preserved:
            more["how"] = dict.fromkeys(self.preserved, "keep")
            more["emit"] = "early" if self.is_early else "final"
        if self.deleted:
            more["changes"] = dict.fromkeys(self.deleted, "op")
        on = self.on
        if self.near is not None:
            on = f"({on}) AND b.ts BETWEEN a.ts - INTERVAL {self.near} SECONDS AND "
            on += f"a.ts + INTERVAL {self.near // 2} SECONDS"
        return StreamJoin(
            self.streams(), on, self.placement, windows, time=time, check=True, **more
        )

    def streams(self) -> dict[str, pa.Table]:
        """Return the streams as tables."""
        return {
            alias: make_stream_table([*rows, *self.untimed.get(alias, [])], self.deleted.get(alias))
            for alias, rows in self.rows.items()
        }

    def expected(self) -> dict[tuple[int | None, ...], int]:
        """Return the results by the ids of their rows, each with the batch that completes it.

        A row that comes alone does so in that batch or later.
        """
        if self.match is not None:
            return self._find_partners(*self.match)
        holds = CONDITIONS[self.on]
        gone = {alias: {row["id"] for row in rows} for alias, rows in self.deleted.items()}
        existing = (
            [row for row in rows if row["id"] not in gone.get(alias, ())]
            for alias, rows in self.rows.items()
        )
        found: list[tuple[Row, ...]] = [(a,) for a in next(existing)]
        for rows in existing:
            found = [(*some, row) for some in found for row in rows if holds(*some, row)]
        results: dict[tuple[int | None, ...], int] = {
            tuple(row["id"] for row in some): max(row["batch"] for row in some)
            for some in found
            if self._is_within(some)
        }
        return self._find_unmatched(results) | results

    def _find_unmatched(
        self, results: Mapping[tuple[int | None, ...], int]
    ) -> dict[tuple[int | None, ...], int]:
        """Return the rows of preserved streams that are in no result."""
        unmatched = dict[tuple[int | None, ...], int]()
        for place, (alias, rows) in enumerate(self.rows.items()):
            matched = {ids[place] for ids in results}
            for row in [*rows, *self.untimed.get(alias, [])] if alias in self.preserved else ():
                if row["id"] not in matched:
                    alone = [row["id"] if n == place else None for n in range(len(self.rows))]
                    unmatched[tuple(alone)] = row["batch"]
        return unmatched

    def _find_partners(
        self, match: str, tolerance: int | None
    ) -> dict[tuple[int | None, ...], int]:
        """Return the results of an as-of join."""
        tuples = [
            Tuple(stream, row["id"], row["batch"], row["ts"], row)
            for stream, rows in enumerate(self.rows.values())
            for row in rows
        ]
        a, b = (max([row["batch"] for row in rows], default=-1) for rows in self.rows.values())
        rules = AsOfRules(
            match,
            condition=lambda a, b: CONDITIONS[self.on](a.values, b.values),
            ties=lambda t: t.id,
            tolerance=tolerance,
            keeps_left=False,
            forgets_dominated=False,
            lateness=(2 * _SPAN, 2 * _SPAN),
            ends=(a, b),
        )
        answers = run_asof(tuples, rules)
        return {(e.left, e.right): e.batch for e in answers if e.right is not None}

    def _is_within(self, some: tuple[Row, ...]) -> bool:
        latest = max(row["ts"] for row in some)
        apart = some[1]["ts"] - some[0]["ts"]
        if self.near is not None and not -self.near <= apart <= self.near // 2:
            return False
        return self.windows is None or all(latest - row["ts"] < self.windows for row in some)


def make_stream_table(rows: list[Row], deleted: list[Row] | None = None) -> pa.Table:
    """Return the rows of a stream as a table.

    ``deleted``: rows of a stream of changes that are deleted later; None: it is none.
    """
    if deleted is not None:
        rows = [*rows, *deleted]
        signs = pa.array([1] * (len(rows) - len(deleted)) + [-1] * len(deleted), pa.int8())
        return make_stream_table(rows).append_column("op", signs)
    return pa.table(
        {
            "id": pa.array([r["id"] for r in rows], pa.int64()),
            "batch": pa.array([r["batch"] for r in rows], pa.int32()),
            "ts": pa.array(
                [r["ts"] * 1_000_000 if "ts" in r else None for r in rows],
                pa.timestamp("us", "UTC"),
            ),
            "k": pa.array([r["k"] for r in rows], pa.int32()),
            "n": pa.array([r["n"] for r in rows], pa.int64()),
        }
    )


@cache
def placements(streams: int, has_equality: bool) -> tuple[Placement, ...]:
    """Return the placements that run a join of this number of streams without loss.

    Those that other tests of this process have registered are left out.
    """
    return tuple(
        p
        for p in list_examples().values()
        if type(p).__module__.split(".")[0] in ("braid", "scatter")
        and p.delivery_guarantee == "exactly once"
        and not p.shares_queries
        and p.supports_streams(streams)
        and (has_equality or p.routing_key_source == "tuple")
    )


FAULTS = ("kill", "cut", "zombie", "error", "full", "flip", "lost answer")

_ZOMBIES = 0.2
"""The share of worlds in which drivers only freeze and wake."""


def scenario(seed: int) -> Scenario:
    """Return the scenario of a seed."""
    draw = random.Random(seed)
    streams = draw.choice((2, 2, 3))
    drawn = [c for c in CONDITIONS if ("c." in c) == (streams == 3) and c not in (_EITHER, _CHAIN)]
    on = draw.choice(drawn)
    batches = draw.randint(4, 12)
    rows = {alias: draw_rows(draw, batches) for alias in "abc"[:streams]}
    cube = draw_cube(seed) if streams == 3 else None
    rows = shift_rates(seed, rows, batches) if cube else rows
    last = draw_row(draw, max([-1, *(row["id"] for row in rows["a"])]) + 1, batches - 1)
    rows["a"].append(last)  # so that the last batch is there
    place = draw.choice(("folder", "folder", "folder", "bucket"))
    durability = draw.choice(("power", "power", "power", "process"))
    faults = [f for f in FAULTS if draw.random() < 0.5]
    if durability == "process" or place == "bucket":
        faults = [f for f in faults if f != "cut"]
    if place == "folder":
        faults = [f for f in faults if f != "lost answer"]
    if random.Random(f"{seed} zombies").random() < _ZOMBIES:
        faults = ["zombie"]
    keep = draw.choice((None, None, "1 seconds", "1 kB")) if place == "folder" else None
    placement = draw.choice(placements(streams, "a.k = b.k" in on and "- c.n" not in on))
    on, placement = (_CHAIN, cube) if cube else (on, placement)
    windows = draw.choice((None, 2 * _SPAN, 4 * _SPAN))
    near = random.Random(f"{seed} near").choice((None, _SPAN, 3 * _SPAN))
    both = [_BAND, _EITHER] if on == _BAND else [on]
    has_sink = draw.random() < 0.5 and keep is None
    is_early = keep is None and not has_sink and random.Random(f"{seed} early").random() < 0.5
    match = draw_match(seed) if not windows and near is None and streams == 2 else None
    deleted = {} if windows or near or match else draw_deleted(seed, rows, batches)
    keep = None if deleted else keep  # a sum of changes needs all of them
    return Scenario(
        seed,
        random.Random(f"{seed} either").choice(both),
        rows,
        batches,
        placement,
        windows,
        keep,
        durability,
        place,
        has_sink,
        tuple(faults or ["kill"]),
        draw.randint(1, 5),
        draw.choice((20, 150, 600)),
        draw.random() < 0.5,
        draw.random() < 0.5,
        None if windows else near,
        match,
        draw_untimed(seed, rows) if windows or near or match else {},
        preserved := () if match or deleted else draw_preserved(seed, [*rows]),
        bool(preserved) and is_early,
        deleted,
    )


def draw_cube(seed: int) -> Placement | None:
    """Return a hypercube for a chain of two equalities, for a quarter of the seeds."""
    draw = random.Random(f"{seed} cube")
    return HyperCube(draw.choice((4, 6, 8)), threshold=1.0) if draw.random() < 0.25 else None


def shift_rates(seed: int, rows: Mapping[str, list[Row]], batches: int) -> dict[str, list[Row]]:
    """Return the rows without most of c's in the first half, then without most of a's.

    Few values of n are left, so that rows of b and c match.
    """
    draw, slow = random.Random(f"{seed} rates"), {"c": 0, "a": 1}
    return {
        alias: [
            {**row, "n": row["n"] % 5}
            for row in each
            if slow.get(alias) != 2 * row["batch"] // batches or draw.random() < 0.2
        ]
        for alias, each in rows.items()
    }


def draw_preserved(seed: int, aliases: list[str]) -> tuple[str, ...]:
    """Return the preserved streams; none for half of the seeds."""
    draw = random.Random(f"{seed} preserved")
    if draw.random() < 0.5:
        return ()
    return tuple(draw.sample(aliases, draw.randint(1, len(aliases))))


def draw_deleted(seed: int, rows: Mapping[str, list[Row]], batches: int) -> dict[str, list[Row]]:
    """Return, by stream of changes, rows that are deleted, each in its batch or later.

    Half of the seeds have no such streams.
    """
    draw = random.Random(f"{seed} deleted")
    if draw.random() < 0.5:
        return {}
    return {
        alias: [
            {**row, "batch": draw.randrange(row["batch"], batches)}
            for row in each
            if draw.random() < 0.4
        ]
        for alias, each in rows.items()
        if draw.random() < 0.6
    }


def draw_untimed(seed: int, rows: Mapping[str, list[Row]]) -> dict[str, list[Row]]:
    """Return rows without event time, in batches of other rows; none for half of the seeds."""
    draw, found = random.Random(f"{seed} untimed"), dict[str, list[Row]]()
    if draw.random() < 0.5:
        return found
    for alias, timed in [*rows.items()][:2]:  # a condition bounds the first two
        some = draw.sample(timed, min(len(timed), draw.randrange(4)))
        found[alias] = [
            {"id": 1_000 + n, "batch": row["batch"], "k": row["k"], "n": row["n"]}
            for n, row in enumerate(some)
        ]
    return found


def draw_match(seed: int) -> tuple[str, int | None] | None:
    """Return the arguments of an as-of join; None for half of the seeds."""
    draw = random.Random(f"{seed} match")
    match = draw.choice((None, None, None, "latest", "first", "nearest"))
    if match is None:
        return None
    return match, draw.choice((None, _SPAN, 3 * _SPAN))


def draw_rows(draw: random.Random, batches: int) -> list[Row]:
    """Return the rows of a stream, ordered by batch and unordered within one."""
    found: list[Row] = []
    for batch in range(batches):
        for _ in range(draw.choice((0, 1, 2, 4, 8))):
            found.append(draw_row(draw, len(found), batch))
    return found


def draw_row(draw: random.Random, id: int, batch: int) -> Row:
    """Return a row of a batch."""
    ts = batch * _SPAN + draw.randrange(_SPAN)
    return {"id": id, "batch": batch, "ts": ts, "k": draw.randrange(5), "n": draw.randrange(40)}
