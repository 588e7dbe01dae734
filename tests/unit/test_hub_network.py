"""A hub on a network: the nodes of its operators, their moves, and the flow between nodes."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import duckdb
import pytest
from braid.hub import hub_metrics, operator_moves, running_operators
from braid.hub.hub import QueryHub
from braid.hub.reoptimizer import Reoptimizer
from braid.hub.running_operators import OperatorRuntime
from braid.papers.reuse.deployment import with_operator_moved
from braid.util import row_tables
from braid_lab.reuse.join_work import processed_tuples_per_second
from braid_lab.reuse.paper_example import Q1, Q2, figure_1_example
from braid_lab.workloads import airport
from hub_cases import (
    AT,
    BATCHES,
    CROSS,
    FC,
    LONG,
    NARROW,
    NETWORK,
    SECOND,
    THREE,
    WIDE,
    SteppedHub,
    expect_rows,
    make_hub_tables,
    query_rows,
    random_query,
)
from unit.scripted import list_documented_columns

pytestmark = pytest.mark.unit


@pytest.mark.parametrize("seed", [2, 3])
def test_on_a_network_a_hub_comes_to_rest_between_batches_and_answers_stay(
    seed: int, tmp_path: Path
) -> None:
    rng, data = random.Random(seed), make_hub_tables(seed)
    hub = SteppedHub(tmp_path / "hub", data, NETWORK, AT)
    asked = {}
    for i in range(5):
        sql = rng.choice([WIDE, NARROW, THREE, LONG, CROSS, random_query(rng)])
        asked[f"q{i}"] = sql
        hub.submit(sql, f"q{i}", rng.choice(["S1", "S2"]))
    hub.step()
    hub.step()
    before, model = hub.registry.current_deployment, hub.registry.cost_model()
    looked = 0
    while not hub.registry.reoptimizer.is_settled:
        hub.registry.reoptimizer.review_next()
        looked += 1
    after = hub.registry.current_deployment
    assert after.operators.keys() != before.operators.keys(), "one came, or is needed no longer"
    assert model.total_cost(after) < 0.95 * model.total_cost(before)
    assert len(asked) < looked < 40
    hub.registry.reoptimizer.review_next()
    assert hub.registry.current_deployment is after, "nothing more is looked at"
    hub.registry.reoptimizer.since -= 10 * 3600 * SECOND
    assert not hub.registry.reoptimizer.is_settled, "what goes on for long is worth more changes"
    while not hub.registry.reoptimizer.is_settled:
        hub.registry.reoptimizer.review_next()
    assert model.total_cost(hub.registry.current_deployment) <= model.total_cost(after)
    while hub.registry.ledger.epoch < BATCHES - 1:
        hub.step()
    for name, sql in asked.items():
        assert hub.answered(name) == expect_rows(data, sql), name


def test_an_operator_that_was_moved_stays_until_all_is_planned_anew(tmp_path: Path) -> None:
    data = make_hub_tables(3)
    hub = SteppedHub(tmp_path / "hub", data, NETWORK, AT)
    hub.submit(WIDE, "wide", "S2")
    hub.submit(NARROW, "narrow", "S1")
    hub.step()
    (id, *_) = hub.registry.current_deployment.operators
    operator_moves.move_operator(hub.registry, id, "N4")
    hub.registry.reoptimizer.since = 1
    hub.submit(LONG, "long", "S2")
    hub.step()
    hub = SteppedHub(tmp_path / "hub", data, NETWORK, AT)
    assert hub.registry.current_deployment.operators[id].is_pinned, (
        "the state says that it was moved"
    )
    while not hub.registry.reoptimizer.is_settled:
        hub.registry.reoptimizer.review_next()
    assert hub.registry.current_deployment.operators[id].node == "N4"
    assert operator_moves.replan_queries(hub.registry).is_adopted
    assert not any(o.is_pinned for o in hub.registry.current_deployment.operators.values())
    assert "N4" not in {o.node for o in hub.registry.current_deployment.operators.values()}
    while hub.registry.ledger.epoch < BATCHES - 1:
        hub.step()
    assert hub.answered("wide") == expect_rows(data, WIDE)


def test_what_is_looked_at_takes_its_share_of_the_time_and_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub = SteppedHub(tmp_path / "hub", make_hub_tables(3), NETWORK, AT)
    hub.submit(WIDE, "wide", "S1")
    hub.submit(LONG, "long", "S2")
    times = iter(range(0, 1000, 2))
    monkeypatch.setattr("braid.hub.reoptimizer.clock", SimpleNamespace(perf_counter=times.__next__))
    reoptimizer, looked = hub.registry.reoptimizer, []
    reoptimizer.share = 0.1
    for _ in range(30):
        before = len(reoptimizer.left)
        reoptimizer.review_next(5.0)
        looked.append(len(reoptimizer.left) != before)
    first = looked.index(True)
    assert looked[first : first + 9] == [True, False, False, False] * 2 + [True]


def test_at_one_site_nothing_is_looked_at_again(tmp_path: Path) -> None:
    hub = SteppedHub(tmp_path / "hub", make_hub_tables(2))
    hub.submit(WIDE, "wide")
    assert hub.registry.reoptimizer.is_settled


def test_what_cannot_be_built_from_the_tuples_that_came_stays_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = make_hub_tables(3)
    hub = SteppedHub(tmp_path / "hub", data, NETWORK, AT)
    hub.submit(WIDE, "wide", "S1")
    hub.submit(LONG, "long", "S2")
    hub.step()
    before = hub.registry.current_deployment

    def fails(self: OperatorRuntime, operators: Any, *_: Any) -> Any:
        raise running_operators.ExpressionError(duckdb.OutOfRangeException("too large"))

    other = with_operator_moved(before, next(iter(before.operators)), "N4")
    (id,) = (o.id for o in other.operators.values() if o.node == "N4")
    newer = replace(other.operators[id], version=99)
    other = replace(other, operators={**other.operators, id: newer})
    monkeypatch.setattr("braid.hub.reoptimizer.review_item", lambda *_: other)
    monkeypatch.setattr(OperatorRuntime, "build_operators", fails)
    while not hub.registry.reoptimizer.is_settled:
        hub.registry.reoptimizer.review_next()
    assert hub.registry.current_deployment is before


def test_flows_are_counted_where_they_go_and_modelled_beside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = make_hub_tables(9)
    monkeypatch.setattr(Reoptimizer, "review_next", lambda *_: None)
    run = QueryHub(data, "ts", network=NETWORK, at=AT).start(
        tmp_path / "hub",
        "batch",
        {"wide": dict(sql=WIDE, sink="S1"), "three": dict(sql=THREE, sink="S2")},
    )
    run.awaitTermination()
    assert query_rows(run, "wide") == expect_rows(data, WIDE)
    assert query_rows(run, "three") == expect_rows(data, THREE)
    flows, spent = run.network_flows(), run.metrics()
    for name, sql in (("wide", WIDE), ("three", THREE)):
        assert flows[flows["consumer"] == name]["rows"].sum() == expect_rows(data, sql).total(), (
            name
        )
    received = spent[spent["batch"] > 0].groupby("operator")["received_tuples"].sum()
    for operator, tuples in received.items():
        came = flows[(flows["consumer"] == str(operator)) & (flows["batch"] >= 0)]
        assert came["rows"].sum() == tuples
    costs = run.network_costs()
    assert (costs["byte_seconds_measured"] > 0).all() and (
        costs["network_usage_modelled"] > 0
    ).all()
    links = run.link_traffic()
    apart = flows[flows["source_node"] != flows["target_node"]]
    assert links["bytes_measured"].sum() >= apart["bytes"].sum() > 0, "a flow is on a link or more"

    with pytest.raises(ValueError, match="no operator is 77; there are: "):
        run.operator_blocks(77)
    answer = run.query("wide").current_answer()
    monkeypatch.setattr(row_tables, "has_pandas", lambda: False)
    tables = run.network_flows(), run.metrics(), run.network_costs(), run.link_traffic()
    frames = {
        run.network_flows: flows,
        run.metrics: spent,
        run.network_costs: costs,
        run.link_traffic: links,
    }
    for (call, frame), table in zip(frames.items(), tables, strict=True):
        assert table.to_pylist() == frame.to_dict("records")
        assert list_documented_columns(call) == [{*frame.columns}]
    assert run.query("wide").current_answer().to_pandas().equals(answer)
    assert run.query("wide").current_answer(limit=3).num_rows == 3 <= len(answer)


def counted_and_modelled(folder: Path, reuse: Any) -> dict[str, tuple[float, float]]:
    """Return network usage (E1) and work (E2) of five queries, counted and modelled.

    Counts are per second of event time; the model is that at the end. The first batch, with empty
    windows, is left out.
    """
    hub = SteppedHub(folder, make_hub_tables(9), NETWORK, AT, reuse)
    for i, (sql, at) in enumerate(zip((WIDE, NARROW, LONG, THREE, CROSS), "12221", strict=True)):
        hub.submit(sql, f"q{i}", f"S{at}")
    while hub.registry.ledger.epoch < BATCHES - 1:
        hub.step()
    model, deployment = hub.registry.make_planner().model, hub.registry.current_deployment
    seconds = 60 * (BATCHES - 1)
    costs, did = (
        hub_metrics.costs_table(list(hub.registry.log.store.events.read_since(0))),
        hub_metrics.metrics_table(hub.registry.path, hub.registry.ledger.operators.values()),
    )
    sent = costs[costs["batch"] > 0]["byte_seconds_measured"].sum()
    tuples = did[did["batch"] > did["batch"].min()][["received_tuples", "results"]].sum().sum()
    return {
        "usage": (sent / seconds, model.network_usage(deployment)),
        "work": (tuples / seconds, processed_tuples_per_second(model, deployment)),
    }


def test_what_is_modelled_of_network_and_work_is_what_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Reoptimizer, "review_next", lambda *_: None)
    found = {h: counted_and_modelled(tmp_path / h, h) for h in ("separate", "relaxed")}
    for how, of in found.items():
        for what, (counted, modelled) in of.items():
            assert counted == pytest.approx(modelled, rel=0.25), (how, what)
    counted, modelled = (
        found["relaxed"]["usage"][k] / found["separate"]["usage"][k] for k in (0, 1)
    )
    assert counted < 1 and modelled < 1 and counted == pytest.approx(modelled, rel=0.25)


def test_the_papers_queries_are_deployed_as_figure_1_has_them(tmp_path: Path) -> None:
    network, rates, at = figure_1_example()
    data = airport.generate_day(flights=150, batches=BATCHES)
    hub = SteppedHub(tmp_path / "hub", data, network, at, rates=rates)
    q1 = Q1.replace("'DL'", "'B6'")
    hub.submit(q1, "Q1", "SINK3")
    nodes = {
        o.definition.streams: o.node for o in hub.registry.current_deployment.operators.values()
    }
    assert nodes["checkins", "flights"] == "N1" and nodes[tuple(sorted(at))] == "N3"
    hub.step()
    hub.step()
    assert hub.submit(Q2, "Q2 there", "SINK1").reuse_kind == "new"
    hub.registry.withdraw_query("Q2 there")
    assert hub.submit(Q2, "Q2", "SINK4").reuse_kind == "relaxed"
    with pytest.raises(ValueError, match="N1 cannot be spared: there is no path from CHECKINS"):
        operator_moves.fail_node(hub.registry, "N1")  # SINK4 has no other neighbor
    hub.step()
    hub.registry.withdraw_query("Q2")
    operator_moves.fail_node(hub.registry, "N1")
    assert "N1" not in {o.node for o in hub.registry.current_deployment.operators.values()}
    while hub.registry.ledger.epoch < BATCHES - 1:
        hub.step()
    alone = SteppedHub(tmp_path / "alone", data)
    alone.submit(q1, "Q1")
    while alone.registry.ledger.epoch < BATCHES - 1:
        alone.step()
    reported = hub.answered("Q1")
    assert reported == alone.answered("Q1") and reported, "nothing of what Q2 asked for is among it"


def test_what_cannot_be_asked_of_a_network_is_refused_and_changes_nothing(tmp_path: Path) -> None:
    hub = SteppedHub(tmp_path / "hub", make_hub_tables(4), NETWORK, AT)
    hub.submit(WIDE, "wide", "S1")
    before = hub.registry.ledger
    registry, here = hub.registry, next(iter(hub.registry.current_deployment.operators))
    bad: list[tuple[Callable[[], Any], str]] = [
        (lambda: hub.submit(WIDE, "other"), "the query is not said where; sink= must be one of S1, S2"),
        (lambda: hub.submit(WIDE, "other", "N1"), "asked at 'N1'; sink= must be one of S1, S2"),
        (lambda: hub.submit(WIDE, "wide", "S1"), "a query named 'wide' is being answered"),
        (lambda: hub.submit(WIDE, "o", "S1", lifetime="soon"), "the lifetime of 'o' is 'soon'"),
        (lambda: operator_moves.move_operator(registry, 77, "N1"), "no operator is 77; there are: 0"),
        (lambda: operator_moves.move_operator(registry, here, "F"), "F is a source; operators are at nodes"),
        (lambda: operator_moves.move_operator(registry, here, "X"), "no node is named 'X'"),
        (lambda: operator_moves.fail_node(registry, "S1"), "S1 is a sink; operators are at nodes"),
        (lambda: operator_moves.restore_node(registry, "N1"), "N1 is not down; down are none"),
        (lambda: registry.withdraw_query("nobody"), "no query is named 'nobody'; there are: wide"),
        (lambda: hub.submit("SELECT f.ts + f.id FROM " + FC.format(f=1, c=1), "x", "S1"), "not known to"),
    ]  # fmt: skip
    for act, said in bad:
        with pytest.raises(ValueError, match=said):
            act()
    assert (
        registry.ledger == before
        and not operator_moves.replan_queries(registry, dry=True).is_adopted
    )
    alone = SteppedHub(tmp_path / "alone", make_hub_tables(4))
    with pytest.raises(ValueError, match="this hub has one site, no network"):
        alone.submit(WIDE, "wide", "S1")
    with pytest.raises(ValueError, match="this hub has one site; nodes are those of"):
        operator_moves.fail_node(alone.registry, "N1")
    with pytest.raises(ValueError, match="stream flights comes from no known node"):
        QueryHub(make_hub_tables(4), "ts", network=NETWORK)
    with pytest.raises(ValueError, match="that needs network="):
        QueryHub(make_hub_tables(4), "ts", at=AT)
