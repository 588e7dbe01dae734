"""Events: one JSON line each, read back as they were written."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest
from braid.core import (
    batch_history,
    batch_report,
    clock_events,
    event_jsonl,
    run_events,
    touch_events,
)
from braid.core.answer_events import TuplesAnswered
from braid.core.comparison_watch import ManyComparisons
from braid.core.irregular_rows import IrregularFile, IrregularRowsWritten
from braid.core.plan import Block, Derivation, Hop, ReplicaCopy, Route
from braid.core.run_state import FileChecksum
from braid.core.shedding_plan import ItemYield
from braid.core.trace_rows import TraceFile, TraceWritten
from braid.errors import DamagedRunError
from braid.papers.diffusion import run_events as diffusion
from braid.papers.hotkeys import run_events as hotkeys
from braid.papers.hypercube import run_events as hypercube
from braid.papers.psp import run_events as psp
from braid.papers.reuse import hub_events as reuse
from braid.papers.reuse.network import Network, Node
from braid.papers.shedding import run_events as shedding
from braid.papers.slices import run_events as slices
from braid.papers.theta import run_events as theta
from braid_lab.common.recordings import write_events
from msgspec import structs

NEW, OLD = Block(1, 0, (0, 8), 0, (0,), 3, 24, (5, 9)), Block(3, 1, (0, 8), 0, (0, 1))

ALL: list[Any] = [
    run_events.RunStarted(
        ("a", "b"), "a.k = b.k", {"a": "60 seconds"}, "AdaptiveGrid", {"hosts": 4}, 4, 16, None
    ),
    run_events.BatchPlanned(
        0,
        (
            Route(NEW, ((Hop(1, {1: (2,)}),),), deferred_blocks=(4,)),
            Route(OLD, ((Hop(0, {0: (1, 5)}),),), is_fresh=False),
        ),
        (Derivation(structs.replace(OLD, key_range=(0, 4)), (2,), {0: 1}),),
        {2: (1,)},
    ),
    run_events.BatchCommitted(
        0,
        (1, 2),
        (3, 4),
        (3, 4),
        5,
        {"total": 0.25},
        (NEW, OLD),
        (2,),
        (
            batch_report.HostMetrics(1, 2, 3, seconds=0.5),
            batch_report.HostMetrics(*range(13), 0.125),
        ),
        late_tuples=(1, 0),
    ),
    theta.MappingChanged(
        1, 0, (2, 2), (1, 4), (theta.Cell(0, 0, 0), theta.Cell(1, 0, 1)), (100, 400)
    ),
    theta.MigrationStarted(1, 0, 500, 20),
    theta.MigrationAdvanced(2, 0, (ReplicaCopy(5, 0, 1),), 250, 250),
    theta.MigrationEnded(3, 0),
    diffusion.SegmentPlaced(1, 0, 2, 3, True, 0),
    diffusion.MasterSwitched(4, 0, 1, 2, (1.5, 0.5)),
    diffusion.SegmentLengthTuned(6, 1, 2, 0.25),
    diffusion.PathChosen(
        2,
        7,
        0,
        (diffusion.JoinOrder((1, 2), 3.5, 2.5), diffusion.JoinOrder((2, 1), 4.5, 3.0)),
        {0: 0.5, 4: 0.25},
    ),
    psp.SliceTableChanged(1, 0, (0, 2, 1), (4000000, None, 0), None),
    psp.HeadMoved(1, 0, 0, 1),
    psp.TailMoved(1, 0, None, 2),
    psp.StateRelocated(1, 0, "aged", (ReplicaCopy(5, 0, 1),), 20, True),
    psp.RingResized(1, 3, 5, "load", "passive"),
    hypercube.SharesChosen(0, ((0, 1), (1, 2)), (), (2, 2), 2.0, 2.0, (4,)),
    hypercube.SharesChosen(3, ((0, 1), (1, 2)), (2, 2), (4, 1), 2.5, 1.75, (4,)),
    hotkeys.SpreadChanged(4, (hotkeys.SpreadValue(7, (0, 3), 0.25),), 3.5, 1.05, 900),
    hotkeys.SpreadChanged(5, (hotkeys.SpreadValue(7, (0, 3), 0.25, ("b",), 0.01),), 1.05, 1.05, 30),
    run_events.QueryAdded(
        2, "trend", 1, {"a": 60, "b": 30}, {"a": "v > 3", "b": None}, {"a": 17, "b": None}
    ),
    run_events.QueryRemoved(5, "trend"),
    touch_events.SettingChanged(6, "epsilon", 1.0, 0.25),
    touch_events.HostLost(7, 3, 2, 40, 800, {0: 25, 1: 5}, 10),
    shedding.SheddingPlanned(
        3,
        "selective",
        "seconds",
        1.5,
        0.25,
        1.5,
        True,
        (1000, None),
        (shedding.ShedItem(0, 1, 2, 400.0, 0.001, (0.5, 1.0)),),
        {7: 2},
        ((0, 23), ()),
        {9: 120.5},
    ),
    run_events.BatchQueryResults(3, {"late": 4, "all": 0}),
    run_events.BatchShed(
        3, 100.0, 300.0, 17.5, None, 3.0, 4.5, (ItemYield(0, 1, 2, (1.0,), (2.0,), (3.0,), 4.0),)
    ),
    slices.ChainChanged(
        2, 0, "memory", (30, 60), (slices.HostAgeRange(45, 1), slices.HostAgeRange(60, 0))
    ),
    slices.SliceContents(3, 0, ((4, 5), ())),
    run_events.PlacementChosen("AdaptiveGrid", "it costs least", {"AdaptiveGrid": 1.0}),
    run_events.EventsTrimmed(
        41,
        160,
        3,
        190_000,
        17,
        4,
        1200,
        (NEW, OLD),
        (3, 0),
        batch_report.HostMetrics(received_tuples=9),
        {"A": 1},
    ),
    clock_events.ClockJumped(7, "a", 1_000_000, 32_472_144_000_000_000, 8),
    clock_events.ClockJumped(0, "b", None, 32_472_144_000_000_000, 1),
    reuse.HubStarted(
        ("a", "b"), "ts", "relaxed", Network((Node("S"),)).to_dict(), {"a": "S", "b": "S"}, 60
    ),
    reuse.QuerySubmitted(
        0, "q", "SELECT 1", "S", "new", 3, 1.5, (("new", 1.5),), {"a": 9, "b": None}, 0.1, 0.2
    ),
    reuse.QueryEnded(1, "q", "withdrawn"),
    reuse.OperatorBuilt(0, 3, 1, "S", ("a", 2), ("a", "b"), {"a": "all"}, 2, (40, 800), 0.1),
    reuse.OperatorMoved(1, 3, "S", "T", 800),
    reuse.OperatorDropped(2, 3, 1),
    reuse.NodeFailed(2, "S", (3,)),
    reuse.NodeRestored(3, "S"),
    reuse.HistoryLost(4, "S", 2, 7, "history/000002-S.parquet is missing"),
    reuse.HubBatchCommitted(
        0,
        {"a": 4, "b": 5},
        {"a": 9, "b": None},
        (reuse.OperatorMetrics(3, 1, 9, 72, 20, 2, 9, 72, 0.5),),
        (reuse.FlowMetrics("a", "3", "S", "T", 4, 32),),
        1.5,
        0.5,
    ),
    ManyComparisons(5, "f(a.s, b.s)", "all pairs", 2_000_000, 7),
    TuplesAnswered(5, (7, 0), (3, 0), (12, 0)),
    TraceWritten(7, (TraceFile("a.parquet", FileChecksum(9, 4), 1, 3),), 5, 2),
    IrregularRowsWritten(
        5, (IrregularFile("000005-0-8f3a01bc-1.parquet", FileChecksum(2_000, 77)),)
    ),
    run_events.RunEnded(3, "failed", "ValueError: no"),
]


@dataclass(frozen=True, slots=True)
class Surprise(run_events.Event):
    batch: int
    places: tuple[ReplicaCopy, ...]


del run_events.EVENTS.classes["Surprise"]


def test_every_kind_is_here() -> None:
    assert {type(e).__name__ for e in ALL} == set(event_jsonl.event_types())


def test_events_are_read_back_as_they_were_written(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    write_events(path, ALL[:3])
    write_events(path, ALL[3:], append=True)
    assert event_jsonl.read_events(path) == ALL
    assert all(
        json.loads(line)["format_version"] == event_jsonl.VERSION
        for line in path.read_text().splitlines()
    )


def test_writing_whole_replaces(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    write_events(path, ALL)
    write_events(path, ALL[:1])
    assert event_jsonl.read_events(path) == ALL[:1]


@pytest.mark.parametrize("event", ALL, ids=lambda event: type(event).__name__)
def test_a_line_has_the_plain_values_of_its_event(event: Any) -> None:
    line = event_jsonl.encode_event(event)
    assert line == msgspec.json.encode(event_jsonl.event_to_dict(event)) + b"\n"


@pytest.mark.parametrize(
    "change", [{"format_version": 99}, {"format_version": None}, {"type": "Unheard"}]
)
def test_another_version_or_kind_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"this version of Braid reads version 1 of RunStarted, "):
        event_jsonl.event_from_dict(event_jsonl.event_to_dict(ALL[-1]) | change)


def test_another_version_is_refused_in_one_sentence() -> None:
    with pytest.raises(ValueError, match=r"^event of kind 'RunEnded', version 2; [^;.]*$"):
        event_jsonl.event_from_dict(event_jsonl.event_to_dict(ALL[-1]) | {"format_version": 2})


def test_what_a_line_lacks_or_has_of_another_type_is_refused() -> None:
    line = event_jsonl.event_to_dict(ALL[-1])
    with pytest.raises(ValueError, match="Expected `int`, got `str` - at `\\$.batch`"):
        event_jsonl.event_from_dict(line | {"batch": "three"})
    with pytest.raises(ValueError, match="missing required field `outcome`"):
        event_jsonl.event_from_dict({k: v for k, v in line.items() if k != "outcome"})


@pytest.mark.parametrize("line", [b'{"type":"RunEnded,"batch":3}', b"[]", b"\xff", b'{"a":'])
def test_a_damaged_line_is_refused_with_the_name_of_its_file(tmp_path: Path, line: bytes) -> None:
    (tmp_path / "events.jsonl").write_bytes(line + b"\n")
    with pytest.raises(DamagedRunError, match=r"events\.jsonl is damaged: the line that begins"):
        event_jsonl.read_events(tmp_path / "events.jsonl")


def test_a_paper_adds_a_kind_in_its_own_file_and_two_of_one_name_are_refused() -> None:
    run_events.EVENTS.classes["Surprise"] = Surprise
    surprise = Surprise(3, (ReplicaCopy(1, 2, 3),))
    try:
        assert (
            event_jsonl.event_from_dict(json.loads(json.dumps(event_jsonl.event_to_dict(surprise))))
            == surprise
        )
        with pytest.raises(
            TypeError, match="event Surprise is defined in .* and again in elsewhere"
        ):
            type("Surprise", (run_events.Event,), {"__module__": "elsewhere"})
    finally:
        del run_events.EVENTS.classes["Surprise"]


def test_what_all_hosts_did_is_the_sum_of_each() -> None:
    assert ALL[2].total_host_metrics == batch_report.HostMetrics(1, 3, 5, *range(3, 13), 0.625)


def test_transfer_is_what_the_other_parts_of_a_batch_leave() -> None:
    parts = batch_history.split_batch_seconds(
        1.0, source=0.25, planning=0.125, kernels=0.25, commit=0.125
    )
    assert list(parts) == [*batch_history.PHASES, "total"] and parts["transfer"] == 0.25
    assert sum(parts[part] for part in batch_history.PHASES) == parts["total"] == 1.0
