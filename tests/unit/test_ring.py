"""The PSP ring: the state, moves and probes of each form, and changes of rings.

Source: Wang 2008, chapters 12 to 16.
"""

from __future__ import annotations

from itertools import count, pairwise

import pytest
from braid.core import event_jsonl
from braid.core.facts import Facts
from braid.core.plan import Block
from braid.core.run_events import BatchCommitted, BatchPlanned
from braid.papers.common.route_builders import hopping_routes
from braid.papers.psp.ring import Ring
from braid.papers.psp.run_events import (
    HeadMoved,
    RingResized,
    SliceTableChanged,
    StateRelocated,
    TailMoved,
)
from braid.simulation.simulator import simulate
from braid_lab.common.recordings import write_events
from braid_lab.psp.cost import relocated_shares
from hypothesis import given, settings
from hypothesis import strategies as st

forms = st.sampled_from(["basic", "interleaved", "dynamic"])
every_form = pytest.mark.parametrize("form", ["basic", "interleaved", "dynamic"])
static_forms = pytest.mark.parametrize("form", ["basic", "interleaved"])


def of(kind, run):
    return [e for e in run if isinstance(e, kind)]


def committed(run):
    return of(BatchCommitted, run)


def holders(run):
    """Return, after each batch and by host, the batches of stream 0 that it holds, newest first.

    A merged block counts as its first.
    """
    live, after = {}, []
    for e in committed(run):
        live |= {b.id: b for b in e.changed_blocks}
        live = {id: b for id, b in live.items() if id not in e.dropped_block_ids}
        held = {}
        for b in sorted(live.values(), key=lambda b: -b.batch):
            if b.stream == 0:
                for h in b.hosts:
                    held.setdefault(h, []).append(b.batch)
        after.append(held)
    return after


def steady(ring, batches=40, rate=20, streams=2, window=8, **more):
    """Return equal streams at a steady rate, one second per batch."""
    return simulate(ring, [(rate,) * streams] * batches, windows=(window,) * streams, **more)


@st.composite
def joins(draw):
    """Return a ring and its input: any form and number of streams, windows and silent streams.

    Nodes are added and removed.
    """
    streams, hosts = draw(st.integers(2, 6)), draw(st.integers(1, 6))
    form = draw(forms)
    resize = [
        (batch, draw(st.integers(1, 8)))
        for batch in sorted(draw(st.sets(st.integers(1, 25), max_size=3)))
    ]
    least = min([hosts, *(n for _, n in resize)])
    others = st.permutations(range(hosts)).flatmap(
        lambda p: st.integers(p.index(draw(st.integers(0, least - 1))) + 1, hosts).map(
            lambda n: tuple(p[:n])
        )
    )
    ring = Ring(
        hosts,
        form,
        rings=tuple(draw(st.just(()) | st.tuples(*[others] * streams))),
        slicing=draw(st.sampled_from(["time", "count"])),
        max_tuples_in_flight=draw(st.none() | st.integers(1, 40))
        if form == "interleaved"
        else None,
        resize=tuple(resize),
        relocation=draw(st.sampled_from(["passive", "aggressive"])),
    )
    counts = draw(
        st.lists(st.tuples(*[st.sampled_from([0, 1, 5, 30])] * streams), min_size=1, max_size=30)
    )
    windows = draw(st.tuples(*[st.sampled_from([None, 1, 4, 9.5])] * streams))
    return ring, counts, windows


@given(joins())
@settings(max_examples=80, deadline=None)
def test_any_ring_meets_everything_and_stores_it_once(join):
    """Theorem 8: the simulation checks each plan against the cover rule."""
    ring, counts, windows = join
    for e in committed(simulate(ring, counts, windows=windows)):
        copies = e.total_host_metrics.stored_tuples / max(1, sum(e.live_tuples))
        assert copies <= (2 if ring.form == "interleaved" else 1)
        assert len(e.host_metrics) <= ring.max_hosts


