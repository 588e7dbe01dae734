"""Stream joins one tuple at a time: small models to teach with, and to check results against.

The engine works on micro-batches and blocks; the papers explain themselves on single tuples. Here a
run is a ``Trace``: a list of steps, each with the whole state after it, so that it can be shown
forwards and backwards. ``reference_aligned`` follows Gu 2007, Fig. 3, ``reference_coordinated``
Fig. 5, ``reference_ring`` Wang 2008, Fig. 12.3 and 12.4; ``brute_force`` is what all must find.

Tuples (s_1 .. s_m) are a result when each pair of them satisfies theta and T - T_i < W_i for every
i, T their latest time (Wang 2008, Fig. 3.1 and 3.2).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import combinations, product

from braid.util.validation import read_natural

NAMES = "abcdefgh"
"""Streams by letter, so that a tuple is called b3."""


@dataclass(frozen=True, slots=True, order=True)
class Tuple:
    """A tuple: its event time, its stream's index, its number within the stream (from 1), and the
    value that theta looks at.
    """

    time: int
    stream: int
    number: int
    value: int = 0

    def __str__(self) -> str:
        return f"{NAMES[self.stream]}{self.number}"


Group = tuple[Tuple, ...]
"""A result, or an intermediate one: tuples of different streams, by stream."""

Theta = Callable[[Tuple, Tuple], bool]
"""The join condition of a pair of tuples of different streams."""


def equal_values(t: Tuple, u: Tuple) -> bool:
    """The default theta: equal values."""
    return t.value == u.value


@dataclass(frozen=True, slots=True)
class TraceMove:
    """Something that travels: ``what`` (a tuple, an intermediate result, an END mark) of ``kind``
    "build", "probe", "partial", "end" or "copy", from one node to another; None is outside of the
    cluster.
    """

    what: str
    kind: str
    source: int | None
    target: int | None


@dataclass(frozen=True, slots=True)
class TraceStep:
    """One thing that happens, and the state after it.

    ``text`` is a sentence. ``arrival`` is the input tuple that causes it, ``clock`` its time (for
    the ring, steps of the network since it arrived), ``node`` where it happens. ``stored`` has, by
    node and stream, the names of the tuples held; ``queued`` by node what waits there. ``found``
    are the results made in this step. ``table`` is what the router knows, as rows of text, headings
    first.
    """

    text: str
    arrival: str
    clock: int
    node: int | None
    stored: tuple[tuple[tuple[str, ...], ...], ...]
    moves: tuple[TraceMove, ...] = ()
    queued: tuple[tuple[str, ...], ...] = ()
    results: tuple[Group, ...] = ()
    table: tuple[tuple[str, ...], ...] = ()


@dataclass
class Trace:
    """The steps of a run of ``streams`` streams on ``nodes`` nodes."""

    title: str
    streams: int
    nodes: int
    steps: list[TraceStep] = field(default_factory=list)

    @property
    def all_results(self) -> list[Group]:
        """All results, in the order in which they are found."""
        return [group for step in self.steps for group in step.results]

    def steps_for(self, arrivals: Iterable[str]) -> Trace:
        """The steps of some input tuples only."""
        wanted = set(arrivals)
        return Trace(
            self.title, self.streams, self.nodes, [s for s in self.steps if s.arrival in wanted]
        )


def group_name(group: Sequence[Tuple]) -> str:
    """(a1 b2), or a1 for a single tuple."""
    return str(group[0]) if len(group) == 1 else f"({' '.join(map(str, group))})"


def sort_by_stream(group: Iterable[Tuple]) -> Group:
    """The tuples of a result in the order of the streams."""
    return tuple(sorted(group, key=lambda t: t.stream))


def is_within_windows(group: Sequence[Tuple], windows: Sequence[int]) -> bool:
    """Whether T - T_i < W_i for every member, T the latest time of them."""
    latest = max(t.time for t in group)
    return all(latest - t.time < windows[t.stream] for t in group)


def is_result(group: Sequence[Tuple], windows: Sequence[int], theta: Theta) -> bool:
    """Whether tuples are within each other's windows and match pair by pair."""
    return is_within_windows(group, windows) and all(theta(t, u) for t, u in combinations(group, 2))


def brute_force_join(
    tuples: Iterable[Tuple], windows: Sequence[int], theta: Theta = equal_values
) -> list[Group]:
    """Every result, found by trying all combinations; sorted."""
    streams: list[list[Tuple]] = [[] for _ in windows]
    for t in tuples:
        streams[t.stream].append(t)
    return sorted(group for group in product(*streams) if is_result(group, windows, theta))


def merge_arrivals(streams: Sequence[Sequence[tuple[int, int]]]) -> list[Tuple]:
    """Tuples in the order in which they arrive, from (time, value) pairs by stream; of equal times
    the lower stream is first.
    """
    return sorted(
        Tuple(time, s, k, value)
        for s, pairs in enumerate(streams)
        for k, (time, value) in enumerate(sorted(pairs), 1)
    )


MOST = 24
"""Tuples that somebody types in: more steps than theirs nobody goes through."""


def parse_tuples(text: str, streams: int = 2) -> list[Tuple]:
    """Tuples as they are typed, a word each, in the order of arrival: the letter of the stream, and
    behind a colon the value that theta compares, 1 where none is given. One comes each second;
    ``-`` is a second without.

    Raises ValueError, in a sentence, for a word that is no such tuple, and for none or too many.

    >>> print(*(f"{t} at {t.time} s: {t.value}" for t in typed("a b:2 - a")), sep="; ")
    a1 at 1 s: 1; b1 at 2 s: 2; a2 at 4 s: 1
    """
    known, words, found = NAMES[:streams], text.split(), list[Tuple]()
    for second, word in enumerate(words, 1):
        stream, colon, value = word.partition(":")
        if word == "-":
            continue
        number = read_natural(value) if colon else 1
        if len(stream) != 1 or stream not in known or number is None:
            raise ValueError(
                f"{word!r} is no tuple; one is a letter of {', '.join(known)}, or a letter, a "
                f"colon and a whole number, as in {known[0]}:2"
            )
        count = sum(t.stream == NAMES.index(stream) for t in found)
        found.append(Tuple(second, NAMES.index(stream), count + 1, number))
    if not 1 <= len(found) <= MOST or len(words) > 4 * MOST:
        raise ValueError(
            f"there are {len(found)} tuples in {len(words)} seconds; give 1 to {MOST}, in at most "
            f"{4 * MOST} seconds"
        )
    return found


def check_arguments(windows: Sequence[int], nodes: int) -> None:
    """Raises ValueError unless there are 2 to 8 streams, all windows are 1 or more, and there is a
    node.
    """
    if not 2 <= len(windows) <= len(NAMES) or min(windows) < 1 or nodes < 1:
        raise ValueError(
            f"windows are {tuple(windows)} on {nodes} nodes; there must be 2 to 8, each 1 or more, "
            "and 1 node or more"
        )
