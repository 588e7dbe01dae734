"""The search in the reuse lattice, key by key, with its keys as places.

The lattice is that of the planner. An operator is a chip at each key above it; the chips of those
that a search leaves aside are dashed. At the end are the operators that the planner's own search
returns.

Source: Seshadri 2008, section 4.
"""

from __future__ import annotations

from braid.papers.reuse.query_definition import Definition
from braid.papers.reuse.reuse_lattice import LatticeEntry, ReuseLattice
from braid.util.validation import read_natural

from braid_lab.common.planned_steps import join_words
from braid_lab.common.tuple_models import (
    Heads,
    Line,
    Place,
    Rows,
    StepExample,
    Stepper,
    Stored,
    Trace,
    TraceMove,
)
from braid_lab.reuse.lattice_trace import (
    LEVELS,
    LatticeKey,
    SearchStep,
    format_indicator,
    list_lattice_keys,
    trace_search,
)
from braid_lab.reuse.listings import SEARCH
from braid_lab.reuse.pair_steps import OTHERS, PART_OF_Q1, parse_airline_query

REGIONS = 4
"""Number of regions; operator k is in region k, then from the first again."""
MOST_OPERATORS = 6


def run_typed(operators: str, query: str, regions: str) -> Trace:
    """Return the steps of a search for a query among operators, in some regions.

    Raises QueryError, a ValueError, for a text that is no query over the streams of an airline, and
    ValueError for too many operators and for other regions.
    """
    texts = [text for text in operators.split(";") if text.strip()]
    if not 1 <= len(texts) <= MOST_OPERATORS:
        raise ValueError(
            f"there are {len(texts)} operators; give 1 to {MOST_OPERATORS} queries, with ; between"
        )
    numbers = [read_natural(word) for word in regions.split()]
    if not numbers or any(n is None or not 1 <= n <= REGIONS for n in numbers):
        raise ValueError(
            f"regions are {regions.strip()!r}; give one or more of the numbers 1 to {REGIONS}"
        )
    entries = []
    for k, text in enumerate(texts):
        definition = parse_airline_query(text)
        entries.append(LatticeEntry(k + 1, definition, (definition,), 1 << k % REGIONS))
    mask = sum(1 << n - 1 for n in {*numbers} if n)
    return _LatticeSteps(ReuseLattice(entries), parse_airline_query(query), mask).trace


EXAMPLE = StepExample(
    run_typed,
    (
        ";\n".join((PART_OF_Q1, *OTHERS)),
        "SELECT f.num, c.status\n"
        "FROM flights [RANGE 2 MIN] f, checkins [RANGE 1 MIN] c\n"
        "WHERE f.num = c.flight AND f.carrier_code = 'DL'",
        "1 2 3 4",
    ),
    (
        f"operators in the lattice: 1 to {MOST_OPERATORS} queries with ; between, each in the next "
        f"of {REGIONS} regions",
        "the query that arrives",
        "the regions to search",
    ),
    {
        "no operator serves it as it is": (
            ";\n".join((PART_OF_Q1, *OTHERS)),
            "SELECT f.num, f.dest, c.status\n"
            "FROM flights [RANGE 9 MIN] f, checkins [RANGE 9 MIN] c\n"
            "WHERE f.num = c.flight",
            "1 2 3 4",
        )
    },
    "K",
)


class _LatticeSteps(Stepper):
    """The steps of a search: a node for each key, in the row of its level."""

    def __init__(self, lattice: ReuseLattice, wanted: Definition, regions: int) -> None:
        self.lattice, self.wanted, self.regions = lattice, wanted, regions
        self.keys = list_lattice_keys(lattice)
        self.levels = [level for level in LEVELS if any(k.level == level for k in self.keys)]
        self.pruned: dict[int, str] = {}
        self.visited: dict[int, str] = {}
        self.rows: Rows = (("level", "key", "NID", "the search"),)
        self.rows_before: Rows = ()
        names = tuple(
            f"{k + 1}: {_let_wrap(key.text) or 'none'}" for k, key in enumerate(self.keys)
        )
        title = "A search in the reuse lattice (Seshadri 2008, section 4)"
        self.trace = Trace(title, 2, len(self.keys), [], (SEARCH,), names)
        self.now, self.clock = "", 0
        for visit in trace_search(lattice, wanted, regions):
            self._visit_key(visit)
        self._name_operators()

    def _visit_key(self, visit: SearchStep) -> None:
        key, line = self.keys[visit.position], 1 + LEVELS.index(visit.level)
        if visit.prune_reason:
            self.pruned[visit.position] = visit.prune_reason
        verdict = visit.prune_reason or "entered"
        self.rows = (*self.rows, (visit.level, key.text or "none", self._format_nid(key), verdict))
        text = f'The search enters "{key.text}"'
        if visit.prune_reason:
            text = f'The search leaves "{key.text}" aside: {visit.prune_reason}'
        elif visit.level == "windows":
            text = f'The search ends at "{key.text}": {_format_operators(key)} can serve'
        self.visited[visit.position] = "query *" if visit.prune_reason else "query"
        query = self.visited[visit.position]
        move = TraceMove(query, "probe", key.parent, visit.position)
        self.record_step(f"{text}.", visit.position, (move,), line=Line("Section 4.1", line, line))

    def _name_operators(self) -> None:
        """Record what the planner's own search returns."""
        reusable = self.lattice.find_reusable_operators(self.wanted, self.regions)
        serving = [f"o{entry.id}" for entry, is_unchanged in reusable if is_unchanged]
        others = [f"o{entry.id}" for entry, is_unchanged in reusable if not is_unchanged]
        text = f"The planner may reuse {join_words(serving)} unchanged" if serving else ""
        text = text or "The planner may reuse no operator unchanged"
        more = f"; if relaxed, {join_words(others)}, too" if others else ""
        self.record_step(f"{text}{more}.", None, line=Line("Section 4.1", 6, 6))

    def _format_nid(self, key: LatticeKey) -> str:
        return format_indicator(key.nid, REGIONS)

    def _is_pruned(self, position: int | None) -> bool:
        while position is not None:
            if position in self.pruned:
                return True
            position = self.keys[position].parent
        return False

    def list_stored(self) -> Stored:
        """Return the operators below each key, and the query where it is; dashed: left aside."""
        marks = (" *" if self._is_pruned(k) else "" for k in range(len(self.keys)))
        return tuple(
            (
                tuple(f"o{id}{mark}" for id in sorted(key.operators)),
                (self.visited[k],) if k in self.visited else (),
            )
            for k, (key, mark) in enumerate(zip(self.keys, marks, strict=True))
        )

    def list_places(self) -> tuple[Place, ...]:
        """Return the row of each key's level; below its parent if that is free."""
        ends, places = dict.fromkeys(self.levels, 0), list[Place]()
        for key in self.keys:
            above = 0 if key.parent is None else places[key.parent][1]
            column = max(ends[key.level], above)
            ends[key.level] = column + 1
            places.append((self.levels.index(key.level), column))
        return tuple(places)

    def list_heads(self) -> Heads:
        """Return the levels."""
        return tuple(self.levels), ()

    def make_table(self) -> Rows:
        """Return the keys that have been visited, with their regions."""
        return self.rows


def _format_operators(key: LatticeKey) -> str:
    return join_words(f"o{id}" for id in sorted(key.operators))


def _let_wrap(text: str) -> str:
    """Return a key's text that may wrap after dots and underscores."""
    return text.replace(".", ".\u200b").replace("_", "_\u200b")