@given(joins())
@settings(max_examples=40, deadline=None)
def test_events_survive_a_file(tmp_path_factory, join):
    ring, counts, windows = join
    run, path = (
        simulate(ring, counts, windows=windows),
        tmp_path_factory.mktemp("run") / "run.jsonl",
    )
    write_events(path, run)
    assert event_jsonl.read_events(path) == run


def test_the_head_moves_and_nothing_else():
    """Fig. 12.6 and 12.7. W = 8 s on 4 nodes: slices of 2 batches.

    The head moves against the direction 0 1 2 3, onto the tail.

    batch   0 1 | 2 3 | 4 5 | 6 7 | 8 9 | 10 11
    head    0     3     2     1     0     3
    """
    run = steady(Ring(4), batches=12)
    heads = {e.batch: e.host for e in of(HeadMoved, run) if e.stream == 0}
    assert heads == {2: 3, 4: 2, 6: 1, 8: 0, 10: 3}
    assert [e.previous_host for e in of(HeadMoved, run) if e.stream == 0] == [0, 3, 2, 1, 0]
    assert holders(run)[9] == {0: [9, 8, 1], 1: [7, 6], 2: [5, 4], 3: [3, 2]}
    assert not of(StateRelocated, run) and not any(
        e.total_host_metrics.migrated_tuples for e in committed(run)
    )


def test_the_tail_follows_by_expiry():
    """Nodes become empty in the order in which they were filled.

    The tail is the last node, or shares the head's.
    """
    run = [e for e in steady(Ring(4), batches=30) if getattr(e, "stream", 0) == 0]
    assert [e.host for e in of(TailMoved, run)] == [0, 3, 2, 1, 0, 3, 2, 1, 0, 3, 2]
    tail = None
    for e in run:
        tail = e.host if isinstance(e, TailMoved) else tail
        if isinstance(e, SliceTableChanged) and e.batch >= 8:
            assert tail in (e.nodes[0], e.nodes[-1])


def test_the_slice_table_turns_with_the_head():
    """Fig. 12.6: the lengths of all entries add up to W."""
    tables = [e for e in of(SliceTableChanged, steady(Ring(4), batches=12)) if e.stream == 0]
    assert [t.nodes for t in tables[:3]] == [(0, 1, 2, 3), (3, 0, 1, 2), (2, 3, 0, 1)]
    assert all(sum(t.slice_lengths) == 8_000_000 for t in tables if None not in t.slice_lengths)


@pytest.mark.parametrize("hosts", [2, 4, 8])
def test_in_the_basic_ring_tuples_age_from_node_to_node(hosts):
    """A tuple moves N - 1 times in its life, always to a node nearer to the tail."""
    run = steady(Ring(hosts, "basic"), batches=40)
    for e in of(StateRelocated, run):
        assert (
            all(new > old for _, old, new in e.moves) and e.reason == "aged" and not e.keeps_source
        )
    expired = sum(e.received_tuples[0] for e in committed(run)) - committed(run)[-1].live_tuples[0]
    moved = sum(e.moved_tuples for e in of(StateRelocated, run) if e.stream == 0)
    assert (hosts - 1) * expired <= moved <= (hosts - 1) * (expired + 8 * 20)
    assert sum(e.total_host_metrics.migrated_tuples for e in committed(run)) == sum(
        e.moved_tuples for e in of(StateRelocated, run)
    )


@static_forms
def test_slices_that_stay_hold_their_age(form):
    """W = 8 s on 4 nodes after batch 20.

    Node k holds tuples of 2 k to 2 k + 2 seconds when the batch is planned.
    """
    held = holders(steady(Ring(4, form), batches=21))[20]
    assert held[0][:2] == [20, 19]
    assert all(max(held[k]) > max(held[k + 1]) for k in range(3))


