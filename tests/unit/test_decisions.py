"""Every decision of every placement is described in a sentence with the figures of its event."""

from __future__ import annotations

import random
import re
from collections.abc import Iterable
from math import ceil
from typing import Any

import pytest
from braid import AdaptiveGrid, Coordinated, HotKeys, Ring
from braid.core import event_jsonl, run_events
from braid.core.answer_events import TuplesAnswered
from braid.core.irregular_rows import IrregularRowsWritten
from braid.core.run_events import (
    BatchCommitted,
    BatchPlanned,
    BatchQueryResults,
    BatchShed,
    EventsTrimmed,
    QueryAdded,
    RunEnded,
    RunStarted,
)
from braid.core.trace_rows import TraceWritten
from braid.papers.diffusion.run_events import JoinOrder, PathChosen, SegmentLengthTuned
from braid.papers.psp.run_events import TailMoved
from braid.papers.reuse.hub_events import HubBatchCommitted, HubStarted
from braid.papers.slices.run_events import SliceContents
from braid.papers.theta.mapping import input_load_factor
from braid.papers.theta.run_events import MappingChanged, MigrationAdvanced, MigrationStarted
from braid.simulation.simulator import simulate
from braid_lab.launches import recorded_runs
from braid_widgets.cockpit import decision_flags
from braid_widgets.cockpit.decision_flags import FlagCollector
from braid_widgets.cockpit.page import recorded_page
from placement_checks import SWING, check_meetings, list_examples
from unit.scripted import collect_decisions
from unit.test_events import ALL

BOOKKEEPING = {
    RunStarted,
    EventsTrimmed,
    BatchPlanned,
    BatchShed,
    BatchQueryResults,
    MigrationAdvanced,
    SliceContents,
    TailMoved,
    HubStarted,
    HubBatchCommitted,
    IrregularRowsWritten,
    TraceWritten,
    TuplesAnswered,
}
"""Kinds of events that record an action; another event has the decision."""
SWINGING = [(900, 100)] * 4 + [(50, 900)] * 20

PLACEMENTS = list_examples()


WIDE = {
    "ring": Ring(16, resize=((3, 1), (5, 16))),
    "grid": AdaptiveGrid(64),
    "frequent": HotKeys(64),
    "load": Coordinated(16),
}


def check_flags(events: list[Any], names: Iterable[str]) -> None:
    """Check the words of all flags of a run, whose streams and queries have these names."""
    texts = [flag["text"] for flag in recorded_page(events)["annotations"]]
    for text in texts:
        assert len(text) <= 220, text
        assert not re.search(r"tuple|\b1 [a-z]{2,}s\b|[01]\.\d+ fraction|\d+ bytes", text), text
        _, _, reason = text.partition(": ")
        assert reason.split()[0] not in names, f"it begins with a capital where it is shown: {text}"
    assert not any("node" in t for t in texts) or not any(re.search(r"\bhost", t) for t in texts)


@pytest.mark.parametrize("name", (*recorded_runs.SETTINGS, *recorded_runs.SHARED, *WIDE))
def test_flags_are_short_and_of_one_word_for_one_thing(name: str) -> None:
    if placement := WIDE.get(name):
        streams = 2 if placement.supports_streams(2) else 3
        counts = [(c * streams)[:streams] for c in SWING[:8]]
        windows = (5.0,) * streams
        events = list(simulate(placement, counts, windows=windows, selectivity=0.1))
    else:
        events = recorded_runs.recorded_events(name)
    added = [e.name for e in events if isinstance(e, QueryAdded)]
    check_flags(events, {*events[0].streams, *added})


def test_flags_of_every_kind_of_event_are_short_and_of_the_same_words() -> None:
    start = RunStarted(("a", "b", "c"), "", {}, "Ring", {}, 4, 1, None)
    names = {"a", "b", "c", "q", "trend", "S"}
    for event in ALL:
        if type(event) not in BOOKKEEPING and not isinstance(event, (BatchCommitted, RunEnded)):
            check_flags([start, event, commit(0, (1, 1, 1))], names)
    texts = [f"decision {'x' * 50}"] * 9
    assert decision_flags._join_texts("batch 1: ", texts) == (
        f"batch 1: {'; '.join(texts[:3])}; and 6 more"
    )
    assert len(decision_flags._join_texts("batch 1: ", ["x" * 900, "y"])) == 220


