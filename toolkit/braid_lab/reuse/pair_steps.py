"""Two queries, step by step: may the second reuse the operator of the first, and what changes?

The steps are those of sections 3, 3.1 and 4: base conditions, the search in the lattice, the
relaxation, what cascades, and the compensations. Each is computed by the functions that deploy
queries.

Source: Seshadri 2008.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from braid.hub.query_parser import parse_stream_query
from braid.papers.reuse.cost import CostModel
from braid.papers.reuse.deployment import (
    DeployedQuery,
    Deployment,
    ReusedOperator,
    add_query,
    remove_queries,
)
from braid.papers.reuse.planner import Planner, PlanningService
from braid.papers.reuse.query_definition import (
    INNER,
    Compensation,
    Definition,
    can_serve,
    may_reuse,
)
from braid.papers.reuse.relaxation import (
    format_slide,
    format_window,
    relax_columns,
    relax_operator,
    relax_selections,
    relax_windows,
)
from braid.papers.reuse.reuse_lattice import LatticeEntry, ReuseLattice
from braid.papers.reuse.selections import EVERYTHING, Selection

from braid_lab.common.tuple_models import Line, Rows, StepExample, Trace, TraceMove, TraceStep
from braid_lab.reuse.lattice_trace import LEVELS, trace_search
from braid_lab.reuse.listings import RELAX, REUSE, SEARCH
from braid_lab.reuse.paper_example import Q2, figure_1_example
from braid_lab.reuse.scenario import workload_schemas
from braid_lab.workloads.query_texts import airline_workload

RelaxationStep = Callable[[Definition, Sequence[Definition]], Definition]
HEADING = ("part", "definition of the operator")
CASCADED = ("what it reads", "selection", "columns", "RANGE")
COMPENSATED = ("operation", "the results have", "the query asks for")
BOTH = ("the first query", "the second query")
NAMES = ("first", "second")
RELAXING: tuple[tuple[str, RelaxationStep | None, str], ...] = (
    (
        "selections",
        relax_selections,
        "The selections become the disjunctions of both queries'.",
    ),
    (
        "columns",
        relax_columns,
        "The columns become the union of both queries', and of those that compensations read.",
    ),
    (
        "lifetimes",
        None,
        "The operator lives as long as the query that lives longest.",
    ),
    (
        "windows",
        relax_windows,
        "RANGE becomes the larger one, and answers are due at the SLIDE of either query.",
    ),
)
"""The steps that change an operator, in the paper's order. That of lifetimes changes no definition.
"""


def explain_pair(first: Definition, second: Definition) -> Trace:
    """Return the steps that decide whether and how an operator for ``first`` serves ``second``."""
    names = (*(f"{s} at its source" for s in first.streams), "the operator", *BOTH)
    across = len(first.streams)
    places = (*((0, k) for k in range(across)), (1, 0), (2, 0), (2, 1))
    steps = [replace(step, places=places) for step in _Pair(first, second).list_steps()]
    listings = (REUSE, SEARCH, RELAX)
    return Trace("One operator for two queries", across, len(names), steps, listings, names)


class _Pair:
    """The steps of two queries, and the columns that sources, operator and queries have."""

    def __init__(self, first: Definition, second: Definition) -> None:
        self.first, self.second = first, second
        self.source = self.operator = first
        self.at = len(first.streams)

    def list_steps(self) -> Iterator[TraceStep]:
        """Yield the steps."""
        first, second = self.first, self.second
        yield self._show(_compare_base_conditions(first, second), self.at + 2)
        if not may_reuse(first, second):
            return
        for step in _search_lattice(first, second):
            yield self._show(step, None)
        if can_serve(first, second):
            old, new = _deploy_pair(first, second)
            rows = [_describe_operator(first, _describe_lifetime(d)) for d in (old, new)]
            text = "The operator stays: whatever the second query asks for is in its results."
            yield self._show(_make_step("Section 3", 2, text, BOTH, rows[1], rows[0]), self.at)
        else:
            for step, relaxed in _relax_operator(first, second):
                added = _list_added(self.operator, relaxed)
                self.operator = relaxed
                yield self._show(step, self.at, (added, self.at + 2, self.at))
            added, self.source = _list_added(first, self.operator), self.operator
            yield self._show(_cascade(first, second), self.at, (added, self.at, 0))
        relaxation = relax_operator(first, second)
        operator = first if can_serve(first, second) else relaxation.relaxed
        compensations = (relaxation.for_existing, relaxation.for_query)
        for k, compensation in enumerate(compensations):
            step = _compensate(NAMES[k], operator, compensation)
            node = self.at + 1 + k
            columns = _list_columns(operator.streams, compensation.columns)
            yield self._show(step, node, (columns, self.at, node))

    def _show(
        self, step: TraceStep, node: int | None, move: tuple[str, int, int] | None = None
    ) -> TraceStep:
        """Return a step at a node, with the columns that all nodes have after it."""
        sources = [
            tuple(tuple(sorted(of)) if n == k else () for n, of in enumerate(self.source.columns))
            for k in range(self.at)
        ]
        others = [
            tuple(tuple(sorted(of)) for of in d.columns[: self.at])
            for d in (self.operator, self.first, self.second)
        ]
        moves = (TraceMove(move[0], "copy", *move[1:]),) if move and move[0] else ()
        return replace(step, node=node, stored=(*sources, *others), moves=moves)


def _list_added(before: Definition, after: Definition) -> str:
    """Return the columns that an operator gets."""
    gained = [b - a for a, b in zip(before.columns, after.columns, strict=True)]
    return _list_columns(after.streams, gained)


def _make_step(
    algorithm: str, line: int, text: str, parts: Iterable[str], table: Rows, before: Rows
) -> TraceStep:
    return TraceStep(
        text,
        "the second query",
        0,
        None,
        (),
        table=table,
        line=Line(algorithm, line, line),
        parts=tuple(parts),
        table_before=before,
    )


def _compare_base_conditions(first: Definition, second: Definition) -> TraceStep:
    rows = [
        ("", *BOTH),
        ("kind", *map(_format_kind, (first, second))),
        ("streams", *(", ".join(d.streams) for d in (first, second))),
        ("joins", *(" AND ".join(sorted(j.text for j in d.joins)) for d in (first, second))),
        ("groups", *(_format_groups(d) for d in (first, second))),
    ]
    text = (
        "The base conditions hold: the streams are the same, and the operator joins by nothing "
        "that the second query does not ask for."
        if may_reuse(first, second)
        else f"A base condition fails: {_name_failing(first, second)}. The second query gets an "
        "operator of its own."
    )
    before = tuple(row[:2] for row in rows)
    return _make_step("Section 3", 1, text, BOTH, tuple(rows), before)


def _name_failing(first: Definition, second: Definition) -> str:
    """Return why no operator of the first query serves the second."""
    if first.kind != second.kind:
        return "the kinds of the joins differ, and a kind is never relaxed"
    if first.kind != INNER:
        return "a join that is not inner is reused as it is, for queries that are the same"
    return "streams, join conditions and groups are never relaxed"


def _format_kind(d: Definition) -> str:
    return f"{d.kind} from {d.left_stream}" if d.left_stream else d.kind


def _format_groups(d: Definition) -> str:
    return "none" if d.groups is None else ", ".join(sorted(f"{s}.{c}" for s, c in d.groups))


def _search_lattice(first: Definition, second: Definition) -> Iterator[TraceStep]:
    """Yield a step for each key that a search for the second query visits."""
    definitions = (first, *map(parse_airline_query, OTHERS))
    entries = [LatticeEntry(k, d, (d,)) for k, d in enumerate(definitions, 1)]
    rows: Rows = (("level", "key", "left aside"),)
    for visit in trace_search(ReuseLattice(entries), second):
        before, rows = rows, (*rows, (visit.level, visit.key, visit.prune_reason))
        text = f'The search enters "{visit.key}".'
        if visit.prune_reason:
            text = (
                f'The search leaves "{visit.key}" aside: {visit.prune_reason}. No operator below '
                "serves the second query as it is."
            )
        elif visit.level == "windows":
            text = f'The search ends at "{visit.key}": an operator serves the query as it is.'
        level = 1 + LEVELS.index(visit.level)
        yield _make_step("Section 4.1", level, text, (visit.level,), rows, before)


def _relax_operator(
    first: Definition, second: Definition
) -> Iterator[tuple[TraceStep, Definition]]:
    """Yield section 3.1's steps 1 to 4, each with the operator's definition after it."""
    old, new = _deploy_pair(first, second)
    relaxed, lifetime = first, _describe_lifetime(old)
    for line, (part, step, change) in enumerate(RELAXING, 1):
        before = _describe_operator(relaxed, lifetime)
        if step is None:
            lifetime = _describe_lifetime(new)
        else:
            relaxed = step(relaxed, (first, second))
        after = _describe_operator(relaxed, lifetime)
        text = change if after != before else f"The {part} need no change."
        yield _make_step("Section 3.1", line, text, (part,), after, before), relaxed


def _describe_lifetime(deployment: Deployment) -> str:
    """Return how long the operator of the first query lives: until no query is left that keeps it.

    A query keeps it if it is still there when all others are withdrawn.
    """
    operator = deployment.queries["first"].operator
    keeping = []
    for name in deployment.queries:
        others = [other for other in deployment.queries if other != name]
        if operator in remove_queries(deployment, *others).operators:
            keeping.append(f"the {name} query")
    return f"until {' and '.join(keeping)} {'are' if len(keeping) > 1 else 'is'} withdrawn"


def _cascade(first: Definition, second: Definition) -> TraceStep:
    """Return step 5: how the operators and streams that the operator reads change with it."""
    old, new = _deploy_pair(first, second)
    before, after = (tuple(_describe_inputs(deployment)) for deployment in (old, new))
    changed = [row[0] for row, earlier in zip(after, before, strict=True) if row != earlier]
    text = (
        f"The relaxation cascades to {', '.join(changed)}: what was selected and projected there "
        "is now made wide enough for both queries."
        if changed
        else "Nothing cascades: all that the second query needs arrives already."
    )
    places = [row[0] for row in after]
    rows = [(CASCADED, *of) for of in (after, before)]
    return _make_step("Section 3.1", 5, text, places, *rows)


def _deploy_pair(first: Definition, second: Definition) -> tuple[Deployment, Deployment]:
    """Return the first query deployed on figure 1's network, and with the second reusing it."""
    network, rates, at = figure_1_example()
    service = PlanningService(Planner(CostModel(network, rates)), Deployment(at))
    service.submit_query(DeployedQuery("first", first, "SINK3"))
    old = service.deployment
    top = old.operators[old.queries["first"].operator]
    query = DeployedQuery("second", second, "SINK4")
    return old, add_query(old, query, ReusedOperator(top.id, top.node))


