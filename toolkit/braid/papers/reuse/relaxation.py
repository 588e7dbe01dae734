"""Relaxing an operator so that one more query can be had of it: the steps of section 3.1, one
function each, in the paper's order.

Source: Seshadri 2008, sections 3.1 and 3.2. The fifth step, cascading, is about an operator's
inputs: ``braid.papers.reuse.deployment``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from braid.papers.reuse.definition import (
    UNBOUNDED,
    Compensation,
    Definition,
    make_compensation,
    union_slides,
)
from braid.papers.reuse.selections import union_selections
from braid.util.durations import format_duration

Lifetime = int | None
"""When a query ends, in microseconds; None: nobody knows."""


@dataclass(frozen=True)
class Relaxation:
    """An operator relaxed for a query: section 3.1's σ', and the compensations for both.

    ``changes`` say in words what each step changed: the step's name and a sentence.
    """

    relaxed: Definition
    for_existing: Compensation
    for_query: Compensation
    changes: tuple[tuple[str, str], ...]


def relax_selections(relaxed: Definition, all_of: Sequence[Definition]) -> Definition:
    """Step 1: the selections' minimal cover, which is their disjunction."""
    by_stream = zip(*(d.selections for d in all_of), strict=True)
    return replace(relaxed, selections=tuple(map(union_selections, by_stream)))


def relax_columns(relaxed: Definition, all_of: Sequence[Definition]) -> Definition:
    """Step 2: the union of the columns, those that compensations read included."""
    needed = [d.columns for d in all_of] + [
        make_compensation(relaxed, d).required_columns for d in all_of
    ]
    by_stream = zip(*needed, strict=True)
    return replace(relaxed, columns=tuple(frozenset().union(*cs) for cs in by_stream))


def relax_lifetimes(ends: Iterable[Lifetime]) -> Lifetime:
    """Step 3: an operator lives as long as the longest of its queries."""
    known = list(ends)
    return None if None in known else max(e for e in known if e is not None)


def relax_windows(relaxed: Definition, all_of: Sequence[Definition]) -> Definition:
    """Step 4: the larger RANGE, and a SLIDE that is the disjunction of both."""
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
    """The least definition that all of these can be had of by compensations, whatever their order.

    All must have the base conditions in common with the first, and its joins.
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
    """The minimal relaxation of an existing operator under a query. It holds both, and every other
    definition that holds both holds it.
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
        tuple((step, said) for step, said in changes if said),
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
    said = [
        f"{s} {format_window(a)} -> {format_window(b)}"
        for s, a, b in zip(old.streams, old.windows, new.windows, strict=True)
        if a != b
    ]
    if old.slides != new.slides or (said and old.slides != wanted.slides):
        said.append(
            f"SLIDE {format_slide(old.slides)} OR {format_slide(wanted.slides)} = "
            f"{format_slide(new.slides)}"
        )
    return "; ".join(said)


def format_window(window: int) -> str:
    """A window as text."""
    return "unbounded" if window >= UNBOUNDED else format_duration(window)


def format_slide(slides: frozenset[int]) -> str:
    """A slide as text."""
    return " OR ".join(map(format_duration, sorted(slides))) or "every match"


def _format_lifetime_end(until: Lifetime) -> str:
    return "without end" if until is None else format_duration(until)
