"""Relaxation of an operator so that it also serves one more query.

The steps of section 3.1 are one function each, in the paper's order. The fifth step, cascading,
concerns an operator's inputs: ``braid.papers.reuse.deployment``.

Source: Seshadri 2008, sections 3.1 and 3.2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from braid.papers.reuse.query_definition import (
    UNBOUNDED,
    Compensation,
    Definition,
    make_compensation,
    union_slides,
)
from braid.papers.reuse.selections import union_selections
from braid.util.durations import format_duration

Lifetime = int | None
"""The end of a query, in microseconds; None: unknown."""


@dataclass(frozen=True)
class Relaxation:
    """An operator relaxed for a query: section 3.1's σ', and the compensations for both.

    ``changes`` has, for each step that changed something, its name and a sentence.
    """

    relaxed: Definition
    for_existing: Compensation
    for_query: Compensation
    changes: tuple[tuple[str, str], ...]


def relax_selections(relaxed: Definition, all_of: Sequence[Definition]) -> Definition:
    """Apply step 1: the selections' minimal cover, which is their disjunction."""
    by_stream = zip(*(d.selections for d in all_of), strict=True)
    return replace(relaxed, selections=tuple(map(union_selections, by_stream)))


def relax_columns(relaxed: Definition, all_of: Sequence[Definition]) -> Definition:
    """Apply step 2: the union of the columns, including those that compensations read."""
    needed = [d.columns for d in all_of] + [
        make_compensation(relaxed, d).required_columns for d in all_of
    ]
    by_stream = zip(*needed, strict=True)
    return replace(relaxed, columns=tuple(frozenset().union(*cs) for cs in by_stream))


def relax_lifetimes(ends: Iterable[Lifetime]) -> Lifetime:
    """Apply step 3: an operator lives as long as the longest of its queries."""
    end_times = list(ends)
    return None if None in end_times else max(e for e in end_times if e is not None)


def relax_windows(relaxed: Definition, all_of: Sequence[Definition]) -> Definition:
    """Apply step 4: the larger RANGE, and a SLIDE that is the disjunction of both."""
    by_stream = zip(*(d.windows for d in all_of), strict=True)
    every = all(d.slides for d in all_of)
    slides = union_slides(s for d in all_of for s in d.slides) if every else frozenset()
    return replace(relaxed, windows=tuple(map(max, by_stream)), slides=slides)


STEPS: tuple[Callable[[Definition, Sequence[Definition]], Definition], ...] = (
    relax_selections,
    relax_columns,
    relax_windows,
)
"""The steps that change a definition."""


def relax_all(all_of: Sequence[Definition]) -> Definition:
    """Return the least definition from which compensations compute all of these.

    The order of the definitions does not matter. All must share the base conditions and the joins
    of the first.
    """
    relaxed = all_of[0]
    for step in STEPS:
        relaxed = step(relaxed, all_of)
    return relaxed


def relax_operator(
    existing: Definition,
    wanted: Definition,
    until: Lifetime = None,
    wanted_until: Lifetime = None,
) -> Relaxation:
    """Return the minimal relaxation of an existing operator for a query.

    The relaxed definition contains both, and every definition that contains both contains it.
    """
    relaxed = relax_all((existing, wanted))
    ends = relax_lifetimes((until, wanted_until))
    changes = [
        ("selections", _describe_selection_changes(existing, relaxed)),
        ("columns", _describe_column_changes(existing, relaxed)),
        (
            "lifetimes",
            ""
            if ends == until
            else f"{_format_lifetime_end(until)} -> {_format_lifetime_end(ends)}",
        ),
        ("windows", _describe_window_changes(existing, wanted, relaxed)),
    ]
    return Relaxation(
        relaxed,
        make_compensation(relaxed, existing),
        make_compensation(relaxed, wanted),
        tuple((step, change) for step, change in changes if change),
    )


def _describe_selection_changes(old: Definition, new: Definition) -> str:
    return "; ".join(
        f"{s}: {a.to_sql} -> {b.to_sql}"
        for s, a, b in zip(old.streams, old.selections, new.selections, strict=True)
        if a != b
    )


def _describe_column_changes(old: Definition, new: Definition) -> str:
    more = [
        f"{s}.{c}"
        for s, a, b in zip(old.streams, old.columns, new.columns, strict=True)
        for c in sorted(b - a)
    ]
    return "+ " + ", ".join(more) if more else ""


def _describe_window_changes(old: Definition, wanted: Definition, new: Definition) -> str:
    changes = [
        f"{s} {format_window(a)} -> {format_window(b)}"
        for s, a, b in zip(old.streams, old.windows, new.windows, strict=True)
        if a != b
    ]
    if old.slides != new.slides or (changes and old.slides != wanted.slides):
        changes.append(
            f"SLIDE {format_slide(old.slides)} OR {format_slide(wanted.slides)} = "
            f"{format_slide(new.slides)}"
        )
    return "; ".join(changes)


def format_window(window: int) -> str:
    """Return a window as text."""
    return "unbounded" if window >= UNBOUNDED else format_duration(window)


def format_slide(slides: frozenset[int]) -> str:
    """Return a slide as text."""
    return " OR ".join(map(format_duration, sorted(slides))) or "every match"


def _format_lifetime_end(until: Lifetime) -> str:
    return "without end" if until is None else format_duration(until)
