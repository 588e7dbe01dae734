"""The pictures of a hub show what its events contain."""

from __future__ import annotations

import threading
from collections import Counter
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from braid import run_touches
from braid.core.touch_events import SettingChanged
from braid.hub import hub_metrics, operator_moves
from braid.hub.hub import QueryHub
from braid.hub.query_handle import HubQuery
from braid.papers.reuse.deployment import DeployedQuery, add_query
from braid.papers.reuse.hub_events import HubBatchCommitted, NodeFailed, QuerySubmitted
from braid.papers.reuse.network import Network
from braid.papers.reuse.reuse_lattice import ReuseLattice
from braid_lab.reuse import airport_day
from braid_lab.reuse import claims as paper
from braid_lab.reuse.lattice_trace import LEVELS, search_table, trace_search
from braid_widgets.cockpit.page import recorded_page
from braid_widgets.cockpit.watch import watch
from braid_widgets.reuse.hub_view_state import HubViewState, find_saved_share
from braid_widgets.reuse.plan_tree import INDENT, plan_tree
from hub_cases import AT, NARROW, NETWORK, THREE, WIDE, SteppedHub, make_hub_tables
from unit.scripted import list_rows

pytestmark = pytest.mark.unit


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> SteppedHub:
    """A hub whose events cover every kind of change."""
    hub = SteppedHub(tmp_path_factory.mktemp("view") / "hub", make_hub_tables(2), NETWORK, AT)
    hub.submit(WIDE, "wide", "S1")
    hub.step()
    hub.submit(THREE, "three", "S2")
    hub.step()
    operator = hub.registry.current_deployment.queries["wide"].operator
    operator_moves.move_operator(hub.registry, operator, "N4")
    operator_moves.fail_node(hub.registry, "N4")
    hub.step()
    operator_moves.restore_node(hub.registry, "N4")
    hub.registry.withdraw_query("three")
    return hub


def test_after_every_event_the_scene_is_what_is_deployed(hub: SteppedHub) -> None:
    now, deployment = HubViewState(), hub.registry.current_deployment
    for event in hub.registry.log.store.events.read_since(0):
        now.apply_event(event)
    assert {id: b.node for id, b in now.operators.items()} == {
        o.id: o.node for o in deployment.operators.values()
    }
    own = deployment.queries["wide"]
    (name, asked), *others = now.queries.items()
    assert (name, asked.sink, asked.sql) == ("wide", "S1", own.sql)
    assert asked.operator == own.operator
    assert not others and not now.failed_nodes


def pictures(hub: SteppedHub) -> tuple[list[Any], list[Any]]:
    """Return the events of a hub, and the maps of its batches in the cockpit."""
    happened = list(hub.registry.log.store.events.read_since(0))
    frames = recorded_page(happened)["frames"]
    return happened, [frame["state_map"]["hub"] for frame in frames]


def test_the_links_of_the_map_are_as_counted(hub: SteppedHub) -> None:
    happened, views = pictures(hub)
    traffic = hub_metrics.link_traffic_table(happened)
    for n, view in enumerate(views):
        mine = traffic[traffic["batch"] == n]
        counted = {(r.node_a, r.node_b): r.bytes_measured for r in mine.itertuples()}
        sums: Counter[tuple[str, ...]] = Counter()
        for source, target, _, size in list_rows(view["flows"]):
            sums[tuple(sorted((source, target)))] += size
        assert sums == counted and view["bytes"] == sum(counted.values())
    assert len(list_rows(views[-1]["nodes"])) == len(NETWORK.nodes)


