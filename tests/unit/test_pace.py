"""The time left is estimated from the intervals between batches."""

from __future__ import annotations

from braid_widgets.base.time_left import LATEST_BATCHES, TimeLeftEstimator


class Clock:
    """A clock that the test sets."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def seen(*times: float) -> tuple[TimeLeftEstimator, Clock]:
    """Return an estimator that has seen a batch at each of these times."""
    clock = Clock()
    pace = TimeLeftEstimator(clock)
    for done, clock.now in enumerate(times, 1):
        pace.note_batches(done)
    return pace, clock


def test_nothing_is_said_before_two_batches_were_seen_to_come():
    assert seen()[0].seconds_left(10) is None and seen(3.0)[0].seconds_left(10) is None


def test_the_time_between_batches_counts_not_what_they_say_they_took():
    pace, _ = seen(0, 2, 4, 6)
    assert pace.seconds_left(10) == 12.0


def test_the_wait_is_since_the_last_batch_that_was_seen():
    pace, clock = seen(0, 2)
    clock.now = 7.0
    pace.note_batches(2)
    assert pace.seconds_since_batch() == 5.0
    pace = TimeLeftEstimator(clock)
    pace.note_batches(0)
    assert pace.seconds_since_batch() is None, "no batch was done yet"


def test_batches_that_were_done_before_count_for_nothing():
    clock = Clock()
    pace = TimeLeftEstimator(clock)
    pace.note_batches(30)
    clock.now = 2.0
    pace.note_batches(31)
    assert pace.seconds_left(41) == 20.0


def test_it_goes_down_while_a_batch_runs_but_never_below_what_is_left_after_it():
    pace, clock = seen(0, 2, 4)
    clock.now = 5.0
    assert pace.seconds_left(5) == 3.0
    clock.now = 90.0
    assert pace.seconds_left(5) == 2.0 and pace.seconds_left(3) == 0.0


def test_the_last_batches_count():
    slow = [10.0 * k for k in range(5)]
    pace, _ = seen(*slow, *(40.0 + k for k in range(1, LATEST_BATCHES + 2)))
    assert pace.seconds_left(len(slow) + LATEST_BATCHES + 6) == 5.0
