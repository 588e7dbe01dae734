"""Stream joins one tuple at a time: small models to teach with, and to check results against.

The engine works on micro-batches and blocks; the papers explain themselves on single tuples. Here a
run is a ``Trace``: a list of steps, each with the whole state after it, so that it can be shown
forwards and backwards. ``diffusion.reference_atr`` follows Gu 2007, Fig. 3,
``diffusion.reference_ctr`` Fig. 5, and ``psp.reference`` Wang 2008, Fig. 12.3 and 12.4;
``brute_force_join`` has the results that all of them must find.

Tuples (s_1 .. s_m) are a result if each pair of them satisfies theta and T - T_i < W_i for every
i, where T is their latest time (Wang 2008, Fig. 3.1 and 3.2).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, product
from typing import NamedTuple

from braid.util.validation import read_natural

NAMES = "abcdefgh"
"""Letters of the streams, so that a tuple is called b3."""


@dataclass(frozen=True, slots=True, order=True)
class Tuple:
    """A tuple.

    It has its event time, the index of its stream, its number within the stream (from 1), and the
    value that theta compares.
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


def has_equal_values(t: Tuple, u: Tuple) -> bool:
    """The default theta: return whether values are equal."""
    return t.value == u.value


class Line(NamedTuple):
    """Lines of an algorithm, as its paper numbers them."""

    algorithm: str
    first: int
    last: int


@dataclass(frozen=True)
class Listing:
    """An algorithm in our own words.

    - ``algorithm``: its name in the paper, such as "Algorithm 3".
    - ``task``: what it is for.
    - ``lines``: first and last number in the paper, and what is done there.
    - ``unit``: what the numbers count; "": the paper has none, and they are ours.
    """

    algorithm: str
    task: str
    lines: tuple[tuple[int, int, str], ...]
    unit: str = "line"


Place = tuple[int, int]
"""The row and the column of a node."""
Heads = tuple[tuple[str, ...], tuple[str, ...]]
"""Headings of the rows and of the columns; a trailing letter of a stream sets the color."""


@dataclass(frozen=True, slots=True)
class TraceMove:
    """A transfer from one node to another; None is outside of the cluster.

    ``what`` is a tuple, an intermediate result or an END mark. ``kind`` is "build", "probe",
    "partial", "end" or "copy".
    """

    what: str
    kind: str
    source: int | None
    target: int | None