def _describe_inputs(deployment: Deployment) -> Iterator[tuple[str, str, str, str]]:
    """Yield what the operator of the first query reads: selection, columns and RANGE."""
    top = deployment.operators[deployment.queries["first"].operator]
    for operator in deployment.operators.values():
        if operator.id != top.id:
            yield (f"the join at {operator.node}", *_summarize(operator.definition))
    for stream in top.definition.streams:
        yield (f"{stream} at its source", *_summarize(top.definition.restrict_to([stream])))


def _summarize(d: Definition) -> tuple[str, str, str]:
    where = " AND ".join(w.to_sql for w in d.selections if w != EVERYTHING) or "every tuple"
    return where, _list_columns(d.streams, d.columns), ", ".join(map(format_window, d.windows))


def _describe_operator(d: Definition, lifetime: str) -> Rows:
    """Return what each stream of an operator has, and how long the operator lives."""
    rows = [HEADING]
    for s, where, columns, window in zip(
        d.streams, d.selections, d.columns, d.windows, strict=True
    ):
        rows += [
            (f"{s}: selection", _format_selection(where)),
            (f"{s}: columns", ", ".join(sorted(columns))),
            (f"{s}: RANGE", format_window(window)),
        ]
    return (*rows, ("SLIDE", format_slide(d.slides)), ("lifetime", lifetime))


