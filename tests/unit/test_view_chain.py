"""The chain, the merge graph, the table of queries and their panel: their content and their effect
on a run.
"""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from braid import Centralized
from braid.core.query import Query
from braid.core.run_events import BatchCommitted, QueryAdded, QueryRemoved, RunStarted
from braid.papers.slices import chain as chains
from braid.papers.slices import chain_optimizer as slices
from braid.papers.slices.chain import Chain as Placement
from braid.shared.query_changes import add_query
from braid.simulation.simulator import simulate
from braid_lab.reports.report_page import find_external_urls
from braid_lab.slices import cost as costs
from braid_lab.slices.cost import unfiltered_statistics
from braid_widgets.base import progress
from braid_widgets.base.query_table import QueryRow, QueryTable
from braid_widgets.base.run_view import fold_events
from braid_widgets.slices import chain, merge_graph
from braid_widgets.slices.chain_panel import SOURCES, ChainPanel
from braid_widgets.slices.strategy_charts import chain_statistics, strategy_charts, strategy_costs
from unit.scripted import kept
from unit.test_sharing import Shared

SERVED = add_query(
    add_query((), Query("near", (4, 4), (None, None))), Query("far", (12, 12), ("v < 3", None))
)


class Recorded(Shared):
    """A shared run in this process that keeps its events, as SharedRun does."""

    def __init__(self, folder, queries=SERVED):
        self.events = []
        super().__init__(folder, 2, Placement("memory"), queries)
        self.events += [
            RunStarted(("a", "b"), "a.k = b.k", {}, "Chain", {}, 1, 63, None),
            *(self.told(q, -1) for q in queries),
        ]

    def open(self, queries=()):
        engine = super().open(queries)
        engine.publish = self.events.extend
        return engine

    def told(self, q, batch):
        windows, where = (dict(zip("ab", part, strict=True)) for part in (q.windows, q.selections))
        return QueryAdded(batch, q.name, q.bitmap_position, windows, where, {"a": None, "b": None})

    def some(self, batches):
        for n in range(batches):
            self.batch([(s, n % 3, v, int(s == 0 and v == 1)) for s in (0, 1) for v in (1, 5, 9)])

    def reslice(self, policy):
        state = self.engine.state
        self.engine.commit_change(state.queries, policy, None, [], 0.0)


@pytest.fixture
def run(tmp_path):
    run = Recorded(str(tmp_path / "run"))
    run.some(20)
    return run


def test_slices_hold_what_the_run_stores_and_serve_queries_with_longer_windows(run):
    commits = [e for e in run.events if isinstance(e, BatchCommitted)]
    pictures = chain.make_frames(run.events)
    for picture, commit in zip(pictures, commits, strict=True):
        held = (sum(part["rows"] for part in s["slices"]) for s in picture["streams"])
        assert tuple(held) == commit.live_tuples
        assert all(0 <= part["share"] <= 1 for s in picture["streams"] for part in s["slices"])
        assert tuple(s["received_tuples"] for s in picture["streams"]) == tuple(
            commit.received_tuples
        )
    a, b = pictures[-1]["streams"]
    assert [(part["first"], part["last"], part["serves"]) for part in a["slices"]] == [
        (0, 4, "near, far"),
        (4, 12, "far"),
    ]
    near, far = {"name": "near", "window": 4, "selection": ""}, {"name": "far", "window": 12}
    assert a["queries"] == [near, far | {"selection": "v < 3"}]
    assert b["queries"][1] == far | {"selection": ""}
    assert all(part["rows"] > 0 for s in (a, b) for part in s["slices"])


def test_no_tuple_gets_lost_between_two_pictures(run):
    before, flowed = {"a": 0, "b": 0}, {"aged": 0, "cut": 0, "expired": 0}
    for picture in chain.make_frames(run.events):
        for s in picture["streams"]:
            held, cut = (
                sum(part["rows"] for part in s["slices"]),
                sum(part["rows"] for part in s["trimmed"]),
            )
            assert before[s["name"]] + s["received_tuples"] == held + cut + s["expired"], picture[
                "title"
            ]
            before[s["name"]] = held
            flowed["aged"] += sum(part["rows"] for part in s["aged"])
            flowed["cut"] += cut
            flowed["expired"] += s["expired"]
            assert s["name"] == "a" or not cut, "only a has a selection"
            assert all(part["source"] < part["target"] for part in s["aged"])
    assert all(flowed.values())


