"""Stream reuse: networks, their regions, and what deployments cost (Seshadri 2008, 2.2 and 4.2)."""

from __future__ import annotations

import random
from itertools import pairwise

import numpy as np
import pytest
from braid.papers.reuse.deployment import (
    DeployedQuery,
    Deployment,
    NewOperator,
    StreamLeaf,
    add_query,
)
from braid.papers.reuse.network import ONE_SITE, Network, Node
from braid_lab.reuse.join_work import processed_tuples_per_second
from braid_lab.reuse.total_cost import integrate_cost
from braid_lab.workloads.networks import make_figure_1, make_network, transit_stub
from reuse_cases import draw_network, draw_query, draw_rates, draw_setting

pytestmark = pytest.mark.unit


def test_paths_are_the_shortest_and_go_through_no_source_and_no_sink() -> None:
    network = make_figure_1()
    assert network.shortest_path("FLIGHTS", "SINK3") == ("FLIGHTS", "N1", "N3", "SINK3")
    assert network.shortest_path("CHECKINS", "N2") == ("CHECKINS", "N2")
    assert network.shortest_path("N1", "N2") == (
        "N1",
        "N3",
        "N4",
        "N5",
        "N2",
    )  # not via FLIGHTS
    length = dict(((a, b), ms) for a, b, ms in network.links) | {
        (b, a): ms for a, b, ms in network.links
    }
    for a in network.node_index:
        for b in network.node_index:
            steps = list(pairwise(network.shortest_path(a, b)))
            assert (
                sum(length[s] for s in steps)
                == network.latency_ms[network.find_node_index(a), network.find_node_index(b)]
            )
            assert all(
                network.nodes[network.find_node_index(s)].can_host_operators for s, _ in steps[1:]
            )


def test_a_small_network_s_latencies_are_those_of_all_simple_paths() -> None:
    for seed in range(5):
        network = draw_network(random.Random(seed), 6)
        both = [(pair, ms) for a, b, ms in network.links for pair in ((a, b), (b, a))]
        near = {pair: ms for pair, ms in sorted(both, key=lambda k: -k[1])}

        def least(a: str, b: str, seen: frozenset[str], near=near) -> float:
            if a == b:
                return 0.0
            return min(
                (
                    near[s] + least(s[1], b, seen | {s[1]})
                    for s in near
                    if s[0] == a and s[1] not in seen
                ),
                default=np.inf,
            )

        names = list(network.node_index)
        want = [[least(a, b, frozenset([a])) for b in names] for a in names]
        np.testing.assert_allclose(network.latency_ms, want)


def test_regions_have_a_bit_each_and_operators_the_bits_of_theirs() -> None:
    network = make_figure_1()
    assert (
        network.location_indicator(["N1", "N3"]) == 0b011
        and network.location_indicator(["N5"]) == 0b100
    )
    assert Network(network.nodes, network.links).location_indicator(["N1"]) == 1


def test_k_means_on_delays_finds_nodes_that_are_near_each_other() -> None:
    network = transit_stub(regions=4, seed=3)
    assert len(network.nodes) == 124
    assert sorted(n for region in network.regions for n in region) == sorted(network.node_index)
    far = network.latency_ms
    inner = [
        far[np.ix_(ids, ids)].mean()
        for r in network.regions
        if (ids := [network.node_index[n] for n in r])
    ]
    assert max(inner) < far.mean()
    assert transit_stub(regions=4, seed=3) == network


def test_a_node_that_is_down_passes_nothing_on() -> None:
    network = make_figure_1().without_nodes("N3")
    assert not np.isfinite(
        network.latency_ms[network.find_node_index("WEATHER"), network.find_node_index("SINK4")]
    )
    with pytest.raises(ValueError, match="there is no path from WEATHER to SINK3"):
        network.shortest_path("WEATHER", "SINK3")


