"""Key columns, equalities between them, and the index conditions that they make together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

from braid.condition.access_paths import IndexCondition

End = tuple[int, str]
"""A key column: the stream, and the column's name."""

Equal = Sequence[tuple[End, End]]
"""Pairs of key columns that a condition requires to be equal."""


def add_key_column(columns: dict[str, str], prefix: str, sql: str) -> str:
    """Return the name of the column with this Spark SQL, adding it if needed."""
    for name, text in columns.items():
        if text == sql:
            return name
    name = f"{prefix}{len(columns)}"
    columns[name] = sql
    return name


def combine_equalities(equal: Equal, keys: Sequence[dict[str, str]]) -> list[IndexCondition]:
    """Return, for streams with several equalities, one condition on the hash of all their keys.

    It is more selective. The new key columns are added to ``keys``, Spark SQL by name and stream.
    """
    pairs: dict[tuple[int, int], list[tuple[str, str]]] = {}
    for (a, left), (b, right) in equal:
        pairs.setdefault((a, b), []).append((left, right))
    links: list[IndexCondition] = []
    for (a, b), names in pairs.items():
        if len(names) > 1:
            left, right = (
                _add_hash_key(keys[stream], columns)
                for stream, columns in zip((a, b), zip(*names, strict=True), strict=True)
            )
            links.insert(0, IndexCondition((a, left), (b, right), 0, 0, is_exact=False))
    return links


def _add_hash_key(keys: dict[str, str], columns: Sequence[str]) -> str:
    sqls = ", ".join(keys[c] for c in columns)
    nulls = " or ".join(f"({keys[c]}) is null" for c in columns)
    return add_key_column(keys, "__k", f"if({nulls}, null, xxhash64({sqls}))")


def equality_classes(equal: Equal) -> list[set[End]]:
    """Return the classes of keys that chains of equalities make equal."""
    classes: list[set[End]] = []
    for pair in equal:
        touched = [c for c in classes if c & set(pair)]
        classes = [c for c in classes if c not in touched] + [set(pair).union(*touched)]
    return classes


def implied_equalities(equal: Equal) -> list[IndexCondition]:
    """Return implied equalities, such as a = c from a = b and b = c.

    They find candidates; the stated ones decide.
    """
    stated = {frozenset(pair) for pair in equal}
    return [
        IndexCondition(left, right, 0, 0, is_exact=False)
        for same in equality_classes(equal)
        for left, right in combinations(sorted(same), 2)
        if left[0] != right[0] and frozenset((left, right)) not in stated
    ]


def shared_equality_keys(equal: Equal) -> tuple[dict[int, str], ...]:
    """Return, for each chain of equalities over two or more streams, its key by stream."""
    classes = (dict(sorted(same, reverse=True)) for same in equality_classes(equal))
    keys = (dict(sorted(by_stream.items())) for by_stream in classes if len(by_stream) > 1)
    return tuple(sorted(keys, key=lambda by_stream: (*by_stream,)))


def common_equality_key(equal: Equal, streams: int) -> tuple[str, ...] | None:
    """Return, by stream, the key that one chain of equalities links over all streams.

    It is used to partition by value. None: there is none.
    """
    for by_stream in shared_equality_keys(equal):
        if len(by_stream) == streams:
            return tuple(by_stream.values())
    return None


def intersect_conditions(links: Sequence[IndexCondition]) -> list[IndexCondition]:
    """Return one condition for each pair of keys: the intersection of its bounds.

    If it is inexact, the exact ones are kept beside it.
    """
    groups: dict[tuple[End, End], list[IndexCondition]] = {}
    for link in links:
        groups.setdefault((link.left, link.right), []).append(link)
    conditions = []
    for group in groups.values():
        lo, hi = max(k.lower for k in group), min(k.upper for k in group)
        strict = (
            any(k.open_bounds[0] for k in group if k.lower == lo),
            any(k.open_bounds[1] for k in group if k.upper == hi),
        )
        exact = all(k.is_exact for k in group)
        conditions.append(replace(group[0], lower=lo, upper=hi, open_bounds=strict, is_exact=exact))
        conditions += [] if exact else [k for k in group if k.is_exact]
    return conditions