def test_what_a_slice_loses_by_age_another_gains(run):
    pictures = chain.make_frames(run.events)
    for before, after in zip(pictures, pictures[1:], strict=False):
        for old, new in zip(before["streams"], after["streams"], strict=True):
            left = sum(part["rows"] for part in new["aged"] if part["source"] == 0)
            cut = sum(part["rows"] for part in new["trimmed"] if part["slice"] == 1)
            assert (
                new["slices"][0]["rows"]
                == old["slices"][0]["rows"] + new["received_tuples"] - left - cut
            )


def test_a_chain_whose_first_events_are_gone_goes_on_with_the_blocks_that_they_left(run):
    later, whole = chain.make_frames(kept(run.events, 9)), chain.make_frames(run.events)[10:]
    assert later[1:] == whole[1:] and len(whole) > 2
    first, same = (
        [{key: s[key] for key in ("slices", "received_tuples", "queries")} for s in f["streams"]]
        for f in (later[0], whole[0])
    )
    assert first == same, "where its tuples came from is not known"


def test_a_query_of_the_chain_tells_what_serves_it_in_the_picture_shown(run):
    film = chain.ChainPlayer(run.events)
    told = film.describe_query("far", film.frames[4]).splitlines()
    assert told[:2] == [
        "query far after batch 5",
        "  windows: a 12 µs, b 12 µs; selections: a: v < 3",
    ]
    assert "a: served by 2 slices of 2" in told
    assert "a: served by 1 slice of 2" in film.describe_query("near", film.frames[4]).splitlines()
    with pytest.raises(ValueError, match="no query 'gone' is served after batch 5"):
        film.describe_query("gone", film.frames[4])


def test_queries_and_slices_that_change_are_told_and_drawn(run):
    run.reslice(chains.split_slice(run.engine.state.placement_state, 8, 0))
    assert "the slices change with the next batch" in chain.make_frames(run.events)[-1]["note"]
    run.some(1)
    split = chain.make_frames(run.events)[-1]
    assert "a: slices end at 4 µs, 8 µs, 12 µs now (split)" in split["note"]
    assert [len(s["slices"]) for s in split["streams"]] == [3, 2] and split["streams"][0][
        "aged"
    ] == []
    run.reslice(chains.merge_slices(run.engine.state.placement_state, 4))
    run.some(1)
    merged = chain.make_frames(run.events)[-1]["streams"]
    assert [len(s["slices"]) for s in merged] == [2, 1] and [
        m["age"] for m in merged[1]["marks"]
    ] == [
        0,
        4,
        12,
    ], "windows stay marked"
    new = Query("new", (20, 7), (None, None))
    run.add("new", new.windows, new.selections)
    run.events.insert(-1, run.told(run.engine.state.queries[-1], run.engine.state.batch))
    assert (
        "query new comes" in (came := chain.make_frames(run.events)[-1])["note"]
        and "3 queries" in came["title"]
    )
    run.remove("far")
    run.events.insert(-1, QueryRemoved(run.engine.state.batch, "far"))
    gone = chain.make_frames(run.events)[-1]
    assert "query far goes" in gone["note"] and [
        q["name"] for q in gone["streams"][0]["queries"]
    ] == [
        "near",
        "new",
    ]


def test_measured_and_modelled_runs_never_look_alike(run):
    assert all("measured on Spark" in f["note"] for f in chain.make_frames(run.events))
    start = next(k for k, e in enumerate(run.events) if isinstance(e, RunStarted))
    run.events[start] = RunStarted(
        ("a", "b"), "a.k = b.k", {}, "Chain", {}, 1, 63, None, "modelled"
    )
    assert all("modelled run" in f["note"] for f in chain.make_frames(run.events))


