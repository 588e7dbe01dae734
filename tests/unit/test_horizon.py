"""Horizons: which stored tuples can still be joined, and which arriving ones are late."""

from __future__ import annotations

from itertools import product
from math import inf

from braid.core.horizon import (
    close_reach,
    find_horizons,
    find_late_limit,
    intersect_reach,
    is_timed,
    reach_of_windows,
    shortest_reach,
    windows_of_reach,
)
from hypothesis import given
from hypothesis import strategies as st

REACH = ((0, 10, 50), (20, 0, None), (0, None, 0))
"""b is at most 10 after a, and c at most 50; a at most 20 after b, and not after c."""


def test_the_horizon_is_the_least_over_the_other_streams() -> None:
    """a waits for b until 90 - 10, and for c until 100 - 50."""
    assert find_horizons((0, 90, 100), (0, 0, 0), REACH) == (50, None, None)
    assert find_horizons((0, 40, 100), (0, 0, 0), REACH) == (30, None, None)


def test_the_lateness_is_that_of_the_stream_that_is_waited_for() -> None:
    two = ((0, 10), (20, 0))
    assert find_horizons((100, 200), (3, 5), two) == (200 - 5 - 10, 100 - 3 - 20)


def test_a_silent_stream_is_waited_for_and_an_ended_one_is_not() -> None:
    assert find_horizons((0, None, 100), (0, 0, 0), REACH)[0] is None
    assert find_horizons((0, 40, 100), (0, 0, 0), REACH, (False, True, False))[0] == 50
    assert find_horizons((7, 40, 100), (0, 0, 0), REACH, (False, True, True))[0] == inf
    assert find_horizons((7, 40, 100), (0, 0, 0), REACH, (False, False, True))[1] == -13


def test_a_tuple_is_late_if_it_may_have_missed_a_partner() -> None:
    two = ((0, 10), (20, 0))
    horizons = find_horizons((100, 200), (3, 5), two)
    assert find_late_limit(0, horizons, two) == 100 - 3
    assert find_late_limit(1, horizons, two) == 200 - 5
    assert find_late_limit(1, (None, None), two) is None
    assert find_late_limit(1, (inf, 5), two) is None


@given(st.lists(st.one_of(st.none(), st.integers(1, 50)), min_size=2, max_size=4))
def test_windows_survive_as_bounds(windows: list[int | None]) -> None:
    assert windows_of_reach(reach_of_windows(windows)) == tuple(windows)
    timed = [is_timed(reach_of_windows(windows), s) for s in range(len(windows))]
    assert all(timed) == any(w is not None for w in windows)


BOUNDS = st.lists(
    st.lists(st.one_of(st.none(), st.integers(-3, 6)), min_size=3, max_size=3),
    min_size=3,
    max_size=3,
)


@given(BOUNDS, BOUNDS)
def test_the_intersection_admits_what_both_admit(
    one: list[list[int | None]], other: list[list[int | None]]
) -> None:
    first, second = (tuple(map(tuple, _without_own(each))) for each in (one, other))
    both = intersect_reach(first, second)

    def admits(reach: object, times: tuple[int, ...]) -> bool:
        pairs = product(range(3), repeat=2)
        return all((m := reach[i][j]) is None or times[j] - times[i] <= m for i, j in pairs)  # type: ignore[index]

    valid = [t for t in product(range(-13, 14), repeat=2) if admits(first, (*t, 0))]
    valid = [t for t in valid if admits(second, (*t, 0))]
    if both is None:
        assert not valid
    else:
        assert valid and all(admits(both, (*t, 0)) for t in valid) and close_reach(both) == both


def _without_own(bounds: list[list[int | None]]) -> list[list[int | None]]:
    return [[0 if i == j else c for j, c in enumerate(row)] for i, row in enumerate(bounds)]


def test_blocks_wait_for_the_partners_that_come_first() -> None:
    assert shortest_reach(REACH, 0, (True, True, True)) == 10
    assert shortest_reach(REACH, 1, (True, True, True)) is None
    assert shortest_reach(REACH, 1, (True, True, False)) == 20
    assert shortest_reach(REACH, 1, (False, True, False)) is None
    assert shortest_reach(((0, -5), (9, 0)), 0, (True, True)) == 0
