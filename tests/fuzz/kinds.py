"""Kinds of joins and as-of joins of a case: drawn at random, and their results from its pairs."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from braid.core.join_kinds import EMITS
from braid.core.match_rules import MATCHES
from msgspec.structs import replace

from fuzz.cases import Case
from fuzz.outcomes import Ids

_KINDS = ("left", "right", "full", "semi", "anti")
_TOLERANCES = (0, 2, 60_000_000, 150_000_000)
_PRESERVED = {"inner": (), "right": (1,), "full": (0, 1)}
"""Numbers of the streams whose rows are answered, by kind; of others only the first is."""


def draw_kind(draw: random.Random, case: Case) -> Case:
    """Return the case with a kind of join, or as an as-of join; two in five stay inner joins."""
    if draw.random() < 0.4:
        return case
    emit = draw.choice(EMITS)
    if len(case.streams) > 2:
        kept = draw.sample([*case.streams], draw.randint(1, len(case.streams)))
        return replace(case, how=dict.fromkeys(kept, "keep"), emit=emit)
    if draw.random() < 0.6:
        how = draw.choice(_KINDS)
        return replace(case, how=how, emit="final" if how == "semi" else emit)
    return replace(
        case,
        how=draw.choice(("inner", "left")),
        match=draw.choice(MATCHES),
        tolerance=draw.choice((None, *_TOLERANCES)),
        is_strict=draw.random() < 0.3,
        windows={},
    )


def kind_arguments(case: Case) -> dict[str, Any]:
    """Return the arguments of a join for the kind of a case."""
    given: dict[str, Any] = {"how": case.how}
    if case.match:
        given |= {"match": case.match, "strict": case.is_strict}
        if case.tolerance is not None:
            given["tolerance"] = f"{case.tolerance} microseconds"
    return given


def list_kind_results(case: Case, pairs: Ids) -> Ids:
    """Return the results of a case's kind of join, given those of the inner join."""
    pairs = _choose_partners(case, pairs) if case.match else pairs
    preserved = list_preserved(case)
    rows = [len(stream.rows) for stream in case.streams.values()]
    found = {stream: {ids[stream] for ids in pairs} for stream in preserved}
    if case.how in ("semi", "anti"):
        return Counter((n,) for n in range(rows[0]) if (n in found[0]) == (case.how == "semi"))
    alone = (
        tuple(n if other == stream else None for other in range(len(rows)))
        for stream in preserved
        for n in range(rows[stream])
        if n not in found[stream]
    )
    return Counter(pairs) + Counter(alone)


def list_preserved(case: Case) -> tuple[int, ...]:
    """Return the numbers of the streams whose rows are answered."""
    if isinstance(case.how, dict):
        return tuple(n for n, alias in enumerate(case.streams) if alias in case.how)
    return _PRESERVED.get(case.how, (0,))


def _choose_partners(case: Case, pairs: Ids) -> Ids:
    """Return the pairs of an as-of join by event time: at most one for each row of the left.

    Of partners at one event time, the one of the greatest number wins, as it is the first column.
    """
    left, right = (stream.event_times() for stream in case.streams.values())
    best: dict[int, tuple[tuple[int, bool, int], int]] = {}
    for a, b in pairs:
        ahead = right[b] - left[a]
        is_open = {"latest": ahead <= 0, "first": ahead >= 0, "nearest": True}[case.match]
        is_near = case.tolerance is None or abs(ahead) <= case.tolerance
        if is_open and is_near and not (case.is_strict and ahead == 0):
            best[a] = max(
                best.get(a, ((-(1 << 62), False, -1), -1)), ((-abs(ahead), ahead > 0, b), b)
            )
    return Counter((a, b) for a, (_, b) in best.items())


def read_ids(rows: pa.Table, case: Case) -> Ids:
    """Return results by the numbers of their rows; None: no row of that stream."""
    aliases = [alias for alias in case.streams if alias in rows.column_names]
    columns = [pc.struct_field(rows[alias], "id").to_pylist() for alias in aliases]
    return Counter(zip(*columns, strict=True))
