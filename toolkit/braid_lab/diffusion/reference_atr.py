"""Aligned tuple routing (ATR) one tuple at a time.

The master stream is cut into disjoint segments of T, each on one host. Everything that its tuples
may join with goes to the same host, so slave segments overlap. At t_s another stream becomes the
master. Of the two streams that change roles, tuples that arrive after t_s are sent as marked copies
for a while: s* meets only the other stream's tuples from before t_s, s# those from t_s on.

The paper sends s* to the last old segment's host. If W > T, a tuple of the new master that arrives
after t_s may be in the window of old master tuples of several segments, so here its s* goes to the
hosts of all those. As in the paper, the diffusion operator buffers tuples that arrive before a
segment begins and sends them when the segment gets its host.

Source: Gu, Yu and Wang, ICDE 2007, section 3, Fig. 3.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product

from braid.core.facts import Facts, HostUsage
from braid.papers.common.load_balance import LoadBalance

from braid_lab.common.tuple_models import (
    NAMES,
    TUPLES,
    Heads,
    Line,
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
from braid_lab.diffusion.listings import ATR

Copy = tuple[Tuple, str]
"""A tuple on a host and its mark: "", "*" or "#"."""


@dataclass(frozen=True, slots=True)
class Segment:
    """The master's tuples with begin <= time < end, which go to ``host``."""

    master: int
    begin: int
    end: int
    host: int


def run_atr(
    tuples: Iterable[Tuple],
    windows: Sequence[int],
    hosts: int,
    length: int,
    switch: tuple[int, int] | None = None,
    theta: Theta = has_equal_values,
) -> Trace:
    """Return the steps of ATR on tuples in the order of their arrival; stream 0 is the master.

    ``length`` is T. ``switch`` is (t_s, new master). A new segment goes to the host that holds the
    fewest tuples. Raises ValueError for windows, hosts or a length out of range, and for a switch
    at time 0 or before or to a stream that is not a slave.
    """
    atr = _Aligned(windows, hosts, length, switch, theta)
    if length < 1 or (switch is not None and (switch[0] < 1 or not 0 < switch[1] < len(windows))):
        raise ValueError(
            f"length is {length}, switch {switch}; T must be 1 or more, t_s too, and the new "
            "master a slave stream"
        )
    return atr.run_tuples(tuples)


def atr_example() -> Trace:
    """Return the steps of Fig. 3: three streams, segments of 5, master a until time 11, then b."""
    return EXAMPLE.trace()


def run_typed(text: str) -> Trace:
    """Return the steps on typed tuples of three streams; the first two exchange roles.

    Raises ValueError as ``parse_tuples`` does.
    """
    return run_atr(parse_tuples(text, 3), (3, 3, 3), 3, 5, (11, 1))


EXAMPLE = StepExample(
    run_typed,
    ("a b c - a b c:2 - a:2 b b:2 a c b - a",),
    (f"rows of three streams: {TUPLES}",),
    {"the master alone": ("a a b - - a a b - - a a b",)},
)


