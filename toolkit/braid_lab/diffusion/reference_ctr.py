"""Coordinated tuple routing (CTR) one tuple at a time.

Every stream is cut into segments of T; a routing table has the hosts of each. The first tuple of a
segment triggers the four steps: look up what must be met; choose hops V_1 .. V_{m-1} that cover it
(greedy weighted set cover; hosts of the previous hop come first); void what several hosts of a hop
would do twice; enter the new segment in the table.

A path chosen at the start of a segment does not know segments that begin during it. So a path is
looked up again for each tuple: its hosts stay, and some are added for new segments. The hosts that
store on V_1 are fixed at the start. While a host holds nothing, a segment goes to the ``copies``
least loaded hosts instead (warm-up).

Source: Gu, Yu and Wang, ICDE 2007, section 4, Fig. 5 and 6.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import permutations
from operator import or_

from braid.papers.diffusion.routing_table import greedy_cover

from braid_lab.common.tuple_models import (
    NAMES,
    TUPLES,
    Group,
    Line,
    Place,
    Rows,
    StepExample,
    Stored,
    Theta,
    Trace,
    TraceMove,
    Tuple,
    TupleStepper,
    group_name,
    has_equal_values,
    parse_tuples,
)
from braid_lab.diffusion.listings import CTR

Hop = dict[int, list["Segment"]]
"""By host, the segments that are met there."""


@dataclass(slots=True)
class Segment:
    """The tuples of a stream with begin <= time < begin + T.

    ``path`` has the hosts of each hop so far, ``order`` their streams.
    """

    stream: int
    begin: int
    hosts: tuple[int, ...]
    order: tuple[int, ...] = ()
    path: list[list[int]] = field(default_factory=list)
    tuples: list[Tuple] = field(default_factory=list)


def run_ctr(
    tuples: Iterable[Tuple],
    windows: Sequence[int],
    hosts: int,
    length: int,
    copies: int = 2,
    theta: Theta = has_equal_values,
) -> Trace:
    """Return the steps of CTR on tuples in the order of their arrival; ``length`` is T.

    Raises ValueError for windows or hosts out of range, and unless the length is 1 or more and
    copies from 1 to hosts.
    """
    ctr = _Coordinated(windows, hosts, length, copies, theta)
    if length < 1 or not 1 <= copies <= hosts:
        raise ValueError(
            f"length is {length}, copies {copies}; T must be 1 or more, and copies from 1 to "
            f"hosts, {hosts}"
        )
    return ctr.run_tuples(tuples)


def ctr_example() -> Trace:
    """Return the steps of Fig. 5: three streams on six hosts, segments of 4, two copies."""
    return EXAMPLE.trace()


def run_typed(text: str) -> Trace:
    """Return the steps on typed tuples of three streams on six hosts, segments of 4 seconds.

    Raises ValueError as ``parse_tuples`` does.
    """
    return run_ctr(parse_tuples(text, 3), (10, 10, 10), 6, 4)


EXAMPLE = StepExample(
    run_typed,
    ("a b c:2 b:2 a:2 c - b c:2 a b:2 a:2 c",),
    (f"rows of three streams: {TUPLES}",),
    {"all rows match": ("a b c a b c a b c",)},
)


class _Coordinated(TupleStepper):
    def __init__(
        self, windows: Sequence[int], hosts: int, length: int, copies: int, theta: Theta
    ) -> None:
        super().__init__("Coordinated routing (Gu 2007, Fig. 5)", windows, hosts, theta)
        self.trace.listings = (CTR,)
        self.hosts, self.length, self.copies = range(hosts), length, copies
        self.segments: list[Segment] = []
        self.is_sent = False

    def process_tuple(self, t: Tuple) -> None:
        self.is_sent = False
        self._drop_expired_segments()
        segment = next(
            (s for s in self.segments if s.stream == t.stream and self._is_in_segment(s, t)), None
        )
        others = [s for s in self.segments if s.stream != t.stream and self._is_correlated(s, t)]
        fresh = segment is None
        if fresh:
            segment = Segment(t.stream, t.time // self.length * self.length, ())
            self._record_line(self._describe_lookup(segment, others), 1, 2)
        assert segment is not None
        hops = self._choose_path(segment, others)
        if fresh:
            self._store_segment(segment, hops)
        self._send_tuple(t, segment, hops)
        if hops:
            self._follow_path(t, segment.order, hops)
        segment.tuples.append(t)

    def _is_in_segment(self, s: Segment, t: Tuple) -> bool:
        return s.begin <= t.time < s.begin + self.length

    def _is_correlated(self, s: Segment, t: Tuple) -> bool:
        """Return whether a segment may hold tuples of S_k[t - W_k, t]."""
        return t.time - (s.begin + self.length - 1) < self.windows[s.stream]

    def _drop_expired_segments(self) -> None:
        """Remove segments from the table that no stream needs any more."""
        self.segments = [s for s in self.segments if self._is_correlated(s, self.now)]

    def _count_host_tuples(self, host: int) -> int:
        """Return w of a host: the number of tuples that it holds."""
        return sum(len(s.tuples) for s in self.segments if host in s.hosts)

    def _choose_path(self, segment: Segment, others: list[Segment]) -> list[Hop]:
        """Apply steps 2 and 3: choose the join order whose hops have the fewest hosts.

        A segment keeps the order that it has.
        """
        streams = sorted({s.stream for s in others})
        if len(streams) < len(self.windows) - 1:
            return []
        orders = [segment.order] if segment.order else permutations(streams)
        ways = [(order, self._choose_hops(segment, order, others)) for order in orders]
        segment.order, hops = min(ways, key=lambda way: sum(map(len, way[1])))
        before, segment.path = segment.path, [sorted(hop) for hop in hops]
        if segment.path != before:
            verb = "extends its path to" if before else "takes the path"
            legs = [
                f"{{{_format_hosts(hop)}}} for {NAMES[s]}"
                for s, hop in zip(segment.order, hops, strict=True)
            ]
            path = f"{self._format_segment(segment)} {verb} {' → '.join(legs)}."
            self._record_line(f"{path}{self._describe_void_blocks(hops)}", 3, 9)
        return hops

    def _choose_hops(
        self, segment: Segment, order: Sequence[int], others: list[Segment]
    ) -> list[Hop]:
        hops: list[Hop] = []
        for k, stream in enumerate(order):
            fixed = segment.path[k] if segment.path else []
            wanted = [s for s in others if s.stream == stream]
            hops.append(self._choose_hop_hosts(fixed, list(hops[-1]) if hops else [], wanted))
        return hops

    def _choose_hop_hosts(
        self, path_hosts: list[int], before: list[int], wanted: list[Segment]
    ) -> Hop:
        """Return V_k: hosts of the path, then those of the previous hop, then a greedy cover.

        Each segment is met on its least loaded host.
        """
        chosen: list[int] = []
        left = list(wanted)
        for near in (path_hosts, before, list(self.hosts)):
            sets = {h: sum(1 << k for k, s in enumerate(left) if h in s.hosts) for h in near}
            weights = [self._count_host_tuples(h) + 1 for h in self.hosts]
            chosen += greedy_cover(sets, weights, reduce(or_, sets.values(), 0))
            left = [s for s in left if not set(s.hosts) & set(chosen)]
        chosen = sorted({*chosen, *path_hosts})
        hop: Hop = {h: [] for h in chosen}
        for s in wanted:
            hop[min((h for h in chosen if h in s.hosts), key=self._count_host_tuples)].append(s)
        return hop

    def _describe_void_blocks(self, hops: list[Hop]) -> str:
        """Return the annotations of step 3 as a sentence."""
        void = [
            f"{self._format_segment(s)} on "
            f"{_format_hosts([h for h in hop if h in s.hosts and h != host])}"
            for hop in hops
            for host, segments in hop.items()
            for s in segments
            if len([h for h in hop if h in s.hosts]) > 1
        ]
        return f" Void: {', '.join(void)}." if void else ""

    def _store_segment(self, segment: Segment, hops: list[Hop]) -> None:
        """Apply step 4: store the new segment on V_1.

        While some hosts hold nothing, it is stored on the least loaded hosts instead.
        """
        used = {h for s in self.segments for h in s.hosts}
        warm = bool(hops) and len(used) == len(self.hosts)
        idle_first = sorted(self.hosts, key=lambda h: (h in used, self._count_host_tuples(h)))
        segment.hosts = tuple(sorted(hops[0])) if warm else tuple(sorted(idle_first[: self.copies]))
        self.segments.append(segment)
        why = "its first hop, V1" if warm else "the least loaded, as some hold nothing yet"
        where = f"{self._format_segment(segment)} now, on {_format_hosts(segment.hosts)}"
        self._record_line(f"The table has {where}: {why}.", 10, 11)

    def _record_line(self, text: str, first: int, last: int) -> None:
        self.record_step(text, None, line=Line("Figure 6", first, last))

    def _send_tuple(self, t: Tuple, segment: Segment, hops: list[Hop]) -> None:
        targets = sorted({*segment.hosts, *(hops[0] if hops else ())})
        moves = tuple(
            TraceMove(str(t), "copy" if h in segment.hosts else "probe", None, h) for h in targets
        )
        text = (
            f"{t} arrives at time {t.time} and goes to {_format_hosts(targets)}; it is stored on "
            f"{_format_hosts(segment.hosts)}."
        )
        self.is_sent = True
        self.record_step(text, None, moves, line=Line("Figure 6", 14, 14))

    def _follow_path(self, t: Tuple, order: Sequence[int], hops: list[Hop]) -> None:
        """Follow the path, hop by hop.

        Intermediate results go to all hosts of the next hop. They stay at their host if it is one
        of them.
        """
        partial: list[tuple[int | None, Group]] = [(None, (t,))]
        for k, (stream, hop) in enumerate(zip(order, hops, strict=True)):
            moves = tuple(
                TraceMove(group_name(g), "partial", at, host)
                for at, g in partial
                for host in hop
                if at not in (None, host)
            )
            partial = [
                (host, g)
                for host, segments in hop.items()
                for g in self._join_with_segments(partial, segments)
            ]
            last = k == len(hops) - 1
            names = "; ".join(
                f"{group_name(g)} on V{host + 1}" for host, g in partial if host is not None
            )
            outcome = (
                f"{'results' if last else 'intermediate results'} {names}"
                if names
                else "nothing matches"
            )
            results = tuple(g for _, g in partial) if last else ()
            text = f"Hop {k + 1}, {NAMES[stream]} on {_format_hosts(hop)}: {outcome}."
            self.record_step(text, None, moves, results, Line("Figure 6", 12, 13))
            if not partial:
                return

    def _join_with_segments(
        self, partial: Sequence[tuple[int | None, Group]], segments: Sequence[Segment]
    ) -> list[Group]:
        return self.select_results((*g, u) for _, g in partial for s in segments for u in s.tuples)

    def _describe_lookup(self, segment: Segment, others: list[Segment]) -> str:
        which = (
            ", ".join(f"{self._format_segment(s)} on {_format_hosts(s.hosts)}" for s in others)
            or "nothing"
        )
        return (
            f"{self.now} begins the segment {self._format_segment(segment)}. It must meet {which}."
        )

    def _format_segment(self, s: Segment) -> str:
        return f"{NAMES[s.stream]}[{s.begin}, {s.begin + self.length})"

    def list_stored(self) -> Stored:
        held = [
            [
                [
                    str(t)
                    for s in self.segments
                    if s.stream == i and h in s.hosts
                    for t in (*s.tuples, *self._select_sent_tuple(s))
                ]
                for i in range(len(self.windows))
            ]
            for h in self.hosts
        ]
        return tuple(tuple(tuple(names) for names in streams) for streams in held)

    def list_places(self) -> tuple[Place, ...]:
        """Return the hosts in two rows."""
        across = -(-len(self.hosts) // 2)
        return tuple(divmod(h, across) for h in self.hosts)

    def make_table(self) -> Rows:
        rows = ((self._format_segment(s), _format_hosts(s.hosts)) for s in self.segments)
        return (("segment", "hosts"), *rows)

    def _select_sent_tuple(self, s: Segment) -> tuple[Tuple, ...]:
        """Return the tuple that has been sent, if it belongs to the segment."""
        t = self.now
        return (t,) if self.is_sent and s.stream == t.stream and self._is_in_segment(s, t) else ()


def _format_hosts(hosts: Iterable[int]) -> str:
    return " ".join(f"V{h + 1}" for h in sorted(hosts))
