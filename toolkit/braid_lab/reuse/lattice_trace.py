"""A search in the reuse lattice, key by key.

Source: Seshadri 2008, section 4 and figure 2.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Literal

import pandas as pd
from braid.papers.reuse.query_definition import Definition
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


@dataclass(frozen=True)
class SearchStep:
    """A key visited by a search.

    ``prune_reason`` says why the search went no further; "": it did.
    """

    level: Level
    key: str
    nid: int
    prune_reason: str = ""


def trace_search(lattice: ReuseLattice, wanted: Definition, regions: int = ALL) -> list[SearchStep]:
    """Return the steps of a search without relaxation, level by level, for pictures.

    Each step says whether the search enters a key or prunes it.
    """
    steps: list[SearchStep] = []
    for streams, by_joins in lattice.groups.items():
        nid = _unite_indicators(g.nid for gs in by_joins.values() for g in gs.values())
        why = "" if streams == wanted.streams else "other streams"
        steps.append(SearchStep("streams", ", ".join(streams), nid, why))
        if why:
            continue
        for joins, groups in by_joins.items():
            nid = _unite_indicators(g.nid for g in groups.values())
            why = "" if joins <= wanted.joins else "other join conditions"
            text = " AND ".join(sorted(j.text for j in joins))
            steps.append(SearchStep("joins", text, nid, why))
            if not why:
                for group in groups.values():
                    steps += _trace_group(group, wanted, regions)
    return steps


def _trace_group(group: LatticeGroup, wanted: Definition, regions: int) -> Iterator[SearchStep]:
    for key, entry in group.selections.entries.items():
        chosen = zip(wanted.streams, key, strict=True)
        text = "; ".join(f"{s}: {where.to_sql}" for s, where in chosen if where != EVERYTHING)
        out = "" if entry.nid & regions else "other regions"
        if not out and not are_all_implied(key, wanted.selections):
            out = "too narrow a selection"
        yield SearchStep("selections", text or "every tuple", entry.nid, out)
        if not out:
            for cols, inner in entry.value.entries.items():
                short = "" if are_all_subsets(cols, wanted.columns) else "columns are missing"
                text = ", ".join(
                    f"{s}.{c}"
                    for s, cs in zip(wanted.streams, cols, strict=True)
                    for c in sorted(cs)
                )
                yield SearchStep("columns", text, inner.nid, short)
                if not short:
                    for key_, leaf in inner.value.entries.items():
                        fits = windows_contain(key_, (wanted.windows, wanted.slides))
                        label = f"{', '.join(map(format_window, key_[0]))}; {format_slide(key_[1])}"
                        yield SearchStep("windows", label, leaf.nid, "" if fits else "too short")


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
