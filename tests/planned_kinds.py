"""Random plans of joins of every kind, followed tuple by tuple and compared with the model of kinds.

The cases use no kernels, files or tasks, so each takes a hundredth of the time of a run. They
verify the core: clocks, horizons, plans, migrations, answers that are due, and the end of a run.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, replace

from braid.core.answer_state import AnswerCount, MatchedRows
from braid.core.answers import list_block_births
from braid.core.batch_report import BlockSize
from braid.core.due_answers import needs_closing_batch
from braid.core.join_kinds import parse_kind
from braid.core.stream_clocks import TimeSpread
from models.clocks import reach_of_windows
from models.kinds import JoinRules, Tuple, run_join
from placement_checks import Cluster, draw_arrivals, list_examples, may_match

PLACEMENTS = [
    p
    for p in list_examples().values()
    if p.delivery_guarantee == "exactly once" and not p.shares_queries
]
KINDS = ("left", "right", "full", "anti", "semi")
TICK = 10
"""Event time of a batch."""
REACHES = (((0, 20), (5, 0)), ((0, 8), (None, 0)), ((0, None), (15, 0)))
"""Bounds of event times by a condition of two streams, beside those of windows."""


@dataclass(frozen=True)
class PlannedCase:
    """A join of two or three streams, followed by its plans.

    - ``how``: as of ``JoinRules``.
    - ``batches``: tuples (stream, number, routing key, event time).
    - ``restarts``: batches that are planned anew from the stored state.
    """

    placement: object
    how: str | tuple[int, ...]
    reach: tuple
    lateness: tuple[int, ...]
    ahead: int
    idle: int | None
    batches: list[list[tuple[int, int, int, int]]]
    restarts: frozenset[int]

    @property
    def ends(self):
        """The last batch of each stream; -1: it has no tuple."""
        streams = range(len(self.reach))
        came = [{n for n, b in enumerate(self.batches) for t in b if t[0] == s} for s in streams]
        return tuple(max(each, default=-1) for each in came)

    def holds(self, group):
        """Return whether tuples satisfy the condition, without bounds of event times."""
        if self.placement.routing_key_source != "tuple":
            return may_match(group, self.placement)
        return sum((t[0] + 1) * t[1] for t in group) % 3 == 0

    def run_model(self):
        """Return the outcome by the model."""
        tuples = [
            Tuple(t[0], t[1], n, t[3], {"tuple": t}) for n, b in enumerate(self.batches) for t in b
        ]
        rules = JoinRules(
            lambda *group: self.holds([t.values["tuple"] for t in group]),
            self.reach,
            self.how,
            self.lateness,
            self.ahead,
            self.idle,
            self.ends,
        )
        return rules, run_join(tuples, rules)


def draw_planned_case(seed: int) -> PlannedCase:
    """Draw a case."""
    draw = random.Random(seed)
    streams = draw.choice((2, 2, 2, 3))
    placement = draw.choice([p for p in PLACEMENTS if p.supports_streams(streams)])
    how = draw.choice(KINDS)
    if streams > 2:
        how = tuple(sorted(draw.sample(range(streams), draw.randint(1, streams))))
    reach = reach_of_windows([draw.choice((None, 5, 15, 30)) for _ in range(streams)])
    if streams == 2 and draw.random() < 0.3:
        reach = draw.choice(REACHES)
    most, counts = 12 // streams, list[tuple[int, ...]]()
    for batch in range(draw.randint(3, 12)):
        fast = batch % streams if draw.random() < 0.5 else None
        counts.append(tuple(draw.randint(0, most if s == fast else 2) for s in range(streams)))
    keys = placement.key_space_size
    batches = draw_arrivals(counts, keys, draw, placement.keys_per_value)
    is_late = draw.random() < 0.5
    jumps = (0, 0, 0, 0, -1, -25, 40) if is_late else (0,)
    batches = [
        [(s, n, key, 100 + time + draw.choice(jumps)) for s, n, key, time in batch]
        for batch in batches
    ]
    values = draw.sample(range(keys), min(keys, 3))
    if placement.routing_key_source != "tuple" and placement.keys_per_value == 1:
        batches = [[(s, n, draw.choice(values), t) for s, n, _, t in batch] for batch in batches]
    return PlannedCase(
        placement,
        how,
        tuple(map(tuple, reach)),
        tuple(draw.choice((0, 0, 4, 12)) for _ in range(streams)),
        draw.choice((15, 60, 10_000)),
        draw.choice((None, None, 8, 25)),
        batches,
        frozenset(n for n in range(len(batches)) if draw.random() < 0.2),
    )


class KindCluster(Cluster):
    """Hosts that also mark tuples that matched, and write the rows of a kind of join.

    - ``rows``: the batch and the numbers of the tuples of each row; None: absent.
    - ``has_settled``: whether a pair was made later than its tuples came, in a migration.
    """

    def __init__(self, case):
        streams = len(case.reach)
        names = ("r", "s", "t")[:streams]
        how = case.how if isinstance(case.how, str) else {names[s]: "keep" for s in case.how}
        super().__init__(case.placement, streams, parse_kind(how, names))
        self.rules = replace(
            self.rules,
            reach=case.reach,
            lateness=case.lateness,
            ahead=case.ahead,
            idle=case.idle,
            last_epochs=case.ends,
        )
        self.case, self.rows, self.matched = case, [], set()
        self.has_settled, self.new, self.fresh_blocks = False, set(), set()

    def run_all(self):
        """Run all batches, and those that the end of the input needs."""
        for number, batch in enumerate(self.case.batches):
            self.epoch = number
            self.run(batch)
        for _ in range(50):
            if not needs_closing_batch(self.rules, self.now):
                return
            self.run([])
        raise AssertionError("the run does not come to an end")

    def _plan_checked(self):
        work = super()._plan_checked() if self._is_restarted() else self.plan_once()
        self.work, self.new = work, set()
        self.fresh_blocks = {r.block.id for r in work.plan.routes if r.is_fresh}
        return work

    def _is_restarted(self):
        return self.now.batch + 1 in self.case.restarts

    def _answer_due(self, work):
        batch, kind = self.now.batch + 1, self.rules.kind
        counts = {}
        for settle in work.settles:
            since = float("-inf") if settle.since is None else settle.since
            stored = self.stored[settle.block, settle.host]
            final = [t for t in stored if since <= t[3] < settle.until]
            alone = [t for t in final if t[1] not in self.matched]
            self.answered.update(t[1] for t in final)
            if kind.writes_unmatched:
                self.rows += [(batch, self._write_alone(t)) for t in alone]
            more = AnswerCount(len(final), len(alone))
            counts[settle.stream] = counts.get(settle.stream, AnswerCount()).add_counts(more)
        for finding in work.findings:
            for t in self.stored[finding.block, finding.host]:
                if t[1] in self.found:
                    self.rows.append((batch, (t[1],)))
        return counts

    def _write_alone(self, t):
        if len(self.rules.kind.structs) == 1:
            return (t[1],)
        return tuple(t[1] if s == t[0] else None for s in range(self.streams))

    def _probe_routes(self, plan, fresh):
        for route in plan.routes:
            self.is_settling = not route.is_fresh
            self.has_settled |= self.is_settling
            super()._probe_routes(replace(plan, routes=(route,)), fresh)

    def list_partners(self, block, host):
        if block in self.fresh_blocks:
            return self.stored[block, host]
        return [t for t in self.stored[block, host] if not self._has_expired(t)]

    def _has_expired(self, t):
        """Return whether a stored tuple is below its horizon; while it is pending, if answered."""
        if self.is_settling:
            return t[1] in self.answered
        horizon = self.work.horizons[t[0]]
        return horizon is not None and t[3] < horizon

    def _note_meetings(self, found):
        for group in found:
            came = [self.came[t[1]] for t in sorted(group)]
            if any(self.is_settling and t[1] in self.answered for t in group):
                continue
            if self.case.holds(came) and self._is_within_reach(came):
                numbers = tuple(t[1] for t in came)
                self.new |= {*numbers} - self.matched
                if self.rules.kind.writes_pairs:
                    self.rows.append((self.now.batch + 1, numbers))

    def _is_within_reach(self, group):
        return all(
            most is None or group[j][3] - group[i][3] <= most
            for i, row in enumerate(self.case.reach)
            for j, most in enumerate(row)
            if i != j
        )

    def _measure_blocks(self, work):
        sizes = super()._measure_blocks(work)
        for (block, _), tuples in self.stored.items():
            if block in self.fresh_blocks and tuples:
                times = tuple(sorted(t[3] for t in tuples))
                size = sizes[block]
                sizes[block] = BlockSize(*size[:3], 0, TimeSpread(times[-8:], times, times))
        return sizes

    def _make_report(self, work, arrivals, answers):
        report = super()._make_report(work, arrivals, answers)
        self.matched |= self.new
        self.found = self.new
        births, groups = list_block_births(self.now.answers, work.combined_plan), {}
        for (block, _), tuples in self.stored.items():
            group = groups.setdefault(births.get(block, block), set())
            group.update(t[1] for t in tuples)
        report.matched = {
            birth: MatchedRows(len(g), len(g & self.matched), "", 0, len(g & self.new))
            for birth, g in groups.items()
            if g & self.matched
        }
        return report


def check_planned_case(case: PlannedCase) -> KindCluster:
    """Follow the plans of a case and compare the rows, and their batches, with the model."""
    cluster, (rules, model) = KindCluster(case), case.run_model()
    cluster.run_all()
    is_late = any(each.reason == "late" for each in model.irregular)
    waiting = cluster.now.answers.waiting
    assert waiting == (0,) * len(case.reach), waiting
    if not cluster.has_settled:
        assert sorted(cluster.rows, key=repr) == sorted(model.results, key=repr)
    elif not is_late:
        found, expected = (
            Counter(ids for _, ids in rows) for rows in (cluster.rows, model.results)
        )
        assert found == expected
    else:
        answered = Counter(cluster.answered)
        came = {t[1] for batch in case.batches for t in batch if t[0] in rules.preserved}
        assert {n: 1 for n in came} == {n: answered[n] for n in came}
    return cluster