def test_delayed_purge_keeps_a_block_on_two_nodes_for_one_batch():
    """PSP-I (Fig. 12.5): a block copied in batch t is probed only on its old node in t.

    From t + 1 on it is probed on the new one.
    """
    run = steady(Ring(4, "interleaved"), batches=20)
    planned = {e.batch: e for e in of(BatchPlanned, run)}
    for e in of(StateRelocated, run):
        for id, old, new in e.moves:
            where = [probed_on(planned[t], id) for t in (e.batch, e.batch + 1) if t in planned]
            assert where[0] == {old} and e.keeps_source
            assert where[1:] in ([{new}], [set()], []), "a merged block has another id"


def probed_on(planned, id):
    return {
        int(h)
        for r in planned.routes
        for path in r.paths
        for hop in path
        for h, ids in hop.blocks_by_host.items()
        if id in ids
    }


def test_psp_i_stores_more_than_psp():
    """Section 16.3, on 4 nodes: neighbors hold copies of tuples in transit. Everything else is
    equal.
    """
    plain, interleaved = (
        committed(steady(Ring(4, form), rate=50, streams=3)) for form in ("basic", "interleaved")
    )
    assert {e.total_host_metrics.stored_tuples / sum(e.live_tuples) for e in plain} == {1.0}
    assert all(
        1.0 < e.total_host_metrics.stored_tuples / sum(e.live_tuples) <= 2.0
        for e in interleaved[10:]
    )
    assert [e.total_host_metrics.compared_pairs for e in plain] == [
        e.total_host_metrics.compared_pairs for e in interleaved
    ]


@pytest.mark.parametrize("bound", [1, 20, 60])
def test_the_bound_on_what_is_in_flight(bound):
    """A limit on duplicated tuples in a batch, all streams together.

    A block of 20 still moves alone, and waiting blocks remain visible.
    """
    free, bounded = (
        steady(Ring(4, "interleaved", max_tuples_in_flight=n), rate=20, streams=3)
        for n in (None, bound)
    )
    assert max(e.total_host_metrics.migrated_tuples for e in committed(free)) > 60
    for e in committed(bounded):
        assert (
            e.total_host_metrics.migrated_tuples <= max(bound, 20)
            or len(of_batch(StateRelocated, bounded, e.batch)[0].moves) == 1
        )
        assert e.total_host_metrics.stored_tuples - sum(e.live_tuples) <= max(bound, 80)
    assert sum(e.total_host_metrics.migrated_tuples for e in committed(bounded)) > 0


def of_batch(kind, run, batch):
    return [e for e in of(kind, run) if e.batch == batch]


def test_only_the_dynamic_head_and_tail_store_tuples_without_moving_them():
    """Section 12.5: basic moves each tuple N - 1 times, dynamic never.

    Both store each tuple once and compare the same number of pairs.
    """
    basic, dynamic = (committed(steady(Ring(8, form))) for form in ("basic", "dynamic"))
    assert sum(e.total_host_metrics.migrated_tuples for e in basic) > 5 * sum(
        sum(e.received_tuples) for e in basic
    )
    assert sum(e.total_host_metrics.migrated_tuples for e in dynamic) == 0
    assert [e.total_host_metrics.compared_pairs for e in basic] == [
        e.total_host_metrics.compared_pairs for e in dynamic
    ]


@every_form
def test_memory_is_flat_in_the_nodes(form):
    """Section 16.2: 50 tuples/s, W = 10 s, three streams, 4 to 19 nodes.

    Stored are 1500 tuples and those of the last batch.
    """
    stored = {
        sum(committed(steady(Ring(n, form), 30, 50, 3, 10))[-1].live_tuples) for n in (4, 9, 14, 19)
    }
    assert stored == {1650}


@every_form
def test_the_work_of_a_batch_is_shared_evenly(form):
    """Section 13.4: the state is balanced, so probing is. Block boundaries shift up to a batch."""
    for e in committed(steady(Ring(4, form), 60, 30, 3, 24))[30:]:
        assert (
            max(h.compared_pairs for h in e.host_metrics)
            <= 1.6 * e.total_host_metrics.compared_pairs / 4
        )


