"""The fraction and the direction of a join that cannot keep up, period by period.

The join of ``reference`` fetches rows while it can afford their comparisons; at the end of a period
the rows that are left are dropped. Then Algorithms 2, 1 and 4 follow. Their r is a feedback; beside
it is the r with which Braid's budget looks ahead.

Source: Gedik 2007, sections 4.1 (Algorithm 1) and 5.2 (Algorithm 4).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from braid.papers.shedding.budget import Budget
from braid.util.validation import read_natural

from braid_lab.common.tuple_models import (
    Group,
    Line,
    Place,
    Rows,
    StepExample,
    Stored,
    Trace,
    Tuple,
)
from braid_lab.common.typed_batches import parse_batches
from braid_lab.shedding.listings import ADAPT, DIRECTION, PROCESS, RATE
from braid_lab.shedding.paper_algorithms import adapt_fraction, split_directions
from braid_lab.shedding.reference import BasicWindow, SetTuple, SheddingJoin

PERIOD = 6
"""T_r, and the length of a basic window; a window has two of them."""
MOST_COMPARISONS = 999
HEADING = ("period", "fetched", "β", "r", "r_1 (of a)", "r_2 (of b)", "r that Braid would choose")


def run_typed(text: str, affordable: str) -> Trace:
    """Return the steps for rows by period, and the comparisons that a period affords.

    Raises ValueError as ``parse_batches`` does, and for a number out of range.
    """
    periods, number = parse_batches(text, (1, 1)), read_natural(affordable)
    if number is None or not 1 <= number <= MOST_COMPARISONS:
        raise ValueError(
            f"{affordable!r} is no number of comparisons; it must be a whole number from 1 to "
            f"{MOST_COMPARISONS}"
        )
    join = _RateSteps(
        (2 * PERIOD, 2 * PERIOD), PERIOD, "equal", sample=0.5, seed=1, affordable=number
    )
    for k, period in enumerate(periods):
        times = (k * PERIOD + n * PERIOD // len(period) for n in range(len(period)))
        join.run_period(
            [
                SetTuple(time, t.stream, t.number, {t.values[0]: 1.0})
                for t, time in zip(period, times, strict=True)
            ],
            (k + 1) * PERIOD,
        )
    return join.trace


EXAMPLE = StepExample(
    run_typed,
    (
        "a:1 b:1 a:2 b:2 / a:1 a:3 b:1 b:2 a:2 b:3 a:1 b:1 / "
        "a:1 a:2 b:2 b:1 a:3 b:3 a:1 b:2 / a:1 b:1 a:2",
        "12",
    ),
    (
        "rows by period, / between two periods: a letter and a digit; equal ones match",
        "comparisons that a period affords",
    ),
    {
        "b comes after its partners": (
            "a:1 a:2 a:3 b:9 / a:4 a:5 a:6 b:1 b:2 b:3 / a:7 a:8 a:9 b:4 b:5 b:6 / a:1 b:7 b:8 b:9",
            "9",
        )
    },
)


@dataclass
class _RateSteps(SheddingJoin):
    """The join with a fraction for each window.

    - ``affordable``: comparisons that a period affords.
    - ``fractions``: r_1 and r_2; ``fraction`` is r.
    - ``periods``: the table's rows.
    """

    affordable: int = 1
    fractions: tuple[float, ...] = (1.0, 1.0)
    periods: list[tuple[str, ...]] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.trace.title = "How much of which window (Gedik 2007, Algorithms 1 and 4)"
        self.trace.listings = (RATE, DIRECTION, ADAPT, PROCESS)
        self.spent, self.compared_rows = 0, set[str]()
        self.probed_window: int | None = None

    def run_period(self, arrivals: Sequence[SetTuple], end: int) -> None:
        """Fetch and process the rows of a period while it affords comparisons, then adapt."""
        before, fetched = self.compared, list[SetTuple]()
        for t in arrivals:
            if self.compared - before >= self.affordable:
                break
            fetched.append(t)
            self._process_fetched_tuple(t, before)
        self.probed_window = None
        self.adapt_window_ranks(end)
        if arrivals:
            self.now = arrivals[-1]
            self._adapt_fraction(fetched, arrivals)
            self._adapt_directions()

    def _process_fetched_tuple(self, t: SetTuple, before: int) -> None:
        self.now, self.clock, self.spent = t, t.time, before
        self.compared_rows, self.probed_window = set(), 1 - t.stream
        steps = len(self.trace.steps)
        self.process_tuple(t)
        if len(self.trace.steps) == steps:
            text = f"{t} is fetched; there is nothing to compare it with."
            self._record_fetched_tuple(text, t, (t.stream, 0), (1, 1))

    def record_probe(
        self,
        text: str,
        t: SetTuple,
        place: Place | None,
        lines: tuple[int, int],
        groups: Iterable[Group] = (),
    ) -> None:
        """Note the lines; each basic window gets one step, in ``probe_basic_window``."""
        self.lines = lines

    def probe_basic_window(self, t: SetTuple, place: Place, part: BasicWindow, share: float) -> int:
        before, results, lines = self.compared, len(self.results), self.lines
        matches = super().probe_basic_window(t, place, part, share)
        used = self.compared - before
        self.compared_rows.update(map(str, part.tuples[len(part.tuples) - used :]))
        rows = f"{used} of {len(part.tuples)} rows of basic window {place[1] + 1}"
        spent = f"{self.compared - self.spent} of {self.affordable} comparisons are spent"
        text = f"{t} is compared with {rows}, and finds {matches}; {spent}."
        pairs = [(_make_plain_tuple(x), _make_plain_tuple(y)) for x, y in self.results[results:]]
        if part.tuples:
            self._record_fetched_tuple(text, t, place, lines, pairs)
        return matches

    def _record_fetched_tuple(
        self,
        text: str,
        t: SetTuple,
        place: Place,
        lines: tuple[int, int],
        pairs: Sequence[Group] = (),
    ) -> None:
        super().record_probe(text, t, place, lines, pairs)

    def find_window_fraction(self, window: int) -> float:
        return self.fractions[window]

    def _adapt_fraction(self, fetched: Sequence[SetTuple], arrivals: Sequence[SetTuple]) -> None:
        """Apply Algorithm 1."""
        counts = [[sum(t.stream == s for t in of) for s in (0, 1)] for of in (fetched, arrivals)]
        (a, b), (all_a, all_b) = counts
        left = len(arrivals) - len(fetched)
        rest = f": {left} are dropped" if left else ""
        self._record_adaptation(f"α: {a} rows of a and {b} of b were fetched", "Algorithm 1", 3, 4)
        self._record_adaptation(
            f"λ T_r: {all_a} of a and {all_b} of b came{rest}", "Algorithm 1", 5, 6
        )
        beta = len(fetched) / len(arrivals)
        self._record_adaptation(
            f"β = {len(fetched)} / {len(arrivals)} = {beta:.2f}", "Algorithm 1", 7, 7
        )
        before, self.fraction = self.fraction, adapt_fraction(self.fraction, beta)
        line = 8 if beta < 1 else 9
        change = f"r was {before:.2f}, and is now {self.fraction:.2f}"
        self._record_adaptation(change, "Algorithm 1", line, line)
        number = str(1 + len(self.periods))
        row = (number, f"{len(fetched)} of {len(arrivals)}", f"{beta:.2f}", f"{self.fraction:.2f}")
        self.periods.append((*row, "", "", f"{self._choose_fraction_ahead(all_a, all_b):.2f}"))

    def _choose_fraction_ahead(self, of_a: int, of_b: int) -> float:
        """Return the fraction of Braid's budget, if as many rows come again."""
        stored = [sum(len(part.tuples) for part in parts) for parts in self.windows]
        budget = Budget.from_options(pairs=self.affordable)
        fits = budget.affordable_pairs(None, 0.0, 0.0, 0.0)
        volume = float(of_a * stored[1] + of_b * stored[0])
        return budget.choose_fraction(volume, fits, self.fraction)[0]

    def _adapt_directions(self) -> None:
        """Apply Algorithm 4."""
        o_1, o_2 = (sum(output) / len(output) for output in self.output)
        self._record_adaptation(f"o_1 = {o_1:.3f}, o_2 = {o_2:.3f}", "Algorithm 4", 3, 4)
        lengths = (float(self.length[0]), float(self.length[1]))
        shares = split_directions(self.fraction, lengths, (o_1, o_2)).tolist()
        self.fractions = (shares[0], shares[1])
        self.periods[-1] = (
            *self.periods[-1][:4],
            *(f"{r:.2f}" for r in shares),
            *self.periods[-1][6:],
        )
        line = 5 if o_1 >= o_2 else 6
        of_both = f"r (w_1 + w_2) / w_1 = {self.fraction * sum(lengths) / lengths[0]:.2f}"
        self._record_adaptation(f"{of_both}: r_1 = {shares[0]:.2f}", "Algorithm 4", line, line)
        text = f"r_2 = {shares[1]:.2f}: r_1 w_1 + r_2 w_2 is r (w_1 + w_2)"
        self._record_adaptation(text, "Algorithm 4", 7, 7)

    def _record_adaptation(self, text: str, algorithm: str, first: int, last: int) -> None:
        self.record_step(f"{text}.", None, line=Line(algorithm, first, last))

    def list_stored(self) -> Stored:
        """Return the rows of each basic window; those that the fetched row has not met are *."""
        stored = super().list_stored()
        if self.probed_window is None:
            return stored
        rows = [
            tuple(
                name if name in self.compared_rows else f"{name} *"
                for name in of[self.probed_window]
            )
            for of in stored
        ]
        return tuple(
            (names, of[1]) if self.probed_window == 0 else (of[0], names)
            for of, names in zip(stored, rows, strict=True)
        )

    def make_table(self) -> Rows:
        """Return the fractions of each period."""
        return (HEADING, *self.periods) if self.periods else ()


def _make_plain_tuple(t: SetTuple) -> Tuple:
    return Tuple(t.time, t.stream, t.number)
