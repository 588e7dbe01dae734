"""The assignment of a batch's fresh blocks to tasks in this process."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
from braid.execution.thread_executor import _assign_fresh_blocks
from hypothesis import given
from hypothesis import strategies as st


def shares(streams: Sequence[int], rows: dict[int, int], tasks: int) -> list[list[int]]:
    """Return the numbers of the blocks that each task makes; ``streams`` are those of the
    blocks.
    """
    routes: list[Any] = [
        SimpleNamespace(is_fresh=True, number=n, block=SimpleNamespace(stream=s))
        for n, s in enumerate(streams)
    ]
    tuples = {s: [pa.record_batch({"x": range(n)})] for s, n in rows.items()}
    return [
        [route.number for route in mine] for mine in _assign_fresh_blocks(routes, tuples, tasks)
    ]


def test_each_task_makes_the_blocks_of_a_stream_where_these_have_as_many_tuples() -> None:
    assert shares([0, 1, 0, 1], {0: 100, 1: 90}, 2) == [[0, 2], [1, 3]]


def test_tasks_share_the_blocks_of_a_stream_that_has_nearly_all_tuples() -> None:
    assert shares([0, 1, 0, 1], {0: 1000, 1: 10}, 2) == [[0], [2, 1, 3]]


@given(
    st.lists(st.integers(0, 3), max_size=9),
    st.dictionaries(st.integers(0, 3), st.integers(1, 50)),
    st.integers(1, 5),
)
def test_each_block_of_what_came_is_made_once(
    streams: list[int], rows: dict[int, int], tasks: int
) -> None:
    found = shares(streams, rows, tasks)
    assert len(found) == tasks
    assert sorted(n for mine in found for n in mine) == [
        n for n, s in enumerate(streams) if s in rows
    ]
