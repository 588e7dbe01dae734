"""Timing of faults in a simulated world: at once, or at a step with the most harm."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from world.fate import COMMITTED, Fate
from world.scenario import scenario

_STEPS = [("names", "/run/blocks"), ("read", "/run/a"), ("link", "/run/commits/000003.json")]


def _happened(seed: int) -> list[tuple[int, tuple[str, str]]]:
    """Return the numbers of the steps at which a fault happens, and these steps."""
    fate, found = Fate(random.Random(seed), ["kill"], 3, 20, "folder"), []
    before = ("", "")
    for number in range(3_000):
        now = _STEPS[number % 3]
        if fate.draw_fault(before, now):
            found.append((number, now))
        before = now
    return found


def test_as_much_happens_as_may_and_more_of_it_where_a_driver_relies_on_what_it_saw() -> None:
    found = [each for seed in range(100) for each in _happened(seed)]
    assert len(found) == 300
    by_step = Counter(step for _, step in found)
    assert by_step[_STEPS[0]] > 1.15 * by_step[_STEPS[2]] and len(by_step) == 3
    assert _happened(7) == _happened(7) != _happened(8)


@pytest.mark.parametrize(
    ("before", "is_at"),
    [
        (("link", "/run/commits/000003.json"), True),
        (("link", "/run/commits/.000003.json.0a1b2c3d"), False),
        (("answer", "world://run/commits/000003.json"), True),
        (("answer", "world://run/commits/state-000003-0a1b2c3d.json"), False),
        (("read", "/run/commits/000003.json"), False),
    ],
)
def test_a_commit_is_told_by_the_step_after_it(before: tuple[str, str], is_at: bool) -> None:
    now = ("names", "/run/blocks")
    assert any(moment.is_at(before, now) for moment in COMMITTED) == is_at


def test_in_each_fifth_world_drivers_freeze_and_nothing_else_happens() -> None:
    alone = sum(scenario(seed).faults == ("zombie",) for seed in range(1_000))
    assert 180 < alone < 280