def test_every_slice_has_a_place_of_its_own_whatever_the_windows(run):
    places = [mark["place"] for mark in chain._make_age_marks({0, 10**6, 2 * 10**6, 3600 * 10**6})]
    assert (
        places[0] == 0
        and places[-1] == 1
        and min(b - a for a, b in zip(places, places[1:], strict=False)) > 0.1
    )


def test_the_film_needs_no_network_and_only_live_ones_can_be_clicked(run):
    view = chain.ChainPlayer(run.events)
    page = view.to_html()
    assert find_external_urls(page) == [] and '<div data-film="chain">' in page
    assert not any(f["pick"] for f in view.frames) and all(
        f["pick"] for f in chain.ChainPlayer(run.events, pick=True).frames
    )
    assert view.position == len(view.frames) - 1
    assert len(chain.make_frames(run.events, most=5)) <= 6


def test_a_run_without_a_chain_is_refused():
    with pytest.raises(ValueError, match="no chain"):
        chain.make_frames(simulate(Centralized(), [(1, 1)]))


def test_the_merge_graph_has_every_edge_and_shows_the_shortest_path():
    windows = (1.0, 2.0, 3.0, 24.0, 30.0)
    known = unfiltered_statistics((20.0, 20.0), 0.025, 40.0, 5)
    shown = merge_graph.merge_graph_chart(windows, known, "Graph of r")
    best = slices.cpu_chain(windows, known)
    assert 1 < len(best) < 5
    chosen = shown.data[shown.data["chosen"]]
    assert (
        len(shown.data) == 15
        and tuple(chosen["end"]) == best
        and chosen["start"].tolist() == [0, *best[:-1]]
    )
    assert chosen["cost_modelled"].sum() == pytest.approx(slices.chain_cost(best, windows, known))
    assert (
        shown.data["cost_modelled"]
        .map(merge_graph._format_cost)
        .isin(shown.figure.data[1].text + shown.figure.data[3].text)
        .all()
    )
    assert (
        "(modelled)" in shown.figure.layout.title.text
        and f"keeps {len(best)} of 5" in shown.figure.layout.title.text
    )


def test_what_is_typed_becomes_windows_and_selections():
    typed = QueryRow(
        "q", "a: 1 hour, b: 5 minutes", "a.x > 3 AND (b.y = 1 OR b.y = 2) AND a.z IS NULL"
    )
    q = typed.to_query("ab")
    assert q.name == "q" and q.windows == (3_600_000_000, 300_000_000)
    assert QueryRow("q", "2 minutes").to_query("ab").windows == (120_000_000,) * 2
    assert q.selections_by_alias("ab") == {
        "a": "a.x > 3 AND a.z IS NULL",
        "b": "(b.y = 1 OR b.y = 2)",
    }
    again = QueryRow.from_query(q, "ab", on=False)
    assert again.to_query("ab") == q and again.window == "a: 1 h, b: 5 min" and not again.is_active


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        (QueryRow("q", "soon"), "the window of 'q' on a is 'soon'"),
        (QueryRow("q", "a: 1 hour"), "has windows for a; it needs one for each of a, b"),
        (QueryRow("q", "1 hour", "a.x > b.x"), "which is over a and b"),
        (QueryRow("q", "1 hour", "x > 3"), "which is over no stream"),
        (QueryRow("q", "1 hour", "c.x > 3"), "which is over c"),
        (QueryRow("q", "1 hour", "a.x >"), "is no condition in Spark SQL"),
        (QueryRow("", "1 hour"), "has no name"),
    ],
)
def test_bad_input_gets_a_sentence(asked, told):
    with pytest.raises(ValueError, match=told):
        asked.to_query("ab")


