"""Choose the orders of blocks, and the search that a probe makes in one."""

from __future__ import annotations

from collections.abc import Sequence

from braid.condition.access_paths import IndexCondition, Order, OrderSearch
from braid.core.reserved_columns import TIME


def search_by_order(
    order: Order, conditions: Sequence[IndexCondition], stream: int
) -> OrderSearch | None:
    """Return the search of the stream's rows in this order; None: no condition is on its column.

    - ``conditions``: the conditions that may be used, the most selective first.
    """
    on = {c: [k for k in conditions if k.find_key(stream) == c] for c in order.named_columns}
    searched = on[order.column]
    if not searched:
        return None
    is_equality = searched[0].cost_rank == 0
    within = on[order.within] if order.within is not None and is_equality else []
    ranked = on[order.ranked] if order.ranked is not None else []
    searched = searched[:1] if is_equality else searched
    return OrderSearch(order, tuple(searched), tuple(within), tuple(ranked))


def choose_order(conditions: Sequence[IndexCondition], stream: int) -> Order | None:
    """Return the order in which these conditions find fewest pairs of the stream.

    - ``conditions``: index conditions of the stream, the most selective first; empty: None.

    An equality comes first, then ranges with two bounds, then those with one. Event time is no
    ranked column: windows bound the rows that are stored, so that most candidates are within them.
    """
    if not conditions:
        return None
    by_column: dict[str, list[IndexCondition]] = {}
    for condition in conditions:
        by_column.setdefault(str(condition.find_key(stream)), []).append(condition)
    ranges = [c for c, group in by_column.items() if any(k.cost_rank for k in group)]
    ranges.sort(key=lambda c: not _is_bounded_twice(by_column[c], stream))
    if conditions[0].cost_rank == 0:
        column = str(conditions[0].find_key(stream))
        others = [c for c in ranges if c != column]
        within, ranked = (others[0] if others else None), others[1:]
    else:
        column, within, ranked = ranges[0], None, ranges[1:]
    return Order(column, within, next((c for c in ranked if c != TIME), None))


def _is_bounded_twice(conditions: Sequence[IndexCondition], stream: int) -> bool:
    """Return whether the conditions bound their key of the stream from below and from above."""
    return all(map(any, zip(*(k.find_bounded_sides(stream) for k in conditions), strict=True)))