def test_operators_and_queries_of_the_map_are_those_of_the_batch(hub: SteppedHub) -> None:
    happened, views = pictures(hub)
    commits = [e for e in happened if isinstance(e, HubBatchCommitted)]
    totals: Counter[int] = Counter()
    for view, commit in zip(views, commits, strict=True):
        held = {m.operator: (m.live_tuples, m.live_bytes) for m in commit.operator_metrics}
        totals.update({m.operator: m.results for m in commit.operator_metrics})
        shown = {o[0]: o[5:8] for o in list_rows(view["operators"])}
        assert {id: list(shown[id][1:]) for id in held} == {id: [*v] for id, v in held.items()}
        assert all(shown[id][0] == totals[id] for id in held)
        serving = {f.consumer: int(f.item) for f in commit.flows if not f.consumer.isdigit()}
        assert {q[0]: q[2] for q in list_rows(view["queries"])} == serving
    assert {q[0]: q[1] for q in list_rows(views[1]["queries"])} == {"wide": "S1", "three": "S2"}
    assert not any(node[4] for view in views[:2] for node in list_rows(view["nodes"]))
    assert [n[0] for n in list_rows(views[2]["nodes"]) if n[4]] == ["N4"], "it is down"
    assert [m[2] for m in list_rows(views[2]["moves"])] == ["N4"]


def test_a_hub_is_shown_as_a_run_with_nodes_as_hosts(hub: SteppedHub) -> None:
    happened, _ = pictures(hub)
    page = recorded_page(happened)
    commits = [e for e in happened if isinstance(e, HubBatchCommitted)]
    assert "QueryHub" in page["note"] and "full history" not in page["note"]
    stored = page["hosts"]["names"].index("rows held")
    for values, commit in zip(page["hosts"]["values"], commits, strict=True):
        assert sum(values[stored]) == sum(m.live_tuples for m in commit.operator_metrics)
    labels = [flag["short"] for flag in page["annotations"]]
    assert "+ wide" in labels and "N4 fails" in labels
    _, sent = page["timeline"]["tracks"]
    shown = [frame["state_map"]["hub"]["bytes"] for frame in page["frames"]]
    assert (sent["name"], sent["series"][0]["values"]) == ("bytes sent", shown)
    fails = [type(event) for event in happened].index(NodeFailed)
    with patch.object(Network, "without_nodes", side_effect=AssertionError("paths anew")):
        assert recorded_page(happened[:fails])["frames"] == page["frames"][:2]


def test_a_plan_has_streams_operators_and_what_compensates() -> None:
    service, plans = paper.plan_figure_1()
    before, q2 = service.deployment, DeployedQuery("Q2", paper.q2_definition(), "SINK4")
    after = add_query(before, q2, plans["SINK4"].tree)
    one, two = plan_tree(before, after, "Q1"), plan_tree(before, after, "Q2")
    parts = two.data.set_index("reuse")["part"]
    assert "checkins ⋈ flights, 2 demands" in parts["relaxed"] and "new" not in parts
    assert parts["query"] == "Q2 at SINK4"
    depths = [len(part) - len(part.lstrip(INDENT)) for part in two.data["part"]]
    assert depths == [0, 1, 2, 2], "what a part reads is indented below it"
    said = " ".join(one.data["passes_on"])
    assert "carrier_code IN ('CO', 'DL')" in said, "the source's selection is relaxed"
    here = after.operators[plans["SINK4"].tree.operator].lattice_entry(1)  # type: ignore[union-attr]
    visits = trace_search(ReuseLattice([here]), q2.definition)
    table = search_table(visits, 3)
    assert list(table["level"]) == [v.level for v in visits] and {*table["level"]} <= {*LEVELS}
    assert [said == "entered" for said in table["search"]] == [not v.prune_reason for v in visits]


