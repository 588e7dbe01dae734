"""Parts of a join condition: the conjuncts as written, and what each has become."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from braid.condition.access_paths import (
    AccessPath,
    CommonElements,
    Disjunction,
    EditDistance,
    IndexCondition,
    OrderSearch,
    TextPrefix,
)
from braid.condition.residual_predicate import ResidualPredicate
from braid.core.reserved_columns import TIME

KeyPair = tuple[tuple[int, str], tuple[int, str]]
"""The two (stream, key column) that a condition compares."""


@dataclass(frozen=True)
class ConditionPart:
    """A conjunct of a condition.

    - ``id``: its position in the condition.
    - ``text``: the conjunct as written.
    - ``key_pairs``: keys of the index conditions that were made of it.
    - ``residual_sqls``: SQL of the residuals that were made of it.
    """

    id: int
    text: str
    key_pairs: frozenset[KeyPair] = frozenset()
    residual_sqls: frozenset[str] = frozenset()


def add_derived_conditions(
    parts: Sequence[ConditionPart], equal: Iterable[KeyPair], derived: Iterable[IndexCondition]
) -> tuple[ConditionPart, ...]:
    """Return the parts with conditions that follow from several of them.

    ``equal``: the keys that the condition requires to be equal.

    Such a condition belongs to the parts that compare one of its streams' keys by equality: several
    equalities of two streams have a common hash, and a = b and b = c imply a = c.
    """
    extended, equalities = [*parts], {*equal}
    for condition in derived:
        pair = condition.left, condition.right
        streams = {condition.left[0], condition.right[0]}
        for n, part in enumerate(extended):
            compared = part.key_pairs & equalities
            ends = {end for pair in compared for end in pair}
            is_between = any({a[0], b[0]} == streams for a, b in compared)
            if is_between or ends & {*pair}:
                extended[n] = replace(part, key_pairs=part.key_pairs | {pair})
    return tuple(extended)


def find_condition_parts(
    parts: Sequence[ConditionPart], conditions: Iterable[IndexCondition | CommonElements]
) -> tuple[int, ...]:
    """Return the ids of the parts from which these conditions were made; empty for windows."""
    pairs = {(each.left, each.right) for each in conditions}
    return tuple(part.id for part in parts if pairs & part.key_pairs)


def find_residual_parts(
    parts: Sequence[ConditionPart], residual: ResidualPredicate
) -> tuple[int, ...]:
    """Return the ids of the parts that a residual decides."""
    return tuple(part.id for part in parts if residual.sql in part.residual_sqls)


def find_access_parts(parts: Sequence[ConditionPart], path: AccessPath | None) -> tuple[int, ...]:
    """Return the ids of the parts by which an access path finds candidates.

    The number of parts stands for a window that a search of several ranges includes.
    """
    if path is None:
        return ()
    if isinstance(path, (Disjunction, TextPrefix, EditDistance)):
        return find_residual_parts(parts, path.residual)
    if not isinstance(path, OrderSearch):
        return find_condition_parts(parts, [path])
    ids_by_range = [find_condition_parts(parts, [each]) for each in path.all_conditions]
    window = () if all(ids_by_range) else (len(parts),)
    return (*sorted({id for ids in ids_by_range for id in ids}), *window)


def describe_access(path: AccessPath | None) -> str:
    """Return how an access path finds candidates, in a few words."""
    if path is None:
        return "all pairs"
    if isinstance(path, CommonElements):
        return "common elements"
    if isinstance(path, Disjunction):
        return "any branch"
    if isinstance(path, TextPrefix):
        return "prefix"
    if isinstance(path, EditDistance):
        return "segments of texts"
    if isinstance(path, OrderSearch):
        ranges = "range" if len(path.ranges) == 1 else "ranges"
        return ranges if path.equality is None else f"equality and {ranges}"
    if path.left[1] == TIME == path.right[1]:
        return "window"
    return ("equality", "band", "inequality")[path.cost_rank]