def _format_selection(where: Selection) -> str:
    return "every tuple" if where == EVERYTHING else where.to_sql


def _compensate(name: str, operator: Definition, compensation: Compensation) -> TraceStep:
    """Return the step of one query's compensation."""
    rows = (COMPENSATED, *_list_operations(operator, compensation))
    text = f"The {name} query takes its own answers from the results by these operations."
    if len(rows) == 2:
        text = f"The {name} query's answers are the results, with its own columns."
    before = tuple(row[:2] for row in rows)
    return _make_step("Section 3", 4, text, (f"the {name} query",), rows, before)


def _list_operations(d: Definition, compensation: Compensation) -> Iterator[tuple[str, str, str]]:
    """Yield each operation on an operator's results: its kind, what they have, what is wanted."""
    by_stream = zip(
        d.streams, d.selections, compensation.where, d.windows, compensation.windows, strict=True
    )
    for s, wide, where, longest, window in by_stream:
        if where is not None:
            yield (f"selection on {s}", _format_selection(wide), _format_selection(where))
        if window is not None:
            yield (f"RANGE of {s}", format_window(longest), format_window(window))
    for join in sorted(compensation.joins):
        yield ("join condition", "every pair", join.text)
    if compensation.slides:
        yield ("SLIDE", format_slide(d.slides), format_slide(compensation.slides))
    present, wanted = (_list_columns(d.streams, of) for of in (d.columns, compensation.columns))
    yield ("projection", present, wanted)


