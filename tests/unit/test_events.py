"""Events: one JSON line each, read back as they were written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from braid.core import events

ALL: list[Any] = [
    events.RunStarted(
        ("a", "b"), "a.k = b.k", {"a": "60 seconds"}, "AdaptiveGrid", {"hosts": 4}, 4, 16, None
    ),
    events.BatchPlanned(
        0,
        [[1, 0, [0, 8], [0], [[[1, {"1": [2]}]]], True, []]],
        [[3, [0, 4], [2], {"0": 1}]],
        {"2": [1]},
    ),
    events.BatchCommitted(
        0,
        [1, 2],
        [3, 4],
        [3, 4],
        5,
        {"total": 0.25},
        [[1, 0, [0, 8], 0, [0], 3, 24]],
        [2],
        *[[1, 2]] * 9,
        [0.125, 0.5],
        late=1,
    ),
    events.MappingChanged(1, 0, (2, 2), (1, 4), [[0, 0, 0], [1, 0, 1]], [100, 400]),
    events.MigrationStarted(1, 0, 500, 20),
    events.MigrationAdvanced(2, 0, [[5, 0, 1]], 250, 250),
    events.MigrationEnded(3, 0),
    events.SegmentPlaced(1, 0, 2, 3, True, 0),
    events.MasterSwitched(4, 0, 1, 2, [1.5, 0.5]),
    events.SegmentLengthTuned(6, 1, 2, 0.25),
    events.PathChosen(2, 7, 0, [[[1, 2], 3.5, 2.5], [[2, 1], 4.5, 3.0]], [0.5, 0.25]),
    events.SlicesSet(1, 0, [0, 2, 1], [4000000, None, 0], None),
    events.HeadMoved(1, 0, 0, 1),
    events.TailMoved(1, 0, None, 2),
    events.Relocated(1, 0, "aged", [[5, 0, 1]], 20, True),
    events.RingResized(1, 3, 5, "load", "passive"),
    events.QueryAdded(
        2, "trend", 1, {"a": 60, "b": 30}, {"a": "v > 3", "b": None}, {"a": 17, "b": None}
    ),
    events.QueryRemoved(5, "trend"),
    events.ChainSet(2, 0, "memory", [30, 60], [[45, 1], [60, 0]]),
    events.ChainFilled(3, 0, [[4, 5], []]),
    events.RunEnded(3, "failed", "ValueError: no"),
]


def test_every_kind_is_here() -> None:
    assert {type(e).__name__ for e in ALL} == set(events.KINDS)


def test_events_are_read_back_as_they_were_written(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    events.write(path, ALL[:3])
    events.write(path, ALL[3:], append=True)
    assert events.read(path) == ALL
    assert all(json.loads(line)["v"] == events.VERSION for line in path.read_text().splitlines())


def test_writing_whole_replaces(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    events.write(path, ALL)
    events.write(path, ALL[:1])
    assert events.read(path) == ALL[:1]


@pytest.mark.parametrize("change", [{"v": 99}, {"v": None}, {"kind": "Unheard"}])
def test_another_version_or_kind_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"this version of Braid reads version 1 of RunStarted, "):
        events.from_dict(events.to_dict(ALL[-1]) | change)
