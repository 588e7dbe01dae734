"""Aggressive state relocation, move by move: Wang 2008, section 14.2, Fig. 14.1 and Eq. 14.1.

The window is in equal slices on the old nodes. New nodes are inserted where the state that is
shifted toward the tail fills them. The moves are those of the ring itself
(``slice_table.plan_relocation``). Here every piece, a tuple, is shown on its way, those nearest the
tail first.
"""

from __future__ import annotations

from collections.abc import Iterable

from braid.core.plan import Block
from braid.papers.psp.slice_table import (
    BlockMove,
    SliceTable,
    StreamState,
    insertion_points,
    plan_relocation,
)
from braid.util.validation import read_natural

from braid_lab.common.tuple_models import (
    NAMES,
    Group,
    Line,
    Place,
    StepExample,
    Stepper,
    Stored,
    Trace,
    ring_places,
)
from braid_lab.common.tuple_models import TraceMove as Shown
from braid_lab.psp.cost import relocated_shares
from braid_lab.psp.listings import RELOCATION

SECOND = 1_000_000


def relocation_example(nodes: int = 3, added: int = 1) -> Trace:
    """Return the steps from N nodes to N + M, by default Fig. 14.1's one more.

    The window has N (N + M) tuples, one a second, so that old and new slices are whole numbers of
    them. Raises ValueError unless there is an old node and a new one.
    """
    if nodes < 1 or added < 1:
        raise ValueError(f"{nodes} nodes and {added} more; there must be 1 or more of both")
    return _Relocation(nodes, added).trace


def run_typed(text: str) -> Trace:
    """Return the steps from a number of nodes to another: "3 4". Raises ValueError for others."""
    before, after, *others = *(read_natural(word) or 0 for word in text.split()), 0, 0
    if any(others) or not 0 < before < after <= 8:
        raise ValueError(f"{text!r} is no pair of numbers of nodes, such as 3 4, up to 8")
    return relocation_example(before, after - before)


EXAMPLE = StepExample(
    run_typed,
    ("3 4",),
    ("numbers of nodes before and after, up to 8",),
    {"2 to 5 nodes": ("2 5",)},
    "M",
)


class _Relocation(Stepper):
    def __init__(self, nodes: int, added: int) -> None:
        self.nodes, self.added, self.all = nodes, added, nodes + added
        tuples, each = nodes * self.all, self.all
        blocks = [_make_block(age, age // each, tuples) for age in range(tuples)]
        state = StreamState(
            tuple(blocks), tuples * SECOND, tuples * SECOND - 1, None, tuples, 1, False
        )
        old = SliceTable(
            tuple(range(nodes)), (each * SECOND,) * nodes, head_start=(tuples - each) * SECOND
        )
        wider = old.resize(self.all, tuple(range(nodes, self.all)), aggressive=True)
        new, moves = plan_relocation(wider, state)
        self.order = new.nodes
        self.held = [[b for b in blocks if b.hosts[0] == n] for n in range(self.all)]
        self.trace = Trace(
            f"Aggressive relocation, {nodes} to {self.all} nodes (Wang 2008, Fig. 14.1)",
            1,
            self.all,
            listings=(RELOCATION,),
        )
        self.old_order, self.is_over = old.nodes, False
        self.now = "the ring"
        self._record_relocation(old, moves)

    def _record_relocation(self, old: SliceTable, moves: list[BlockMove]) -> None:
        ring = " → ".join(f"M{n + 1}" for n in old.nodes)
        self.record_step(
            f"The window of {len(self.held[0]) * self.nodes} tuples lies on {ring}, "
            f"{self.all} on each; M1 is the head. Each new slice has {self.nodes}.",
            0,
            line=Line("Section 14.2", 1, 1),
        )
        for j, k in enumerate(insertion_points(self.nodes, self.added), 1):
            self.record_step(
                f"The join is suspended. M{self.nodes + j} goes in after M{k}: k = {k} is the "
                f"least with k M / N ≥ {j}, where what is shifted fills it.",
                self.nodes + j - 1,
                line=Line("Section 14.2", 2, 2),
            )
        for place in reversed(range(self.nodes)):
            outgoing = [m for m in moves if m.source == place]
            for m in sorted(outgoing, key=lambda m: m.block.batch):
                self._move_block(place, m, len(outgoing))
        ring = " → ".join(f"M{n + 1}" for n in self.order)
        moved = f"{len(moves)} of {self.nodes * self.all} tuples have moved, once each"
        self.is_over = True
        line = Line("Section 14.2", 4, 4)
        self.record_step(f"The join goes on, on {ring}: {moved}.", 0, line=line)

    def list_places(self) -> tuple[Place, ...]:
        """Return the nodes clockwise in the order of the wider ring."""
        return ring_places(self.order)

    def list_old_places(self) -> tuple[Place, ...]:
        """Return the old nodes clockwise, until the join goes on."""
        return () if self.is_over else ring_places(self.old_order)

    def _move_block(self, place: int, m: BlockMove, many: int) -> None:
        self.held[m.source].remove(m.block)
        self.held[m.target].append(m.block)
        share = relocated_shares(self.nodes, self.added)[place]
        new_slices = insertion_points(self.nodes, self.added).count(place + 1)
        parts = [f"ΔS = {share} of a new slice to the next old node"] if share else []
        parts += (
            [f"{new_slices} whole to {'a new node' if new_slices == 1 else 'new nodes'}"]
            if new_slices
            else []
        )
        self.record_step(
            f"M{place + 1} hands on {many} tuples: {' and '.join(parts)}. "
            f"{_format_block_name(m.block)} goes to "
            f"M{m.target + 1}.",
            m.target,
            (Shown(_format_block_name(m.block), "copy", m.source, m.target),),
            line=Line("Section 14.2", 3, 3),
        )

    def list_stored(self) -> Stored:
        return tuple(
            (tuple(_format_block_name(b) for b in sorted(held, key=lambda b: -b.batch)),)
            for held in self.held
        )

    def record_step(
        self,
        text: str,
        node: int | None,
        moves: Iterable[Shown] = (),
        results: Iterable[Group] = (),
        line: Line | None = None,
    ) -> None:
        self.clock = len(self.trace.steps)
        super().record_step(text, node, moves, results, line)


def _make_block(age: int, node: int, tuples: int) -> Block:
    """Return a block of the one tuple that is ``age`` seconds old."""
    at = tuples - 1 - age
    span = (at * SECOND, (at + 1) * SECOND - 1)
    return Block(at, 0, (0, 1), at, (node,), 1, 1, span)


def _format_block_name(block: Block) -> str:
    return f"{NAMES[0]}{block.batch + 1}"
