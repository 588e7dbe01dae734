"""The hypercube row by row: three streams, two equalities, and a grid of cells.

The plans are those of the placement. a has a column x, c a column y, and b both. The hash of a
typed digit is its remainder by the number of parts that a dimension can have.

Source: Afrati and Ullman 2010.
"""

from __future__ import annotations

from itertools import product

from braid.core.batch_work import BatchWork
from braid.core.key_boxes import KeyBoxes, Shares
from braid.core.plan import Block, KeySpace
from braid.papers.hypercube.hypercube import HyperCube, HyperCubeState
from braid.papers.hypercube.shares import (
    count_copies,
    count_received_tuples,
    list_factorizations,
)

from braid_lab.common.planned_steps import PlannedSteps, join_words
from braid_lab.common.tuple_models import NAMES, Heads, Line, Place, Rows, StepExample, Trace
from braid_lab.common.typed_batches import TypedTuple, parse_batches
from braid_lab.hypercube.listings import BATCH

DIMENSIONS = ((0, 1), (1, 2))
"""The streams of x and of y."""
COLUMNS, COLUMNS_OF_STREAM = "xy", ("x", "xy", "y")
HOSTS = 4


def run_typed(text: str) -> Trace:
    """Return the steps for typed batches of a(x), b(x, y) and c(y), on four hosts.

    Raises ValueError as ``parse_batches`` does.
    """
    batches = parse_batches(text, (1, 2, 1))
    return _CellSteps(HyperCube(HOSTS, DIMENSIONS)).run_batches(batches)


EXAMPLE = StepExample(
    run_typed,
    ("a:1 a:2 b:13 c:3 / a:3 a:4 a:5 a:6 / a:1 b:23 / a:2 b:13 c:3",),
    (
        "rows by batch, / between two batches: a and the digit of x, b and those of x and y, c and "
        "that of y",
    ),
    {"most rows are of c": ("a:1 b:12 c:2 c:3 / c:2 c:4 c:5 c:2 / b:14 / a:1 b:12 c:2",)},
    "H",
)


class _CellSteps(PlannedSteps):
    """The steps of the hypercube."""

    move_line = 4

    def __init__(self, placement: HyperCube) -> None:
        self.placement = placement
        title = "HyperCube: a.x = b.x AND b.y = c.y in one hop (Shares)"
        super().__init__(title, placement, (1, 2, 1), _has_equal_columns, BATCH)
        self.cube: HyperCubeState = self.state.placement_state
        self.old_places: tuple[Place, ...] = ()

    def explain_plan(self, work: BatchWork) -> None:
        before, self.cube = self.cube, work.plan.state
        if before.exchange:
            self.old_places = _list_host_cells(before)
            self._record_batch_decision(
                f"the shares are {_format_dimension_shares(self.cube.shares)}.", 4
            )

    def _explain_rates_and_shares(self) -> None:
        rates, shares = self.cube.rates, self.cube.shares
        each = (f"{rate:.3g} of {NAMES[s]}" for s, rate in enumerate(rates))
        self._record_batch_decision(f"in the mean a batch had {join_words(each)}.", 1)
        now = count_received_tuples(shares, DIMENSIONS, rates)
        copies = (f"{NAMES[s]} to {count_copies(shares, DIMENSIONS, s)}" for s in range(3))
        text = f"shares {_format_dimension_shares(shares)} send a row of {join_words(copies)} cells"
        self._record_batch_decision(f"{text}: {now:.3g} rows received for {sum(rates):.3g}.", 2)
        if not self.cube.exchange:
            self._record_batch_decision("no other shares send enough less.", 3)
            return
        grows, shrinks, factor = self.cube.exchange
        text = (
            f"{COLUMNS[grows]} is cut into {factor} times the parts, {COLUMNS[shrinks]} into fewer"
        )
        self._record_batch_decision(f"{text}, from the next batch on.", 3)

    def _move_tuples(self, work: BatchWork) -> None:
        super()._move_tuples(work)
        self.old_places = ()
        if self.clock > 1:
            self._explain_rates_and_shares()

    def _record_batch_decision(self, text: str, line: int) -> None:
        self.record_step(f"Batch {self.clock}: {text}", None, line=Line("Shares", line, line))

    def find_number(self, t: TypedTuple, space: KeySpace) -> int:
        boxes = self._get_key_boxes(space)
        weights = boxes.digit_weights(t.stream)
        return sum(v % boxes.finest * w for v, w in zip(t.values, weights, strict=True))

    def _get_key_boxes(self, space: KeySpace) -> KeyBoxes:
        assert space.boxes is not None
        return space.boxes

    def choose_lines(self, t: TypedTuple, block: Block, is_stored: bool) -> tuple[int, int]:
        return 5, 6

    def explain_storage(self, t: TypedTuple, block: Block) -> str:
        columns = COLUMNS_OF_STREAM[t.stream]
        values = (f"{c} = {v}" for c, v in zip(columns, t.values, strict=True))
        return f"with {join_words(values)} is stored at"

    def list_places(self) -> tuple[Place, ...]:
        """Return the cell of each host: a row for each part of x, a column for each of y."""
        return _list_host_cells(self.cube)

    def list_old_places(self) -> tuple[Place, ...]:
        """Return the cells of the layout before, while stored tuples move."""
        return self.old_places

    def list_heads(self) -> Heads:
        """Return the hashes of each part of x and of y."""
        finest = self._get_key_boxes(self.placement.key_space(self.cube)).finest
        rows, columns = (
            tuple(_format_dimension_part(column, part, share, finest) for part in range(share))
            for column, share in zip(COLUMNS, self.cube.shares, strict=True)
        )
        return rows, columns

    def make_table(self) -> Rows:
        """Return, by shares, the cells that a row of each stream goes to, and all received."""
        rates = self.cube.rates
        rows = [("shares", *(f"cells of a row of {s}" for s in NAMES[:3]), "received by batch")]
        for shares in list_factorizations(HOSTS, len(DIMENSIONS), HOSTS):
            copies = (str(count_copies(shares, DIMENSIONS, s)) for s in range(3))
            received = count_received_tuples(shares, DIMENSIONS, rates)
            now = " (now)" if shares == self.cube.shares else ""
            rows.append((f"{_format_dimension_shares(shares)}{now}", *copies, f"{received:.3g}"))
        return tuple(rows)


def _has_equal_columns(t: TypedTuple, u: TypedTuple) -> bool:
    """Return whether two tuples agree in the column that both have, if any."""
    shared = {*COLUMNS_OF_STREAM[t.stream]} & {*COLUMNS_OF_STREAM[u.stream]}
    first, second = (dict(zip(COLUMNS_OF_STREAM[v.stream], v.values, strict=True)) for v in (t, u))
    return all(first[c] == second[c] for c in shared)


def _list_host_cells(cube: HyperCubeState) -> tuple[Place, ...]:
    cells = product(*map(range, cube.shares))
    places = dict(zip(cube.hosts, cells, strict=True))
    return tuple((places[h][0], places[h][1]) for h in sorted(places))


def _format_dimension_shares(shares: Shares) -> str:
    """Return shares as they are written: 2 × 2."""
    return " × ".join(map(str, shares))


def _format_dimension_part(column: str, part: int, share: int, finest: int) -> str:
    """Return the values of a part of a dimension: the remainders that their hashes are."""
    if share == 1:
        return f"all {column}"
    width = finest // share
    remainders = map(str, range(part * width, (part + 1) * width))
    return f"{column} mod {finest} is {' or '.join(remainders)}"
