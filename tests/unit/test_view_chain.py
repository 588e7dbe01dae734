"""The chain, the merge graph, the box of queries and their panel: their content and their effect
on a run.
"""

from __future__ import annotations

import re
from itertools import product
from types import SimpleNamespace

import pytest
from braid import run_touches
from braid.condition.query_text import format_query_text, parse_query_text, parse_query_texts
from braid.core.query import Query
from braid.core.run_events import BatchShed, QueryAdded, RunStarted
from braid.papers.shedding.run_events import SheddingPlanned
from braid.papers.slices import chain as chains
from braid.papers.slices import chain_optimizer as slices
from braid.papers.slices.chain import Chain as Placement
from braid.shared.query_changes import add_query
from braid_lab.slices import cost as costs
from braid_lab.slices.cost import unfiltered_statistics
from braid_widgets.base.controls import REFUSED, QueriesControl
from braid_widgets.base.run_view import fold_events
from braid_widgets.cockpit.view import Cockpit
from braid_widgets.slices import merge_graph
from braid_widgets.slices.chain_panel import SOURCES, ChainPanel
from braid_widgets.slices.strategy_charts import chain_statistics, strategy_charts, strategy_costs
from hypothesis import given
from hypothesis import strategies as st
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
            *(self.describe_query(q, -1) for q in queries),
        ]

    def open(self, queries=()):
        engine = super().open(queries)
        engine.publish = self.events.extend
        return engine

    def describe_query(self, q, batch):
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
        .isin(shown.panels[""].data[1].text + shown.panels[""].data[3].text)
        .all()
    )
    assert "(modelled)" in shown.name and f"keeps {len(best)} of 5" in shown.note


def test_what_is_typed_becomes_windows_and_selections():
    q = parse_query_text(
        "q: a: 1 hour, b: 5 minutes where a.x > 3 AND (b.y = 1 OR b.y = 2) AND a.z IS NULL", "ab"
    )
    assert q.name == "q" and q.windows == (3_600_000_000, 300_000_000)
    assert parse_query_text("in, out: 2 minutes", "ab").windows == (120_000_000,) * 2
    assert q.selections_by_alias("ab") == {
        "a": "a.x > 3 AND a.z IS NULL",
        "b": "(b.y = 1 OR b.y = 2)",
    }
    text = "q: a: 1 h, b: 5 min where a.x > 3 AND a.z IS NULL AND (b.y = 1 OR b.y = 2)"
    assert format_query_text(q, "ab") == text and parse_query_text(text, "ab") == q


def test_a_selection_may_be_over_fields_and_enclosed():
    text = "q: A: 1 hour, b: 2 hours where ((A.addr.city = 'x' AND (b.y = 1)) AND (a.z OR a.z > 1))"
    q = parse_query_text(text, "ab")
    assert q.windows == (3_600_000_000, 7_200_000_000)
    found = {"a": "A.addr.city = 'x' AND (a.z OR a.z > 1)", "b": "b.y = 1"}
    assert q.selections_by_alias("ab") == found


COMPARISONS = st.sampled_from(["x > 0", "y > 0", "NOT x > y", "x + y = 1"])


def compare(draw, prefix):
    """Draw a selection whose outermost connectives are not in parentheses."""
    part = COMPARISONS | st.lists(COMPARISONS, min_size=2, max_size=3).map(
        lambda terms: f"({' OR '.join(terms)})"
    )
    terms = draw(st.lists(part, min_size=1, max_size=4))
    words = [draw(st.sampled_from([" AND ", " OR "])) for _ in terms[1:]]
    text = terms[0] + "".join(w + t for w, t in zip(words, terms[1:], strict=True))
    return re.sub("[xy]", lambda column: prefix + column[0], text)


@given(st.data(), st.tuples(*[st.integers(1, 10**12)] * 2))
def test_a_formatted_query_is_parsed_as_the_same_query(data, windows):
    prefixes = st.sampled_from(["", "{}."])
    where = {
        alias: compare(data.draw, data.draw(prefixes).format(alias))
        for alias in data.draw(st.sets(st.sampled_from("ab")))
    }
    query = Query("q", windows, tuple(where.get(alias) for alias in "ab"))
    text = format_query_text(query, "ab")
    found = parse_query_text(text, "ab")
    assert (
        found.windows == windows and parse_query_text(format_query_text(found, "ab"), "ab") == found
    )
    again = found.selections_by_alias("ab")
    assert set(again) == set(where)
    for x, y in product((0, 1, -1), repeat=2):
        row = {"x": x, "y": y, **dict.fromkeys("ab", SimpleNamespace(x=x, y=y))}
        for alias in where:
            asked, reported = (
                eval(sql.replace(" = ", " == ").lower(), {}, row)
                for sql in (where[alias], again[alias])
            )
            assert asked == reported, text