@dataclass(frozen=True, slots=True)
class TraceStep:
    """One step of a run, and the state after it.

    - ``text``: a sentence.
    - ``arrival``: the input tuple that causes the step.
    - ``clock``: its time; for the ring, steps of the network since it arrived.
    - ``node``: where the step happens.
    - ``stored``: by node and stream, the names of the stored tuples.
    - ``queued``: by node, what waits there.
    - ``results``: the results made in this step.
    - ``table``: the router's table as rows of text, headings first.
    - ``line``: the lines of a listing that are executed; None: none of them.
    - ``places``: the place of each node by the current mapping.
    - ``before``: the same by the old mapping, while tuples are where it wants them.
    - ``heads``: headings of the rows and columns of places.
    - ``parts``: the parts of a definition that the step reads or changes.
    - ``table_before``: the rows of ``table`` that were there before the step.
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
    line: Line | None = None
    places: tuple[Place, ...] = ()
    before: tuple[Place, ...] = ()
    heads: Heads = ((), ())
    parts: tuple[str, ...] = ()
    table_before: tuple[tuple[str, ...], ...] = ()


@dataclass
class Trace:
    """The steps of a run of ``streams`` streams on ``nodes`` nodes.

    - ``listings``: the algorithms that the steps follow.
    - ``names``: names of the nodes; empty: a letter and a number.
    """

    title: str
    streams: int
    nodes: int
    steps: list[TraceStep] = field(default_factory=list)
    listings: tuple[Listing, ...] = ()
    names: tuple[str, ...] = ()

    @property
    def all_results(self) -> list[Group]:
        """All results, in the order in which they are found."""
        return [group for step in self.steps for group in step.results]

    def steps_for(self, arrivals: Iterable[str]) -> Trace:
        """Return the steps of some input tuples only."""
        wanted = set(arrivals)
        return replace(self, steps=[s for s in self.steps if s.arrival in wanted])


@dataclass(frozen=True)
class StepExample:
    """An algorithm to go through step by step, on an example or on other rows.

    - ``run``: returns the steps for texts; raises ValueError with a sentence if one is invalid.
    - ``texts``: the texts of the example.
    - ``labels``: what each text is.
    - ``variants``: other texts by a name.
    - ``letter``: the paper's letter for nodes (Gu: V1, V2, ..; Wang: M1, M2, ..).
    """

    run: Callable[..., Trace]
    texts: tuple[str, ...]
    labels: tuple[str, ...]
    variants: Mapping[str, tuple[str, ...]]
    letter: str = "V"

    def trace(self) -> Trace:
        """Return the steps of the example."""
        return self.run(*self.texts)


Stored = tuple[tuple[tuple[str, ...], ...], ...]
"""The names of stored tuples, by node and stream."""
Rows = tuple[tuple[str, ...], ...]


class Stepper(ABC):
    """The base of the reference models: it records the steps of a run with the state after each.

    A subclass sets these attributes, and returns its state by the methods.

    - ``trace``: the steps so far.
    - ``now``: the input tuple that causes steps.
    - ``clock``: its time, or the steps of the network since it arrived.
    """

    trace: Trace
    now: object
    clock: int

    @abstractmethod
    def list_stored(self) -> Stored:
        """Return the names of the stored tuples, by node and stream."""

    def list_queued(self) -> Rows:
        """Return what waits, by node."""
        return ()

    def make_table(self) -> Rows:
        """Return the router's table as rows of text, headings first."""
        return ()

    def list_places(self) -> tuple[Place, ...]:
        """Return the place of each node by the current mapping: by default all are in a row."""
        return tuple((0, k) for k in range(self.trace.nodes))

    def list_old_places(self) -> tuple[Place, ...]:
        """Return the places by the old mapping, if tuples are still where it wants them."""
        return ()

    def list_heads(self) -> Heads:
        """Return headings of the rows and columns of places."""
        return (), ()

    def record_step(
        self,
        text: str,
        node: int | None,
        moves: Iterable[TraceMove] = (),
        results: Iterable[Group] = (),
        line: Line | None = None,
    ) -> None:
        """Append a step to the trace, with the state after it."""
        step = TraceStep(
            text,
            str(self.now),
            self.clock,
            node,
            self.list_stored(),
            tuple(moves),
            self.list_queued(),
            tuple(results),
            self.make_table(),
            line,
            self.list_places(),
            self.list_old_places(),
            self.list_heads(),
        )
        self.trace.steps.append(step)


class TupleStepper(Stepper):
    """The base of models that join tuples of several streams with windows on some nodes.

    Raises ValueError for windows or a number of nodes out of range.
    """

    now: Tuple

    def __init__(self, title: str, windows: Sequence[int], nodes: int, theta: Theta) -> None:
        check_arguments(windows, nodes)
        self.windows, self.theta = tuple(windows), theta
        self.trace = Trace(title, len(windows), nodes)
        self.now, self.clock = Tuple(0, 0, 0), 0

    @abstractmethod
    def process_tuple(self, t: Tuple) -> None:
        """Run the steps that an input tuple causes."""

    def run_tuples(self, tuples: Iterable[Tuple]) -> Trace:
        """Return the steps of tuples in the order of their arrival."""
        for t in tuples:
            self.now, self.clock = t, t.time
            self.process_tuple(t)
        return self.trace

    def select_results(self, groups: Iterable[Iterable[Tuple]]) -> list[Group]:
        """Return the groups that are results, each in the order of the streams."""
        sorted_groups = map(sort_by_stream, groups)
        return [g for g in sorted_groups if is_result(g, self.windows, self.theta)]


def group_name(group: Sequence[object]) -> str:
    """Return the name of a group: (a1 b2), or a1 for a single tuple."""
    return str(group[0]) if len(group) == 1 else f"({' '.join(map(str, group))})"


