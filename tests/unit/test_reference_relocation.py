"""Fig. 14.1 step by step, compared with Eq. 14.1 and the ring's own moves."""

from __future__ import annotations

from itertools import pairwise

import pytest
from braid.papers.psp.slice_table import insertion_points
from braid_lab.psp.cost import relocated_shares
from braid_lab.psp.relocation_steps import relocation_example

GROWN = [(3, 1), (3, 2), (2, 3), (4, 4), (5, 1)]


@pytest.mark.parametrize(("nodes", "added"), GROWN)
def test_every_node_ends_with_one_new_slice_and_no_tuple_is_lost(nodes: int, added: int) -> None:
    trace = relocation_example(nodes, added)
    everything = {f"a{k + 1}" for k in range(nodes * (nodes + added))}
    for step in trace.steps:
        held = [name for (names,) in step.stored for name in names]
        assert set(held) == everything and len(held) == len(everything)
    first, last = ([len(names) for (names,) in s.stored] for s in (trace.steps[0], trace.steps[-1]))
    assert first == [nodes + added] * nodes + [0] * added and last == [nodes] * (nodes + added)


@pytest.mark.parametrize(("nodes", "added"), GROWN)
def test_equation_14_1_is_what_each_node_hands_on(nodes: int, added: int) -> None:
    """In new slices: Delta S to the next old node, and whole slices to nodes inserted before
    that.
    """
    moved = [0] * nodes
    for step in relocation_example(nodes, added).steps:
        for m in step.moves:
            assert m.source is not None and m.target is not None
            assert m.what in step.stored[m.target][0]
            moved[m.source] += 1
    places = insertion_points(nodes, added)
    whole = [places.count(k) for k in range(1, nodes + 1)]
    handed = [float(s) + n for s, n in zip(relocated_shares(nodes, added), whole, strict=True)]
    assert [n / nodes for n in moved] == pytest.approx(handed)


def test_one_step_changes_one_tuple() -> None:
    steps = relocation_example().steps
    assert len(steps) == 1 + 1 + 6 + 1
    for before, after in pairwise(steps):
        apart = [a != b for a, b in zip(before.stored, after.stored, strict=True)]
        assert sum(apart) == 2 * len(after.moves)


@pytest.mark.parametrize(("nodes", "added"), [(0, 1), (3, 0)])
def test_nothing_to_relocate_is_refused(nodes: int, added: int) -> None:
    with pytest.raises(ValueError, match="1 or more of both"):
        relocation_example(nodes, added)
