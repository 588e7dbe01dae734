"""Two queries, step by step: may the second reuse the operator of the first, and what changes?

The steps are those of sections 3, 3.1 and 4: base conditions, the search in the lattice, the
relaxation, what cascades, and the compensations. Each is computed by the functions that deploy
queries.

Source: Seshadri 2008.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from braid.hub.query_parser import parse_stream_query
from braid.papers.reuse.query_definition import Compensation, Definition, can_serve, may_reuse
from braid.papers.reuse.relaxation import (
    format_slide,
    format_window,
    relax_columns,
    relax_operator,
    relax_selections,
    relax_windows,
)
from braid.papers.reuse.reuse_lattice import LatticeEntry, ReuseLattice

from braid_lab.common.tuple_models import Rows, Trace, TraceStep
from braid_lab.reuse.lattice_trace import trace_search
from braid_lab.reuse.paper_example import Q2
from braid_lab.reuse.scenario import workload_schemas
from braid_lab.workloads.query_texts import airline_workload

BOTH = ("the operator of the first query", "the second query")
RELAXING = (
    ("section 3.1, step 1: selections", relax_selections, "selections"),
    ("section 3.1, step 2: columns", relax_columns, "columns"),
    ("section 3.1, step 4: windows", relax_windows, "windows"),
)
"""The steps that change a definition, in the paper's order; step 3 is of lifetimes."""


def explain_pair(first: Definition, second: Definition) -> Trace:
    """Return the steps that decide whether and how an operator for ``first`` serves ``second``."""
    return Trace("One operator for two queries", 0, 0, list(_list_steps(first, second)))


def _list_steps(first: Definition, second: Definition) -> Iterator[TraceStep]:
    yield _compare_base_conditions(first, second)
    if not may_reuse(first, second):
        return
    yield from _search_lattice(first, second)
    if can_serve(first, second):
        text = "The operator stays as it is: whatever the second query asks for is in its results."
        yield _make_step("section 3: contained", text, BOTH, (("relaxation", "none"),))
    else:
        yield from _relax_operator(first, second)
    relaxation = relax_operator(first, second)
    operator = first if can_serve(first, second) else relaxation.relaxed
    compensations = (relaxation.for_existing, relaxation.for_query)
    for name, compensation in zip(("first", "second"), compensations, strict=True):
        yield _compensate(name, operator, compensation)


def _make_step(
    line: str, text: str, places: Iterable[str], table: Rows, before: Rows = ()
) -> TraceStep:
    return TraceStep(
        text,
        "the second query",
        0,
        None,
        (),
        table=table,
        line=line,
        places=tuple(places),
        before=before,
    )


def _compare_base_conditions(first: Definition, second: Definition) -> TraceStep:
    rows = [
        ("", *BOTH),
        ("streams", *(", ".join(d.streams) for d in (first, second))),
        ("joins", *(" AND ".join(sorted(j.text for j in d.joins)) for d in (first, second))),
        ("groups", *(_format_groups(d) for d in (first, second))),
    ]
    text = (
        "The base conditions hold: the streams are the same, and the operator joins by nothing "
        "that the second query does not ask for."
        if may_reuse(first, second)
        else "A base condition fails: streams, join conditions and groups are never relaxed. The "
        "second query gets an operator of its own."
    )
    return _make_step("section 3: base conditions", text, BOTH, tuple(rows))


def _format_groups(d: Definition) -> str:
    return "none" if d.groups is None else ", ".join(sorted(f"{s}.{c}" for s, c in d.groups))


def _search_lattice(first: Definition, second: Definition) -> Iterator[TraceStep]:
    """Yield a step for each key that a search for the second query visits."""
    entry = LatticeEntry(1, first, (first,))
    rows: Rows = (("level", "key", "left aside"),)
    for visit in trace_search(ReuseLattice([entry]), second):
        before, rows = rows, (*rows, (visit.level, visit.key, visit.prune_reason))
        text = (
            f"The search enters this key of {visit.level}."
            if not visit.prune_reason
            else f"The search stops here: {visit.prune_reason}. No operator below this key serves "
            "the second query as it is."
        )
        line = f"section 4: the lattice, level {visit.level}"
        yield _make_step(line, text, (visit.level,), rows, before)


