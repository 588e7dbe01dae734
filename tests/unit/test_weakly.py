"""Callbacks for a gateway that keeps everything it was ever given."""

from __future__ import annotations

import gc
import traceback
import weakref

import pytest
from braid.execution.spark_executor import weak_callback


class Run:
    def __init__(self) -> None:
        self.turned: list[int] = []

    def turn(self, frame: object, number: int) -> None:
        self.turned.append(number)


def test_it_calls_its_owner_and_does_not_keep_it() -> None:
    run = Run()
    turned, here = weak_callback(run.turn), weakref.ref(run)
    turned(None, 7)
    assert run.turned == [7]
    del run
    assert here() is None
    with pytest.raises(RuntimeError, match="micro-batch 8 belongs to a run that no longer exists"):
        turned(None, 8)


class Failing(Run):
    def turn(self, frame: object, number: int) -> None:
        try:
            self.turned[number]
        except IndexError as error:
            raise ValueError("there is no such batch") from error


def test_an_exception_that_is_kept_does_not_keep_the_owner() -> None:
    run = Failing()
    turned, here = weak_callback(run.turn), weakref.ref(run)
    with pytest.raises(ValueError, match="no such batch") as kept:
        turned(None, 7)
    del run
    gc.collect()
    assert here() is None
    assert "self.turned[number]" in "".join(traceback.format_exception(kept.value))
