"""Generic checks that every placement must pass, run in this process tuple by tuple.

A tuple-level model follows each plan exactly: which host stores which tuple, and which tuple probes
which, where. Every combination of tuples must meet exactly once; at most once if the placement
leaves results out.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import fields, replace
from functools import lru_cache
from itertools import product
from math import inf

import numpy as np
import scatter  # noqa: F401 (placements of the tests' own, that register themselves)
from braid.core import batch_step
from braid.core.answer_state import AnswerCount
from braid.core.batch_report import BatchReport, BlockSize
from braid.core.batch_work import RunRules
from braid.core.frequent_values import select_frequent_values
from braid.core.horizon import reach_of_windows
from braid.core.join_kinds import INNER, JoinKind
from braid.core.match_rules import MatchRule
from braid.core.placement import registered_placements
from braid.core.plan import Plan
from braid.core.query import Query
from braid.core.run_events import BatchCommitted
from braid.core.run_state import RunState, state_from_json, state_to_json
from braid.util.json_codec import round_trip

SWING = [(4, 1)] * 4 + [(1, 8)] * 8 + [(16, 2)] * 8 + [(2, 24)] * 8 + [(0, 0)] * 2 + [(2, 24)] * 8
"""Long enough for mergers, checkpoints in a row, and arrivals in the middle of migrations.

R: ====        ========
S:     ========        ================    (a few of the other stream all the time)
"""

_CHECKED = ("pending_pairs", "uncovered", "checked_answers")
"""Fields of a batch's work that only a check of plans fills in."""

BATCH = 10
"""Event time of a batch, in microseconds."""
WINDOWS = (2 * BATCH, 7 * BATCH, 10**6)
"""Windows of the queries of shared joins. The last is longer than any run, so nothing expires."""


def describe_placement(placement):
    """Return a placement with the settings that differ from their defaults."""
    given = [
        f"{f.name}={value!r}"
        for f in fields(placement)
        if (value := getattr(placement, f.name)) != f.default
    ]
    return f"{type(placement).__name__}({', '.join(given)})"


def list_examples(kinds=None):
    """Return instances of these classes, or of all registered ones, by their repr."""
    known = registered_placements().values() if kinds is None else kinds
    return {describe_placement(p): p for kind in known for p in kind.example_instances()}


def check_placement(kind):
    """Run all generic checks of one placement class."""
    for placement in list_examples([kind]).values():
        served = [n for n in (2, 3, 4) if placement.supports_streams(n)]
        assert served, "it joins neither two, three nor four streams"
        for streams in served:
            check_start(placement, streams)
            counts = [(c * streams)[:streams] for c in SWING[::3]] if streams > 2 else SWING
            small = [tuple(min(n, 2) for n in c) for c in counts[:8]] if streams > 2 else counts
            check_meetings(placement, small, random.Random(7))
            if streams == 2 and placement.delivery_guarantee == "exactly once":
                check_releases(placement, SWING[::2], random.Random(11))
            check_answers(placement, counts if streams == 2 else small, random.Random(11))


def check_releases(placement, counts, draw):
    """Check that an as-of join releases each left tuple once, beside all that may be partners."""
    cluster = AsOfCluster(placement)
    batches = draw_arrivals(counts, placement.key_space_size, draw, placement.keys_per_value)
    for batch in batches:
        cluster.run(batch)
    cluster.close()
    assert cluster.released == Counter(t[1] for batch in batches for t in batch if t[0] == 0)


def check_start(placement, streams=2):
    """Check that the first plan depends only on its arguments and the state has its declared
    type.
    """
    twin = replace(placement)
    state = placement.initial_state(streams)
    assert type(state) is placement.State and round_trip(state, placement.State) == state
    cluster = Cluster(placement, streams)
    facts = batch_step.plan_batch(cluster.rules, cluster.now).facts
    assert (
        placement.plan_batch(facts, state)
        == twin.plan_batch(facts, twin.initial_state(streams))
        != Plan()
    )


def check_meetings(placement, counts, draw):
    """Run tuples in batches of these ``counts`` by stream; return the cluster that they ran on."""
    streams = len(counts[0])
    batches = draw_arrivals(counts, placement.key_space_size, draw, placement.keys_per_value)
    cluster, all_due = (
        all_meetings(placement, batches, streams),
        expect_groups(batches, streams, placement),
    )
    if placement.delivery_guarantee == "exactly once":
        assert dict(cluster.met) == dict(all_due)
    else:
        assert cluster.met <= all_due, "a result is made twice, or is none"
        assert (
            placement.routing_key_source != "tuple"
            or cluster.missed == (all_due - cluster.met).total()
        ), "the account of what was left out is wrong"
    return cluster


