"""Choose the best partners of released tuples among the rows of several blocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from math import inf
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from braid.condition.access_paths import IndexCondition, Order, OrderSearch, RangeSearch
from braid.condition.predicate import Predicate, ProbeStep
from braid.core.asof_releases import LEFT, RIGHT
from braid.core.horizon import Horizon
from braid.core.match_rules import MatchRule
from braid.core.reserved_columns import MARK, TIME
from braid.kernels.asof_search import (
    BestRows,
    Probes,
    SortedRows,
    find_best_rows,
    mirror_orders,
)
from braid.kernels.compared_pairs import CandidatePairs
from braid.kernels.host_block_rows import BlockRows, PartialMatches
from braid.kernels.partner_choice import BestSoFar, choose_nearer_side
from braid.kernels.probe import BlockJoiner
from braid.kernels.step_tally import StepTally
from braid.kernels.tie_ranks import rank_rows
from braid.util.clock_and_threads import current_environment

_EXACT = (False, False)


class Partners(NamedTuple):
    """The best partners of some tuples, from several blocks.

    - ``probes``: positions of the tuples.
    - ``blocks``: for each the number of the block that its partner is in.
    - ``rows``: the position of the partner in its block.
    """

    probes: np.ndarray
    blocks: np.ndarray
    rows: np.ndarray

    @classmethod
    def empty(cls) -> Partners:
        """Return no partners."""
        nothing = np.zeros(0, np.int64)
        return cls(nothing, nothing, nothing)


class AsOfJoiner:
    """A joiner of released tuples with their best partners.

    - ``low``: event time below which left tuples have come late; None: none.
    - ``horizon``: event time below which their partners have expired; None: none.
    - ``query``: bit of the query that partners serve; None: the run serves none.
    """

    def __init__(
        self,
        joiner: BlockJoiner,
        rule: MatchRule,
        low: int | None,
        horizon: Horizon,
        query: int | None = None,
    ) -> None:
        self.joiner, self.rule, self.low, self.horizon = joiner, rule, low, horizon
        self.query = query
        step, self.limits = plan_match_step(joiner.predicate, rule)
        path = step.access_path
        self.equality = path.equality if isinstance(path, OrderSearch) else None
        self.tally = joiner.tallies.setdefault((frozenset({LEFT}), RIGHT), StepTally(step))
        self._sorted: dict[tuple[int, bool], SortedRows] = {}

    def find_best_partners(self, left: PartialMatches, blocks: Sequence[BlockRows]) -> Partners:
        """Return the best partner of each tuple that has one in these blocks.

        Those of late tuples may be later; see ``drop_later_partners``.
        """
        orders = left.column_values(LEFT, self.rule.order_keys[LEFT])
        sides = [self._search_side(left, orders, blocks, f) for f in self.rule.directions]
        side, chosen = sides[0], sides[0].blocks >= 0
        numbers, rows = side.blocks, side.rows
        if len(sides) == 2:
            after = choose_nearer_side(sides[0], sides[1], orders)
            chosen = chosen | after
            numbers, rows = (
                np.where(after, each[1], each[0])
                for each in zip(*((s.blocks, s.rows) for s in sides), strict=True)
            )
        at = np.flatnonzero(chosen)
        self.tally.rows, self.tally.matches = (
            self.tally.rows + len(orders),
            self.tally.matches + len(at),
        )
        return Partners(at, numbers[at], rows[at])

    def _search_side(
        self, left: PartialMatches, orders: np.ndarray, blocks: Sequence[BlockRows], forward: bool
    ) -> BestSoFar:
        """Return the best rows before the tuples, or after them; the nearest blocks come first."""
        orders = self._delay_late(orders)
        orders = mirror_orders(orders) if forward else orders
        best = BestSoFar(len(orders), orders.dtype)
        each = [(n, rows, self._sort_block(rows, forward)) for n, rows in enumerate(blocks)]
        each = [one for one in each if len(one[2].orders)]
        each.sort(key=lambda one: one[2].orders.max(), reverse=True)
        for number, rows, ordered in each:
            at = best.list_open_probes(ordered)
            if len(at):
                best.add_block(number, self._search_block(left, orders, at, rows, ordered, forward))
        best.decide_ties(
            lambda numbers, at: rank_partners(Partners(at, numbers, at), blocks, self.rule)
        )
        return best

    def _delay_late(self, orders: np.ndarray) -> np.ndarray:
        """Return the orders by which to search: late tuples are searched like the earliest others.

        Otherwise, their partners would depend on the merges that have forgotten some.
        """
        if not self.rule.forgets_dominated or self.low is None or not len(orders):
            return orders
        return orders if int(orders.min()) >= self.low else np.maximum(orders, self.low)

    def drop_later_partners(
        self, left: PartialMatches, partners: Partners, blocks: Sequence[BlockRows]
    ) -> Partners:
        """Return the partners, the best of all hosts, without those that are after a late tuple."""
        orders = left.column_values(LEFT, self.rule.order_keys[LEFT])
        if self._delay_late(orders) is orders or not len(partners.probes):
            return partners
        chosen = np.empty(len(partners.rows), orders.dtype)
        for number, rows in enumerate(blocks):
            at = np.flatnonzero(partners.blocks == number)
            chosen[at] = rows.numpy_column(self.rule.order_keys[RIGHT])[partners.rows[at]]
        wanted = orders[partners.probes]
        allowed = np.flatnonzero(chosen < wanted if self.rule.is_strict else chosen <= wanted)
        return Partners(*(each[allowed] for each in partners))

    def _search_block(
        self,
        left: PartialMatches,
        orders: np.ndarray,
        at: np.ndarray,
        rows: BlockRows,
        ordered: SortedRows,
        forward: bool,
    ) -> BestRows:
        """Return the best rows of a block for the tuples at these positions."""
        keys = None
        if self.equality is not None and ordered.keys is not None:
            keys = left.values_at(*self.equality.left, at)
        groups = ordered.find_probe_groups(keys, self.equality, len(at))
        rule, step = replace(self.rule, tolerance=self.limits[forward]), self.tally.step
        admits = (
            partial(self._filter_candidates, left, rows, at)
            if step.conditions or step.residuals
            else None
        )
        best = find_best_rows(Probes(groups, orders[at]), ordered, rule, admits)
        self.tally.candidate_pairs += len(best.probes) if admits is None else 0
        return best._replace(probes=at[best.probes])

    def _filter_candidates(
        self,
        left: PartialMatches,
        rows: BlockRows,
        searched: np.ndarray,
        probes: np.ndarray,
        at: np.ndarray,
    ) -> np.ndarray:
        """Return which pairs fulfill the rest of the condition.

        ``probes``: positions in those of the ``searched`` tuples.
        """
        tally, holds = self.tally, np.ones(len(probes), bool)
        tally.candidate_pairs += len(probes)
        pairs = CandidatePairs(left, searched[probes], rows, at, RIGHT)
        for link, check in zip(tally.step.conditions, tally.conditions, strict=True):
            check.pairs_in += int(np.count_nonzero(holds))
            holds &= pairs.evaluate_condition(link)
            check.pairs_out += int(np.count_nonzero(holds))
        for residual, check in zip(tally.step.residuals, tally.residuals, strict=True):
            some, began = np.flatnonzero(holds), current_environment().read_clock()
            tried = pairs.take_positions(some)
            holds[some] = self.joiner.find_fulfilling_pairs(tried, residual, tally.step)
            check.seconds += current_environment().read_clock() - began
            check.pairs_in += len(some)
            check.pairs_out += int(np.count_nonzero(holds))
        return holds

    def _sort_block(self, rows: BlockRows, forward: bool) -> SortedRows:
        at = id(rows), forward
        if at not in self._sorted:
            keys = read_group_keys(rows, self.equality)
            orders = rows.numpy_column(self.rule.order_keys[RIGHT])
            orders = mirror_orders(orders) if forward else orders
            ranks = partial(rank_tied_rows, rows, self.rule)
            self._sorted[at] = SortedRows.sort_rows(keys, orders, ranks, self._find_live(rows))
        return self._sorted[at]

    def _find_live(self, rows: BlockRows) -> np.ndarray | None:
        """Return the positions of the host's rows that may be partners; None: all rows.

        They have not expired, and the query selects them.
        """
        chosen = rows.key_mask()
        horizon = self.horizon
        if horizon is not None and rows.batch.num_rows and rows.event_time_range()[0] < horizon:
            live = rows.numpy_column(TIME) >= horizon
            chosen = live if chosen is None else chosen & live
        if self.query is not None:
            served = (rows.numpy_column(MARK) >> self.query & 1).astype(bool)
            chosen = served if chosen is None else chosen & served
        return None if chosen is None else np.flatnonzero(chosen)


def read_group_keys(rows: BlockRows, equality: IndexCondition | None) -> np.ndarray | None:
    """Return the keys by which the rows of the second stream are grouped; None: all are one group.

    Several rounded floats may be equal, which a residual decides.
    """
    if equality is None:
        return None
    keys = rows.numpy_column(equality.right[1])
    return keys if equality.is_exact or keys.dtype.kind == "i" else None


def rank_tied_rows(rows: BlockRows, rule: MatchRule, at: np.ndarray) -> np.ndarray:
    """Return the ranks of rows at some positions by the rule for ties."""
    return rank_rows([rows.batch.column(c).take(pa.array(at)) for c in rule.ties], len(at))


def rank_partners(partners: Partners, blocks: Sequence[BlockRows], rule: MatchRule) -> np.ndarray:
    """Return the ranks of rows of several blocks by the rule for ties."""
    order = np.argsort(partners.blocks, kind="stable")
    used = np.unique(partners.blocks)
    columns = []
    for name in rule.ties:
        pieces = [
            blocks[n].batch.column(name).take(pa.array(partners.rows[partners.blocks == n]))
            for n in used.tolist()
        ]
        columns.append(pa.concat_arrays(pieces))
    ranks = np.empty(len(order), np.int64)
    ranks[order] = rank_rows(columns, len(order))
    return ranks


def plan_match_step(
    predicate: Predicate, rule: MatchRule
) -> tuple[ProbeStep, tuple[float | None, float | None]]:
    """Return the step of an as-of join, and the greatest distances before and after a tuple.

    Its conditions and residuals are checked on each row that is tried, nearest first.
    """
    links = [c for c in predicate.index_conditions if {c.left[0], c.right[0]} == {LEFT, RIGHT}]
    ordered = [c for c in links if (c.left[1], c.right[1]) == rule.order_keys]
    least, greatest = rule.find_difference_bounds()
    for condition in ordered:
        if condition.is_exact or TIME in rule.order_keys:  # bounds of floats may be rounded
            least = max(least, min(condition.lower, 0))
            greatest = min(greatest, max(condition.upper, 0))
    limits = _to_limit(greatest), _to_limit(-least)
    equality = next((c for c in links if c.cost_rank == 0 and c not in ordered), None)
    checked = tuple(
        c for c in links if c.is_exact and c != equality and not _is_implied(c, ordered, limits)
    )
    key = rule.order_keys[RIGHT]
    order = Order(key) if equality is None else Order(equality.right[1], key)
    path = OrderSearch(equality, (RangeSearch(order, tuple(ordered)),))
    return ProbeStep(RIGHT, path, checked, predicate.residuals), limits


def _to_limit(distance: float) -> float | None:
    return None if distance == inf else distance


def _is_implied(
    condition: IndexCondition,
    ordered: Sequence[IndexCondition],
    limits: tuple[float | None, float | None],
) -> bool:
    """Return whether the limits of the search imply a condition on the order."""
    if condition not in ordered or condition.open_bounds != _EXACT:
        return False
    backward, forward = (inf if limit is None else limit for limit in limits)
    return condition.lower <= -forward and backward <= condition.upper
