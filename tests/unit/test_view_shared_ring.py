"""The ring of a shared run and its panel: functions of events alone, in offline pages."""

from __future__ import annotations

import re
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from braid.core.run_events import BatchQueryResults, QueryAdded, QueryRemoved, RunStarted
from braid.papers.slices.run_events import ChainChanged
from braid_lab.reports.report_page import find_external_urls
from braid_widgets.base.query_table import QueryRow
from braid_widgets.slices import query_details
from braid_widgets.slices.shared_ring import SharedRingPlayer, make_frames
from braid_widgets.slices.shared_ring_panel import SharedRingPanel
from unit.scripted import kept, rows
from unit.test_bitmaps import Counted, made, some_batches

QUERIES = made((20, 8, 40), (40, 40, 8), where=((None,) * 3, ("v < 3", None, None)))
HOSTS = 3


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Counted:
    return Counted(tmp_path_factory.mktemp("ring") / "run", QUERIES, HOSTS).fed(some_batches(12))


def told(run: Counted) -> list[Any]:
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
    return told(run)


def test_pieces_add_up_to_what_the_hosts_store(run: Counted, events: list[Any]):
    for picture, commit in zip(make_frames(events), run.commits, strict=True):
        assert [sum(by) for by in picture["stored"]] == [
            h.stored_tuples for h in commit.host_metrics
        ]
        assert (
            tuple(sum(by[s] for by in picture["stored"]) for s in range(3))
            == commit.live_tuples
            == tuple(picture["live"])
        )
        assert (
            sum(picture["pieces"]["rows"])
            == commit.total_host_metrics.stored_tuples
            == picture["mean"] * HOSTS
        )
        assert all(0 <= share <= 1 for share in picture["pieces"]["share"])


def test_each_stream_s_ages_go_once_round_the_hosts_from_its_head(events: list[Any]):
    last = make_frames(events)[-1]
    for s in range(3):
        hosts = [part["host"] for part in last["stretches"] if part["stream"] == s]
        heads = [p["host"] for p in last["stretches"] if p["stream"] == s and p["head"]]
        assert sorted(hosts) == list(range(HOSTS)) and heads == hosts[:1]
        assert all((b - a) % HOSTS == 1 for a, b in zip(hosts, hosts[1:], strict=False)), (
            "clockwise"
        )
    assert len({part["host"] for part in last["stretches"] if part["head"]}) == 3, (
        "streams begin on different hosts"
    )


def test_a_stretch_serves_the_queries_whose_windows_reach_into_it(events: list[Any]):
    last = make_frames(events)[6]
    used = {q["name"]: rows(q["used"]) for q in last["queries"]}
    for q in QUERIES:
        for s, window in enumerate(q.windows):
            longest = max(other.windows[s] for other in QUERIES)
            reach = sum(share for stream, _, share in used[q.name] if stream == s) / HOSTS
            assert reach == pytest.approx(window / longest, abs=0.1), (
                "at first ages are shared out evenly"
            )
    served = {name for names in last["pieces"]["queries"] for name in names}
    assert served == {q.name for q in QUERIES} and all(last["pieces"]["queries"])


def test_a_query_tells_its_windows_its_slices_with_their_blocks_and_its_results(
    run: Counted, events: list[Any]
):
    told = query_details.describe_query(events, "q1", 7)
    mine = [e.results_by_query["q1"] for e in events if isinstance(e, BatchQueryResults)][:7]
    assert told.splitlines()[:3] == [
        "query q1 after batch 7",
        "  windows: a 40 µs, b 40 µs, c 8 µs; selections: a: v < 3",
        f"  results: {sum(mine):,} so far, {mine[-1]:,} of them in this batch",
    ]
    assert 0 < sum(mine) < sum(e.results for e in run.commits[:7])
    picture = make_frames(events)[6]
    film = SharedRingPlayer(events)
    assert film.describe_query("q1", picture) == told
    held = [int(n) for n in re.findall(r"block \d+ \((\d+), host \d\)", told.partition("\nb: ")[0])]
    assert 0 < sum(held) <= picture["live"][0]
    for name, batch, wrong in (("q9", 7, "no query 'q9' is served"), ("q1", 99, "no batch 99")):
        with pytest.raises(ValueError, match=wrong):
            query_details.describe_query(events, name, batch)
    older = [e for e in events if not isinstance(e, BatchQueryResults)]
    assert "do not tell whose they are" in query_details.describe_query(older, "q1", 7)


def test_where_events_are_no_longer_kept_the_batches_since_are_told(events: list[Any]):
    later = kept(events, 3)
    found = [e.results_by_query["q1"] for e in events if isinstance(e, BatchQueryResults)][4:7]
    results = f"  results: {sum(found):,} since batch 5, {found[-1]:,} of them in this batch"
    told, whole = (
        query_details.describe_query(each, "q1", 7).splitlines() for each in (later, events)
    )
    assert told == [*whole[:2], results, *whole[3:]]
    assert make_frames(later)[1:] == make_frames(events)[5:] and found[-1] < sum(found)
    came = [replace(e, batch=4) if isinstance(e, QueryAdded) else e for e in later]
    assert " so far, " in query_details.describe_query(came, "q1", 7), (
        "of a query that came later none is lacking"
    )
    for batch in (1, 4):
        with pytest.raises(ValueError, match=f"kept from batch 5 on, not of batch {batch}$"):
            query_details.describe_query(later, "q1", batch)
    with pytest.raises(ValueError, match="there is no batch 99"):
        query_details.describe_query(later, "q1", 99)