def _list_columns(streams: Sequence[str], columns: Sequence[frozenset[str]]) -> str:
    return ", ".join(
        f"{s}.{c}" for s, of_stream in zip(streams, columns, strict=True) for c in sorted(of_stream)
    )


def explain_typed(first: str, second: str) -> Trace:
    """Return the steps for two queries as text, over the streams of an airline.

    Raises QueryError, a ValueError, for a text that is no query over these streams.
    """
    return explain_pair(*map(parse_airline_query, (first, second)))


def parse_airline_query(sql: str) -> Definition:
    """Return a query over the streams of an airline.

    Raises QueryError, a ValueError, for a text that is none.
    """
    return parse_stream_query(sql, workload_schemas(airline_workload()), "ts").definition


def pair_example() -> Trace:
    """Return the steps for the join of Q1 that Q2 reuses (sections 2.1 and 3.2)."""
    return explain_typed(PART_OF_Q1, Q2)


PART_OF_Q1 = """SELECT f.num, f.gate, f.dest, c.status
FROM flights [RANGE 5 MIN SLIDE 1 MIN] f, checkins [RANGE 1 MIN] c
WHERE f.num = c.flight AND f.terminal = 'TERMINAL A' AND f.carrier_code = 'DL'"""
"""What the operator at N1 computes for Q1."""

OTHERS = (
    "SELECT f.num, b.area FROM flights [RANGE 5 MIN] f, baggage [RANGE 2 MIN] b "
    "WHERE f.num = b.flight",
    "SELECT f.num, f.gate, f.carrier_code, c.status, c.vacant_seats "
    "FROM flights [RANGE 5 MIN] f, checkins [RANGE 5 MIN] c "
    "WHERE f.num = c.flight AND f.terminal = 'TERMINAL B'",
    "SELECT f.num, f.carrier_code, c.status, c.vacant_seats "
    "FROM flights [RANGE 2 MIN] f, checkins [RANGE 2 MIN] c WHERE f.num = c.flight",
)
"""Queries of others, whose operators are in the lattice too."""


EXAMPLE = StepExample(
    explain_typed,
    (PART_OF_Q1, Q2),
    ("the query that the operator answers", "the query that arrives"),
    {"a query that is contained": (PART_OF_Q1, PART_OF_Q1)},
)