@pytest.mark.parametrize(
    ("asked", "reported"),
    [
        ("q: soon", "the window of 'q' on a is 'soon'"),
        ("q: a: 1 hour", "has windows for a; it needs one for each of a, b"),
        ("q: 1 hour where a.x > b.x", "which is over a and b"),
        ("q: 1 hour where x > 3", "which is over no stream"),
        ("q: 1 hour where c.x > 3", "which is over c"),
        ("q: 1 hour where a.x >", "is no condition in Spark SQL"),
        ("q: 1 hour where", "'q', '', is no condition in Spark SQL"),
        ("q: 1 hour where a.x > 3 AS y", "'a.x > 3 AS y', is no condition"),
        ("q: 1 hour where b.x = 1 AND (a.x > 3 AS y)", "is no condition"),
        ("q: 1 hour where SELECT a.x", "'SELECT a.x', is no condition"),
        ("q: 1 hour where a.x IN (SELECT a.y)", "is no condition"),
        ("q: 1 hour where a.x > 3; a.y > 2", "'a.x > 3; a.y > 2', is no condition"),
        ("q: a: 1 hour, A: 5 minutes, b: 1 hour", "'q' has two windows for a; it needs one"),
        (": 1 hour", "a name, a colon and a window, as in 'late: 10 minutes where a.x > 3'"),
        ("q", "the query is 'q'; it is written as a name"),
        ("q: 1 hour\nq: 2 hours", "two queries are named 'q'"),
        (" \n", "there is no query"),
    ],
)
def test_bad_input_gets_a_sentence(asked, reported):
    with pytest.raises(ValueError, match=reported):
        parse_query_texts(asked, "ab")


def test_the_box_of_queries_keeps_what_was_typed_and_says_what_is_wrong():
    box = QueriesControl("ab", [Query.parse("one", "ab", "1 minute")])
    assert box.value == "one: 1 min" and box.refusal == "" and box.setting[0].name == "one"
    box.value = "one: soon"
    assert "'soon'" in box.refusal and REFUSED in box._dom_classes and box.value == "one: soon"
    with pytest.raises(ValueError, match="soon"):
        box.setting  # noqa: B018
    box.value = "one: 3 minutes\n\ntwo: a: 1 hour, b: 2 hours"
    assert [q.name for q in box.setting] == ["one", "two"] and REFUSED not in box._dom_classes
    with pytest.raises(ValueError, match="the streams are a, b"):
        QueriesControl("ab", [Query.parse("wet", "ab", "1 hour", {"a": "w.precip > 0"})])


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
    assert all("modelled" in c.name for c in strategy_charts(asked, "rs", 20.0, 0.3, 0.05, 2.5))
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
        return Query.parse(name, "rs", windows, where)

    def add(self, name, windows, where):
        self.asked.append(("add", name, windows, where))
        self.queries.append(Query.parse(name, "rs", windows, where))

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
        return Run(run.events, settings["queries"])

    panel = ChainPanel(launch, Cockpit())
    panel.start.click()
    panel.wait_for_work(30)
    yield panel
    panel.run.stop()
    panel.follower.wait_for_end(30)


def touch(cockpit, monkeypatch, *touches):
    """Return what the cockpit answers to changes that its page asks for."""
    sent = []
    monkeypatch.setattr(cockpit, "send", sent.append)
    for asked in touches:
        cockpit._handle_browser_message(None, {"touch": asked}, [])
    cockpit._touching.submit(lambda: None).result(30)
    return [reported["touched"] for reported in sent if "touched" in reported]


def test_the_page_changes_the_slices_of_the_running_join(live, monkeypatch):
    asked = [
        {"name": "split", "selected": "slice:1:1000000:4000000", "value": ""},
        {"name": "split", "selected": "slice:0:0:4000000", "value": "3 seconds"},
        {"name": "merge", "selected": "slice:0:0:7", "value": ""},
        {"name": "rebalance", "selected": "", "value": "fewest comparisons"},
        {"name": "budget", "selected": "", "value": "0.5"},
    ]
    messages = touch(live.screen, monkeypatch, *asked)
    assert live.run.asked == [
        ("split", "2500000 microseconds", "s"),
        ("split", "3 seconds", "r"),
        ("rebalance", "cpu"),
    ]
    done = "Asked for; it acts with the next batch."
    assert [messages[k] for k in (0, 1, 3)] == [done] * 3
    assert "no two slices meet at 7 microseconds" in messages[2]
    assert "this run takes no change 'budget'" in messages[4]


