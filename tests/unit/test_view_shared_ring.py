"""The panel of a shared ring, and the description of a query: functions of events alone."""

from __future__ import annotations

import re
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from braid.core.query import Query
from braid.core.run_events import BatchQueryResults, QueryAdded, RunStarted
from braid_widgets.cockpit.view import Cockpit
from braid_widgets.slices import query_details
from braid_widgets.slices.shared_ring_panel import SharedRingPanel
from unit.scripted import list_retained
from unit.test_bitmaps import Counted, make_queries, some_batches

QUERIES = make_queries((20, 8, 40), (40, 40, 8), where=((None,) * 3, ("v < 3", None, None)))
HOSTS = 3


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Counted:
    return Counted(tmp_path_factory.mktemp("ring") / "run", QUERIES, HOSTS).fed(some_batches(12))


def list_events(run: Counted) -> list[Any]:
    """Return the events after those that SharedRun emits first."""
    start = RunStarted(("a", "b", "c"), "a.k = b.k", {}, "Chain", {}, HOSTS, 63, 12)
    added = [
        QueryAdded(
            -1,
            q.name,
            q.bitmap_position,
            dict(zip("abc", q.windows, strict=True)),
            dict(zip("abc", q.selections, strict=True)),
            {},
        )
        for q in QUERIES
    ]
    return [start, *added, *run.events]


@pytest.fixture
def events(run: Counted) -> list[Any]:
    return list_events(run)


def test_a_query_tells_its_windows_its_slices_with_their_blocks_and_its_results(
    run: Counted, events: list[Any]
):
    texts = query_details.describe_query(events, "q1", 7)
    mine = [e.results_by_query["q1"] for e in events if isinstance(e, BatchQueryResults)][:7]
    assert texts.splitlines()[:3] == [
        "query q1 after batch 7",
        "  windows: a 40 µs, b 40 µs, c 8 µs; selections: a: v < 3",
        f"  results: {sum(mine):,} so far, {mine[-1]:,} of them in this batch",
    ]
    assert 0 < sum(mine) < sum(e.results for e in run.commits[:7])
    held = [
        int(n) for n in re.findall(r"block \d+ \((\d+), host \d\)", texts.partition("\nb: ")[0])
    ]
    assert 0 < sum(held) <= run.commits[6].live_tuples[0]
    for name, batch, wrong in (("q9", 7, "no query 'q9' is served"), ("q1", 99, "no batch 99")):
        with pytest.raises(ValueError, match=wrong):
            query_details.describe_query(events, name, batch)
    older = [e for e in events if not isinstance(e, BatchQueryResults)]
    assert "do not tell whose they are" in query_details.describe_query(older, "q1", 7)


def test_where_events_are_no_longer_kept_the_batches_since_are_told(events: list[Any]):
    later = list_retained(events, 3)
    found = [e.results_by_query["q1"] for e in events if isinstance(e, BatchQueryResults)][4:7]
    results = f"  results: {sum(found):,} since batch 5, {found[-1]:,} of them in this batch"
    reported, whole = (
        query_details.describe_query(each, "q1", 7).splitlines() for each in (later, events)
    )
    assert reported == [*whole[:2], results, *whole[3:]]
    assert found[-1] < sum(found)
    came = [replace(e, batch=4) if isinstance(e, QueryAdded) else e for e in later]
    assert " so far, " in query_details.describe_query(came, "q1", 7), (
        "of a query that came later none is lacking"
    )
    for batch in (1, 4):
        with pytest.raises(ValueError, match=f"kept from batch 5 on, not of batch {batch}$"):
            query_details.describe_query(later, "q1", batch)
    with pytest.raises(ValueError, match="there is no batch 99"):
        query_details.describe_query(later, "q1", 99)


ASKED = (
    Query.parse("now", "ad", "1 hour"),
    Query.parse("late", "ad", "2 hours", {"d": "d.delay >= 15"}),
)


def test_the_panel_launches_its_queries_and_shows_them(events: list[Any]):
    given: list[Any] = []
    live = SimpleNamespace(
        isActive=False, events=lambda since=0: events[since:], exception=lambda: None
    )
    panel = SharedRingPanel(
        lambda settings: given.append(settings) or live, ("a", "d"), ASKED, Cockpit([]), hosts=3
    )
    panel.start.click()
    panel.wait_for_work()
    assert panel.follower is not None
    panel.follower.wait_for_end()
    assert [q.name for q in given[0]["queries"]] == ["now", "late"] and given[0]["hosts"] == 3
    assert len(panel.screen.page["frames"]) == 12 and panel.error is None


def test_a_recorded_run_is_there_until_one_is_launched(events: list[Any]):
    live = SimpleNamespace(
        isActive=False, events=lambda since=0: events[since:], exception=lambda: None
    )
    half = events[
        : [type(e).__name__ for e in events].index("BatchCommitted", len(events) // 2) + 1
    ]
    panel = SharedRingPanel(lambda settings: live, ("a", "d"), ASKED, Cockpit(half))
    assert len(panel.screen.page["frames"]) < 12 and panel.visible_events() == half
    panel.start.click()
    panel.wait_for_work()
    assert panel.follower is not None
    panel.follower.wait_for_end()
    assert len(panel.screen.page["frames"]) == 12


def test_what_the_panel_does_not_know_is_refused():
    with pytest.raises(ValueError, match="no control 'nodes'"):
        SharedRingPanel(lambda settings: SimpleNamespace(), ("a", "d"), ASKED, Cockpit([]), nodes=3)