def test_the_table_keeps_what_was_typed_and_the_queries_there_were():
    seen = []
    table = QueryTable(
        "ab",
        [QueryRow("one", "1 minute"), QueryRow("two", "2 minutes", is_active=False)],
        seen.append,
    )
    first, second = table.rows.children
    first.window.value = "soon"
    assert (
        "&#x27;soon&#x27;" in table.message.value
        and first.window.value == "soon"
        and table.queries[0].window == "1 minute"
        and not seen
    )
    first.window.value = "3 minutes"
    assert table.message.value == "" and seen[-1][0].window == "3 minutes"
    second.name.value = "one"
    assert "two queries are named" in table.message.value
    second.name.value = "two"
    first.on.value = False
    assert "no query is on" in table.message.value and len(seen) == 1
    second.on.value = True
    assert [q.name for q in table.active_queries] == ["two"]
    table.set_active(["one"])
    assert first.on.value and not second.on.value and len(seen) == 2, (
        "not a change of the analyst's"
    )
    table.more.click()
    assert table.queries[-1] == QueryRow("query 1", "2 minutes", is_active=False)
    table._remove_row(table.rows.children[-1])
    assert [q.name for q in table.queries] == ["one", "two"]


def test_queries_are_modelled_by_the_equations():
    asked = [
        Query("a", (5_000_000,) * 2, (None, None)),
        Query("b", (5_000_000,) * 2, ("r.x > 1", None)),
        Query("c", (10_000_000,) * 2, (None, None)),
        Query("d", (30_000_000,) * 2, ("r.x > 1", None)),
    ]
    q = costs.SharedLoad.from_queries(asked, 20.0, 0.3, 0.05)
    assert q.windows == pytest.approx((5, 5, 10, 30)) and q.unselected_queries == 3
    windows, known = chain_statistics(q, 2.5)
    assert (
        windows == (5, 10, 30)
        and known.surviving_fractions == ((1, 1, 0.3), (1, 1, 1))
        and known.queries == (2, 1, 1)
    )
    found = strategy_costs(q, windows)
    assert list(found) == ["isolated", "pull-up", "partition", "state slices"]
    assert found["state slices"].state_tuples == min(c.state_tuples for c in found.values())
    one = strategy_costs(q, (30.0,))
    assert (
        one["slices, CPU-Opt"].state_tuples == pytest.approx(costs.pull_up_cost(q).state_tuples)
        and "slices, Mem-Opt" in one
    )
    assert "partition" not in strategy_costs(
        costs.SharedLoad.from_queries(asked[:1], 20.0, 0.3, 0.05), (5.0,)
    )
    assert all(
        "modelled" in c.figure.layout.title.text
        for c in strategy_charts(asked, "rs", 20.0, 0.3, 0.05, 2.5)
    )
    with pytest.raises(ValueError, match="every query has a selection"):
        costs.SharedLoad.from_queries(asked[3:], 20.0, 0.3, 0.05)


class Run:
    """A run that continues until it is ended, and records requests."""

    isActive = True

    def __init__(self, events, queries):
        self._events, self.queries, self.asked = events, list(queries), []
        self.config = SimpleNamespace(streams=dict.fromkeys("rs"))

    def make_query(self, name, windows, where):
        if "r.none" in str(where):
            raise ValueError("column 'r.none' is unknown")
        return SimpleNamespace(
            name=name, windows=tuple(windows.values()), selections=tuple(where.items())
        )

    def add(self, name, windows, where):
        self.asked.append(("add", name))
        self.queries.append(self.make_query(name, windows, where))

    def remove(self, name):
        self.asked.append(("remove", name))
        self.queries = [q for q in self.queries if q.name != name]

    def split_slice(self, age, stream):
        self.asked.append(("split", age, stream))

    def merge_slices(self, age, stream):
        raise ValueError(f"no two slices meet at {age}")

    def rebalance(self, kind):
        self.asked.append(("rebalance", kind))

    def events(self, since=0):
        return self._events[since:]

    def exception(self):
        return None

    def stop(self):
        self.isActive = False

    pause = unpause = lambda self: None


