"""The reuse of operators in our own words, with the numbers of Seshadri 2008."""

from braid_lab.common.tuple_models import Listing

REUSE = Listing(
    "Section 3",
    "may an operator answer one more query?",
    (
        (1, 1, "base conditions: the same streams, joins and kind, and groups that cover"),
        (2, 2, "contained: all that the query asks for is in the results; reuse it as it is"),
        (3, 3, "else relax the operator (section 3.1)"),
        (4, 4, "compensate: each query takes its own answers from the results"),
    ),
    "",
)
RELAX = Listing(
    "Section 3.1",
    "relax an operator for a query",
    (
        (1, 1, "selections: the disjunction of both"),
        (2, 2, "columns: the union of both, and what compensations read"),
        (3, 3, "lifetime: the longest of the queries that use it"),
        (4, 4, "windows: the larger RANGE, the SLIDE of either"),
        (5, 5, "cascade to the operators and sources that it reads"),
    ),
    "step",
)
SEARCH = Listing(
    "Section 4.1",
    "search the reuse lattice, level by level",
    (
        (1, 1, "streams: equal to the query's"),
        (2, 2, "join conditions: none that the query lacks"),
        (3, 3, "groups: those of the query, or finer"),
        (4, 4, "selections: implied by the query's"),
        (5, 5, "columns: all that the query asks for"),
        (6, 6, "windows: they contain the query's"),
    ),
    "level",
)
