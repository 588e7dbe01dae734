"""The PSP ring one tuple at a time.

A tuple makes two copies at the head. The build tuple stays, as state. The probe tuple goes round:
at each node it first purges the other streams' slices (tuples that are too old move on, ahead of
it), then it is passed on, then it probes. Its matches go round once too, from the node that found
them back to that node, and probe the next stream of the join order.

END marks tell the head when a round is over. The last intermediate result that the head makes
carries the first mark; where that one is dropped, back at the head, the next is created. After the
(m - 1)-th the next input tuple may arrive. The book does not say what carries the mark if the head
finds nothing: here it travels alone.

Source: Wang 2008, sections 12.2 and 12.3, Fig. 12.3 and 12.4, Theorem 7.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from braid.papers.psp.slice_table import SliceTable

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
    ring_places,
)
from braid_lab.psp.listings import RING


@dataclass(frozen=True, slots=True)
class Message:
    """A message in a node's queue.

    ``group`` is empty for an END mark that travels alone; ``joined`` streams are in it. ``origin``
    is the node that made it, where it is dropped after one round; ``end`` counts END marks from 1;
    0: none.
    """

    kind: str
    group: Group
    joined: int
    origin: int
    end: int = 0

    def __str__(self) -> str:
        mark = f"END{self.end}" if self.end else ""
        base = {"build": "ᵇ", "probe": "ᵖ"}.get(self.kind, "")
        return f"{group_name(self.group)}{base}{' ' if mark else ''}{mark}" if self.group else mark


def run_ring(
    tuples: Iterable[Tuple],
    windows: Sequence[int],
    nodes: int,
    orders: Sequence[Sequence[int]] = (),
    theta: Theta = has_equal_values,
) -> Trace:
    """Return the steps of the basic ring on tuples in the order of their arrival.

    Node k of N holds the tuples of each stream i that are k W_i / N to (k + 1) W_i / N old.
    ``orders`` has for each stream the others in the order in which its tuples probe them; default:
    by index. Raises ValueError for windows or a number of nodes out of range.
    """
    chosen = tuple(map(tuple, orders)) or _list_join_orders(len(windows))
    return _Ring(windows, nodes, chosen, theta).run_tuples(tuples)


def run_typed(text: str) -> Trace:
    """Return the steps on typed tuples of three streams, with windows of 16 seconds, on four nodes.

    Raises ValueError as ``parse_tuples`` does.
    """
    return run_ring(parse_tuples(text, 3), (16, 16, 16), 4)


def ring_example() -> Trace:
    """Return Fig. 12.4: one tuple of stream a in a ring of four nodes, join order a, b, c."""
    return EXAMPLE.trace()


def run_last(text: str) -> Trace:
    """Return the steps of the last of some typed tuples. Raises as ``run_typed`` does."""
    return run_typed(text).steps_for([str(parse_tuples(text, 3)[-1])])


EXAMPLE = StepExample(
    run_last,
    ("b - - c - - b - - c - c:2 b - - b:2 - b c a",),
    (f"rows of three streams; the last one goes round: {TUPLES}",),
    {"one of each": ("b c a",)},
    "M",
)
_PROBE, _PARTIAL, _END = (Line("Figure 12.3", n, n) for n in (2, 3, 4))


def _list_join_orders(streams: int) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(s for s in range(streams) if s != t) for t in range(streams))


class _Ring(TupleStepper):
    def __init__(
        self,
        windows: Sequence[int],
        nodes: int,
        orders: tuple[tuple[int, ...], ...],
        theta: Theta,
    ) -> None:
        super().__init__("PSP ring (Wang 2008, Fig. 12.4)", windows, nodes, theta)
        self.trace.listings = (RING,)
        slices = (
            SliceTable(tuple(range(nodes)), (w * 1_000_000 // nodes,) * nodes) for w in windows
        )
        self.slice_ends = [table.slice_ends() for table in slices]
        self.nodes, self.orders = nodes, orders
        self.state: list[list[list[Tuple]]] = [[[] for _ in windows] for _ in range(nodes)]
        self.queues: list[deque[Message]] = [deque() for _ in range(nodes)]
        self.sending: list[tuple[int, Message]] = []

    def process_tuple(self, t: Tuple) -> None:
        """Run one period of execution.

        Until the ring is empty, every node takes one message from its queue at a time.
        """
        self.clock = 0
        self.queues[0].append(Message("probe", (t,), 1, 0))
        self.record_step(
            f"{t} arrives at the head, M1, at time {t.time}.",
            0,
            (TraceMove(str(t), "probe", None, 0),),
            line=_PROBE,
        )
        while any(self.queues):
            self.clock += 1
            for node in [k for k, queue in enumerate(self.queues) if queue]:
                self._process_message(node, self.queues[node].popleft())
            for target, message in self.sending:
                self.queues[target].append(message)
            self.sending.clear()

    def _process_message(self, node: int, m: Message) -> None:
        if m.kind == "build":
            self._insert_tuple(
                node, m.group[0], f"{m.group[0]}ᵇ, which has aged, is inserted at M{node + 1}."
            )
        elif m.kind == "probe":
            self._process_probe_tuple(node, m)
        else:
            self._process_intermediate_result(node, m)

    def _insert_tuple(self, node: int, t: Tuple, text: str) -> None:
        self.state[node][t.stream].append(t)
        self.record_step(text, node, line=Line("Figure 12.3", 1, 1))

    def _process_probe_tuple(self, node: int, m: Message) -> None:
        """Apply the steps of Fig. 12.3 to a probe tuple: insert, purge, propagate, probe."""
        t = m.group[0]
        if node == 0:
            self._insert_tuple(
                0,
                t,
                f"{t} makes a build copy {t}ᵇ, which stays at the head, and a probe copy {t}ᵖ.",
            )
        moves = self._purge_slices(node, t)
        onward = node + 1 < self.nodes
        if onward:
            moves.append(self._send_message(node, m))
        if moves:
            text = self._describe_forwarding(node, t, moves, onward)
            self.record_step(text, node, tuple(moves), line=_PROBE)
        matches = self._join_with_slice(node, m.group, 1)
        self._emit_results(node, m.group, 1, matches, 1 if node == 0 else 0)

    def _purge_slices(self, node: int, t: Tuple) -> list[TraceMove]:
        """Apply cross-purge: tuples too old for this node's slices, relative to t, move on.

        From the tail they are discarded.
        """
        moves = []
        for stream, held in enumerate(self.state[node]):
            if stream == t.stream:
                continue
            old = [
                u for u in held if (t.time - u.time) * 1_000_000 >= self.slice_ends[stream][node]
            ]
            for u in old:
                held.remove(u)
                if node + 1 < self.nodes:
                    moves.append(self._send_message(node, Message("build", (u,), 1, node)))
                else:
                    moves.append(TraceMove(f"{u}ᵇ", "build", node, None))
        return moves

    def _describe_forwarding(
        self, node: int, t: Tuple, moves: Sequence[TraceMove], onward: bool
    ) -> str:
        old = [m.what for m in moves if m.kind == "build"]
        gone = f"{t}ᵖ purges {', '.join(old)} at M{node + 1}" if old else ""
        if not onward:
            return f"{gone}: too old for the last slice, dropped."
        return (
            f"{gone}, sent ahead, and goes on to M{node + 2}."
            if old
            else f"{t}ᵖ goes on to M{node + 2} before it probes."
        )

    def _process_intermediate_result(self, node: int, m: Message) -> None:
        """Process an intermediate result or a lone END mark at a node.

        Back at its origin, it is dropped after it has probed.
        """
        back = node == m.origin
        if not back:
            move = self._send_message(node, m)
        matches = self._join_with_slice(node, m.group, m.joined) if m.group else []
        goes = (
            f"{m} is back at M{node + 1} and is dropped."
            if back
            else f"{m} goes on to M{(node + 1) % self.nodes + 1}."
        )
        if not back:
            self.record_step(goes, node, (move,), line=_PARTIAL if m.group else _END)
        elif not m.group:
            self.record_step(goes, node, line=_END)
        ends = m.end + 1 if m.end and back and m.end < len(self.windows) - 1 else 0
        if m.group:
            self._emit_results(
                node,
                m.group,
                m.joined,
                matches,
                ends,
                " It is back where it was made, and is dropped." if back else "",
            )
        elif ends:
            self._emit_results(node, (), m.joined, [], ends)
        if back and m.end == len(self.windows) - 1:
            text = (
                f"END{m.end} is back at the head: all that {self.now} set off is over, and the "
                "next tuple may come."
            )
            self.record_step(text, node, line=_END)

    def _join_with_slice(self, node: int, group: Group, joined: int) -> list[Group]:
        stream = self._find_next_stream(joined)
        return self.select_results((*group, u) for u in self.state[node][stream])

    def _find_next_stream(self, joined: int) -> int:
        return self.orders[self.now.stream][joined - 1]

    def _emit_results(
        self, node: int, group: Group, joined: int, groups: list[Group], end: int, after: str = ""
    ) -> None:
        """Emit results and send intermediate results round.

        The END mark that is due goes with the last intermediate result, or alone.
        """
        last = joined + 1 >= len(self.windows)
        out = [] if last else [Message("partial", g, joined + 1, node) for g in groups]
        if end:
            mark = (
                replace(out.pop(), end=end)
                if out
                else Message("end", (), min(joined + 1, len(self.windows) - 1), node, end)
            )
            out.append(mark)
        moves = tuple(self._send_message(node, m) for m in out)
        self.record_step(
            self._describe_results(node, group, joined, groups, end, last) + after,
            node,
            moves,
            tuple(groups) if last else (),
            _END if not group else _PROBE if joined == 1 else _PARTIAL,
        )

    def _describe_results(
        self, node: int, group: Group, joined: int, groups: list[Group], end: int, last: bool
    ) -> str:
        born = f" END{end} is born." if end else ""
        if not group:
            return f"At the head{born.lower().replace('end', 'END')}"
        kind = "result" if last else "intermediate result"
        what = ", ".join(map(group_name, groups))
        probes = (
            f"{group_name(group)} probes the slice of "
            f"{NAMES[self._find_next_stream(joined)]} on M{node + 1}"
        )
        return (
            f"{probes}: {kind}{'s' if len(groups) > 1 else ''} {what}.{born}"
            if groups
            else f"{probes}: nothing matches.{born}"
        )

    def _send_message(self, node: int, m: Message) -> TraceMove:
        target = (node + 1) % self.nodes
        self.sending.append((target, m))
        return TraceMove(str(m), "end" if m.end else m.kind, node, target)

    def list_stored(self) -> Stored:
        return tuple(tuple(tuple(map(str, held)) for held in at) for at in self.state)

    def list_places(self) -> tuple[Place, ...]:
        """Return the nodes clockwise."""
        return ring_places(range(self.nodes))

    def list_queued(self) -> Rows:
        coming = [[str(m) for target, m in self.sending if target == k] for k in range(self.nodes)]
        return tuple(
            (*map(str, queue), *new) for queue, new in zip(self.queues, coming, strict=True)
        )