def test_networks_that_cannot_be_are_refused() -> None:
    a, b = Node("a"), Node("b")
    for nodes, links, said in (
        ((a, a), (), "several nodes named a"),
        ((a, b), (("a", "c", 1.0),), "a link goes to 'c'; the nodes are a, b"),
        ((a, b), (("a", "b", -1.0),), "latency of -1.0 ms; it must be 0 or more"),
    ):
        with pytest.raises(ValueError, match=said):
            Network(nodes, links)
    with pytest.raises(ValueError, match="no node is named 'x'; there are here"):
        ONE_SITE.find_node_index("x")


def test_a_network_goes_through_plain_data() -> None:
    assert Network.from_dict(make_figure_1().to_dict()) == make_figure_1()
    links = [("a", "b", 3.0), ("b", "c", 4.0)]
    assert make_network(links, sources=["a"], sinks=["c"]).shortest_path("a", "c") == (
        "a",
        "b",
        "c",
    )


def test_network_usage_is_the_sum_over_links_of_what_is_on_them() -> None:
    rng, model, deployment = draw_setting(4, 6)
    for i in range(4):
        query = draw_query(rng, f"q{i}", model.network)
        nodes = [n.name for n in model.network.nodes]
        streams = query.definition.streams
        deployment = add_query(
            deployment,
            query,
            NewOperator(streams, rng.choice(nodes), tuple(map(StreamLeaf, streams))),
        )
    on_link: dict[frozenset[str], float] = {}
    for flow in deployment.all_flows():
        for step in pairwise(model.network.shortest_path(flow.source_node, flow.target_node)):
            link = frozenset(step)
            on_link[link] = on_link.get(link, 0.0) + model.rates.result_byte_rate(flow.definition)
    length: dict[frozenset[str], float] = {}
    for a, b, ms in model.network.links:
        link = frozenset((a, b))
        length[link] = min(length.get(link, ms), ms)
    usage = sum(rate * length[link] / 1e3 for link, rate in on_link.items())
    assert model.network_usage(deployment) == pytest.approx(usage)
    assert model.total_cost(deployment) == pytest.approx(
        usage + model.work_weight * processed_tuples_per_second(model, deployment)
    )


def test_costs_add_up_over_time() -> None:
    costs = [(0.0, 10.0), (5.0, 20.0), (7.0, 0.0)]
    assert (
        integrate_cost(costs, 9)
        == integrate_cost(costs[:1], 5) + integrate_cost(costs[1:], 9)
        == 90
    )


def test_rates_follow_windows_selections_and_slides() -> None:
    rates = draw_rates(1)
    _, model, deployment = draw_setting(1, 3)
    from braid.papers.reuse.query_definition import Definition
    from braid.papers.reuse.selections import make_value_set
    from reuse_cases import MINUTE, joined, where

    def make_definition(window: int, slides: tuple[int, ...] = (), **on) -> Definition:
        return Definition.make(
            {"a": window, "b": window}, [joined("a", "k", "b", "k")], on, {"a": ["k"]}, slides
        )

    plain = make_definition(MINUTE)
    a, b = rates.stream_rate("a").tuples_per_second, rates.stream_rate("b").tuples_per_second
    pairs = rates.selectivity["a.k = b.k"]
    assert rates.result_rate(plain) == pytest.approx(2 * a * b * 60 * pairs)
    assert rates.result_rate(make_definition(2 * MINUTE)) == pytest.approx(
        2 * rates.result_rate(plain)
    )
    assert rates.result_rate(
        make_definition(MINUTE, a=where(x=make_value_set(1)))
    ) < rates.result_rate(plain)
    assert rates.result_rate(make_definition(MINUTE, (5 * MINUTE,))) == pytest.approx(
        rates.result_rate(plain) / 2 / 5
    )
    assert rates.result_byte_rate(plain) == rates.result_rate(plain) * (
        16 + rates.stream_rate("a").column_bytes["k"]
    )
    assert Deployment({"a": "here"}).source_node("a#2") == "here"
    assert (
        DeployedQuery("q", plain, "here").ends_at is None
        and processed_tuples_per_second(model, deployment) == 0
    )