def _relax_operator(first: Definition, second: Definition) -> Iterator[TraceStep]:
    """Yield section 3.1's steps, each with the operator's definition before and after it."""
    relaxed = first
    for line, step, part in RELAXING:
        before, relaxed = relaxed, step(relaxed, (first, second))
        changed = _describe_definition(before) != _describe_definition(relaxed)
        text = (
            f"The {part} become wide enough for both queries."
            if changed
            else f"The {part} need no change."
        )
        if part == "columns":
            yield _make_step(line, text, (part,), *_compare(before, relaxed))
            line, text = "section 3.1, step 3: lifetimes", "The operator lives as long as either."
            table: Rows = (("lifetime", "of the query that is withdrawn last"),)
            yield _make_step(line, text, ("lifetimes",), table)
        else:
            yield _make_step(line, text, (part,), *_compare(before, relaxed))
    text = (
        "The operator reads streams only, so nothing cascades. If it read another operator, that "
        "one would be asked for the wider definition of its part in the same way."
    )
    rows = (("reads", *relaxed.streams),)
    yield _make_step("section 3.1, step 5: cascading", text, relaxed.streams, rows)


def _describe_definition(d: Definition) -> list[tuple[str, str]]:
    """Return what each stream of a definition has."""
    rows = []
    for s, where, columns, window in zip(
        d.streams, d.selections, d.columns, d.windows, strict=True
    ):
        rows += [
            (f"{s}: selection", where.to_sql or "every tuple"),
            (f"{s}: columns", ", ".join(sorted(columns))),
            (f"{s}: RANGE", format_window(window)),
        ]
    return [*rows, ("SLIDE", format_slide(d.slides))]


def _compare(before: Definition, after: Definition) -> tuple[Rows, Rows]:
    """Return a table of a definition before and after a step, and the rows before it."""
    old, new = _describe_definition(before), _describe_definition(after)
    rows = [(what, a, b if a != b else "=") for (what, a), (_, b) in zip(old, new, strict=True)]
    return (("", "before", "after"), *rows), tuple(old)


def _compensate(name: str, operator: Definition, compensation: Compensation) -> TraceStep:
    """Return the step of one query's compensation."""
    rows: list[tuple[str, str]] = [("operation", "on the operator's results")]
    for s, where, window in zip(
        operator.streams, compensation.where, compensation.windows, strict=True
    ):
        if where is not None:
            rows.append((f"selection on {s}", where.to_sql or "every tuple"))
        if window is not None:
            rows.append((f"RANGE of {s}", format_window(window)))
    rows += [("join condition", j.text) for j in sorted(compensation.joins)]
    if compensation.slides:
        rows.append(("SLIDE", format_slide(compensation.slides)))
    rows.append(("projection", _list_columns(operator.streams, compensation.columns)))
    text = f"The {name} query takes its own answers from the results by these operations."
    if len(rows) == 2:
        text = f"The {name} query's answers are the results, with its own columns."
    line = f"section 3.1: compensation for the {name} query"
    return _make_step(line, text, (f"the {name} query",), tuple(rows))


def _list_columns(streams: Sequence[str], columns: Sequence[frozenset[str]]) -> str:
    return ", ".join(
        f"{s}.{c}" for s, of_stream in zip(streams, columns, strict=True) for c in sorted(of_stream)
    )


def explain_typed(first: str, second: str) -> Trace:
    """Return the steps for two queries as text, over the streams of an airline.

    Raises QueryError, a ValueError, for a text that is no query over these streams.
    """
    schemas = workload_schemas(airline_workload())
    definitions = (parse_stream_query(text, schemas, "ts").definition for text in (first, second))
    return explain_pair(*definitions)


def pair_example() -> Trace:
    """Return the steps for the join of Q1 that Q2 reuses (sections 2.1 and 3.2)."""
    return explain_typed(PART_OF_Q1, Q2)


PART_OF_Q1 = """SELECT f.num, f.gate, f.dest, c.status
FROM flights [RANGE 5 MIN SLIDE 1 MIN] f, checkins [RANGE 1 MIN] c
WHERE f.num = c.flight AND f.terminal = 'TERMINAL A' AND f.carrier_code = 'DL'"""
"""What the operator at N1 computes for Q1."""
