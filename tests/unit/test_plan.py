"""The cover rule: a right plan passes, and each kind of wrong plan is detected and described."""

from __future__ import annotations

import re
from collections.abc import Mapping

import pytest
from braid.core.coverage import CoverageChecker
from braid.core.plan import Block, Derivation, Hop, Path, Plan, Route, apply_derivations_and_drops
from braid.errors import CoverageError

A, B = Block(1, 0, (0, 8), 0, (0,)), Block(2, 1, (0, 8), 0, (1,))
HALVES = Block(3, 1, (0, 4), 0, (1,)), Block(4, 1, (4, 8), 0, (2,))


def hop(stream: int, **probes: tuple[int, ...]) -> Hop:
    """Return a hop: hop(1, h2=(7, 8)) has blocks 7 and 8 of stream 1 on host 2."""
    return Hop(stream, {int(h[1:]): ids for h, ids in probes.items()})


def fresh(
    id: int,
    stream: int,
    *paths: Path,
    keys: tuple[int, int] = (0, 8),
    deferred: tuple[int, ...] = (),
) -> Route:
    return Route(Block(id, stream, keys, 1, (0,)), paths, deferred)


def check(
    blocks: tuple[Block, ...], plan: Plan, streams: int = 2, **more: object
) -> CoverageChecker:
    ledger = CoverageChecker(streams, **more)  # type: ignore[arg-type]
    ledger.check_plan(blocks, plan)
    return ledger


def test_a_right_plan_passes() -> None:
    routes = (fresh(10, 0, (hop(1, h1=(2,)),)), fresh(11, 1, (hop(0, h0=(1, 10)),)))
    assert check((A, B), Plan(routes)).pending_pairs == set()


def test_boxes_may_tile_the_combinations() -> None:
    """Two paths that share the first hop's blocks and split the second's."""
    c, d = Block(5, 2, (0, 8), 0, (3,)), Block(6, 2, (0, 8), 0, (3,))
    paths = ((hop(1, h1=(2,)), hop(2, h3=(5,))), (hop(2, h3=(6,)), hop(1, h1=(2,))))
    check((A, B, c, d), Plan((fresh(10, 0, *paths),)), streams=3)


def test_blocks_of_other_values_are_not_due() -> None:
    plan = Plan((fresh(10, 0, (hop(1, h1=(3,)),), keys=(0, 4)),))
    check(HALVES, plan, keying="join")
    with pytest.raises(CoverageError, match=r"meets 1 of 2 due combinations; .* \{1: \[4\]\}"):
        check(HALVES, plan)


