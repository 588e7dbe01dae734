"""The state-slice chain one tuple at a time.

Slice k of a chain holds tuples that are w_(k-1) to w_k old. An arriving tuple makes two copies
(Fig. 5.5). The probe copy goes down the chain. At each slice it first purges the other stream's
state (tuples that are too old move on, ahead of it), then it probes the rest, then it moves on. The
build copy stays as state. In a one-way join (Fig. 5.2) tuples of a only build, those of b only
probe. No slice checks the age of the tuples that it probes: Lemma 1 makes that unnecessary. Slices
take turns in any order, a message at a time.

Each query has its own union operator (Fig. 5.7). Results wait, in a bucket for their probe copy,
until that copy has passed the last slice of the query, which means that there will be no more.
Selections are between the slices (7.4): a tuple is marked once, when it arrives, with the longest
window of the queries that select it, and goes no further than that.

Definition 1 has results with T_b - T_a < W, and purges tuples of age W. Fig. 5.2 purges only older
ones, and so does Table 5.1 (at second 4, a2 is 2 s old and stays in the slice of 2 s).
``inclusive`` runs follow the second rule: a result's age may then be W.

Source: Wang 2008, chapter 5 (Definitions 1 to 3, Fig. 5.1 to 5.5, 5.7), 7.3 and 7.4.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from braid.core.query import Query
from braid.papers.slices.chain_optimizer import memory_chain

from braid_lab.common.tuple_models import (
    NAMES,
    TUPLES,
    Group,
    Heads,
    Line,
    Rows,
    StepExample,
    Stepper,
    Stored,
    Theta,
    Trace,
    TraceMove,
    TraceStep,
    Tuple,
    group_name,
    has_equal_values,
    parse_tuples,
    sort_by_stream,
)
from braid_lab.slices.listings import BUILD, PROBE

Keeps = Callable[[Query, Tuple], bool]
"""The selection of a query: whether it accepts a tuple of either stream."""


def symmetric_query(window: int) -> Query:
    """Return a query with this window (in times of tuples) for both streams."""
    return Query(f"W={window}", (window,) * 2, (None,) * 2)


@dataclass(frozen=True, slots=True)
class TupleCopy:
    """One of the two copies of a tuple, of ``kind`` "probe" or "build".

    ``reach`` is the lineage mark, the longest useful age.
    """

    tuple: Tuple
    kind: str
    reach: float

    def __str__(self) -> str:
        return f"{self.tuple}{'ᵖ' if self.kind == 'probe' else 'ᵇ'}"


@dataclass
class SlicedJoin:
    """J_k: its end window, its input queue, and the state of both streams, oldest first."""

    end: int
    queue: deque[TupleCopy] = field(default_factory=deque)
    state: tuple[list[TupleCopy], list[TupleCopy]] = field(default_factory=lambda: ([], []))


@dataclass
class Union:
    """The union operator of a query (Fig. 5.7).

    ``buckets`` has, by probe tuple, the results of the slices; ``output`` is in order.
    """

    query: Query
    buckets: dict[Tuple, list[Group]] = field(default_factory=dict)
    output: list[Group] = field(default_factory=list)

    @property
    def window_length(self) -> int:
        """The window of the query, for both streams."""
        return self.query.windows[0]

    def buffer_results(self, probe: Tuple, results: Iterable[Group]) -> None:
        """Buffer the results of a probe until their turn."""
        self.buckets.setdefault(probe, []).extend(results)

    def release_on_punctuation(self, probe: Tuple) -> None:
        """Release the buckets of a probe tuple that has passed the last slice, uncompared."""
        self.output += self.buckets.pop(probe, [])


class ReferenceChain(Stepper):
    """A chain of sliced joins of streams a and b.

    Parameters
    ----------
    boundaries
        w_1 < .. < w_N, the ends of the slices, as times of tuples. Both streams have the same.
    queries
        The served queries, each with one window (in times of tuples) for both streams. Default: one
        query for each boundary.
    keeps
        The selections of the queries. Default: all tuples pass.
    one_way
        Only b probes (Definition 1); else both do (Definition 3).
    inclusive
        Purge tuples older than a slice's end (Fig. 5.2), not those that have reached it (Definition
        1).

    Raises ValueError for boundaries that do not rise from above 0, and for a query with a longer
    window than the chain.
    """

    def __init__(
        self,
        boundaries: Sequence[int],
        queries: Sequence[Query] = (),
        theta: Theta = has_equal_values,
        one_way: bool = False,
        inclusive: bool = False,
        title: str = "State-slice chain",
        keeps: Keeps = lambda query, t: True,
    ) -> None:
        queries = tuple(queries) or tuple(map(symmetric_query, boundaries))
        if not boundaries or any(a >= b for a, b in pairwise((0, *boundaries))):
            raise ValueError(
                f"boundaries are {tuple(boundaries)}; a chain has one or more, and they rise from "
                "above 0"
            )
        if not all(0 < w <= boundaries[-1] for q in queries for w in q.windows):
            windows = [q.windows[0] for q in queries]
            raise ValueError(
                f"windows are {windows}; each is above 0 and at most the chain's, {boundaries[-1]}"
            )
        self.theta, self.one_way, self.inclusive, self.keeps = theta, one_way, inclusive, keeps
        self.slices = [SlicedJoin(w) for w in boundaries]
        self.unions = [Union(q) for q in queries]
        self.trace = Trace(title, 2, len(boundaries), listings=(BUILD, PROBE))
        self.clock, self.now = 0, ""

    @property
    def recorded_trace(self) -> Trace:
        """The steps so far. Nodes are slices; after a merge the last ones are empty."""
        steps = self.trace.steps
        most = max((len(s.stored) for s in steps), default=len(self.slices))
        return replace(self.trace, nodes=most, steps=[_pad_step(s, most) for s in steps])

    @property
    def results_by_query(self) -> list[list[Group]]:
        """The results of each query so far, in order."""
        return [u.output for u in self.unions]

    @property
    def busy_slices(self) -> list[int]:
        """The slices with waiting messages."""
        return [k for k, j in enumerate(self.slices) if j.queue]

    def process_tuple(self, t: Tuple) -> None:
        """Put the copies of a tuple in the queue of the first slice, unless no query selects it."""
        self.clock, self.now = max(self.clock, t.time), str(t)
        reach = max((u.window_length for u in self.unions if self.keeps(u.query, t)), default=0)
        if not reach:
            self.record_step(f"{t} arrives; no query selects it.", None)
            return
        kinds = ("build" if t.stream == 0 else "probe",) if self.one_way else ("probe", "build")
        copies = [TupleCopy(t, kind, reach) for kind in kinds]
        self.slices[0].queue += copies
        marked = f", marked for ages up to {reach}" if reach < self.slices[-1].end else ""
        moves = tuple(TraceMove(str(c), c.kind, None, 0) for c in copies)
        self.record_step(
            f"{t} arrives and waits at J1 as {' and '.join(map(str, copies))}{marked}.", None, moves
        )

    def run_slice(self, k: int, clock: int | None = None) -> None:
        """Let slice k, from 0, take one message from its queue.

        ``clock`` is the time at which it does, if that is later. Raises IndexError if no message
        waits.
        """
        copy = self.slices[k].queue.popleft()
        self.clock, self.now = max(self.clock, clock or 0), str(copy.tuple)
        if copy.kind == "probe":
            self._probe_slice(k, copy)
        else:
            self.slices[k].state[copy.tuple.stream].append(copy)
            self.record_step(
                f"{copy} is inserted at J{k + 1}.", k, line=Line(BUILD.algorithm, 1, 1)
            )

    def run_until_empty(self) -> None:
        """Let slices take turns, first to last, until no message waits."""
        while self.busy_slices:
            for k in self.busy_slices:
                self.run_slice(k)

    def split_slice(self, k: int, at: int) -> None:
        """Cut slice k, from 0, at an age (Fig. 7.4).

        The new slice is empty; later probes fill it by purging. Raises ValueError for an age that
        is not inside the slice.
        """
        start, end = self._slice_start_age(k), self.slices[k].end
        if not start < at < end:
            raise ValueError(f"slice {k + 1} is from {start} to {end}; {at} is not inside")
        self.slices[k].end = at
        self.slices.insert(k + 1, SlicedJoin(end))
        self.record_step(
            f"J{k + 1} is split at {at}; J{k + 2} is from {at} to {end} and still empty.", k
        )

    def merge_slices(self, k: int) -> None:
        """Merge slice k, from 0, with the next (Fig. 7.5).

        First the next slice empties the queue between them. Raises ValueError if there is no next.
        """
        if not 0 <= k < len(self.slices) - 1:
            raise ValueError(f"slice {k + 1} of {len(self.slices)} has no next one to merge with")
        while self.slices[k + 1].queue:
            self.run_slice(k + 1)
        old = self.slices.pop(k + 1)
        for state, older in zip(self.slices[k].state, old.state, strict=True):
            state[:0] = older
        self.slices[k].end = old.end
        self.record_step(
            f"J{k + 2} is merged into J{k + 1}, which is now from {self._slice_start_age(k)} to "
            f"{old.end}.",
            k,
        )

    def _slice_start_age(self, k: int) -> int:
        return self.slices[k - 1].end if k else 0

    def _probe_slice(self, k: int, copy: TupleCopy) -> None:
        """Apply cross-purge, probe, propagate."""
        join, t = self.slices[k], copy.tuple
        other = join.state[1 - t.stream]
        old = [c for c in other if self._is_past_end(t.time - c.tuple.time, join.end)]
        other[:] = [c for c in other if c not in old]
        moves = [m for c in (*old, copy) for m in self._forward_copy(k, c)]
        results = self._deliver_results(
            k, t, [sort_by_stream((t, c.tuple)) for c in other if self.theta(t, c.tuple)]
        )
        text, line = self._describe_probe(k, copy, old, results), Line(PROBE.algorithm, 1, 3)
        self.record_step(text, k, tuple(moves), tuple(results), line)

    def _is_past_end(self, age: float, end: float) -> bool:
        return age > end if self.inclusive else age >= end

    def _forward_copy(self, k: int, copy: TupleCopy) -> list[TraceMove]:
        """Forward a copy to the next slice, if there is one and the selection before it passes.

        Otherwise the copy is dropped.
        """
        if k + 1 < len(self.slices) and copy.reach > self.slices[k].end:
            self.slices[k + 1].queue.append(copy)
            return [TraceMove(str(copy), copy.kind, k, k + 1)]
        return [TraceMove(str(copy), copy.kind, k, None)] if copy.kind == "build" else []

    def _deliver_results(self, k: int, probe: Tuple, pairs: Sequence[Group]) -> list[Group]:
        """Deliver results to their queries; drop those in a merged slice that serve none.

        Ages are compared only with windows that end inside the slice (the router of Fig. 7.2);
        sigma' is evaluated here.
        """
        served = []
        for union in (u for u in self.unions if u.window_length > self._slice_start_age(k)):
            window, end = union.window_length, self.slices[k].end
            inside = (
                pairs
                if window >= end
                else [p for p in pairs if not self._is_past_end(abs(p[0].time - p[1].time), window)]
            )
            selected = [p for p in inside if all(self.keeps(union.query, t) for t in p)]
            union.buffer_results(probe, selected)
            served += selected
            if window <= end:
                union.release_on_punctuation(probe)
        return [p for p in pairs if p in served]

    def _describe_probe(
        self, k: int, copy: TupleCopy, old: Sequence[TupleCopy], groups: Sequence[Group]
    ) -> str:
        purged = f" purges {', '.join(str(c.tuple) for c in old)} and" if old else ""
        what = f"finds {', '.join(map(group_name, groups))}" if groups else "finds nothing"
        goes = k + 1 < len(self.slices) and copy.reach > self.slices[k].end
        return (
            f"{copy}{purged} {what} at J{k + 1}; "
            f"{f'then it goes on to J{k + 2}' if goes else 'it goes no further'}."
        )

    def list_stored(self) -> Stored:
        """Return the names of the stored tuples, by slice and stream."""
        return tuple(
            tuple(tuple(str(c.tuple) for c in held) for held in j.state) for j in self.slices
        )

    def list_heads(self) -> Heads:
        """Return the ages of each slice."""
        slices = enumerate(self.slices)
        return (), tuple(f"ages {self._slice_start_age(k)} to {j.end}" for k, j in slices)

    def list_queued(self) -> Rows:
        """Return the waiting copies, by slice."""
        return tuple(tuple(map(str, j.queue)) for j in self.slices)

    def make_table(self) -> Rows:
        """Return the ages of each slice, and the queries that it serves."""
        reach = [(f"Q{q}", u.window_length) for q, u in enumerate(self.unions, 1)]
        rows = [("slice", "ages", "serves")]
        for k, join in enumerate(self.slices):
            start = self._slice_start_age(k)
            serves = " ".join(name for name, window in reach if window > start)
            rows.append((f"J{k + 1}", f"{start} to {join.end}", serves))
        return tuple(rows)


def _pad_step(s: TraceStep, nodes: int) -> TraceStep:
    missing = nodes - len(s.stored)
    stored, queued = (*s.stored, *(((), ()),) * missing), (*s.queued, *((),) * missing)
    places = tuple((0, k) for k in range(nodes))
    return replace(s, stored=stored, queued=queued, places=places)


def run_chain(
    tuples: Iterable[Tuple],
    boundaries: Sequence[int],
    queries: Sequence[Query] = (),
    theta: Theta = has_equal_values,
) -> Trace:
    """Return the steps of a binary chain on tuples in the order of their arrival.

    Each tuple is processed to the end before the next arrives. Raises ValueError as
    ``ReferenceChain`` does.
    """
    chain = ReferenceChain(boundaries, queries, theta)
    for t in tuples:
        chain.process_tuple(t)
        chain.run_until_empty()
    return chain.recorded_trace


def run_typed(text: str) -> Trace:
    """Return the steps on typed tuples through slices of 2 seconds and of 2 more.

    Both streams probe and build. Raises ValueError as ``parse_tuples`` does.
    """
    return run_chain(parse_tuples(text), memory_chain((2, 4)))


def chain_example() -> Trace:
    """Return Table 5.1: a one-way chain of slices of 2 seconds.

    At most one tuple arrives, and one slice runs, each second. Rows 9 and 10 of the printed table
    have a3 in the queue. But only a tuple of b purges, and none reaches J1 after second 5, when the
    table leaves a3 where it is: here it stays, in J1.
    """
    chain = ReferenceChain(
        (2, 4),
        theta=lambda t, u: True,
        one_way=True,
        inclusive=True,
        title="Chain of two slices (Wang 2008, Table 5.1)",
    )
    order = "aaabb--a--"
    for second, (stream, k) in enumerate(zip(order, "0000011011", strict=True), 1):
        if stream != "-":
            chain.process_tuple(Tuple(second, NAMES.index(stream), order[:second].count(stream)))
        chain.run_slice(int(k), second)
    return chain.recorded_trace


EXAMPLE = StepExample(
    lambda text: run_typed(text) if text else chain_example(),
    ("",),
    (f"rows of two streams, instead of Table 5.1: {TUPLES}",),
    {"both streams probe": ("a - b - b - b",)},
    "J",
)