def test_only_an_active_run_can_be_changed_and_its_page_says_how(live, run, monkeypatch):
    live.screen._show_events([])
    offered = {touch["name"]: touch["target"] for touch in live.screen.page["touches"]}
    slices = {"split": "slice", "merge": "slice", "rebalance": ""}
    assert offered == {"add": "", "remove": "query", **slices}
    assert '"touches":[]' in live.screen.to_html()
    recorded = Cockpit(run.events)
    assert recorded.page["touches"] == []
    (reported,) = touch(recorded, monkeypatch, {"name": "split", "selected": "slice:0:0:4"})
    assert "no run is active" in reported


def test_the_budget_of_a_run_is_changed_at_a_cost_in_pairs():
    plan = SheddingPlanned(1, "selective", "fraction", 0.4, 0.4, None, True, (), (), {})
    reported = [plan, BatchShed(1, 400, 600, 0, None, 0, 0)]
    store = SimpleNamespace(events=SimpleNamespace(recent_events=lambda: reported))
    run = SimpleNamespace(config=SimpleNamespace(shed=object()), adjusted=[], store=store)
    run.adjust = lambda fraction: run.adjusted.append(fraction)
    (budget,) = run_touches.list_touches(run, None)
    assert (budget["curve"][-1], budget["value"]) == ([1, 1000, 0], "0.4")
    run_touches.apply_touch(run, {"name": "budget", "value": "0.25"})
    assert run.adjusted == [0.25]
    with pytest.raises(ValueError, match="the share is 'half'"):
        run_touches.apply_touch(run, {"name": "budget", "value": "half"})


def test_the_page_adds_and_removes_queries_of_the_running_join(live, monkeypatch):
    (another,) = [t for t in run_touches.list_touches(live.run, None) if t["name"] == "add"]
    assert another["value"] == "another: r: 30 s, s: 30 s", "the longest windows that are held"
    asked = [
        {"name": "add", "selected": "", "value": "season: 45 seconds where r.u_s < 3"},
        {"name": "remove", "selected": "query:watch", "value": ""},
        {"name": "add", "selected": "", "value": "odd: 1 second where r.none > 1"},
        {"name": "add", "selected": "", "value": "season"},
        {"name": "add", "selected": "", "value": "one: 1 second\nodd: 1 second where r.none > 1"},
        {"name": "add", "selected": "", "value": "one: 1 second\nseason: 1 second"},
        {"name": "add", "selected": "", "value": "one: 1 second\n\ntwo: 2 seconds\n"},
    ]
    messages = touch(live.screen, monkeypatch, *asked)
    added = ("add", "season", {"r": "45 s", "s": "45 s"}, {"r": "r.u_s < 3"})
    assert live.run.asked[:2] == [added, ("remove", "watch")]
    assert [name for _, name, *_ in live.run.asked[2:]] == ["one", "two"], "all of a text, or none"
    assert messages[:2] + messages[6:] == ["Asked for; it acts with the next batch."] * 3
    assert "'r.none' is unknown" in messages[4] and "'season' is being served" in messages[5]
    assert "'r.none' is unknown" in messages[2] and "it is written as a name" in messages[3]


def test_before_a_launch_the_panel_models_and_keeps_the_queries_of_each_source():
    panel = ChainPanel(lambda s: None, Cockpit(), overhead=4.0)
    assert panel.settings()["overhead"] == 4.0 and [
        q.name for q in panel.settings()["queries"]
    ] == ["alarm", "watch", "trend"]
    box, before = panel.inputs["queries"], panel.outputs[1].outputs
    box.value = box.value.replace("alarm: 5 s", "alarm: 9 s")
    assert panel.outputs[1].outputs != before
    panel.inputs["source"].value = "flights"
    assert box.streams == ("d", "w") and box.refusal == ""
    assert panel.inputs["rate"].value == SOURCES["flights"].controls["rate"]
    panel.inputs["source"].value = "arrivals"
    assert box.value.startswith("alarm: 9 s\n")
    box.value = box.value.splitlines()[-1]
    assert "every query has a selection" in panel.outputs[0].outputs[0]["data"]["text/plain"]
    box.value = "alarm:5 s\n\ntrend: 9 s where r.u_s < 3"
    rows = panel.static_views()[0].data.to_numpy().tolist()
    assert rows == [["alarm", "5 s"], ["trend", "9 s where r.u_s < 3"]]
    box.value = "trend: soon"
    panel.start.click()
    assert "&#x27;soon&#x27;" in panel.message.value and panel.state == "idle"


def test_a_change_of_slices_is_no_batch_of_input(run):
    before = fold_events(run.events).input_batches
    run.reslice(chains.split_slice(run.engine.state.placement_state, 2))
    assert fold_events(run.events).input_batches == before == 20
