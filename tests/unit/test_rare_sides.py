"""HotKeys: all hosts of a value store the tuples of streams that rarely have it."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from braid import HotKeys
from braid.core.facts import Facts
from braid.core.frequent_values import OTHERS
from braid.core.plan import Block
from braid.core.run_events import BatchCommitted
from braid.papers.hotkeys.hot_keys import HotKeysState
from braid.papers.hotkeys.run_events import SpreadChanged
from braid.papers.hotkeys.spread import (
    MARGIN,
    SharedValue,
    ValueRanges,
    choose_kept_streams,
    count_copies,
    host_micros,
    pack_values,
)
from braid.papers.hotkeys.value_work import TUPLE, ValueWork
from braid.stream_join import StreamJoin
from braid_lab.hotkeys.experiments import SkewSetting, run_skewed_join
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import compute_expected, describe_difference, result_ids, run_with_equal_plans
from placement_checks import check_answers, check_meetings, check_releases

pytestmark = pytest.mark.unit
EAGER = HotKeys(4, target=1.01, values=6, stored=9.0)
"""It changes at every occasion, and may store many copies."""
HOSTS = tuple(range(4))


def list_forms(events: list[Any]) -> list[dict[int, tuple[str, ...]]]:
    """Return the streams that are copied by value, for each change of the spread."""
    changes = (e for e in events if isinstance(e, SpreadChanged))
    return [{v.value: v.copied_streams for v in e.spread} for e in changes]


def count_changes_of_form(forms: list[dict[int, tuple[str, ...]]]) -> list[int]:
    """Return how often a value begins to have copies, ends to, and changes sides."""
    both = [(a[v], b[v]) for a, b in pairwise(forms) for v in a.keys() & b.keys() if a[v] != b[v]]
    begun, ended = (sum(not pair[at] for pair in both) for at in (0, 1))
    return [begun, ended, len(both) - begun - ended]


def draw_counts(streams: int, most: int, draw: random.Random, batches: int) -> list[Sequence[int]]:
    """Return the tuples of batches; for some batches one stream is frequent, or all are."""
    counts: list[Sequence[int]] = []
    while len(counts) < batches:
        fast = draw.choice([*range(streams), None])
        for _ in range(draw.randint(2, 5)):
            counts.append(
                [most if fast in (s, None) else draw.randint(0, 1) for s in range(streams)]
            )
    return counts


@pytest.mark.parametrize(("streams", "most", "seeds"), [(2, 10, 4), (3, 6, 3), (4, 3, 1)])
def test_every_combination_meets_once_while_values_change_form(
    streams: int, most: int, seeds: int
) -> None:
    """The cover rule is checked, and so are plans after a restart in each batch."""
    seen = [0, 0, 0]
    for seed in range(seeds):
        draw = random.Random(seed)
        placement = replace(EAGER, every=(1, 4)[seed % 2])
        turn = [(most, 0)] * 4 + [(0, 2 * most)] * 5 if streams == 2 else []
        counts = turn + draw_counts(streams, most, draw, 20 - 3 * streams)
        cluster = check_meetings(placement, counts, draw)
        changes = count_changes_of_form(list_forms(cluster.events))
        seen = [a + b for a, b in zip(seen, changes, strict=True)]
    assert all(seen[:2]) and (streams > 2 or seen[2]), "values begin, end, and change sides"


@pytest.mark.parametrize("seed", range(2))
def test_kinds_and_as_of_joins_are_exact_if_one_stream_is_rare(seed: int) -> None:
    draw = random.Random(seed)
    counts = draw_counts(2, 9, draw, 12)
    check_answers(EAGER, counts, draw)
    check_releases(EAGER, counts, draw)


def make_work(fresh: dict[int, list[float]], held: dict[int, list[float]] | None = None) -> Any:
    tuples = {v: TUPLE * sum(each) for v, each in fresh.items()}
    return ValueWork(tuples, dict.fromkeys(fresh, 8.0), 40.0, fresh, held or fresh)


@pytest.mark.parametrize(
    ("fresh", "present", "copies", "kept"),
    [
        ([600.0, 100.0], None, 1000.0, 0),
        ([100.0, 600.0], None, 1000.0, 1),
        ([100.0, 600.0], 0, 1000.0, 1),
        ([599.0, 100.0], None, 1000.0, None),
        ([599.0, 100.0], 0, 1000.0, 0),
        ([400.0, 100.0], 0, 300.0, 0),
        ([399.0, 100.0], 0, 1000.0, None),
        ([600.0, 100.0], None, 449.0, None),
        ([600.0, 100.0], None, 450.0, 0),
        ([600.0, 100.0], 0, 300.0, 0),
        ([600.0, 100.0], 0, 299.0, None),
        ([600.0, 50.0, 51.0], None, 1000.0, None),
        ([600.0, 50.0, 50.0], None, 1000.0, 0),
        ([0.0, 0.0], 0, 1000.0, None),
    ],
)
def test_a_stream_is_kept_if_the_others_are_rare_and_their_copies_are_few(
    fresh: list[float], present: int | None, copies: float, kept: int | None
) -> None:
    """On four hosts, a hundred tuples of the others make 400 new and 300 further stored tuples."""
    assert MARGIN == 1.5
    spread = {5: SharedValue(5, HOSTS, present)}
    chosen = choose_kept_streams(make_work({5: fresh}), spread, copies)
    assert chosen == {5: SharedValue(5, HOSTS, kept)}


def test_the_heaviest_values_have_copies_first() -> None:
    work = make_work({1: [800.0, 60.0], 2: [900.0, 60.0], 3: [700.0, 10.0]})
    spread = {v: SharedValue(v, HOSTS) for v in (1, 2, 3)}
    chosen = choose_kept_streams(work, spread, 330.0)
    assert {v: each.kept_stream for v, each in chosen.items()} == {1: None, 2: 0, 3: 0}
    assert sum(count_copies(work, each) for each in chosen.values()) == 180 + 30


@given(
    st.dictionaries(
        st.integers(0, 19),
        st.lists(st.floats(0, 1000), min_size=3, max_size=3),
        min_size=1,
        max_size=8,
    ),
    st.floats(0, 3000),
)
@settings(max_examples=60, deadline=None)
def test_packed_values_keep_within_the_copies_and_send_and_store_less(
    fresh: dict[int, list[float]], copies: float
) -> None:
    work, ranges = make_work(fresh), ValueRanges(5, 20, 64)
    packed = pack_values(work, {}, ranges, copies)
    assert sum(count_copies(work, each) for each in packed.values()) <= copies
    assert max(host_micros(work, packed, ranges)) <= max(host_micros(work, {}, ranges))
    for value, hosts, kept in packed.values():
        if kept is not None:
            rare = sum(fresh[value]) - fresh[value][kept]
            sent_and_stored = 2 * (fresh[value][kept] + len(hosts) * rare)
            assert sent_and_stored <= (len(hosts) + 1) * sum(fresh[value])


def make_facts(held: tuple[Block, ...] = ()) -> Facts:
    """Return facts before batch 8 of two streams; s rarely has value 5, which r often has."""
    counts = ({5: 300.0, OTHERS: 100.0}, {5: 9.0, OTHERS: 391.0})
    came = (100, 100)
    return Facts(8, ("r", "s"), held, 100, came, came, came, key_counts=counts)


def test_a_frequent_tuple_probes_on_its_own_host_and_a_rare_one_is_on_all() -> None:
    placement = HotKeys(4, values=8)
    keys = (5 * placement.keys_per_value, 6 * placement.keys_per_value)
    held = (Block(0, 1, keys, 0, HOSTS, 9), Block(1, 0, keys, 1, (2,), 90))
    state = HotKeysState((SharedValue(5, HOSTS, 0),), False)
    plan = placement.plan_batch(make_facts(held), state)
    routes = [r for r in plan.routes if keys[0] <= r.block.key_range[0] < keys[1]]
    frequent = [r for r in routes if r.block.stream == 0]
    assert [r.block.hosts for r in frequent] == [(h,) for h in HOSTS]
    assert [r.reading_hosts() for r in frequent] == [{h} for h in HOSTS]
    assert [dict(r.paths[0][0].blocks_by_host) for r in frequent] == [{h: (0,)} for h in HOSTS]
    rare = next(r for r in routes if r.block.stream == 1)
    assert rare.block.hosts == HOSTS and rare.block.key_range == keys
    pieces = {d.block.id: d.block for d in plan.derivations}
    assert {b.hosts for b in pieces.values()} == {(h,) for h in HOSTS} and 1 in plan.drops
    assert {*rare.paths[0][0].probed_blocks()} == {*pieces, *(r.block.id for r in frequent)}


def test_blocks_that_all_hosts_are_to_store_are_copied_before_larger_ones() -> None:
    placement = HotKeys(4, values=8, rate=0.01)
    keys = (5 * placement.keys_per_value, 6 * placement.keys_per_value)
    held = (Block(0, 0, keys, 0, (2,), 90), Block(1, 1, keys, 1, (2,), 9))
    state = HotKeysState((SharedValue(5, HOSTS, 0),), False)
    plan = placement.plan_batch(make_facts(held), state)
    assert [d.source_blocks for d in plan.derivations] == [(1,)], "only this block moves"
    copy = plan.derivations[0]
    assert copy.block.hosts == HOSTS
    assert copy.source_hosts == dict.fromkeys(HOSTS, 2) and plan.pinned_blocks == {0}
    assert plan.drops == {1: (2,)} and not plan.state.is_settled


def test_an_event_says_which_streams_all_hosts_store() -> None:
    blocks = tuple(Block(n, n % 2, (0, 512 * 256), n, (0,), 400) for n in range(4))
    once, copied = (
        HotKeys(4, values=512, stored=stored).plan_batch(make_facts(blocks), HotKeysState()).events
        for stored in (1.0, 1.3)
    )
    assert [v.copied_streams for v in once[0].spread] == [()]
    (value,) = copied[0].spread
    assert value.copied_streams == ("s",) and value.copied_share == round(9 / 800, 4)
    assert copied[0].describe_decision(None).endswith("; all hosts of 1 value store the rows of s")
    assert "store" not in once[0].describe_decision(None)


def make_dimension(rows: int, batches: int, turn: int) -> dict[str, pa.Table]:
    """Return streams a and b; b rarely has the frequent value, and from a batch on a rarely has."""
    tables = {}
    for i, alias in enumerate("ab"):
        draw = np.random.default_rng([11, i])
        batch = np.arange(rows) * batches // rows
        is_rare = (batch < turn) == (alias == "b")
        part = np.where(is_rare, 0.03, 0.7)
        k = np.where(draw.random(rows) < part, 5, draw.integers(20, 60, rows))
        n = draw.integers(0, 99, rows)
        columns = {"id": np.arange(rows), "k": k, "n": n, "batch": pa.array(batch, pa.int32())}
        tables[alias] = pa.table(columns)
    return tables


def test_a_join_is_killed_in_every_batch_while_a_value_changes_sides(tmp_path: Path) -> None:
    streams, on = make_dimension(360, 9, 4), "a.k = b.k AND a.n < b.n"
    placement = HotKeys(4, rate=0.5, stored=4.0)
    join = StreamJoin(streams, on, placement, check=True, how="left")
    run = run_with_equal_plans(join, streams, tmp_path, 9)
    pairs = run.results()
    pairs = pairs.filter(pa.compute.is_valid(pa.compute.struct_field(pairs["b"], "id")))
    expected = compute_expected(streams, on)
    assert describe_difference(result_ids(pairs), expected) == ""
    copied = {streams for form in list_forms(list(run.events())) for streams in form.values()}
    assert copied >= {("b",), ("a",)}, "the value changes sides"


def test_copies_are_few_and_spare_most_of_what_is_sent() -> None:
    setting = SkewSetting(1.5, rows=3000, batches=10, hosts=8, window_share=1.0)
    streams = setting.make_streams()
    streams["b"] = streams["b"].take(np.arange(0, setting.rows, 40))
    placements = (HotKeys(8, stored=1.0), HotKeys(8))
    runs = [run_skewed_join(placement, setting, streams) for placement in placements]
    once, copied = ([e for e in run if isinstance(e, BatchCommitted)] for run in runs)
    assert sum(e.results for e in once) == sum(e.results for e in copied) > 0
    sent = [sum(e.total_host_metrics.received_tuples for e in each[5:]) for each in (once, copied)]
    assert sent[1] < 0.5 * sent[0]
    held = [each[-1].total_host_metrics.stored_tuples for each in (once, copied)]
    assert held[0] == sum(once[-1].total_received_tuples) < held[1] <= 1.3 * held[0]


@pytest.mark.parametrize("stored", [0.9, float("inf"), float("nan")])
def test_a_budget_below_one_or_without_end_is_refused(stored: float) -> None:
    with pytest.raises(ValueError, match=rf"stored is {stored}; it must be a number, 1 or more"):
        replace(EAGER, stored=stored)
