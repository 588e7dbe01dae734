"""Streams of changes: the column that says whether a row is inserted or deleted.

A row that is inserted has the sign +1, one that is deleted -1, and an update is the deletion of the
old row and the insertion of the new one. A join is bilinear, so the sign of a result is the product
of its members' signs, in whatever order they meet. Words are those of Delta's change feed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from braid.core.horizon import Reach
from braid.core.join_kinds import JoinKind
from braid.util.validation import format_value

INSERT, DELETE = "insert", "delete"
"""The words of changes in results."""
SIGNS = {INSERT: 1, "update_postimage": 1, DELETE: -1, "update_preimage": -1}
"""Signs by the words of Delta's change feed."""
_INTEGERS = ("tinyint", "smallint", "int", "bigint")
ACCEPTED = f"{', '.join(SIGNS)}, or the integers 1 and -1"
"""Values of a change column."""


def parse_changes(
    changes: Any, schemas: Mapping[str, Mapping[str, str]], times: Mapping[str, str]
) -> dict[str, str]:
    """Return the change columns by alias, in the order of the streams.

    Parameters
    ----------
    changes
        Columns by alias; None: no stream is one of changes.
    schemas
        By alias, the columns of the streams with Spark's type names.
    times
        Event-time columns by alias.

    Raises ValueError for anything else.
    """
    if changes is None:
        return {}
    if not isinstance(changes, Mapping):
        raise ValueError(
            f"changes is {format_value(changes)}; it must be columns by alias, as "
            f"{{{next(iter(schemas))!r}: '_change_type'}}"
        )
    if unknown := [alias for alias in changes if alias not in schemas]:
        raise ValueError(f"changes are given for {unknown}; the streams are {', '.join(schemas)}")
    for alias, column in changes.items():
        kind = schemas[alias].get(column) if isinstance(column, str) else None
        if kind is None:
            raise ValueError(
                f"stream {alias} has no change column {format_value(column)}; it has: "
                f"{', '.join(schemas[alias])}"
            )
        if kind != "string" and kind not in _INTEGERS:
            raise ValueError(
                f"the change column {alias}.{column} is of type {kind}; it must be text or an "
                f"integer, with the values {ACCEPTED}"
            )
        if times.get(alias) == column or len(schemas[alias]) < 2:
            raise ValueError(f"the change column {alias}.{column} says nothing else about a row")
    return {alias: changes[alias] for alias in schemas if alias in changes}


def refuse_changes(changes: Any, kind: str) -> None:
    """Raise ValueError if changes are given to what takes none, as "a shared join"."""
    if changes is not None:
        raise ValueError(
            f"changes are given, but the queries of {kind} have windows, after which a deletion "
            "would miss the partners of its insertion; join changes with StreamJoin"
        )


def check_changes(
    changes: Mapping[str, str],
    kind: JoinKind,
    aliases: Sequence[str],
    bounds: Reach,
    is_partial: bool,
) -> None:
    """Raise ValueError if a join cannot take changes.

    Parameters
    ----------
    changes
        Change columns by alias.
    kind
        The kind of the join.
    aliases
        The streams, in order.
    bounds
        Bounds of event times by which tuples expire.
    is_partial
        Whether pairs are left out, by load shedding or by the placement.
    """
    if not changes:
        return
    if not kind.is_inner:
        raise ValueError(
            f"changes are given, and how is {kind.name!r}, which is not supported: a tuple may "
            "lose its last partner by a deletion; join changes with how='inner'"
        )
    if is_partial:
        raise ValueError(
            "changes are given, and pairs are left out by shed or by the placement, so that a "
            "deletion may be found without its insertion; leave out that one"
        )
    for alias, row in zip(aliases, bounds, strict=True):
        if any(most is not None for stream, most in enumerate(row) if aliases[stream] != alias):
            raise ValueError(
                f"changes are given, but rows of {alias} expire by windows or by the condition, so "
                "that a deletion may come after partners of its insertion are forgotten; give "
                "windows='unbounded', which keeps the full history"
            )
