"""The join of two windows of sets one tuple at a time, with load shedding as printed.

A fetched tuple is put at the head of its own window, expired tuples leave the opposite one, and it
is processed against the rest: in full with probability r * gamma, else against the best basic
windows until r |W| tuples are used. Printed without the bar, line 1 of Algorithm 3 means the
opposite window.

Source: Gedik 2007, section 3.2 (Fig. 2 and 3), Algorithms 2 and 3.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil
from random import Random
from typing import Literal, NamedTuple

import numpy as np
from braid.papers.shedding.budget import fill_budget
from braid.util.validation import read_natural

from braid_lab.common.tuple_models import (
    MOST,
    NAMES,
    Group,
    Heads,
    Line,
    Place,
    Rows,
    StepExample,
    Stepper,
    Stored,
    Trace,
    TraceMove,
    Tuple,
)
from braid_lab.shedding.listings import ADAPT, PROCESS
from braid_lab.shedding.set_indexes import InvertedIndex, Order

Predicate = Literal["equal", "subset", "superset", "overlap", "inner"]


class SetTuple(NamedTuple):
    """A tuple with a set of weighted items."""

    time: int
    stream: int
    number: int
    items: Mapping[int, float]

    def __str__(self) -> str:
        return f"{NAMES[self.stream]}{self.number}"


def matches_predicate(predicate: Predicate, x: SetTuple, y: SetTuple, threshold: float = 1) -> bool:
    """Return whether x of the first stream and y of the second match.

    The predicate is x = y, x within y, y within x, or that the number of common items, or the inner
    product, is at least the threshold.
    """
    a, b = x.items.keys(), y.items.keys()
    if predicate == "equal":
        return a == b
    if predicate == "subset":
        return a <= b
    if predicate == "superset":
        return a >= b
    if predicate == "overlap":
        return len(a & b) >= threshold
    return sum(x.items[i] * y.items[i] for i in a & b) >= threshold


@dataclass
class BasicWindow:
    """A piece of a window: its tuples, oldest first, and their index, if any."""

    tuples: list[SetTuple] = field(default_factory=list)
    index: InvertedIndex | None = None


@dataclass
class SheddingJoin(Stepper):
    """Two windows of ``length`` in basic windows of ``basic``, a tuple at a time.

    ``fraction`` is r, ``sample`` gamma. ``inclusive`` keeps a tuple while its age is at most w, as
    the paper does; Braid's windows end before. ``order`` is that of inverted indexes; None: none.
    ``period`` is T_c. Raises ValueError for lengths that are not above 0.
    """

    length: tuple[int, int]
    basic: int
    predicate: Predicate = "overlap"
    threshold: float = 1
    fraction: float = 1.0
    sample: float = 0.1
    order: Order | None = None
    period: int = 10**9
    inclusive: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        if min(self.length) < 1 or self.basic < 1:
            raise ValueError(f"windows {self.length} and basic window {self.basic} must be above 0")
        self.draw = Random(self.seed)
        self.counts = tuple(1 + ceil(w / self.basic) for w in self.length)
        self.places = 1 + max(self.counts)
        self.windows = [[self._make_basic_window()] for _ in self.length]
        self.opened = [0, 0]
        self.output = [[0.0] * n for n in self.counts]
        self.ranks = [list(range(n)) for n in self.counts]
        self.seen = [[0] * n for n in self.counts]
        self.arrived, self.adapted = [0, 0], 0
        self.results: list[tuple[SetTuple, SetTuple]] = []
        self.compared, self.entries = 0, 0
        self.lines = (1, 1)
        title = "Selective processing (Gedik 2007, Algorithm 3)"
        self.trace = Trace(title, 2, 2 * self.places, listings=(ADAPT, PROCESS))
        self.trace.names = tuple(
            f"{NAMES[s]}, basic window {j + 1}" for s in (0, 1) for j in range(self.places)
        )

    def _make_basic_window(self) -> BasicWindow:
        return BasicWindow(index=InvertedIndex(self.order) if self.order else None)

    def process_tuple(self, t: SetTuple) -> None:
        """Apply steps 1 to 3 of Fig. 3 to one tuple; tuples arrive in the order of their times."""
        if t.time - self.adapted >= self.period:
            self.adapt_window_ranks(t.time)
        other = 1 - t.stream
        for s in (0, 1):
            self._slide_window(s, t.time)
        self._insert_tuple(t)
        self._expire_tuples(other, t.time)
        self._process_against_window(t, other)

    def _slide_window(self, stream: int, now: int) -> None:
        """Open a basic window if the first is full.

        The last falls out of the circular buffer when it has expired as a whole.
        """
        while now - self.opened[stream] >= self.basic:
            self.opened[stream] += self.basic
            self.windows[stream].insert(0, self._make_basic_window())
        del self.windows[stream][self.counts[stream] + 1 :]

    def _insert_tuple(self, t: SetTuple) -> None:
        self.arrived[t.stream] += 1
        head = self.windows[t.stream][0]
        head.tuples.append(t)
        if head.index is not None:
            head.index.insert_set(t.number, t.time, frozenset(t.items))
        self.record_probe(f"{t} is put at the head of its window.", t, (t.stream, 0), (1, 1))

    def _expire_tuples(self, stream: int, now: int) -> None:
        limit = self.length[stream] + (1 if self.inclusive else 0)
        for part in self.windows[stream]:
            while part.tuples and now - part.tuples[0].time >= limit:
                gone = part.tuples.pop(0)
                if part.index is not None:
                    part.index.remove_set(gone.number, frozenset(gone.items))

    def _process_against_window(self, t: SetTuple, window: int) -> None:
        """Apply Algorithm 3."""
        parts = self.windows[window]
        fraction = self.find_window_fraction(window)
        if self.draw.random() < fraction * self.sample:
            self.record_probe(f"{t} is processed in full, to learn.", t, None, (2, 5))
            for j, part in enumerate(parts):
                matches = self.probe_basic_window(t, (window, j), part, 1.0)
                self.seen[window][min(j, len(self.seen[window]) - 1)] += matches
            return
        order = [j for j in self._rank_basic_windows(window) if j < len(parts) and parts[j].tuples]
        sizes = [len(parts[j].tuples) for j in order]
        left, ranks = fraction * sum(sizes), -np.arange(float(len(order)))
        shares = fill_budget(ranks, np.array(sizes, float), left).tolist()
        for j, size, share in zip(order, sizes, shares, strict=True):
            left -= size
            text = f"{t} is processed against {share:.0%} of basic window {j + 1}; a = {left:.4g}."
            self.record_probe(text, t, (window, j), (6, 11) if left > 0 else (12, 15))
            self.probe_basic_window(t, (window, j), parts[j], share)
            if left <= 0:
                return

    def find_window_fraction(self, window: int) -> float:
        """Return the fraction of a window that is processed: r, the same for both."""
        return self.fraction

    def _rank_basic_windows(self, window: int) -> list[int]:
        """Return the basic windows, the best first; one beyond the n_i counts as the last."""
        return [*self.ranks[window], self.counts[window]]

    def probe_basic_window(self, t: SetTuple, place: Place, part: BasicWindow, share: float) -> int:
        """Return the matches of a tuple in the newest ``share`` of a basic window."""
        used = round(share * len(part.tuples))
        some = part.tuples[len(part.tuples) - used :]
        if not some:
            return 0
        if part.index is not None and self.predicate in ("overlap", "inner"):
            some = self._find_candidates(t, part, some)
        matches = [u for u in some if self._is_match(t, u)]
        self.compared += len(some)
        pairs = [(t, u) if t.stream == 0 else (u, t) for u in matches]
        self.results += pairs
        if pairs:
            names = tuple((_to_plain_tuple(a), _to_plain_tuple(b)) for a, b in pairs)
            first = self.lines[0]
            lines = (4, 5) if first < 6 else (10, 11) if first < 12 else (14, 14)
            self.record_probe(f"{t} finds {len(pairs)}.", t, place, lines, names)
        return len(pairs)

    def _find_candidates(
        self, t: SetTuple, part: BasicWindow, some: Sequence[SetTuple]
    ) -> list[SetTuple]:
        """Return the tuples that the merge of the lists names.

        By identifier a whole basic window is merged, even for a small share.
        """
        assert part.index is not None
        scans_all = len(some) == len(part.tuples) or self.order == "identifier"
        common = part.index.count_common(frozenset(t.items), None if scans_all else some[0].time)
        self.entries += sum(common.values())
        return [u for u in some if u.number in common]

    def _is_match(self, t: SetTuple, u: SetTuple) -> bool:
        x, y = (t, u) if t.stream == 0 else (u, t)
        return matches_predicate(self.predicate, x, y, self.threshold)

    def adapt_window_ranks(self, now: int) -> None:
        """Apply Algorithm 2, every T_c."""
        passed = max(1, now - self.adapted)
        for i, seen in enumerate(self.seen):
            other = self.arrived[1 - i] / passed
            own_rate = self.arrived[i] / passed
            fraction = self.sample * self.find_window_fraction(i)
            pairs = fraction * self.basic * own_rate * other * passed
            self.output[i] = [n / pairs if pairs else 0.0 for n in seen]
            self.ranks[i] = sorted(range(len(seen)), key=lambda j: -self.output[i][j])
            self.seen[i] = [0] * len(seen)
        self.arrived, self.adapted = [0, 0], now
        best = (", ".join(str(j + 1) for j in of) for of in self.ranks)
        self.now, self.clock = "T_c", now
        text = "Basic windows by what full processing found, the best first: {} of a; {} of b."
        self.record_step(text.format(*best), None, line=Line("Algorithm 2", 1, 8))

    def record_probe(
        self,
        text: str,
        t: SetTuple,
        place: Place | None,
        lines: tuple[int, int],
        groups: Iterable[Group] = (),
    ) -> None:
        """Record what is done with a tuple at a basic window: (stream, number from 0)."""
        self.now, self.clock, self.lines = t, t.time, lines
        node = None if place is None else place[0] * self.places + min(place[1], self.places - 1)
        moves = () if node is None else (TraceMove(str(t), "probe", None, node),)
        self.record_step(text, node, moves, groups, Line("Algorithm 3", *lines))

    def list_stored(self) -> Stored:
        """Return the names of the tuples of each basic window, those of a first."""
        stored = []
        for s, parts in enumerate(self.windows):
            for j in range(self.places):
                names = tuple(map(str, parts[j].tuples)) if j < len(parts) else ()
                stored.append((names, ()) if s == 0 else ((), names))
        return tuple(stored)

    def list_places(self) -> tuple[Place, ...]:
        """Return the basic windows: a row for each window, the newest first."""
        return tuple((s, j) for s in (0, 1) for j in range(self.places))

    def list_heads(self) -> Heads:
        """Return the windows, and the ages of the basic windows."""
        ages = (f"{j * self.basic} to {(j + 1) * self.basic} s" for j in range(self.places))
        return ("window of a", "window of b"), tuple(ages)

    def make_table(self) -> Rows:
        """Return the tuples and the expected output of each basic window."""
        rows = (
            (str(j + 1), *self._format_basic_window(0, j), *self._format_basic_window(1, j))
            for j in range(max(self.counts))
        )
        return (("basic window", "W1", "o1", "W2", "o2"), *rows)

    def _format_basic_window(self, window: int, j: int) -> tuple[str, str]:
        parts = self.windows[window]
        return (
            " ".join(map(str, parts[j].tuples)) if j < len(parts) else "",
            f"{self.output[window][j]:.3g}" if j < self.counts[window] else "",
        )


def _to_plain_tuple(t: SetTuple) -> Tuple:
    return Tuple(t.time, t.stream, t.number, len(t.items))


def run_join(tuples: Iterable[SetTuple], **settings: object) -> SheddingJoin:
    """Return the join of tuples in the order of their times, by settings of SheddingJoin."""
    join = SheddingJoin(**settings)  # type: ignore[arg-type]
    for t in tuples:
        join.process_tuple(t)
    return join


def brute_force(
    tuples: Sequence[SetTuple],
    length: tuple[int, int],
    predicate: Predicate,
    threshold: float = 1,
    inclusive: bool = False,
) -> list[tuple[str, str]]:
    """Return the names of all results, from every pair; sorted."""
    pairs = []
    for x in (t for t in tuples if t.stream == 0):
        for y in (t for t in tuples if t.stream == 1):
            older, newer = (x, y) if (x.time, x.stream) <= (y.time, y.stream) else (y, x)
            age, limit = newer.time - older.time, length[older.stream] + (1 if inclusive else 0)
            if age < limit and matches_predicate(predicate, x, y, threshold):
                pairs.append((str(x), str(y)))
    return sorted(pairs)


def shedding_example() -> Trace:
    """Return the steps of six tuples, windows of 4 in basic windows of 2, half of the work.

    The second basic window gives most, once that is known.
    """
    return EXAMPLE.trace()


def parse_sets(text: str) -> list[SetTuple]:
    """Return typed sets: one word each, a second apart; a stream, a colon, and items.

    Raises ValueError for a word that is no such set, and for none or too many.

    >>> len(parse_sets("a:1,2 b:2")[0].items)
    2
    """
    tuples, words = list[SetTuple](), text.split()
    for time, word in enumerate(words):
        letter, _, items = word.partition(":")
        numbers = [read_natural(item) for item in items.split(",")]
        if letter not in ("a", "b") or None in numbers:
            raise ValueError(f"{word!r} is no set; one is a or b, a colon, and items, as in a:1,2")
        stream = NAMES.index(letter)
        number = 1 + sum(t.stream == stream for t in tuples)
        tuples.append(SetTuple(time, stream, number, {n: 1.0 for n in numbers if n is not None}))
    if not 1 <= len(words) <= MOST:
        raise ValueError(f"there are {len(words)} sets; give 1 to {MOST}")
    return tuples


def run_typed(text: str) -> Trace:
    """Return the steps of typed sets, windows of 4 in basic windows of 2, half of the work.

    Raises ValueError as ``parse_sets`` does.
    """
    return run_join(
        parse_sets(text),
        length=(4, 4), basic=2, fraction=0.5, sample=0.5, order="time", period=3, seed=4,
    ).trace  # fmt: skip


EXAMPLE = StepExample(
    run_typed,
    ("a:1,2,3 b:4,5 a:2,4 b:1,2 b:2,4,5 a:4,5",),
    ("sets, a second apart: a stream, a colon and items",),
    {"all sets are alike": ("a:1 b:1 a:1 b:1 a:1 b:1",)},
)
