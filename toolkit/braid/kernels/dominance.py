"""Forget dominated tuples: those to which every left tuple prefers a later one of the same key.

It is for the latest partner by event time, if equalities are the whole condition.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from braid.condition.access_paths import IndexCondition
from braid.condition.predicate import Predicate
from braid.core.asof_releases import LEFT, RIGHT
from braid.core.match_rules import MatchRule
from braid.core.reserved_columns import TIME
from braid.kernels.asof_join import rank_tied_rows, read_group_keys
from braid.kernels.asof_search import SortedRows
from braid.kernels.block_builder import build_block
from braid.kernels.host_block_rows import BlockRows, take_block_rows


def list_compared_columns(predicate: Predicate, rule: MatchRule) -> tuple[str, ...] | None:
    """Return the columns of the second stream that equalities compare, without the key.

    None: tuples are not dominated, because equalities are not the whole condition, or the best
    partner is not the latest by event time.
    """
    if rule.match != "latest" or rule.order_keys != (TIME, TIME):
        return None
    if predicate.disjunctions or predicate.common_elements or predicate.text_matches:
        return None
    links = [c for c in predicate.index_conditions if TIME not in (c.left[1], c.right[1])]
    texts = [residual.equal_columns for residual in predicate.residuals]
    if not all(c.cost_rank == 0 for c in links) or None in texts:
        return None
    exact = [c.right[1] for c in links[1:] if c.is_exact]
    return (*exact, *(dict(ends)[RIGHT] for ends in texts if ends is not None))


def find_equality(predicate: Predicate) -> IndexCondition | None:
    """Return the equality by whose key tuples are grouped; None: there is none."""
    links = (c for c in predicate.index_conditions if TIME not in (c.left[1], c.right[1]))
    return next((c for c in links if c.cost_rank == 0 and c.left[0] == LEFT), None)


def drop_dominated_rows(
    batch: pa.RecordBatch, predicate: Predicate, rule: MatchRule, low: int | None
) -> pa.RecordBatch:
    """Return a merged block without dominated rows.

    Parameters
    ----------
    batch
        The block.
    predicate, rule
        The condition of the join, and the rule that chooses partners.
    low
        Event time below which left tuples have come late; None: none.
    """
    compared = list_compared_columns(predicate, rule)
    if compared is None or low is None:
        return batch
    rows = BlockRows(batch)
    keys, orders = read_group_keys(rows, find_equality(predicate)), rows.numpy_column(TIME)
    ordered = SortedRows.sort_rows(keys, orders, partial(rank_tied_rows, rows, rule))
    dominated = find_dominated_rows(ordered, low, rule.is_strict)
    if not dominated.any():
        return batch
    at = np.flatnonzero(dominated)
    for name in compared:
        column = batch.column(name)
        here, after = (column.take(pa.array(ordered.positions[each])) for each in (at, at + 1))
        at = at[pc.fill_null(pc.equal(here, after), False).to_numpy(zero_copy_only=False)]
    lasting = np.ones(batch.num_rows, bool)
    lasting[ordered.positions[at]] = False
    rest = take_block_rows(batch, np.flatnonzero(lasting))
    return build_block(rest, predicate.stream_orders(RIGHT), ordered=True, stores_orders=False)


def find_dominated_rows(ordered: SortedRows, low: int, is_strict: bool) -> np.ndarray:
    """Return which sorted rows are followed by one of their group that every left tuple prefers.

    It is at or before all left tuples that still count; strictly before them if equal times are
    left out.
    """
    dominated = np.zeros(len(ordered.orders), bool)
    following = ordered.orders[1:]
    dominated[:-1] = following < low if is_strict else following <= low
    dominated[ordered.starts[1:] - 1] = False
    return dominated