def test_the_page_of_a_running_hub_changes_its_queries_operators_and_nodes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub = QueryHub(make_hub_tables(2), "ts", network=NETWORK, at=AT)
    run = hub.start(tmp_path / "hub", "batch", pace=0.2)
    screen, sent = watch(run), []
    monkeypatch.setattr(screen, "send", sent.append)

    def ask(name: str, selected: str = "", value: str = "") -> str:
        touch = {"name": name, "selected": selected, "value": value}
        screen._handle_browser_message(None, {"touch": touch}, [])
        screen._touching.submit(lambda: None).result(30)
        return str([reported["touched"] for reported in sent if "touched" in reported][-1])

    def describe(name: str) -> str:
        screen._handle_browser_message(None, {"inspect": {"query": name, "batch": 1}}, [])
        screen._touching.submit(lambda: None).result(30)
        return str([reported["inspected"] for reported in sent if "inspected" in reported][-1])

    assert "next batch" in ask("pause")
    assert "a new operator at" in ask("Explain", "node:S2", WIDE) and not run.queries
    assert "takes no change 'move'" in ask("move", "node:N4"), "no operator is there"
    assert ask("submit", "node:S2", WIDE).startswith("Submitted as q1; its operator: new")
    ask("submit", "node:S2", NARROW)
    assert run.queries["q2"].reuse_kind in ("relaxed", "holds")
    assert "role=" not in ask("submit", "node:S2", "SELECT") and list(run.queries) == ["q1", "q2"]
    offered = {each["name"]: each for each in run_touches.list_touches(run, None)}
    targets = {name: each["target"] for name, each in offered.items()}
    nodes = dict.fromkeys(("submit", "move", "fail", "restore"), "node")
    whole = dict.fromkeys(("pause", "go on", "replan"), "")
    assert targets == {**nodes, **whole, "withdraw": "query"}
    assert offered["submit"]["value"] == NARROW, "the text of the newest query is there to change"
    served = run.deployment.queries["q2"].operator
    place = run.deployment.operators[served].node
    assert f"{served} at {place}" in offered["move"]["choices"]
    assert "the operator is 'all'; it is given by its number" in ask("move", "node:N4", "all")
    assert "next batch" in ask("move", "node:N4", str(served))
    assert run.deployment.operators[served].node == "N4"
    ask("fail", "node:N4")
    assert run.state.failed_nodes == ["N4"]
    assert "no query is named 'q9'" in ask("withdraw", "query:q9")
    ask("restore", "node:N4")
    assert "All planned again: " in ask("replan") and not run.state.failed_nodes
    ask("withdraw", "query:q2")
    assert list(run.queries) == ["q1"]
    described = describe("q1")
    assert "query q1, asked at S2" in described and " results so far" in described
    assert f"operator {run.deployment.queries['q1'].operator} at " in described
    assert "tuples in block" in described and "latest rows of its answer" in described
    empty, threads = run.queries["q1"].results().slice(0, 0), list[str]()

    def read_in_thread(limit: int) -> Any:
        threads.append(threading.current_thread().name)
        if len(threads) > 1:
            raise OSError("the disk is gone")
        return empty.to_pandas()

    with monkeypatch.context() as patched:
        patched.setattr(HubQuery, "current_answer", lambda query, limit: read_in_thread(limit))
        assert describe("q1").endswith("latest rows of its answer\nno row yet")
        assert describe("q1") == "the disk is gone"
    assert all(name.startswith("braid-touches") for name in threads)
    assert describe("q2").startswith("query 'q2' is there no longer")
    ask("go on")
    run.awaitTermination()
    screen.wait_for_end(20)
    assert "no run is active" in ask("pause")
    whole, rows = (run.queries["q1"].current_answer(limit) for limit in (None, 1))
    assert len(rows) == 1 < len(whole) and (rows.iloc[0] == whole.iloc[-1]).all()
    assert rows.to_string(index=False, header=False).strip() in describe("q1")
    page = screen.page
    last = page["frames"][-1]
    assert page["state"] == "ended" and set(last["state_map"]) == {"hub"}
    assert last["verdict"]["figure"].endswith(" of 0.2 s a batch")
    flows = [flow for e in batches(run.events()) for flow in e.flows]
    received = sum(flow.rows for flow in flows if flow.consumer in ("q1", "q2"))
    assert f"{received:,}" in last["key_figures"]["value"]


