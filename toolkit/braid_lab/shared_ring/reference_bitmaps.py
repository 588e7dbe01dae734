"""The bitmaps of chapter 20 of Wang 2008, on its own example: result routing, probe by probe.

Three queries over three streams have three windows on each, so each state has three slices. A tuple
of stream a probes the slices of b; its matches probe those of c. A member found in a slice serves
the queries whose windows reach into that slice (Lemma 9). A result goes to the queries set in the
product of its members' bitmaps. If that product is 0 before the probe, no result is made.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import product

import numpy as np
import pyarrow as pa
from braid.core.query import Query
from braid.core.reserved_columns import MARK, TIME
from braid.kernels.host_block_rows import BlockRows, PartialMatches
from braid.kernels.query_bitmaps import QueryBitmaps
from braid.util.validation import read_natural

from braid_lab.common.tuple_models import (
    NAMES,
    Group,
    Heads,
    Line,
    Rows,
    StepExample,
    Stepper,
    Stored,
    Trace,
    TraceMove,
    Tuple,
    group_name,
)
from braid_lab.shared_ring.listings import ROUTING

WINDOWS: dict[str, tuple[int, ...]] = {"q1": (6, 2, 4), "q2": (2, 4, 6), "q3": (4, 6, 2)}
"""Section 20.1, by query and stream: windows rank q2, q3, q1 on a, q1, q2, q3 on b, q3, q1, q2 on
c.

