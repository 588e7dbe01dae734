"""Whom the results of a shared ring go to, probe by probe: the bitmaps of chapter 20 of Wang 2008,
on its own example.

Three queries over three streams have three windows on each, so each state has three slices. A tuple
of stream a probes the slices of b, what it finds probes those of c. A member found in a slice
serves the queries whose windows reach into that slice (Lemma 9); a result goes to the queries set
in the product of its members' bitmaps. Where that product is 0 before the probe, none is made.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from braid.papers.trace import NAMES, Group, Move, Step, Trace, Tuple, name

WINDOWS: dict[str, tuple[int, ...]] = {"q1": (6, 2, 4), "q2": (2, 4, 6), "q3": (4, 6, 2)}
"""Section 20.1, by query and stream: windows rank q2, q3, q1 on a, q1, q2, q3 on b, q3, q1, q2 on
c. The book prints no lengths.
"""
NOW = 10


def example() -> Trace:
    """The tuple a1 in front of one tuple in every slice: b1 to b3, and c1 to c3, youngest first;
    all of them match.
    """
    routing = _Routing(WINDOWS)
    a = Tuple(NOW, 0, 1)
    routing.tell(
        f"{a} arrives. It is new, so on its own stream it serves all: T_a = "
        f"{routing.shown(routing.all)}.",
        None,
        a,
    )
    pairs = [routing.meet((a,), 1, k) for k in range(len(WINDOWS))]
    for pair in pairs:
        for k in range(len(WINDOWS)):
            routing.meet(pair, 2, k)
    return routing.trace


@dataclass
class _Routing:
    windows: dict[str, tuple[int, ...]]
    trace: Trace = field(init=False)

    def __post_init__(self) -> None:
        self.all = (1 << len(self.windows)) - 1
        self.ends = [sorted(set(of)) for of in zip(*self.windows.values(), strict=True)]
        self.trace = Trace(
            "Bitmaps of results (Wang 2008, chapter 20)", len(self.ends), len(self.windows)
        )
        ages = [
            [(a + b) // 2 for a, b in zip((0, *ends), ends, strict=False)] for ends in self.ends
        ]
        self.held = [
            [Tuple(NOW - age, s, k) for k, age in enumerate(of, 1)] if s else []
            for s, of in enumerate(ages)
        ]

    def bitmap(self, t: Tuple) -> int:
        """Whom a member serves: the queries whose window is longer than its age (Lemma 9)."""
        return self.those(w[t.stream] > NOW - t.time for w in self.windows.values())

    def those(self, included: Iterable[bool]) -> int:
        """The bitmap of the queries that are included, the first one in the lowest bit."""
        return sum(1 << bit for bit, yes in enumerate(included) if yes)

    def product(self, group: Group) -> int:
        found = self.all
        for t in group:
            found &= self.bitmap(t)
        return found

    def meet(self, group: Group, stream: int, k: int) -> Group:
        """A group in front of the k-th slice of a stream."""
        u = self.held[stream][k]
        extended, slice_ = (*group, u), f"{NAMES[stream].upper()}_{k + 1}"
        before, slices = self.product(group), self.bitmap(u)
        if not before & slices:
            self.tell(
                f"{name(group)} serves {self.named(before)}, {slice_} serves {self.named(slices)}: "
                f"{self.shown(before)} · "
                f"{self.shown(slices)} = {self.shown(0)}, so the probe is left out (Lemma "
                "9).",
                k,
                *extended,
            )
            return extended
        last = stream == len(self.held) - 1
        vector = ", ".join(self.shown(self.bitmap(t)) for t in extended)
        fate = "a result for" if last else "an intermediate result, which goes round for"
        text = (
            f"{name(group)} probes {slice_}, which serves {self.named(slices)}, and finds {u}. "
            f"T = ({vector})"
        )
        self.tell(f"{text}: {fate} {self.named(before & slices)}.", k, *extended, found=last)
        return extended

    def tell(self, text: str, node: int | None, *group: Tuple, found: bool = False) -> None:
        stored = tuple(
            tuple((str(of[k]),) if of else () for of in self.held) for k in range(self.trace.nodes)
        )
        prober = group[:-1]
        moves = (Move(name(prober), "partial", self.place(prober[-1]), node),) if prober else ()
        results = (tuple(group),) if found else ()
        clock = len(self.trace.steps)
        self.trace.steps.append(
            Step(text, str(group[0]), clock, node, stored, moves, (), results, self.table(group))
        )

    def table(self, group: Sequence[Tuple]) -> tuple[tuple[str, ...], ...]:
        """The matrix O, by rank and stream, and T with its product."""
        streams = range(len(self.held))
        rows = [("", *NAMES[: len(streams)], "product")]
        for k in range(len(self.windows)):
            of_rank = (
                self.those(w[s] == self.ends[s][k] for w in self.windows.values()) for s in streams
            )
            rows.append((f"O, rank {k + 1}", *map(self.shown, of_rank), ""))
        mine = {t.stream: self.shown(self.bitmap(t)) for t in group}
        return (
            *rows,
            ("T", *(mine.get(s, "–") for s in streams), self.shown(self.product(tuple(group)))),
        )

    def place(self, t: Tuple) -> int | None:
        """The slice that a tuple lies in; None for the new one."""
        return t.number - 1 if t.stream else None

    def shown(self, mask: int) -> str:
        return format(mask, f"0{len(self.windows)}b")

    def named(self, mask: int) -> str:
        *some, last = [q for bit, q in enumerate(self.windows) if mask >> bit & 1]
        return f"{', '.join(some)} and {last}" if some else last
