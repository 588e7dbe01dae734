"""The shipped recordings are those of the current code; ``make recordings`` makes them again."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest
from braid.core.event_jsonl import read_events
from braid.core.facts import Facts
from braid.core.placement import Placement
from braid.core.query import Query
from braid.core.run_events import BatchCommitted, BatchPlanned, QueryAdded, RunStarted
from braid.papers.slices.run_events import ChainChanged
from braid.papers.theta.grid import AdaptiveGrid
from braid.papers.theta.run_events import MappingChanged
from braid.simulation.simulator import simulate
from braid_lab.common.recordings import write_events
from braid_lab.launches import recorded_runs
from braid_lab.theta.compared_operators import RIVALS, competitor_name
from braid_lab.workloads.dashboards import DASHBOARDS
from unit.scripted import judge_pace

PICTURE = Path(__file__).parents[2] / "docs" / "fluct.webp"


@pytest.fixture(params=recorded_runs.SETTINGS)
def name(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def events(name: str) -> list[Any]:
    return read_events(recorded_runs.recording_path(name))


def recorded(start: RunStarted) -> Placement:
    """Return the recorded placement in its current form."""
    return Placement.class_by_name(start.placement).from_settings(start.placement_settings)


def mappings(events: list[Any]) -> list[tuple[int, int, Any, Any]]:
    return [
        (e.batch, e.group, e.previous_mapping, e.mapping)
        for e in events
        if isinstance(e, MappingChanged)
    ]


def test_every_recording_is_shipped_and_nothing_else() -> None:
    named = (*recorded_runs.SETTINGS, *recorded_runs.SHARED)
    assert {p.name for p in recorded_runs.FOLDER.iterdir()} == {f"{n}.jsonl" for n in named}
    with pytest.raises(ValueError, match="no recording is named 'eq9'; there are: fluct, "):
        recorded_runs.recording_path("eq9")


@pytest.mark.parametrize("name", (*recorded_runs.SETTINGS, *recorded_runs.SHARED))
def test_a_recording_is_of_today_s_format(name: str, tmp_path: Path) -> None:
    """No field is missing, and none is unknown to the format."""
    write_events(tmp_path / "again.jsonl", recorded_runs.recorded_events(name))
    assert (tmp_path / "again.jsonl").read_bytes() == recorded_runs.recording_path(
        name
    ).read_bytes()


def test_a_recording_has_today_s_settings_and_key_space(name: str, events: list[Any]) -> None:
    start, chosen = events[0], recorded_runs.SETTINGS[name]
    kind = Placement.class_by_name(chosen["placement"])
    settings = {k: chosen[k] for k in ("hosts", "epsilon") if k in kind.setting_names()}
    if (
        "final_sizes" in kind.setting_names() and kind is not AdaptiveGrid
    ):  # the oracle counted them
        settings["final_sizes"] = start.placement_settings["final_sizes"]
    now = kind.from_settings(settings)
    assert recorded(start) == now
    assert (start.hosts, start.key_space_size) == (now.hosts, now.key_space_size)
    assert start.planned_batches == chosen["batches"] and events[-1].outcome == "completed"
    assert start.interval_seconds == (chosen["pace"] or None)


@pytest.mark.parametrize(
    ("name", "queries"), (("slices", recorded_runs.ASKED), ("shared_ring", DASHBOARDS))
)
def test_a_recorded_shared_run_has_today_s_settings_queries_and_slices(
    name: str, queries: tuple[Query, ...]
) -> None:
    events, chosen = recorded_runs.recorded_events(name), recorded_runs.SHARED[name]
    assert (events[0].hosts, events[0].planned_batches) == (chosen["hosts"], chosen["batches"])
    assert events[-1].outcome == "completed" and len(events) > chosen["batches"]
    assert events[0].interval_seconds == chosen["pace"] > 0
    assert judge_pace(events)["word"] == "keeps up"
    added = {e.name: tuple(e.windows.values()) for e in events if isinstance(e, QueryAdded)}
    assert added == {q.name: q.windows for q in queries}
    chains = {e.stream: e.slice_ends for e in events if isinstance(e, ChainChanged)}
    for stream, ends in chains.items():
        assert set(ends) >= {q.windows[stream] for q in queries}, "Mem-Opt: every window's end"


def test_the_first_batch_is_planned_as_today(events: list[Any]) -> None:
    start = events[0]
    policy, none = recorded(start), (0,) * len(start.streams)
    facts = Facts(0, start.streams, (), 0, none, none, none, (None,) * 2, (None,) * 2)
    plan = policy.plan_batch(facts, policy.initial_state(len(start.streams)))
    first = next(e for e in events if isinstance(e, BatchPlanned))
    assert (first.routes, first.derivations) == (plan.routes, plan.derivations)


def test_the_grid_changes_when_it_would_today(events: list[Any]) -> None:
    """The same policy on the same numbers of tuples, without tuples."""
    start, done = events[0], [e for e in events if isinstance(e, BatchCommitted)]
    again = simulate(recorded(start), [e.received_tuples for e in done], streams=start.streams)
    assert mappings(again) == mappings(events)
    assert len(mappings(events)) > 1 or start.placement != "AdaptiveGrid", "and it does change"


def test_the_recorded_rivals_are_those_of_the_paper() -> None:
    assert list(recorded_runs.recorded_competitors()) == [
        competitor_name(n, z) for z in recorded_runs.SKEWS for n in RIVALS
    ]


def test_the_picture_is_of_the_recording() -> None:
    """docs/picture.py stores the recording's digest in the picture."""
    digest = hashlib.sha256(recorded_runs.recording_path("fluct").read_bytes()).hexdigest()
    assert digest.encode() in PICTURE.read_bytes()
