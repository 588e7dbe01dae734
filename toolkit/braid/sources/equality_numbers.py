"""SQL for routing keys that are made from the values of several equalities."""

from __future__ import annotations

from collections.abc import Callable

from braid.condition.predicate import Predicate
from braid.core.placement import Placement

NumberSql = Callable[[int, str, int], str]
"""Returns SQL for the number of a tuple in a dimension.

Arguments: the dimension, the key column of the stream, and how many numbers there are.
"""


def combine_numbers(
    placement: Placement, predicate: Predicate, stream: int, make_number_sql: NumberSql
) -> str:
    """Return SQL for the number that a tuple of a stream arrives with (see ``KeyBoxes``)."""
    boxes = placement.key_space(placement.initial_state(len(predicate.aliases))).boxes
    assert boxes is not None
    weights = zip(boxes.dimensions[stream], boxes.digit_weights(stream), strict=True)
    terms = (
        f"{make_number_sql(d, predicate.equality_keys[d][stream], boxes.finest)} * {weight}"
        for d, weight in weights
    )
    return " + ".join(terms) or "0"