def test_figure_12_2_rings_of_their_own_lengths_and_orders():
    """A on 0 1 2 3 4, B on 0 1 3 2, C on 4 alone; windows of 5, 8 and 2 s."""
    rings = ((0, 1, 2, 3, 4), (0, 1, 3, 2), (4,))
    run = simulate(Ring(5, rings=rings), [(10, 10, 10)] * 30, windows=(5, 8, 2))
    first = {e.stream: e for e in of(SliceTableChanged, run) if e.batch == 0}
    assert [tuple(first[s].nodes) for s in range(3)] == list(rings)
    assert [first[s].slice_lengths[0] for s in range(3)] == [1_000_000, 2_000_000, 2_000_000]
    seen = [
        {h for e in committed(run) for b in e.changed_blocks if b.stream == s for h in b.hosts}
        for s in range(3)
    ]
    assert seen == [set(ring) for ring in rings]
    turns = [e.host for e in of(HeadMoved, run) if e.stream == 1]
    assert turns[:5] == [2, 3, 1, 0, 2]


def test_a_silent_stream_holds_back_the_purge_of_the_others():
    """Lemma 15.1, lazy purge: a stream ages by the slowest of the others.

    s falls silent after batch 9. r and t, which it has not passed, stay and cannot expire; s itself
    continues, as r and t do.
    """
    counts = [(10, 10, 10)] * 10 + [(10, 0, 10)] * 20
    run = simulate(Ring(4, "basic"), counts, windows=(8, 8, 8))
    moved = {(e.stream, e.batch) for e in of(StateRelocated, run)}
    assert any(stream == 1 and batch > 12 for stream, batch in moved)
    assert not any(stream in (0, 2) and batch > 11 for stream, batch in moved)
    assert committed(run)[-1].live_tuples == (280, 0, 280)


def test_full_history_goes_round_robin():
    """Without windows nothing expires.

    The head moves with every batch, so that hosts hold equal shares.
    """
    run = simulate(Ring(4), [(10, 10)] * 40)
    assert [h.stored_tuples for h in committed(run)[-1].host_metrics] == [200] * 4
    assert len([e for e in of(HeadMoved, run) if e.stream == 0]) == 39


def test_counts_smooth_a_burst():
    """Section 14.1, on 5 nodes: four times the rate for a fifth of a window.

    The busiest node stores 2.1 times the mean with slices by time, 1.8 times by counts.
    """
    counts = [(20, 20)] * 120 + [(80, 80)] * 12 + [(20, 20)] * 60
    busiest = {}
    for slicing in ("time", "count"):
        run = committed(simulate(Ring(5, slicing=slicing), counts, windows=(60, 60)))
        busiest[slicing] = max(
            5 * max(h.stored_tuples for h in e.host_metrics) / e.total_host_metrics.stored_tuples
            for e in run[120:]
        )
    assert busiest["count"] < 0.85 * busiest["time"]


def resized(relocation, old, new, form="dynamic", window=12, streams=2):
    return steady(
        Ring(old, form, resize=((24, new),), relocation=relocation), 60, 20, streams, window
    )


def stored(run, batch, nodes):
    e = committed(run)[batch]
    return [*[h.stored_tuples for h in e.host_metrics], *[0] * nodes][:nodes]


def test_equation_14_1_says_what_moves():
    """From 3 nodes to 4, W = 12 s, at a batch when the head's slice is full.

    In slices of 3 batches, the first node sends 1/3 to the second, the second 2/3 to the third, and
    the third fills the new one.
    """
    run = resized("aggressive", 3, 4)
    (event,) = [e for e in of(StateRelocated, run) if e.stream == 0]
    before = next(
        e.nodes for e in reversed(of(SliceTableChanged, run)) if e.stream == 0 and e.batch < 24
    )
    counts = [sum(old == node for _, old, _ in event.moves) for node in before]
    assert counts == [3 * (s or 1) for s in relocated_shares(3, 1)]
    assert [new for _, _, new in event.moves][-3:] == [3, 3, 3]