def ring_places(nodes: Sequence[int]) -> tuple[Place, ...]:
    """Return the places of nodes, which are in the order of their ring: clockwise in two rows.

    >>> ring_places([0, 1, 3, 2])
    ((0, 0), (0, 1), (1, 0), (1, 1))
    """
    across = -(-len(nodes) // 2)
    round_trip = [(0, c) for c in range(across)] + [(1, c) for c in reversed(range(across))]
    at = dict(zip(nodes, round_trip, strict=False))
    return tuple(at[node] for node in sorted(nodes))


def sort_by_stream(group: Iterable[Tuple]) -> Group:
    """Return the tuples of a result in the order of the streams."""
    return tuple(sorted(group, key=lambda t: t.stream))


def is_within_windows(group: Sequence[Tuple], windows: Sequence[int]) -> bool:
    """Return whether T - T_i < W_i for every member, where T is their latest time."""
    latest = max(t.time for t in group)
    return all(latest - t.time < windows[t.stream] for t in group)


def is_result(group: Sequence[Tuple], windows: Sequence[int], theta: Theta) -> bool:
    """Return whether tuples are within each other's windows and match pair by pair."""
    return is_within_windows(group, windows) and all(theta(t, u) for t, u in combinations(group, 2))


def brute_force_join(
    tuples: Iterable[Tuple], windows: Sequence[int], theta: Theta = has_equal_values
) -> list[Group]:
    """Return every result, from all combinations; sorted."""
    streams: list[list[Tuple]] = [[] for _ in windows]
    for t in tuples:
        streams[t.stream].append(t)
    return sorted(group for group in product(*streams) if is_result(group, windows, theta))


def merge_arrivals(streams: Sequence[Sequence[tuple[int, int]]]) -> list[Tuple]:
    """Return tuples in the order of arrival, from (time, value) pairs by stream.

    Of equal times the lower stream is first.
    """
    return sorted(
        Tuple(time, s, k, value)
        for s, pairs in enumerate(streams)
        for k, (time, value) in enumerate(sorted(pairs), 1)
    )


TUPLES = "a letter each, in order of arrival; a:2 has the value 2, others 1; - is a second without"
"""The label of texts that ``parse_tuples`` reads."""
MOST = 24
"""Maximum number of typed tuples: nobody goes through the steps of more."""


def parse_tuples(text: str, streams: int = 2) -> list[Tuple]:
    """Return typed tuples: one word each, in the order of arrival.

    A word is the letter of the stream and, after a colon, the value that theta compares (default:
    1). One tuple arrives each second; ``-`` is a second without.

    Raises ValueError for a word that is no such tuple, and for none or too many.

    >>> print(*(f"{t} at {t.time} s: {t.value}" for t in parse_tuples("a b:2 - a")), sep="; ")
    a1 at 1 s: 1; b1 at 2 s: 2; a2 at 4 s: 1
    """
    letters, words, tuples = NAMES[:streams], text.split(), list[Tuple]()
    for second, word in enumerate(words, 1):
        stream, colon, value = word.partition(":")
        if word == "-":
            continue
        number = read_natural(value) if colon else 1
        if len(stream) != 1 or stream not in letters or number is None:
            raise ValueError(
                f"{word!r} is no tuple; one is a letter of {', '.join(letters)}, or a letter, a "
                f"colon and a whole number, as in {letters[0]}:2"
            )
        count = sum(t.stream == NAMES.index(stream) for t in tuples)
        tuples.append(Tuple(second, NAMES.index(stream), count + 1, number))
    if not 1 <= len(tuples) <= MOST or len(words) > 4 * MOST:
        raise ValueError(
            f"there are {len(tuples)} tuples in {len(words)} seconds; give 1 to {MOST}, in at most "
            f"{4 * MOST} seconds"
        )
    return tuples


def check_arguments(windows: Sequence[int], nodes: int) -> None:
    """Raise ValueError unless there are 2 to 8 streams, windows of 1 or more, and a node."""
    if not 2 <= len(windows) <= len(NAMES) or min(windows) < 1 or nodes < 1:
        raise ValueError(
            f"windows are {tuple(windows)} on {nodes} nodes; there must be 2 to 8, each 1 or more, "
            "and 1 node or more"
        )