class _Aligned(TupleStepper):
    def __init__(
        self,
        windows: Sequence[int],
        hosts: int,
        length: int,
        switch: tuple[int, int] | None,
        theta: Theta,
    ) -> None:
        super().__init__("Aligned routing (Gu 2007, Fig. 3)", windows, hosts, theta)
        self.trace.listings = (ATR,)
        self.length = length
        self.switched: int | None = switch[0] if switch else None
        self.new = switch[1] if switch else 0
        self.segments: list[Segment] = []
        self.buffer: list[Tuple] = []
        self.state: list[list[Copy]] = [[] for _ in range(hosts)]

    def process_tuple(self, t: Tuple) -> None:
        while not self.segments or self.segments[-1].end <= t.time:
            self._open_segment()
        copies = self._list_copies(t)
        moves = tuple(TraceMove(f"{t}{mark}", "copy", None, host) for host, mark in copies)
        self.record_step(self._describe_arrival(t, copies), None, moves, line=self._find_line(t))
        for host, mark in copies:
            self._store_and_join(host, t, mark)
        self.buffer = [u for u in (*self.buffer, t) if t.time - u.time <= max(self.windows)]

    def _open_segment(self) -> None:
        """Open the next segment on the least loaded host.

        The host gets the slave tuples that the segment needs from before it begins.
        """
        begin = self.segments[-1].end if self.segments else 0
        after = self.switched is not None and begin >= self.switched
        master, end = (self.new if after else 0), begin + self.length
        if self.switched is not None and begin < self.switched:
            end = min(end, self.switched)
        host = find_least_loaded([len(held) for held in self.state])
        segment = Segment(master, begin, end, host)
        self.segments.append(segment)
        early = [
            u
            for u in self.buffer
            if self._choose_mark(u, segment) is not None
            and u not in self._select_unstarred_tuples(host)
        ]
        for u in early:
            self.state[host].append((u, self._choose_mark(u, segment) or ""))
        moves = tuple(
            TraceMove(f"{u}{self._choose_mark(u, segment)}", "copy", None, host) for u in early
        )
        text = self._describe_opened_segment(segment, early, after)
        paragraph = 3 if after and begin == self.switched else 1
        self.record_step(text, host, moves, line=Line("Section 3", paragraph, paragraph))

    def _find_line(self, t: Tuple, mark: str = "") -> Line:
        """Return the paragraph that says where a tuple goes."""
        is_master = t.stream == self.segments[-1].master
        paragraph = 3 if mark else 1 if is_master else 2
        return Line("Section 3", paragraph, paragraph)

    def _select_unstarred_tuples(self, host: int) -> set[Tuple]:
        return {u for u, mark in self.state[host] if mark != "*"}

    def _describe_opened_segment(self, s: Segment, early: Sequence[Tuple], after: bool) -> str:
        role = (
            f"{NAMES[s.master]} becomes the master. " if after and s.begin == self.switched else ""
        )
        sent = f", which gets {', '.join(map(str, early))} from the buffer" if early else ""
        return (
            f"{role}Master segment {NAMES[s.master]}[{s.begin}, {s.end}) goes to the least "
            f"loaded host, V{s.host + 1}{sent}."
        )

    def _list_copies(self, t: Tuple) -> list[tuple[int, str]]:
        """Return (host, mark) of every copy of a tuple as it arrives.

        A host gets no two of the same kind.
        """
        return sorted(
            {(s.host, mark) for s in self.segments if (mark := self._choose_mark(t, s)) is not None}
        )

    def _choose_mark(self, t: Tuple, s: Segment) -> str | None:
        """Return the mark with which a segment needs a tuple: "", "*" or "#"; None: it does not."""
        if t.stream == s.master:
            if s.begin <= t.time < s.end:
                return self._mark_after_switch(t, s)
            return "*" if self._needs_starred_copy(t, s) else None
        since = s.begin - self.windows[t.stream]
        until = s.end + self.windows[s.master]
        if self.switched is not None and s.begin < self.switched:
            if s.end == self.switched and t.stream != self.new:
                until = s.end + max(self.windows[0], self.windows[self.new])
            starred = t.stream == self.new and t.time >= self.switched
            return ("*" if starred else "") if since <= t.time < until else None
        if self.switched is not None and t.stream == 0 and t.time < self.switched:
            return None
        return self._mark_after_switch(t, s) if since <= t.time < until else None

    def _needs_starred_copy(self, t: Tuple, s: Segment) -> bool:
        """Return whether a tuple of the old master, from after t_s, is copied to the last old host.

        It does if it may meet tuples of the new master from before t_s there.
        """
        return (
            s.end == self.switched
            and s.begin < self.switched
            and 0 <= t.time - self.switched < self.windows[self.new]
        )

    def _mark_after_switch(self, t: Tuple, s: Segment) -> str:
        """Return "#" for tuples of the two streams that change roles, during the transition."""
        if self.switched is None or s.begin < self.switched or t.stream not in (0, self.new):
            return ""
        other = self.windows[self.new] if t.stream == 0 else self.windows[0]
        return "#" if t.time - self.switched < other else ""

    def _store_and_join(self, host: int, t: Tuple, mark: str) -> None:
        """Store a copy and join it with the tuples on the host."""
        held: list[list[Copy]] = [[] for _ in self.windows]
        for u, other in self.state[host]:
            held[u.stream].append((u, other))
        held[t.stream] = [(t, mark)]
        self.state[host].append((t, mark))
        met = ((u for u, _ in g) for g in product(*held) if self._may_join(g))
        results = self.select_results(met)
        joined = f"finds {', '.join(map(group_name, results))}" if results else "finds nothing"
        text = f"{t}{mark} is stored on V{host + 1} and {joined} there."
        self.record_step(text, host, (), results, self._find_line(t, mark))

    def _may_join(self, group: Sequence[Copy]) -> bool:
        """Return whether the marks allow tuples of the old and of the new master to meet."""
        if self.switched is None:
            return True
        before = {u.stream: u.time < self.switched for u, _ in group}
        return all(
            before[self.new if u.stream == 0 else 0] == (mark == "*") for u, mark in group if mark
        )

    def _describe_arrival(self, t: Tuple, copies: Sequence[tuple[int, str]]) -> str:
        if not copies:
            return f"{t} arrives at {t.time}; no segment needs it now, and it waits in the buffer."
        to = ", ".join(f"V{host + 1}{f' as {t}{mark}' if mark else ''}" for host, mark in copies)
        return f"{t} arrives at time {t.time} and goes to {to}."

    def list_stored(self) -> Stored:
        return tuple(
            tuple(
                tuple(f"{u}{mark}" for u, mark in held if u.stream == s)
                for s in range(len(self.windows))
            )
            for held in self.state
        )

    def list_heads(self) -> Heads:
        """Return the master segments of each host."""
        named = [(f"{NAMES[s.master]}[{s.begin}, {s.end})", s.host) for s in self.segments[-3:]]
        hosts = range(len(self.state))
        return (), tuple(", ".join(name for name, at in named if at == h) for h in hosts)

    def make_table(self) -> Rows:
        rows = [(f"{NAMES[s.master]}[{s.begin}, {s.end})", f"V{s.host + 1}") for s in self.segments]
        return (("master segment", "host"), *rows)


def find_least_loaded(tuples: Sequence[int]) -> int:
    """Return the host on which Braid places the next segment, by the tuples that hosts hold."""
    usage = tuple(HostUsage(stored_tuples=n, stored_bytes=n << 20) for n in tuples)
    facts = Facts(0, (), (), 0, (), (), (), host_usage=usage)
    balance = LoadBalance(len(tuples), (), facts, (0.0, 1.0, 0.0), 1.0, 1)
    return balance.least_loaded_host(Counter(), -1)