def test_a_restarted_hub_is_judged_by_the_pace_of_its_last_start(tmp_path: Path) -> None:
    data, runs = make_hub_tables(2), list[Any]()

    def start_once(pace: float) -> list[Any]:
        """Run one batch more, and return the events."""
        started = threading.Event()

        def stop_run(*_: Any) -> None:
            started.wait(60)
            runs[-1].stop()

        hub = QueryHub(data, "ts")
        runs.append(hub.start(tmp_path / "hub", "batch", [WIDE], pace, foreachBatch=stop_run))
        started.set()
        runs[-1].awaitTermination()
        return runs[-1].events()

    for pace, figure in ((0.25, "0.25"), (0.5, "0.5"), (0.5, "0.5"), (0.0, "")):
        events = start_once(pace)
        shown = recorded_page(events)["frames"][-1]["verdict"]["figure"]
        assert shown.partition("% of ")[2] == (f"{figure} s a batch" if figure else "")
    changes = [(e.name, e.before, e.after) for e in events if isinstance(e, SettingChanged)]
    assert changes == [("interval", 0.25, 0.5), ("interval", 0.5, 0.0)]


def test_a_hub_without_a_network_takes_queries_of_the_whole_run(tmp_path: Path) -> None:
    run = QueryHub(make_hub_tables(2), "ts").start(tmp_path / "hub", "batch", pace=30)
    offered = {each["name"]: each["target"] for each in run_touches.list_touches(run, None)}
    assert offered == {"submit": "", "withdraw": "query", "pause": "", "go on": ""}
    asked = {"name": "submit", "selected": "", "value": WIDE}
    assert run_touches.apply_touch(run, asked).startswith("Submitted as q1; ")
    run.stop()


def batches(events: list[Any]) -> list[HubBatchCommitted]:
    return [e for e in events if isinstance(e, HubBatchCommitted)]


def make_submission(name: str, alone: float, added: float, others: int = 0) -> QuerySubmitted:
    """Return a query that its own join would answer at the cost ``alone``."""
    considered = (("a new join at N1", alone), ("operator 0 at N1", added))[others:]
    return QuerySubmitted(-1, name, "", "S1", "holds", 0, added, considered, {}, 0.0, 0.0)


def test_the_map_says_what_reuse_saves_the_queries() -> None:
    queries = [
        make_submission("first", 4e6, 4e6),
        make_submission("second", 3e6, 1e6),
        make_submission("only here", 0.0, 5e5, others=1),
    ]
    assert find_saved_share(queries) == pytest.approx(1 - 5.5e6 / 7.5e6)
    assert find_saved_share([]) is None


def test_a_day_at_the_airport_answers_every_query_as_a_hub_of_its_own(tmp_path: Path) -> None:
    day = airport_day.play_day(tmp_path / "day", 40, 14)
    assert {e.node for e in day.hub_events if type(e).__name__ == "NodeFailed"} == {"N1"}
    own = airport_day.isolated_results(tmp_path / "alone", 40, 14)
    assert {
        name: airport_day.count_rows(day.query_result(name)) for name in airport_day.ASKED
    } == own
    assert own["display"] and own["late"]
    other = airport_day.play_day(tmp_path / "separate", 40, 14, "separate")
    found = airport_day.measured_costs({"relaxed": day, "separate": other}).set_index("reuse")
    assert found["bytes_measured"]["relaxed"] < found["bytes_measured"]["separate"]
    took = airport_day.deployment_times({"relaxed": day, "separate": other})
    assert list(took["query"]) == [*airport_day.ASKED] * 2
    assert (took["built_counted"] > 0).all()
    once = airport_day.deployment_times(
        {"relaxed": airport_day.repeat_queries(airport_day.repeat_queries(day))}
    )
    assert list(once["query"]) == [
        *airport_day.ASKED,
        *(q + " again" for q in airport_day.ASKED if q != "manager"),
    ]
    assert (once["built_counted"][once["match"] == "holds"] == 0).all()
    assert "holds" in set(once["match"])
    assert set(took["match"][took["reuse"] == "separate"]) == {"new"}
    assert "relaxed" in set(took["match"]) and (took["batches_measured"] > 0).all()