WRONG: dict[str, tuple[tuple[Block, ...], Plan, str]] = {
    "missing": (
        (A, B),
        Plan((fresh(10, 0),)),
        r"block 10 meets 0 of 1 due combinations; .* \{1: "
        r"\[2\]\}",
    ),
    "fresh block of a smaller stream missing": (
        (),
        Plan((fresh(10, 0), fresh(11, 1))),
        r"block 11 meets 0 of 1 due .* \{0: \[10\]\}",
    ),
    "twice on two paths": (
        (A, B),
        Plan((fresh(10, 0, (hop(1, h1=(2,)),), (hop(1, h1=(2,)),)),)),
        r"block 10 meets "
        r"blocks \[\[2\]\] "
        r"on two paths",
    ),
    "twice in one hop": (
        (A, Block(2, 1, (0, 8), 0, (1, 2))),
        Plan((fresh(10, 0, (hop(1, h1=(2,), h2=(2,)),)),)),
        "on two hosts of one hop",
    ),
    "fresh block of a greater stream": (
        (),
        Plan((fresh(10, 0, (hop(1, h0=(11,)),)), fresh(11, 1, (hop(0, h0=(10,)),)))),
        r"block 10 meets blocks \[11\], which are not due",
    ),
    "wrong host": (
        (A, B),
        Plan((fresh(10, 0, (hop(1, h0=(2,)),)),)),
        "probes block 2 of stream 1 on host 0: not there",
    ),
    "unknown block": (
        (A, B),
        Plan((fresh(10, 0, (hop(1, h1=(2, 99)),)),)),
        "probes block 99 of stream 1 on host 1: not there",
    ),
    "wrong stream": (
        (A, B),
        Plan((fresh(10, 0, (hop(1, h0=(1,)),)),)),
        "probes block 1 of stream 1 on host 0: not there",
    ),
    "path without a stream": (
        (A, B),
        Plan((fresh(10, 0, (hop(0, h0=(1,)),)),)),
        r"visits streams \[0\] of 2",
    ),
    "id in use": (
        (A, B),
        Plan((fresh(2, 0, (hop(1, h1=(2,)),)),)),
        r"fresh blocks \[2\] carry ids that "
        r"are in use",
    ),
    "dropped block": (
        (A, B),
        Plan((fresh(10, 0, (hop(1, h1=(2,)),)),), drops={2: (1,)}),
        "probes block 2 of stream 1 on host 1: not there",
    ),
    "defers what is not due": (
        (A, B),
        Plan((fresh(10, 0, deferred=(1, 2)),)),
        r"block 10 defers \[1\], which are not "
        r"due",
    ),
    "meets what it defers": (
        (A, B),
        Plan((fresh(10, 0, (hop(1, h1=(2,)),), deferred=(2,)),)),
        r"block 10 meets blocks "
        r"\[2\], which are not "
        r"due",
    ),
    "settles without a debt": (
        (A, B),
        Plan((Route(B, ((hop(0, h1=(1,)),),), is_fresh=False),)),
        "probes block 1 of stream 0 on host 1: not there",
    ),
    "copies from a host without a replica": (
        (A, B),
        Plan(derivations=(Derivation(Block(2, 1, (0, 8), 0, (1, 3)), (2,), {3: 0}),)),
        "on host 3 reads block 2 of host 0",
    ),
    "says a replica that is not made": (
        (A, B),
        Plan(derivations=(Derivation(Block(2, 1, (0, 8), 0, (1, 3, 4)), (2,), {3: 1}),)),
        r"on \(1, 3, 4\) but made on \[3\]",
    ),
    "copies a block made in the same batch from another host": (
        HALVES,
        Plan(
            derivations=(
                Derivation(Block(7, 1, (0, 4), 0, (1,)), (3,), {1: 1}),
                Derivation(Block(7, 1, (0, 4), 0, (1, 2)), (7,), {2: 1}),
            )
        ),
        "block 7 on host 2 reads block 7 of host 1: not there",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_plan_is_caught_and_told(case: str) -> None:
    blocks, plan, message = WRONG[case]
    with pytest.raises(CoverageError, match=message) as refused:
        check(blocks, plan)
    reported = {int(n) for n in re.findall(r"block (\d+)", str(refused.value))}
    assert reported <= set(refused.value.blocks) != set(), "blocks that the message names"


def test_only_joins_of_two_streams_may_defer() -> None:
    c = Block(5, 2, (0, 8), 0, (3,))
    with pytest.raises(CoverageError, match="only joins of two streams"):
        check((A, B, c), Plan((fresh(10, 0, deferred=(2,)),)), streams=3)


def owing() -> tuple[CoverageChecker, tuple[Block, ...]]:
    """Return facts in which block 10 has not met block 2, which is in transit to host 0."""
    ledger = check((A, B), Plan((fresh(10, 0, deferred=(2,)),)))
    assert ledger.pending_pairs == {(10, 2)}
    return ledger, (A, B, Block(10, 0, (0, 8), 1, (0,)))


def settle(block: Block, probes: Mapping[int, tuple[int, ...]]) -> Route:
    return Route(block, ((Hop(1 - block.stream, probes),),), is_fresh=False)


@pytest.mark.parametrize("by", [2, 10], ids=["by the old block", "by the one that deferred"])
def test_a_debt_is_settled_once_from_either_side(by: int) -> None:
    ledger, blocks = owing()
    arrived = Block(2, 1, (0, 8), 0, (0, 1))
    copy = Derivation(arrived, (2,), {0: 1})
    route = settle(arrived, {0: (10,)}) if by == 2 else settle(blocks[2], {0: (2,)})
    ledger.check_plan(blocks, Plan((route,), (copy,)))
    assert ledger.pending_pairs == set()
    with pytest.raises(CoverageError, match="the pair is not pending"):
        ledger.check_plan((A, arrived, blocks[2]), Plan((route,)))


def test_a_block_settles_only_where_it_is_stored() -> None:
    ledger, blocks = owing()
    with pytest.raises(CoverageError, match=r"block 2 is stored on \(1,\) but probes from \[0\]"):
        ledger.check_plan(blocks, Plan((settle(B, {0: (10,)}),)))


@pytest.mark.parametrize("gone", [2, 10])
def test_a_block_that_is_owed_must_stay(gone: int) -> None:
    ledger, blocks = owing()
    hosts = {b.id: b.hosts for b in blocks}[gone]
    with pytest.raises(
        CoverageError, match=rf"pair \(10, 2\) is pending, but block {gone} is dropped or replaced"
    ):
        ledger.check_plan(blocks, Plan(drops={gone: hosts}))


def test_derivations_then_drops_make_the_blocks_that_routes_see() -> None:
    copied = Block(2, 1, (0, 8), 0, (1, 2))
    plan = Plan(derivations=(Derivation(copied, (2,), {2: 1}),), drops={2: (1,), 1: (0,)})
    assert apply_derivations_and_drops((A, B), plan) == (Block(2, 1, (0, 8), 0, (2,)),)


def test_a_route_needs_its_rows_where_it_is_stored_and_where_it_probes_first() -> None:
    route = Route(Block(10, 0, (0, 8), 1, (4,)), ((hop(1, h1=(2,)), hop(2, h3=(5,))),))
    assert route.reading_hosts() == {1, 4}
    assert Route(A, ((hop(1, h1=(2,)),),), is_fresh=False).reading_hosts() == {1}


# Plans that may leave results out, as declared.

LOST = Block(5, 1, (0, 8), 0, (2,))
C1, C2 = Block(6, 2, (0, 8), 0, (1,)), Block(7, 2, (0, 8), 0, (2,))


ONE_EACH = dict.fromkeys(range(20), 1)
"""A tuple in each block."""


def at_most_once(blocks: tuple[Block, ...], plan: Plan, streams: int = 2) -> CoverageChecker:
    return check(blocks, plan, streams, coverage="at most once")


def test_what_is_left_out_is_in_the_account_of_a_placement_that_covers_at_most_once() -> None:
    plan = Plan((fresh(10, 0, (hop(1, h1=(2,)),)), fresh(11, 1, (hop(0, h0=(1,)),))))
    ledger = at_most_once((A, B, LOST), plan)
    assert [(left.block, left.count_tuple_combinations(ONE_EACH)) for left in ledger.uncovered] == [
        (10, 1),
        (11, 1),
    ]
    rows = {1: 100, 2: 20, 5: 3, 10: 7, 11: 11}
    assert [left.count_tuple_combinations(rows) for left in ledger.uncovered] == [7 * 3, 11 * 7]
    with pytest.raises(CoverageError, match=r"block 10 meets 1 of 2 .* by stream: \{1: \[5\]\}"):
        check((A, B, LOST), plan)


def test_the_account_of_three_streams_counts_combinations_of_tuples() -> None:
    paths = ((hop(1, h1=(2,)), hop(2, h1=(6,))), (hop(1, h2=(5,)), hop(2, h2=(7,))))
    ledger = at_most_once((B, LOST, C1, C2), Plan((fresh(10, 0, *paths),)), 3)
    (left,) = ledger.uncovered
    assert left.count_tuple_combinations(ONE_EACH) == 2
    assert left.count_tuple_combinations({2: 20, 5: 3, 6: 5, 7: 2, 10: 4}) == 4 * (20 * 2 + 3 * 5)
    assert left.count_tuple_combinations({2: 20, 6: 5, 7: 2, 10: 4}) == 4 * 20 * 2, (
        "an empty block loses nothing"
    )


def test_a_plan_that_leaves_nothing_out_has_an_empty_account() -> None:
    plan = Plan((fresh(10, 0, (hop(1, h1=(2,)),)), fresh(11, 1, (hop(0, h0=(1, 10)),))))
    ledger = at_most_once((A, B, LOST), Plan((fresh(10, 0),)))
    assert ledger.uncovered
    ledger.check_plan((A, B), plan)
    assert ledger.uncovered == ()


TWICE = B.with_hosts((1, 2))
DOUBLED: dict[str, tuple[tuple[Route, ...], str]] = {
    "paths": ((fresh(10, 0, (hop(1, h1=(2,)),), (hop(1, h2=(2,)),)),), "on two paths"),
    "hosts": ((fresh(10, 0, (hop(1, h1=(2,), h2=(2,)),)),), "on two hosts of one hop"),
    "not due": ((fresh(11, 1), fresh(10, 0, (hop(1, h0=(11,)),))), "11.*, which are not due"),
    "not there": ((fresh(10, 0, (hop(1, h3=(2,)),)),), "not there"),
}


@pytest.mark.parametrize("routes, sentence", DOUBLED.values(), ids=list(DOUBLED))
def test_at_most_once_still_refuses_what_doubles_or_is_not_due(
    routes: tuple[Route, ...], sentence: str
) -> None:
    with pytest.raises(CoverageError, match=sentence):
        at_most_once((A, TWICE), Plan(routes))