def check_answers(placement, counts, draw):
    """Check that each tuple of a join that answers all is answered once, with and without windows.

    A check of answers beside the cover rule verifies each plan.
    """
    if placement.shares_queries or placement.delivery_guarantee != "exactly once":
        return
    streams = len(counts[0])
    kind = JoinKind("keep", tuple(range(streams)), tuple(range(streams)), writes_unmatched=True)
    for window in (None, 4 * BATCH):
        cluster = Cluster(placement, streams, kind, window)
        for batch in draw_arrivals(
            counts, placement.key_space_size, draw, placement.keys_per_value
        ):
            cluster.run(batch)
        cluster.drain()
        assert window is None or cluster.answered, "no tuple is answered before the end"
        cluster.end()
        assert cluster.answered == Counter(dict.fromkeys(cluster.came, 1))
        assert cluster.now.answers.waiting == (0,) * streams


class Cluster:
    """Hosts that store and probe single tuples exactly as planned.

    A tuple is (stream, number, routing key, event time).
    """

    def __init__(self, placement, streams, kind=INNER, window=None):
        self.placement, self.streams = placement, streams
        window = WINDOWS[-1] if placement.shares_queries else window
        names, reach = ("r", "s", "t", "u")[:streams], reach_of_windows((window,) * streams)
        self.rules = RunRules(placement, names, reach, kind=kind)
        self.answered = Counter()  # by number
        queries = tuple(
            Query(f"q{w}", (w,) * streams, (None,) * streams, bit, (None,) * streams)
            for bit, w in enumerate(WINDOWS)
        )
        first = placement.initial_state(streams)
        self.now = RunState.initial(streams, first, queries if placement.shares_queries else ())
        self.stored = {}  # (block, host) -> tuples
        self.met = Counter()  # groups of tuples, one of each stream, by number
        self.events, self.settled, self.missed = [], 0, 0
        self.came = {}  # number -> tuple as it arrived
        self.epoch = None  # micro-batch of the source, if it has any

    @property
    def state(self):
        return self.now.placement_state

    def run(self, arrivals):
        """Run one batch of new tuples."""
        work = self._plan_checked()
        answers = self._answer_due(work)
        plan = work.combined_plan
        space = self.placement.key_space(work.plan.state)
        self.came |= {t[1]: t for t in arrivals}
        arrivals = [(s, n, int(space.routing_keys(key, s)), time) for s, n, key, time in arrivals]
        committed = dict(self.stored)
        for d in plan.derivations:
            for dst, src in d.source_hosts.items():
                where = self.stored if src == dst else committed
                pool = [t for s in d.source_blocks for t in where[s, src]]
                self.stored[d.block.id, dst] = [
                    t for t in pool if d.block.key_range[0] <= t[2] < d.block.key_range[1]
                ]
        for block, hosts in plan.drops.items():
            for h in hosts:
                del self.stored[block, h]
        fresh = self._store_fresh(plan, arrivals)
        self._probe_routes(plan, fresh)
        self._commit_work(work, arrivals, answers)

    def plan_once(self):
        """Return the work of the next batch."""
        return batch_step.plan_batch(self.rules, self.now)

    def _plan_checked(self):
        work = self.plan_once()
        assert type(self.state) is self.placement.State
        saved = state_from_json(state_to_json(self.now), self.placement.State)
        assert saved == self.now, "the state does not survive a file"
        unchecked = batch_step.plan_batch(replace(self.rules, checks_coverage=False), saved)
        checked = work.pending_pairs, work.uncovered, work.checked_answers
        again = replace(unchecked, **dict(zip(_CHECKED, checked, strict=True)))
        assert again == work, "a restart would plan otherwise"
        return work

    def _answer_due(self, work):
        """Answer the tuples that are due. Return their numbers by stream."""
        counts = {}
        for settle in work.settles:
            since = -inf if settle.since is None else settle.since
            stored = self.stored[settle.block, settle.host]
            final = [t[1] for t in stored if since <= t[3] < settle.until]
            self.answered.update(final)
            more = AnswerCount(len(final))
            counts[settle.stream] = counts.get(settle.stream, AnswerCount()).add_counts(more)
        return counts

    def _store_fresh(self, plan, arrivals):
        fresh = {}
        for route in (r for r in plan.routes if r.is_fresh):
            b = route.block
            mine = [
                t for t in arrivals if t[0] == b.stream and b.key_range[0] <= t[2] < b.key_range[1]
            ]
            for h in route.reading_hosts():
                fresh[b.id, h] = mine
            for h in b.hosts:
                self.stored[b.id, h] = mine
        homes = Counter(
            t
            for r in plan.routes
            if r.is_fresh
            for t in fresh.get((r.block.id, r.block.hosts[0]), ())
        )
        assert set(homes.values()) <= {1} and len(homes) == len(arrivals), (
            "a tuple belongs to exactly one fresh block"
        )
        return fresh

    def _probe_routes(self, plan, fresh):
        self.settled += sum(not r.is_fresh for r in plan.routes)
        for route in plan.routes:
            at = fresh if route.is_fresh else self.stored
            for path in route.paths:
                for host in path[0].blocks_by_host:
                    self._follow_path([(t,) for t in at[route.block.id, host]], path, host)

    def _follow_path(self, partials, path, host):
        hop, rest = path[0], path[1:]
        found = [
            p + (t,)
            for block in hop.blocks_by_host[host]
            for t in self.list_partners(block, host)
            for p in partials
        ]
        if not rest:
            self._note_meetings(found)
        for next_host in rest[0].blocks_by_host if rest else ():
            self._follow_path(found, rest, next_host)

    def list_partners(self, block, host):
        """Return the tuples of a replica that a probe may meet."""
        return self.stored[block, host]

    def alike(self, group):
        """Return whether tuples can match, as they arrived."""
        return self.placement.routing_key_source == "tuple" or may_match(
            [self.came[t[1]] for t in group], self.placement
        )

    def numbers(self, group):
        """Return the numbers of tuples that were combined, stream by stream."""
        return tuple([t[1] for t in sorted(group)])

    def _note_meetings(self, found):
        self.met.update([self.numbers(g) for g in found if self.alike(g)])

    def _measure_blocks(self, work):
        """Return sizes by block that the batch created and that has tuples."""
        made = {d.block.id for d in work.combined_plan.derivations}
        made |= {r.block.id for r in work.plan.routes if r.is_fresh}
        sizes = {}
        for (block, _), tuples in self.stored.items():
            if block in made and tuples:
                times = [t[3] for t in tuples]
                sizes[block] = BlockSize(len(tuples), 10 * len(tuples), (min(times), max(times)))
        return sizes

    def _commit_work(self, work, arrivals, answers):
        report = self._make_report(work, arrivals, answers)
        self.now, (*_, committed) = batch_step.commit_batch(
            self.rules, self.now, work, report, self.epoch
        )
        blocks = self.now.blocks
        self.stored = {(b, h): tuples for (b, h), tuples in self.stored.items() if b in blocks}
        for b in blocks.values():
            contents = [sorted(self.stored[b.id, h]) for h in b.hosts]
            assert all(c == contents[0] for c in contents), "replicas differ"
            assert len(contents[0]) == b.rows > 0
        assert all(h in blocks[b].hosts for b, h in self.stored), (
            "a replica that no block accounts for"
        )
        came = Counter(t[0] for t in arrivals)
        check_counts([came[s] for s in range(self.streams)], (0,) * self.streams, committed)
        self.missed += committed.missed_combinations
        self.events += work.plan.events

    def _make_report(self, work, arrivals, answers):
        keys = self._count_values(arrivals)
        return BatchReport(self._measure_blocks(work), answers=answers, key_counts=keys)

    def _count_values(self, arrivals):
        """Return the tuples of frequent values by stream, if values have several keys."""
        if (keys_per_value := self.placement.keys_per_value) == 1:
            return ()
        values = [
            [t[2] // keys_per_value for t in arrivals if t[0] == s] for s in range(self.streams)
        ]
        return tuple(select_frequent_values(np.bincount(np.array(v, int))) for v in values)

    def end(self):
        """End all streams, and answer the tuples that wait."""
        self.now = replace(self.now, ended=(True,) * self.streams)
        self.run([])

    def drain(self):
        """Run empty batches until no pair is pending."""
        for _ in range(50):
            if not self.now.pending_pairs:
                return
            self.run([])
        raise AssertionError(f"{len(self.now.pending_pairs)} pairs are owed for ever")


class AsOfCluster(Cluster):
    """Hosts that release single left tuples exactly as planned, in an as-of join.

    - ``released``: left tuples that took their partners, by number.
    """

    def __init__(self, placement):
        super().__init__(placement, 2)
        self.rules = replace(
            self.rules,
            reach=((0, 0), (2 * BATCH, 0)),
            match=MatchRule("latest", ("__time", "__time"), 2 * BATCH),
            lateness=(BATCH, BATCH),
        )
        self.released = Counter()

    def _plan_checked(self):
        work = super()._plan_checked()
        stored = {t for (b, _), mine in self.stored.items() for t in mine if t[0] == 1}
        for release in work.releases:
            since = float("-inf") if release.since is None else release.since
            due = [
                t
                for t in self.stored[release.block.id, release.host]
                if since <= t[3] < release.until
            ]
            met = Counter(
                t
                for host, blocks in release.partners.blocks_by_host.items()
                for block in blocks
                for t in self.stored[block, host]
            )
            assert set(met.values()) <= {1}, "a tuple meets a partner twice"
            for left in due:
                near = {t for t in stored if 0 <= left[3] - t[3] <= 2 * BATCH}
                missed = [t for t in near - met.keys() if self.alike((left, t))]
                assert not missed, "a tuple misses a partner"
            self.released.update(t[1] for t in due)
        return work

    def close(self):
        """Run batches without tuples until all left tuples are released."""
        for _ in range(10):
            self.now = replace(self.now, ended=(True, True))
            self.run([])


def check_counts(given: Sequence[int], filtered: Sequence[int], e: BatchCommitted) -> None:
    """Check, by stream, that tuples are taken, filtered or untimed, and that late ones are
    taken.
    """
    counted = zip(
        given, filtered, e.received_tuples, e.untimed, e.late_tuples, e.ahead, strict=True
    )
    for came, dropped, taken, untimed, late, ahead in counted:
        assert came == taken + dropped + untimed, "a tuple is neither taken nor left out"
        assert 0 <= late <= taken and 0 <= ahead <= taken


def draw_arrivals(counts, keys, draw, keys_per_value=1):
    """Return tuples with drawn routing keys and event times, batch by batch.

    If values have several parts, half of the tuples have one value, another one in the second half.
    """
    number, batches = 0, []
    for batch in counts:
        batches.append([])
        frequent = keys // keys_per_value // (3 if 2 * len(batches) <= len(counts) else 2)
        for stream, n in enumerate(batch):
            for _ in range(n):
                time = (len(batches) - 1) * BATCH + draw.randrange(BATCH)
                key = draw.randrange(keys)
                if keys_per_value > 1 and draw.random() < 0.5:
                    key = frequent * keys_per_value + key % keys_per_value
                batches[-1].append((stream, number, key, time))
                number += 1
    return batches


def may_match(group, placement):
    """Return whether tuples can match as they arrived; with hashed values, those of one value."""
    if placement.routing_key_source == "equalities":
        numbers = {}
        each = (n for t in group for n in _number_dimensions(placement, len(group), t[0], t[2]))
        return all(numbers.setdefault(d, number) == number for d, number in each)
    return len({t[2] // placement.keys_per_value for t in group}) == 1


@lru_cache(maxsize=1 << 12)
def _number_dimensions(placement, streams, stream, key):
    """Return the dimensions of a stream, each with a tuple's number in it."""
    boxes = placement.key_space(placement.initial_state(streams)).boxes
    weights = boxes.digit_weights(stream)
    return [
        (d, key // weight % boxes.finest)
        for d, weight in zip(boxes.dimensions[stream], weights, strict=True)
    ]


def expect_groups(batches, streams, placement):
    """Return all groups of tuples that can match, one of each stream, by number."""
    by_stream = [[t for batch in batches for t in batch if t[0] == s] for s in range(streams)]
    if placement.routing_key_source == "tuple":
        return _all_groups(*(tuple(t[1] for t in mine) for mine in by_stream))
    groups = product(*by_stream)
    return Counter(tuple(t[1] for t in g) for g in groups if may_match(g, placement))


def all_meetings(placement, batches, streams=2):
    cluster = Cluster(placement, streams)
    for batch in batches:
        cluster.run(batch)
    cluster.drain()
    return cluster


@lru_cache(maxsize=1)
def _all_groups(*streams):
    """Return all combinations of the numbers of each stream's tuples."""
    return Counter(product(*streams))