def test_a_film_says_what_serves_a_query_or_why_it_cannot(
    events: list[Any], monkeypatch: pytest.MonkeyPatch
):
    film, told = SharedRingPlayer(events), []
    monkeypatch.setattr(film, "send", lambda content, buffers=None: told.append(content))
    for message in (
        "no message",
        {},
        {"query": "q1", "position": 6},
        {"query": "q9", "position": 6},
    ):
        film._handle_query_message(film, message, [])
    for nowhere in ({"query": "q1"}, {"query": "q1", "position": 99}):
        film._handle_query_message(film, nowhere, [])
    first, unknown, *faults = (each["inspected"] for each in told)
    assert first == query_details.describe_query(events, "q1", 7)
    assert unknown == "no query 'q9' is served after batch 7; there are: q0, q1"
    assert len(faults) == 2 and all(faults)


def test_what_changes_is_told_in_its_batch(events: list[Any]):
    assert (
        "shared out anew (memory)" in make_frames(events)[0]["note"]
        and "anew" not in make_frames(events)[-1]["note"]
    )
    gone = [*events[:-20], QueryRemoved(9, "q0"), *events[-20:]]
    assert [q["name"] for q in make_frames(gone)[-1]["queries"]] == ["q1"]
    assert make_frames(events)[-1]["title"] == "batch 12 · shared ring of a ⋈ b ⋈ c"
    assert (
        len(make_frames(events, most=5)) <= 6
        and make_frames(events, most=5)[-1] == make_frames(events)[-1]
    )


def test_the_page_needs_no_network_and_a_run_of_one_query_is_refused(events: list[Any]):
    page = SharedRingPlayer(events).to_html()
    assert find_external_urls(page) == [] and '<div data-film="shared_ring">' in page
    with pytest.raises(ValueError, match="tell of no shared ring"):
        SharedRingPlayer([e for e in events if not isinstance(e, ChainChanged)])


def test_another_run_is_shown_from_its_end_and_a_batch_that_is_looked_at_stays(events: list[Any]):
    film = SharedRingPlayer(events[:60])
    film.position = 2
    film.load_events(events)
    assert film.position == 2 and len(film.frames) == 12
    film.position = 11
    film.load_events(events)
    assert film.position == 11


ASKED = (
    QueryRow("now", "a: 1 hour, d: 1 hour"),
    QueryRow("late", "2 hours", "d.delay >= 15"),
    QueryRow("off", "1 hour", is_active=False),
)


class Live(SimpleNamespace):
    """A run as the panel sees it."""

    def rebalance(self, chain: str) -> None:
        self.asked = chain


def test_the_panel_launches_what_is_on_and_shows_it(events: list[Any]):
    given: list[Any] = []
    live = Live(isActive=False, events=lambda since=0: events[since:], exception=lambda: None)
    panel = SharedRingPanel(
        lambda settings: given.append(settings) or live, ("a", "d"), ASKED, hosts=3
    )
    panel.start.click()
    panel.wait_for_work()
    assert panel.follower is not None
    panel.follower.wait_for_end()
    assert [q.name for q in given[0]["queries"]] == ["now", "late"] and given[0]["hosts"] == 3
    assert panel.view is not None and len(panel.view.frames) == 12 and panel.error is None
    assert panel.anew.disabled, "the run has ended"


def test_a_recorded_run_is_there_until_one_is_launched(events: list[Any]):
    live = Live(isActive=False, events=lambda since=0: events[since:], exception=lambda: None)
    half = events[
        : [type(e).__name__ for e in events].index("BatchCommitted", len(events) // 2) + 1
    ]
    panel = SharedRingPanel(lambda settings: live, ("a", "d"), ASKED, half)
    note, film = panel.place.children
    assert (
        "A recorded run" in note.value and len(film.frames) < 12 and panel.visible_events() == half
    )
    panel.start.click()
    panel.wait_for_work()
    assert panel.follower is not None
    panel.follower.wait_for_end()
    assert panel.place.children == (panel.view,) and len(panel.view.frames) == 12


def test_share_out_anew_asks_the_running_ring():
    live = Live()
    panel = SharedRingPanel(lambda settings: live, ("a", "d"), ASKED)
    assert panel.anew.disabled
    panel.run = live
    panel.set_state("running")
    assert not panel.anew.disabled
    panel.anew.click()
    panel.wait_for_changes(10)
    assert live.asked == "memory" and panel.error is None


def test_what_the_panel_does_not_know_is_refused():
    with pytest.raises(ValueError, match="no control 'nodes'"):
        SharedRingPanel(lambda settings: Live(), ("a", "d"), ASKED, nodes=3)
    with pytest.raises(ValueError, match="the streams are a, d"):
        SharedRingPanel(
            lambda settings: Live(), ("a", "d"), (QueryRow("wet", "1 hour", "w.precip > 0"),)
        )