@pytest.mark.parametrize("placement", PLACEMENTS.values(), ids=list(PLACEMENTS))
def test_what_a_placement_decides_is_told_in_words(placement):
    streams = next(n for n in (2, 3, 4) if placement.supports_streams(n))
    counts = [(c * streams)[:streams] for c in SWING[:8]]
    small = [tuple(min(n, 3) for n in c) for c in counts]
    run = check_meetings(placement, small, random.Random(1))
    moment = run_events.EventContext(("r", "s", "t", "u")[:streams], None, run.events)
    chosen_events = [e.describe_decision(moment) for e in run.events if type(e) not in BOOKKEEPING]
    assert not run.events or any(chosen_events), "it decided something, and nothing was told"
    for text in filter(None, chosen_events):
        assert re.fullmatch(r"[^<>\[\]{}\n]{10,}", text)
        assert "None" not in text and "Counter" not in text


def test_every_kind_of_event_is_a_decision_or_bookkeeping():
    silent = {
        k
        for k in event_jsonl.event_types().values()
        if k.describe_decision is run_events.Event.describe_decision
    }
    assert silent == BOOKKEEPING


def test_all_sentences_are_one_line():
    started = next(e for e in ALL if isinstance(e, RunStarted))
    moment = run_events.EventContext((*started.streams, "c"), None, ())
    chosen_events = [e.describe_decision(moment) for e in ALL]
    assert sum(map(bool, chosen_events)) > 8
    assert all("\n" not in text and not text.endswith(".") for text in chosen_events)


def test_a_mapping_tells_its_loads_and_what_its_migration_pays():
    happened = simulate(AdaptiveGrid(16, tuple_sizes=(1, 1)), SWINGING)
    change = [e for e in happened if isinstance(e, MappingChanged)][1]
    moved = next(e for e in happened if isinstance(e, MigrationStarted))
    assert change.batch == moved.batch
    flags = recorded_page(happened)["annotations"]
    text = next(flag["text"] for flag in flags if flag["batch"] == change.batch + 1)
    (n, m), (k, j) = change.previous_mapping, change.mapping
    before = [e for e in happened if isinstance(e, BatchCommitted) and e.batch < change.batch][-1]
    r, s = before.live_tuples
    grids = f"the grid goes from {n} × {m} to {k} × {j}, as there are {r:,} of r and {s:,} of s"
    assert text.startswith(f"batch {change.batch + 1}: {grids}: ")
    old, new = input_load_factor(r, s, n, m), input_load_factor(r, s, k, j)
    assert f"a host then holds {new:,.0f} rows instead of {old:,.0f} ({new / old - 1:+.0%})" in text
    assert f"{moved.tuples_to_copy:,} rows to move" in text
    # A batch sends each tuple of r to m hosts, each of s to n: this is the saving.
    spared = 900 * (m - j) + 100 * (n - k)
    assert spared > 0 and f"it pays back after {ceil(moved.tuples_to_copy / spared)} batch" in text


def test_a_migration_that_pays_nothing_back_does_not_say_that_it_does():
    change = MappingChanged(4, 0, (8, 2), (4, 4), (), (10, 10))
    moved = MigrationStarted(4, 0, 70, 5)
    before = commit(3, received=(900, 0))
    moment = run_events.EventContext(("r", "s"), before, (change, moved))
    assert "pays" in moved.describe_decision(
        moment._replace(previous_commit=commit(3, received=(0, 900)))
    )
    assert moved.describe_decision(moment) == "70 rows to move, 5 to discard"


def commit(batch, received=(1, 1), executor="spark", why=""):
    none = dict(
        total_received_tuples=received,
        live_tuples=received,
        results=0,
        seconds_by_phase={},
        changed_blocks=(),
        dropped_block_ids=(),
    )
    return BatchCommitted(
        batch, received, host_metrics=(), executor=executor, executor_reason=why, **none
    )


def test_nothing_is_told_before_its_batch_is_committed():
    deciding = FlagCollector()
    deciding.apply_event(RunStarted(("a", "b"), "", {}, "Aligned", {}, 4, 1, None))
    assert deciding.apply_event(SegmentLengthTuned(0, 2, 3, 1.25)) == []
    assert [d.batch for d in deciding.apply_event(commit(0))] == [0]


def test_what_is_said_twice_in_a_row_is_told_once():
    path = [PathChosen(k, k, 0, (JoinOrder((1,), 2.0, 2.0),), {}) for k in range(3)]
    started = RunStarted(("a", "b"), "", {}, "Coordinated", {}, 4, 1, None)
    happened = [started, *(e for k in range(3) for e in (path[k], commit(k)))]
    assert [d.batch for d in collect_decisions(happened)] == [0]


def test_a_batch_that_goes_another_way_says_why():
    ways = ["spark", "spark", "process", "process"]
    commits = [commit(k, executor=way, why="2 MB are little") for k, way in enumerate(ways)]
    reported = collect_decisions([RunStarted(("a", "b"), "", {}, "Ring", {}, 4, 1, None), *commits])
    assert [(d.batch, d.text) for d in reported] == [
        (2, "tasks run in this process: 2 MB are little")
    ]
