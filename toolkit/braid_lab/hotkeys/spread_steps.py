"""HotKeys row by row: the values that are shared out over hosts, and the places of their rows.

The plans are those of the placement. A typed value from 0 to 7 stands for its hash, so that two
consecutive values have one home. The routing key of a row within its value is its number times
the golden ratio, which spreads evenly.

Sources: Afrati et al. 2015; Lin et al. 2015; Xu et al. 2008.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from braid.core.batch_work import BatchWork
from braid.core.frequent_values import OTHERS, select_frequent_values
from braid.core.plan import Block, KeySpace
from braid.papers.hotkeys.hot_keys import HotKeys
from braid.papers.hotkeys.spread import SharedValue, Spread, busiest_over_mean, host_micros
from braid.papers.hotkeys.value_work import ValueShares, estimate_value_work

from braid_lab.common.planned_steps import PlannedSteps, join_words
from braid_lab.common.tuple_models import NAMES, Heads, Line, Rows, StepExample, Trace
from braid_lab.common.typed_batches import TypedTuple, parse_batches
from braid_lab.hotkeys.listings import BATCH

HOSTS, VALUES = 4, 8
GOLDEN = 0.6180339887498949


def run_typed(text: str) -> Trace:
    """Return the steps for typed batches of two streams that join on a value, on four hosts.

    Raises ValueError as ``parse_batches`` does, and for a value above 7.
    """
    batches = parse_batches(text, (1, 1))
    for t in (t for batch in batches for t in batch):
        if t.values[0] >= VALUES:
            raise ValueError(f"{t} has the value {t.values[0]}; values are 0 to {VALUES - 1}")
    return _SpreadSteps(HotKeys(HOSTS, values=VALUES)).run_batches(batches)


EXAMPLE = StepExample(
    run_typed,
    ("a:3 a:3 a:3 a:3 a:3 a:6 b:3 b:3 b:3 b:3 b:3 b:1 / a:3 b:3 / a:3 b:6 / a:1 b:0",),
    ("rows by batch, / between two batches: a letter and a value from 0 to 7",),
    {
        "one stream has nearly all rows": (f"{'a:3 ' * 15}b:3 / a:3 a:3 b:3",),
        "another value becomes frequent": (
            "a:3 a:3 a:3 a:3 a:3 a:6 b:3 b:3 b:3 b:3 b:3 b:1 / a:3 b:3 / a:6 a:6 a:1 b:6 b:6 / "
            "a:1 a:6 b:0 b:6 / a:4 b:4",
        ),
    },
    "H",
)


class _SpreadSteps(PlannedSteps):
    """The steps of HotKeys."""

    move_line = 6

    def __init__(self, placement: HotKeys) -> None:
        self.placement = placement
        title = "Hot keys: a frequent value on several hosts (HotKeys)"
        super().__init__(title, placement, (1, 1), _has_equal_values, BATCH)
        self.spread: Spread = {}
        self.loads: list[list[float]] = []

    def explain_plan(self, work: BatchWork) -> None:
        before = self.spread
        self.spread = {shared.value: shared for shared in work.plan.state.spread}
        ranges = self.placement.value_ranges
        shares = ValueShares(work.facts.key_counts, ranges.values, ranges.keys_per_value)
        if not shares.counts:
            return
        value_work = estimate_value_work(work.facts, shares)
        self.loads = [host_micros(value_work, s, ranges) for s in (before, self.spread)]
        self._explain_value_counts(shares)
        self._explain_host_loads()
        self._explain_spread_change(before)

    def _move_tuples(self, work: BatchWork) -> None:
        super()._move_tuples(work)
        if not work.plan.state.is_settled:
            self._record_batch_decision(
                "some rows wait, because a host takes in a limited number in one batch.", 6
            )

    def _explain_value_counts(self, shares: ValueShares) -> None:
        total = Counter[int]()
        for counts in shares.counts:
            total.update({v: n for v, n in counts.items() if v != OTHERS})
        most = [f"value {v} has {n:.3g}" for v, n in total.most_common(3)]
        self._record_batch_decision(f"of the recent rows, {join_words(most)}.", 1)

    def _explain_host_loads(self) -> None:
        now = self.loads[0]
        ratio, limit = busiest_over_mean(now), self.placement.target
        verdict = f"more than {limit:g}" if ratio > limit else f"at most {limit:g}, so all is well"
        host = self.format_hosts([now.index(max(now))])
        self._record_batch_decision(
            f"{host} would have {ratio:.2f} times the mean work: {verdict}.", 2
        )

    def _explain_spread_change(self, before: Spread) -> None:
        now, after = map(busiest_over_mean, self.loads)
        if self.spread == before and now > self.placement.target:
            self._record_batch_decision("no other spread makes the busiest host 5 % less busy.", 4)
        for value in sorted(before.keys() - self.spread.keys()):
            home = self.format_hosts([self.placement.value_ranges.home_host(value)])
            self._record_batch_decision(
                f"value {value} has cooled: new rows go home, to {home}.", 3
            )
        for value, shared in sorted(self.spread.items()):
            old = before.get(value, SharedValue(value, ()))
            if shared.hosts != old.hosts:
                hosts = self.format_hosts(shared.hosts)
                text = f"value {value} is shared out over {hosts}: the busiest host then has "
                self._record_batch_decision(f"{text}{after:.2f} times the mean.", 4)
            if shared.kept_stream != old.kept_stream:
                self._record_batch_decision(_describe_kept_stream(shared), 5)

    def _record_batch_decision(self, text: str, line: int) -> None:
        self.record_step(f"Batch {self.clock}: {text}", None, line=Line("HotKeys", line, line))

    def find_number(self, t: TypedTuple, space: KeySpace) -> int:
        part = int(t.number * GOLDEN % 1 * space.keys_per_value)
        return t.values[0] * space.keys_per_value + part

    def count_keys(self, tuples: Sequence[TypedTuple]) -> tuple[dict[int, int], ...]:
        return tuple(
            select_frequent_values(
                np.bincount([t.values[0] for t in tuples if t.stream == s], minlength=VALUES)
            )
            for s in (0, 1)
        )

    def choose_lines(self, t: TypedTuple, block: Block, is_stored: bool) -> tuple[int, int]:
        shared = self.spread.get(t.values[0])
        line = 7 if shared is None else 8 if shared.kept_stream is None else 9
        return line, line

    def explain_storage(self, t: TypedTuple, block: Block) -> str:
        value = t.values[0]
        if value not in self.spread:
            return f"of value {value} goes home, to"
        if len(block.hosts) > 1:
            return f"of value {value} is copied to all of its hosts: it is stored at"
        return f"of value {value}, which is shared out, is stored at"

    def list_heads(self) -> Heads:
        """Return the values at home on each host."""
        ranges = self.placement.value_ranges
        starts = [ranges.first_value(h) for h in range(HOSTS + 1)]
        homes = (range(starts[h], starts[h + 1]) for h in range(HOSTS))
        return (), tuple(f"home of {', '.join(map(str, values))}" for values in homes)

    def make_table(self) -> Rows:
        """Return the expected work of each host, and the shared values that it has."""
        if not self.loads:
            return ()
        rows = [("", *self.trace.names)]
        for name, loads in zip(("expected work, before", "after"), self.loads, strict=True):
            rows.append((name, *(f"{load:.1f} µs" for load in loads)))
        of_host = (
            ", ".join(str(v) for v in sorted(self.spread) if h in self.spread[v].hosts)
            for h in range(HOSTS)
        )
        return (*rows, ("shared values", *of_host))


def _has_equal_values(t: TypedTuple, u: TypedTuple) -> bool:
    return t.values == u.values


def _describe_kept_stream(shared: SharedValue) -> str:
    if shared.kept_stream is None:
        return f"value {shared.value}: each row is stored once again, and probes all of its hosts."
    frequent, rare = NAMES[shared.kept_stream], NAMES[1 - shared.kept_stream]
    return (
        f"nearly all rows of value {shared.value} are of {frequent}: those of {rare} are copied to "
        f"all of its hosts."
    )
