"""Choose the orders of blocks, and the search that a probe makes in them."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from braid.condition.access_paths import IndexCondition, Order, OrderSearch, RangeSearch
from braid.core.reserved_columns import TIME

_MOST_RANGES = 4
"""Maximum keys of ranges by which the rows of a stream are ordered for another stream."""


def choose_orders(conditions: Sequence[IndexCondition], stream: int) -> list[Order]:
    """Return the orders in which these conditions find fewest pairs of the stream, best first.

    - ``conditions``: index conditions of the stream, the most selective first; empty: none.

    An equality comes first, and there is an order for each of its ranges.
    """
    equality = next((c for c in conditions if c.cost_rank == 0), None)
    if equality is None:
        return [Order(key) for key in _group_ranges(conditions, stream)]
    column = str(equality.find_key(stream))
    return [Order(column, key) for key in _group_ranges(conditions, stream, column)] or [
        Order(column)
    ]


def choose_search(
    conditions: Sequence[IndexCondition], stream: int, orders: Collection[Order]
) -> OrderSearch | None:
    """Return the most selective search of the stream's rows; None: no order supports one.

    - ``conditions``: the conditions that may be used, the most selective first.
    - ``orders``: the orders of the stream's blocks.
    """
    sorted_by = {order.column for order in orders}
    searches = []
    for equality in conditions:
        if equality.cost_rank == 0 and (column := str(equality.find_key(stream))) in sorted_by:
            groups = _group_ranges(conditions, stream, column)
            ordered = ((Order(column, key), group) for key, group in groups.items())
            ranges = tuple(RangeSearch(order, group) for order, group in ordered if order in orders)
            searches.append(OrderSearch(equality, ranges))
    if searches:
        return max(searches, key=lambda search: len(search.ranges))
    groups = _group_ranges(conditions, stream)
    ranges = tuple(RangeSearch(Order(k), group) for k, group in groups.items() if k in sorted_by)
    return OrderSearch(None, ranges) if ranges else None


def _group_ranges(
    conditions: Sequence[IndexCondition], stream: int, equal: str | None = None
) -> dict[str, tuple[IndexCondition, ...]]:
    """Return the conditions on keys of the stream with a range; those with two bounds come first.

    - ``equal``: the key of the equality; None: there is none.

    Event time counts only if it is the best: windows bound the rows that are stored, so that most
    candidates are within them.
    """
    by_key: dict[str, list[IndexCondition]] = {}
    for condition in conditions:
        by_key.setdefault(str(condition.find_key(stream)), []).append(condition)
    by_key.pop(str(equal), None)
    keys = [key for key, group in by_key.items() if any(c.cost_rank for c in group)]
    keys.sort(key=lambda key: not _is_bounded_twice(by_key[key], stream))
    chosen = [key for n, key in enumerate(keys) if key != TIME or n == 0][:_MOST_RANGES]
    return {key: tuple(by_key[key]) for key in chosen}


def _is_bounded_twice(conditions: Sequence[IndexCondition], stream: int) -> bool:
    """Return whether the conditions bound their key of the stream from below and from above."""
    return all(map(any, zip(*(c.find_bounded_sides(stream) for c in conditions), strict=True)))