def test_aggressive_relocation_moves_once_and_fills_the_new_nodes_at_once():
    """Fig. 14.1, 3 to 5 nodes.

    Blocks are not split at a boundary, and merged ones span up to a quarter of W, so shares differ.
    """
    run = resized("aggressive", 3, 5, window=20)
    assert [(e.batch, e.previous_nodes, e.nodes, e.reason) for e in of(RingResized, run)] == [
        (24, 3, 5, "scheduled")
    ]
    assert {e.batch for e in of(StateRelocated, run)} == {24}
    assert (
        0
        < committed(run)[24].total_host_metrics.migrated_tuples
        < sum(committed(run)[23].live_tuples)
    )
    assert min(stored(run, 24, 5)) > 0
    tables = [e.nodes for e in of(SliceTableChanged, run) if e.stream == 0 and e.batch <= 24]
    old, new = tables[-2:]
    first, second, third = old
    turn = new.index(first)
    assert new[turn:] + new[:turn] == (first, second, 3, third, 4), "k M / N >= j gives k = 2 and 3"


@pytest.mark.parametrize("batch", range(8, 24))
def test_relocation_does_not_meet_compaction_halfway(batch):
    """Blocks merged in a batch cannot be copied in it, so all blocks are pinned in the batch
    before.
    """
    run = steady(Ring(3, resize=((batch, 5), (batch + 1, 2))), 26, 20, 2, 20)
    assert {e.batch for e in of(StateRelocated, run)} == {batch, batch + 1}


def test_passive_adjustment_moves_nothing_and_takes_a_window():
    """Section 14.2: no migration, but a long latency."""
    run = resized("passive", 3, 5, window=20)
    assert not of(StateRelocated, run) and not any(
        e.total_host_metrics.migrated_tuples for e in committed(run)
    )
    assert min(stored(run, 25, 5)) == 0
    later = stored(run, 24 + 21, 5)
    assert max(later) <= sum(later) / 5 + 2 * 40


@pytest.mark.parametrize("relocation, batches", [("passive", 13), ("aggressive", 0)])
def test_removed_nodes_empty(relocation, batches):
    """Removed nodes become empty by expiry, within a window, or at once.

    In either case they take no new tuple.
    """
    run = committed(resized(relocation, 5, 2))
    gone = [sum([h.stored_tuples for h in e.host_metrics][2:]) for e in run]
    assert gone[23] > 0 and gone[24 + batches] == 0 and (batches == 0 or gone[24] > 0)
    assert all(b <= a for a, b in pairwise(gone[23:]))


@static_forms
@pytest.mark.parametrize("relocation", ["passive", "aggressive"])
@pytest.mark.parametrize("new", [2, 5])
def test_slices_that_stay_are_cut_anew_at_once(form, relocation, new):
    run = committed(resized(relocation, 3, new, form))
    assert (
        min([h.stored_tuples for h in run[26].host_metrics][:new]) > 0
        and sum([h.stored_tuples for h in run[26].host_metrics][new:]) == 0
    )


def peak(ring, rates):
    run = simulate(ring, rates, windows=(10, 10, 10), selectivity=0.05)
    return (
        max(max(h.compared_pairs for h in e.host_metrics) for e in committed(run)[-10:]),
        [e.nodes for e in of(RingResized, run)],
        run,
    )


