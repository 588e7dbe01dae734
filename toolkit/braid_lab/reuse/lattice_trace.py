"""A search in the reuse lattice, key by key.

Source: Seshadri 2008, section 4 and figure 2.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import or_
from typing import Any, Literal

import pandas as pd
from braid.papers.reuse.query_definition import Definition, join_columns
from braid.papers.reuse.relaxation import format_slide, format_window
from braid.papers.reuse.reuse_lattice import (
    ALL,
    LatticeGroup,
    ReuseLattice,
    are_all_implied,
    are_all_subsets,
    windows_contain,
)
from braid.papers.reuse.selections import EVERYTHING

Level = Literal["streams", "joins", "groups", "selections", "columns", "windows"]
LEVELS: tuple[Level, ...] = ("streams", "joins", "groups", "selections", "columns", "windows")
"""The levels of the lattice, from the top (section 4.1)."""


REASONS: Mapping[Level, str] = {
    "streams": "other streams",
    "joins": "other join conditions",
    "selections": "too narrow a selection",
    "columns": "columns are missing",
    "windows": "too short",
}
"""By level, why no operator below a key serves a definition as it is."""


@dataclass(frozen=True)
class LatticeKey:
    """A key of the lattice.

    - ``level``, ``text``: its level, and the key as text.
    - ``key``: the key itself.
    - ``nid``: the regions of the operators below it.
    - ``operators``: their ids.
    - ``parent``: position of the key above it; None: it is at the top.
    """

    level: Level
    text: str
    key: Any
    nid: int
    operators: frozenset[int]
    parent: int | None


@dataclass(frozen=True)
class SearchStep:
    """A key visited by a search.

    ``prune_reason`` says why the search went no further; "": it did. ``position`` is that of the
    key in ``list_lattice_keys``.
    """

    level: Level
    key: str
    nid: int
    prune_reason: str = ""
    position: int = field(default=0, compare=False)


def trace_search(lattice: ReuseLattice, wanted: Definition, regions: int = ALL) -> list[SearchStep]:
    """Return the steps of a search without relaxation, level by level, for pictures.

    Each step says whether the search enters a key or prunes it.
    """
    steps: list[SearchStep] = []
    entered: set[int | None] = {None}
    keys = list_lattice_keys(lattice)
    for position, key in enumerate(keys):
        if key.parent in entered:
            is_elsewhere = key.level == "selections" and not key.nid & regions
            reason = "other regions" if is_elsewhere else ""
            if not reason and not _may_serve(keys, key, wanted):
                reason = REASONS[key.level]
            if not reason:
                entered.add(position)
            steps.append(SearchStep(key.level, key.text, key.nid, reason, position))
    return steps


def _may_serve(keys: Sequence[LatticeKey], key: LatticeKey, wanted: Definition) -> bool:
    """Return whether operators below a key may serve a definition, as far as the key tells."""
    if key.level == "streams":
        return bool(key.key == wanted.streams)
    if key.level == "joins":
        return bool(key.key <= wanted.joins)
    if key.level == "selections":
        return are_all_implied(key.key, wanted.selections)
    if key.level == "windows":
        return windows_contain(key.key, (wanted.windows, wanted.slides))
    assert key.parent is not None
    above = keys[key.parent]
    assert above.parent is not None
    return are_all_subsets(key.key, _list_needed_columns(wanted, above, keys[above.parent]))


def _list_needed_columns(
    wanted: Definition, selections: LatticeKey, joins: LatticeKey
) -> list[frozenset[str]]:
    """Return the columns of a query, with those that its compensations read, as the planner does.

    They are those of joins and selections that the operators below some keys do not have.
    """
    extra = join_columns(j for j in wanted.joins - joins.key if not j.is_implied)
    none = frozenset[str]()
    return [
        columns
        | extra.get(stream, none)
        | (none if offered == needed else needed.referenced_columns)
        for stream, columns, offered, needed in zip(
            wanted.streams, wanted.columns, selections.key, wanted.selections, strict=True
        )
    ]


def list_lattice_keys(lattice: ReuseLattice) -> list[LatticeKey]:
    """Return the keys of a lattice, each before those below it."""
    keys: list[LatticeKey] = []
    for streams, by_joins in lattice.groups.items():
        groups = [group for of in by_joins.values() for group in of.values()]
        top = _add_groups_key(keys, "streams", ", ".join(streams), streams, groups, None)
        for joins, of in by_joins.items():
            text = " AND ".join(sorted(j.text for j in joins))
            at = _add_groups_key(keys, "joins", text, joins, [*of.values()], top)
            for group in of.values():
                _add_selection_keys(keys, streams, group, at)
    return keys


def _add_groups_key(
    keys: list[LatticeKey],
    level: Level,
    text: str,
    key: Any,
    groups: Iterable[LatticeGroup],
    parent: int | None,
) -> int:
    """Add a key above some groups, and return its position."""
    groups = [*groups]
    nid = _unite_indicators(g.nid for g in groups)
    operators = frozenset(id for g in groups for id in g.offers)
    keys.append(LatticeKey(level, text, key, nid, operators, parent))
    return len(keys) - 1


def _add_selection_keys(
    keys: list[LatticeKey], streams: Sequence[str], group: LatticeGroup, parent: int
) -> None:
    """Add the keys of the last three levels."""
    for key, entry in group.selections.entries.items():
        chosen = zip(streams, key, strict=True)
        text = "; ".join(f"{s}: {where.to_sql}" for s, where in chosen if where != EVERYTHING)
        below = [leaf for c in entry.value.entries.values() for leaf in c.value.entries.values()]
        ids = frozenset(id for leaf in below for id in leaf.value)
        at, text = len(keys), text or "every tuple"
        keys.append(LatticeKey("selections", text, key, entry.nid, ids, parent))
        for columns, inner in entry.value.entries.items():
            text = ", ".join(
                f"{s}.{c}" for s, of in zip(streams, columns, strict=True) for c in sorted(of)
            )
            ids = frozenset(id for leaf in inner.value.entries.values() for id in leaf.value)
            keys.append(LatticeKey("columns", text, columns, inner.nid, ids, at))
            column_at = len(keys) - 1
            for windows, leaf in inner.value.entries.items():
                text = f"{', '.join(map(format_window, windows[0]))}; {format_slide(windows[1])}"
                ids = frozenset(leaf.value)
                keys.append(LatticeKey("windows", text, windows, leaf.nid, ids, column_at))


def search_table(steps: Iterable[SearchStep], regions: int = 4) -> pd.DataFrame:
    """Return the keys of a search, in order of the visit, with their NID and why they are left.

    ``regions`` is the number of bits of a NID.
    """
    rows = [
        (s.level, s.key or "none", format_indicator(s.nid, regions), s.prune_reason or "entered")
        for s in steps
    ]
    return pd.DataFrame(rows, columns=["level", "key", "NID", "search"])


def format_indicator(nid: int, regions: int) -> str:
    """Return a NID in the notation of figure 2: the first region first.

    >>> format_indicator(0b1011, 4)
    '1101'
    """
    return "".join("1" if nid >> i & 1 else "0" for i in range(regions))


def _unite_indicators(nids: Iterable[int]) -> int:
    return reduce(or_, nids, 0)