The book prints no lengths.
"""
NOW = 10


def bitmap_example() -> Trace:
    """Return the steps of tuple a1 against one tuple in every slice.

    These are b1 to b3 and c1 to c3, youngest first; all of them match.
    """
    return route_tuple(WINDOWS)


def run_typed(text: str) -> Trace:
    """Return the steps for typed windows: three numbers for each of three queries.

    Raises ValueError for others.
    """
    words = text.replace("/", " ").split()
    numbers = [n for word in words if (n := read_natural(word))]
    rows = [tuple(numbers[k : k + 3]) for k in (0, 3, 6)]
    if (
        len(words) != 9
        or len(numbers) != 9
        or any(len({*of}) < 3 for of in zip(*rows, strict=True))
    ):
        raise ValueError(
            f"{text!r} has no three windows for each of three queries, such as 6 2 4 / 2 4 6 / "
            "4 6 2; each is 1 or more, and no two of a stream are the same"
        )
    return route_tuple({f"q{k}": row for k, row in enumerate(rows, 1)})


EXAMPLE = StepExample(
    run_typed,
    ("6 2 4 / 2 4 6 / 4 6 2",),
    ("windows on a, b and c of three queries",),
    {"one order on all streams": ("2 2 2 / 4 4 4 / 6 6 6",)},
    "slice ",
)


def route_tuple(windows: dict[str, tuple[int, ...]]) -> Trace:
    """Return the steps of tuple a1 against one tuple in every slice of these windows."""
    routing = _Routing(windows)
    a = Tuple(NOW, 0, 1)
    routing.record_group(
        f"{a} arrives. It is new, so on its own stream it serves all: T_a = "
        f"{routing.format_bitmap(routing.all)}.",
        None,
        a,
        line=1,
    )
    pairs = [routing.probe_slice((a,), 1, k) for k in range(len(windows))]
    for pair in pairs:
        for k in range(len(windows)):
            routing.probe_slice(pair, 2, k)
    return routing.trace


def route_example() -> dict[str, tuple[str, ...]]:
    """Return, by the results of the same tuples, T and its product by the engine's bitmaps.

    Combinations that serve nobody are left out.
    """
    queries = [Query(q, w, (None,) * len(w), bit) for bit, (q, w) in enumerate(WINDOWS.items())]
    bitmaps, example = QueryBitmaps.from_queries(queries), _Routing(WINDOWS)
    routed = {}
    for group in product([Tuple(NOW, 0, 1)], *example.held[1:]):
        members = [bitmaps.queries_by_age(t.stream, NOW - t.time) for t in group]
        result = PartialMatches({t.stream: (_make_rows(t), np.zeros(1, int)) for t in group})
        if served := int(bitmaps.result_bitmaps(result)[0]):
            routed[" ".join(map(str, group))] = tuple(
                map(example.format_bitmap, (*map(int, members), served))
            )
    return routed


def _make_rows(t: Tuple) -> BlockRows:
    columns = [pa.array([x], pa.int64()) for x in (t.time, -1)]
    return BlockRows(pa.record_batch(columns, names=[TIME, MARK]))


@dataclass
class _Routing(Stepper):
    windows: dict[str, tuple[int, ...]]
    trace: Trace = field(init=False)

    def __post_init__(self) -> None:
        self.all = (1 << len(self.windows)) - 1
        self.ends = [sorted(set(of)) for of in zip(*self.windows.values(), strict=True)]
        self.trace = Trace(
            "Bitmaps of results (Wang 2008, chapter 20)",
            len(self.ends),
            len(self.windows),
            listings=(ROUTING,),
        )
        queries = [
            Query(q, w, (None,) * len(w), bit) for bit, (q, w) in enumerate(self.windows.items())
        ]
        self.bitmaps = QueryBitmaps.from_queries(queries)
        ages = [
            [(a + b) // 2 for a, b in zip((0, *ends), ends, strict=False)] for ends in self.ends
        ]
        self.held = [
            [Tuple(NOW - age, s, k) for k, age in enumerate(of, 1)] if s else []
            for s, of in enumerate(ages)
        ]

    def make_query_bitmap(self, t: Tuple) -> int:
        """Return the bitmap of a member: queries whose window is longer than its age (Lemma 9)."""
        return int(self.bitmaps.queries_by_age(t.stream, NOW - t.time))

    def make_bitmap(self, included: Iterable[bool]) -> int:
        """Return the bitmap of the queries that are included, the first one in the lowest bit."""
        return sum(1 << bit for bit, yes in enumerate(included) if yes)

    def multiply_bitmaps(self, group: Group) -> int:
        product_mask = self.all
        for t in group:
            product_mask &= self.make_query_bitmap(t)
        return product_mask

    def probe_slice(self, group: Group, stream: int, k: int) -> Group:
        """Probe the k-th slice of a stream with a group."""
        u = self.held[stream][k]
        extended, slice_ = (*group, u), f"{NAMES[stream].upper()}_{k + 1}"
        before, slices = self.multiply_bitmaps(group), self.make_query_bitmap(u)
        if not before & slices:
            self.record_group(
                f"{group_name(group)} serves {self.format_query_names(before)}, {slice_} serves "
                f"{self.format_query_names(slices)}: "
                f"{self.format_bitmap(before)} · "
                f"{self.format_bitmap(slices)} = {self.format_bitmap(0)}, so the probe is left "
                "out (Lemma "
                "9).",
                k,
                *extended,
                line=3,
            )
            return extended
        last = stream == len(self.held) - 1
        vector = ", ".join(self.format_bitmap(self.make_query_bitmap(t)) for t in extended)
        fate = "a result for" if last else "an intermediate result, which goes round for"
        text = (
            f"{group_name(group)} probes {slice_}, which serves "
            f"{self.format_query_names(slices)}, and finds {u}. "
            f"T = ({vector})"
        )
        self.record_group(
            f"{text}: {fate} {self.format_query_names(before & slices)}.",
            k,
            *extended,
            is_result=last,
            line=4 if last else 2,
        )
        return extended

    def record_group(
        self, text: str, node: int | None, *group: Tuple, line: int, is_result: bool = False
    ) -> None:
        self.now, self.clock, self.group = group[0], len(self.trace.steps), group
        *prober, _ = group
        moves = (
            [TraceMove(group_name(prober), "partial", self.find_slice(prober[-1]), node)]
            if prober
            else []
        )
        lines = Line("Chapter 20", line, line)
        self.record_step(text, node, moves, [group] if is_result else [], lines)

    def list_heads(self) -> Heads:
        """Return the ages of each slice, by stream."""
        starts = [(0, *ends) for ends in self.ends]
        return (), tuple(
            " · ".join(f"{NAMES[s]} {starts[s][k]} to {starts[s][k + 1]}" for s in (1, 2))
            for k in range(self.trace.nodes)
        )

    def list_stored(self) -> Stored:
        """Return the tuples, by slice and stream."""
        return tuple(
            tuple((str(of[k]),) if of else () for of in self.held) for k in range(self.trace.nodes)
        )

    def make_table(self) -> Rows:
        """Return the matrix O, by rank and stream, and T with its product."""
        streams = range(len(self.held))
        rows = [("", *NAMES[: len(streams)], "product")]
        for k in range(len(self.windows)):
            of_rank = (
                self.make_bitmap(w[s] == self.ends[s][k] for w in self.windows.values())
                for s in streams
            )
            rows.append((f"O, rank {k + 1}", *map(self.format_bitmap, of_rank), ""))
        bitmaps = {t.stream: self.format_bitmap(self.make_query_bitmap(t)) for t in self.group}
        return (
            *rows,
            (
                "T",
                *(bitmaps.get(s, "–") for s in streams),
                self.format_bitmap(self.multiply_bitmaps(tuple(self.group))),
            ),
        )

    def find_slice(self, t: Tuple) -> int | None:
        """Return the slice of a tuple; None for the new one."""
        return t.number - 1 if t.stream else None

    def format_bitmap(self, mask: int) -> str:
        return format(mask, f"0{len(self.windows)}b")

    def format_query_names(self, mask: int) -> str:
        *some, last = [q for bit, q in enumerate(self.windows) if mask >> bit & 1]
        return f"{', '.join(some)} and {last}" if some else last