def test_the_ring_grows_and_shrinks_with_the_load():
    """Section 16.5: the rate doubles in the middle, from 50 to 100 tuples/s.

    Adapting keeps the busiest node's work near its limit; without it, it grows at least fourfold.
    When the rate falls again the ring releases nodes.
    """
    rates = [(50,) * 3] * 40 + [(100,) * 3] * 60
    fixed, _, run = peak(Ring(4), rates)
    before = max(max(h.compared_pairs for h in e.host_metrics) for e in committed(run)[30:40])
    pairs = committed(run)[39].total_host_metrics.compared_pairs
    capacity = pairs // 4
    adapted, nodes, _ = peak(Ring(4, max_pairs_per_node=capacity, max_hosts=64), rates)
    assert fixed > 4 * before
    assert nodes and nodes == sorted(nodes)
    assert adapted < 2.5 * before
    _, nodes, _ = peak(
        Ring(4, max_pairs_per_node=capacity, max_hosts=64), [*rates, *[(50,) * 3] * 40]
    )
    assert nodes[-1] < max(nodes)


def test_a_hop_visits_first_the_stream_with_the_fewest_live_tuples_in_all_its_blocks():
    blocks = [
        Block(n, s, (0, 1), 0, (s,), rows)
        for n, (s, rows) in enumerate([(1, 10), (1, 10), (2, 15)])
    ]
    facts = Facts(1, ("a", "b", "c"), tuple(blocks), 3, (0, 20, 15), (0, 20, 15), (0, 0, 0))
    first, *_ = hopping_routes(facts, blocks, {0: 1, 1: 1, 2: 2}, (0, 1, 2), (0, 1), count(3))
    assert [[hop.stream for hop in path] for path in first.paths] == [[2, 1]]


def test_join_orders_follow_the_measured_selectivities():
    """r joins t much more rarely than s: once this is measured, r's tuples visit t first."""
    sigma = [[0, 0.5, 0.001], [0.5, 0, 0.5], [0.001, 0.5, 0]]
    run = steady(Ring(3), 20, 20, 3, selectivity=sigma)
    last = of(BatchPlanned, run)[-1]
    orders = {r.block.stream: [hop.stream for hop in r.paths[0]] for r in last.routes}
    assert orders[0] == [2, 1] and orders[2] == [0, 1]


@pytest.mark.parametrize(
    "make, sentence",
    [
        (lambda: Ring(0), "hosts is 0"),
        (
            lambda: Ring(3, "static"),
            "form is 'static'; it must be one of basic, interleaved, dynamic",
        ),
        (lambda: Ring(3, slicing="size"), "slicing is 'size'"),
        (lambda: Ring(3, relocation="fast"), "relocation is 'fast'"),
        (lambda: Ring(3, max_tuples_in_flight=5), "max_tuples_in_flight is 5 in form 'dynamic'"),
        (lambda: Ring(3, "interleaved", max_tuples_in_flight=0), "1 tuple or more"),
        (lambda: Ring(3, resize=((5, 2), (3, 4))), "batches rising"),
        (lambda: Ring(3, resize=((0, 2),)), "rising from 1 or more"),
        (lambda: Ring(3, resize=((5, 9),), max_hosts=8), "nodes from 1 to max_hosts, 8"),
        (lambda: Ring(3, max_hosts=2), "no less than hosts, 3"),
        (lambda: Ring(3, max_pairs_per_node=10), "max_hosts above hosts"),
        (lambda: Ring(3, max_pairs_per_node=0, max_hosts=5), "max_pairs_per_node is 0"),
        (
            lambda: Ring(3, rings=((0, 3),)),
            r"the ring of stream 0 is \(0, 3\); it must name different hosts from 0 to 2",
        ),
        (lambda: Ring(3, rings=((0,), ())), "the ring of stream 1"),
        (lambda: Ring(3, rings=((0,), (2,)), resize=((4, 2),)), "below 2, the fewest nodes"),
        (
            lambda: Ring(3, rings=((0,), (1,))).initial_state(3),
            "rings has 2 rings; the join has 3 streams",
        ),
    ],
)
def test_bad_settings_are_refused_with_a_sentence(make, sentence):
    with pytest.raises(ValueError, match=sentence):
        make()