@pytest.fixture
def live(run):
    """Return a panel that follows a run; nothing is measured here."""

    def launch(settings):
        started = Run(run.events, [])
        started.queries = [started.make_query(**q.to_arguments("rs")) for q in settings["queries"]]
        return started

    panel = ChainPanel(launch)
    panel.start.click()
    panel.wait_for_work(30)
    yield panel
    panel.run.stop()
    panel.follower.wait_for_end(30)


def test_a_recorded_chain_is_there_until_one_is_launched(live, run):
    panel = ChainPanel(lambda settings: None, run.events)
    note, film = panel.place.children
    assert "A recorded run" in note.value and film.frames and panel.visible_events() == run.events
    panel.show_events(run.events)
    assert list(panel.place.children) == [panel.film] and panel.film is not film


def test_a_click_splits_or_merges_on_the_running_join(live, run):
    live.show_events(run.events)
    live.film.picked = {"act": "split", "stream": 1, "age": 2_500_000, "n": 1}
    live.wait_for_changes(30)
    assert live.run.asked == [("split", "2500000 microseconds", "s")] and live.error is None
    assert live.inputs["chain"].value == "given" and live.settings()["chain"] == "memory"
    assert live.message.value == "", "it was done"
    live.film.picked = {"act": "merge", "stream": 0, "age": 7, "n": 2}
    live.wait_for_changes(30)
    assert "no two slices meet at 7 microseconds" in live.message.value
    live.inputs["chain"].value = "memory"
    live.wait_for_changes(30)
    assert live.run.asked[1:] == [("rebalance", "memory")]


def test_the_table_adds_and_removes_on_the_running_join(live):
    names = [q.name for q in SOURCES["arrivals"].queries]
    live.table.rows.children[3].on.value = True
    live.table.rows.children[1].on.value = False
    live.wait_for_changes(30)
    assert live.run.asked == [("add", names[3]), ("remove", names[1])]
    live.table.rows.children[0].window.value = "7 seconds"
    live.wait_for_changes(30)
    assert live.run.asked[2:] == [("remove", names[0]), ("add", names[0])], (
        "an edited query goes and comes again"
    )
    live.table.rows.children[1].where.value = "r.none > 1"
    live.table.rows.children[1].on.value = True
    live.wait_for_changes(30)
    assert "&#x27;r.none&#x27; is unknown" in live.message.value and len(live.run.asked) == 4
    row = live.table.rows.children[1]
    assert not row.on.value and row.where.value == "r.none > 1", (
        "it is not served; what was typed stays"
    )
    live.inputs["chain"].value = "cpu"
    live.wait_for_changes(30)
    assert live.run.asked[-1] == ("rebalance", "cpu")


def test_before_a_launch_the_panel_models_and_keeps_the_queries_of_each_source():
    panel = ChainPanel(lambda s: None, overhead=4.0)
    assert panel.settings()["overhead"] == 4.0 and [
        q.name for q in panel.settings()["queries"]
    ] == ["alarm", "watch", "trend"]
    before = panel.outputs[1].outputs
    panel.table.rows.children[0].window.value = "9 seconds"
    assert panel.outputs[1].outputs != before
    panel.inputs["source"].value = "flights"
    assert (
        panel.table.streams == ("d", "w")
        and panel.inputs["rate"].value == SOURCES["flights"].controls["rate"]
    )
    panel.inputs["source"].value = "arrivals"
    assert panel.table.queries[0].window == "9 seconds"
    for row in panel.table.rows.children[:2]:
        row.on.value = False
    assert "every query has a selection" in panel.outputs[0].outputs[0]["data"]["text/plain"]
    panel._handle_pick({"new": {"act": "split", "stream": 0, "age": 1, "n": 1}})
    assert "launch one" in panel.message.value
    panel.show_events([])
    assert panel.film is None, "there is nothing to draw yet"


def test_a_change_of_slices_is_no_batch_of_input(run):
    before = progress.input_batches(fold_events(run.events))
    run.reslice(chains.split_slice(run.engine.state.placement_state, 2))
    assert progress.input_batches(fold_events(run.events)) == before == 20
