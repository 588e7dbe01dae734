"""The work of a join that cannot keep up, item by item, by the worth of its results.

An item is a basic window for rows of a type. The heap of Algorithm 5 picks them one by one; a run
fills its budget by a sort (``fill_budget``), and must come to the same shares.

Source: Gedik 2007, section 5.3 (Algorithm 5).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np
from braid.core.plan_sentences import format_count
from braid.papers.shedding.budget import fill_budget
from braid.util.validation import read_natural

from braid_lab.common.tuple_models import (
    NAMES,
    Heads,
    Line,
    Place,
    Rows,
    StepExample,
    Stepper,
    Stored,
    Trace,
)
from braid_lab.shedding.listings import UTILITY
from braid_lab.shedding.paper_algorithms import HeapPick, pick_by_heap

MOST_PARTS, MOST_TYPES = 6, 4
HEADING = ("window, type", "V(z)", "ω", "r_i,z by the heap", "by fill_budget")


def run_typed(outputs: str, types: str, fraction: str) -> Trace:
    """Return the steps for the outputs of basic windows, the types of rows, and r.

    Raises ValueError for texts that cannot be read, and for numbers out of range.
    """
    windows = [_parse_numbers(part, 1, MOST_PARTS) for part in outputs.split("/")]
    kinds = [_parse_numbers(part, 2, 2) for part in types.split("/")]
    (r,) = _parse_numbers(fraction, 1, 1)
    if len(windows) != 2 or not 0 < r <= 1:
        raise ValueError(
            f"found the outputs of {format_count(len(windows), 'window')}, and r is {r:g}; give "
            "those of two windows, with / between, and r greater than 0, at most 1"
        )
    if len(kinds) > MOST_TYPES or not np.isclose(sum(kind[1] for kind in kinds), 1):
        raise ValueError(
            f"{types!r} has {format_count(len(kinds), 'type')} with frequencies of "
            f"{sum(kind[1] for kind in kinds):g} in all; give 1 to {MOST_TYPES} types, and 1 in all"
        )
    return _UtilitySteps(windows, [(kind[0], kind[1]) for kind in kinds], r).trace


def _parse_numbers(text: str, least: int, most: int) -> list[float]:
    """Return numbers of 0 or more; ValueError for other text, and for too few or too many."""
    numbers = [_read_decimal(word) for word in text.split()]
    if None in numbers or not least <= len(numbers) <= most:
        count = f"{least} to {most} numbers" if most > least else f"{least} of them"
        raise ValueError(f"{text.strip()!r} is no list of numbers such as 2 or 0.5; give {count}")
    return [number for number in numbers if number is not None]


def _read_decimal(word: str) -> float | None:
    """Return the number of a word such as 2 or 0.5; None for others."""
    units, point, rest = word.partition(".")
    parts = [units, rest] if point else [units]
    return None if None in map(read_natural, parts) else float(word)


EXAMPLE = StepExample(
    run_typed,
    ("4 2 1 / 1 3 1", "1 0.75 / 5 0.25", "0.4"),
    (
        "results expected of a pair, by basic window: of a, then / and of b",
        "types of rows, / between two: utility and frequency",
        "r, the fraction of all pairs that can be compared",
    ),
    {"all types are worth the same": ("4 2 1 / 1 3 1", "1 0.75 / 1 0.25", "0.4")},
)


class _UtilitySteps(Stepper):
    """The steps of Algorithm 5: a list of items for each window and type.

    Volumes are in basic windows for all rows: an item has the frequency of its type.
    """

    def __init__(
        self, outputs: Sequence[Sequence[float]], types: Sequence[tuple[float, float]], r: float
    ) -> None:
        self.outputs, self.types = outputs, types
        self.keys = [*product(range(2), range(len(types)))]
        self.ranks = [sorted(range(len(of)), key=lambda j, of=of: -of[j]) for of in outputs]  # type: ignore[misc]
        self.values = [[types[z][0] * o for o in outputs[i]] for i, z in self.keys]
        self.volumes = [types[z][1] for _, z in self.keys]
        self.budget = r * sum(map(len, outputs))
        self.taken = [list[tuple[int, float]]() for _ in self.keys]
        self.in_heap: dict[int, int] = {}
        self.filled: list[float] | None = None
        names = tuple(f"window of {NAMES[i]}, type {z + 1}" for i, z in self.keys)
        title = "The work that is worth most (Gedik 2007, Algorithm 5)"
        self.trace = Trace(title, 2, len(self.keys), [], (UTILITY,), names)
        self.now, self.clock = "", 0
        self._fill_heap()
        for pick in pick_by_heap(self.values, self.volumes, self.budget):
            self._take_item(pick)
        self._compare_with_sort()

    def _fill_heap(self) -> None:
        for k, (i, z) in enumerate(self.keys):
            self.in_heap[k] = 0
            value = f"{self.types[z][0]:g} · {max(self.outputs[i]):g} = {max(self.values[k]):g}"
            text = f"the best basic window is B{self.ranks[i][0] + 1}, with v = {value}"
            self._record_item_step(f"For type {z + 1} in the window of {NAMES[i]} {text}.", k, 3, 6)
        total = sum(map(len, self.outputs))
        text = f"a = {self.budget:.3g}: r of the {total} basic windows for all rows"
        self._record_item_step(f"The heap has the best item of each list; {text}.", None, 7, 8)

    def _take_item(self, pick: HeapPick) -> None:
        k, part = pick.list_index, self._find_part(pick.list_index, pick.rank)
        volume = self.volumes[k]
        text = (
            f"B{part + 1} is on top with v = {pick.value:g}; a = {pick.left:.3g} after {volume:g}"
        )
        self._record_item_step(f"{text} is spent.", k, 9, 12)
        self.taken[k].append((part, pick.share))
        self.in_heap.pop(k)
        if pick.share < 1:
            text = f"Only {pick.share:.0%} of it fits: r grows by that part of a basic window"
            self._record_item_step(f"{text}, and nothing is left.", k, 15, 18)
            return
        self._record_item_step("All of it fits: r grows by one basic window.", k, 13, 14)
        if pick.rank + 1 < len(self.values[k]):
            self.in_heap[k] = pick.rank + 1
            following = f"B{self._find_part(k, pick.rank + 1) + 1}"
            self._record_item_step(f"The next of its list goes in: {following}.", k, 19, 21)

    def _compare_with_sort(self) -> None:
        """Record the shares that a run takes, by a sort of all items."""
        sizes = [len(values) for values in self.values]
        flat = np.array([v for values in self.values for v in values])
        shares = fill_budget(flat, np.repeat(self.volumes, sizes), self.budget)
        starts = np.cumsum([0, *sizes[:-1]])
        self.filled = (np.add.reduceat(shares, starts) / sizes).tolist()
        is_same = np.allclose(self.filled, self._sum_shares())
        verdict = "the same shares" if is_same else "other shares"
        text = f"fill_budget, by which a run chooses, sorts all items, and takes {verdict}."
        self._record_item_step(text, None, 9, 18)

    def _find_part(self, k: int, rank: int) -> int:
        return self.ranks[self.keys[k][0]][rank]

    def _sum_shares(self) -> list[float]:
        """Return r_{i,z} of each list."""
        pairs = zip(self.taken, self.values, strict=True)
        return [sum(share for _, share in taken) / len(values) for taken, values in pairs]

    def _record_item_step(self, text: str, node: int | None, first: int, last: int) -> None:
        self.record_step(text, node, line=Line("Algorithm 5", first, last))

    def list_stored(self) -> Stored:
        """Return the basic windows that are taken, in the color of their window."""
        rows = []
        for (i, _), taken in zip(self.keys, self.taken, strict=True):
            names = (f"B{j + 1}" if share == 1 else f"B{j + 1} #" for j, share in taken)
            rows.append((tuple(names), ()) if i == 0 else ((), tuple(names)))
        return tuple(rows)

    def list_queued(self) -> Rows:
        """Return the item of each list that is in the heap."""
        return tuple(
            (f"B{self._find_part(k, self.in_heap[k]) + 1}: v = {self._find_value(k):g}",)
            if k in self.in_heap
            else ()
            for k in range(len(self.keys))
        )

    def _find_value(self, k: int) -> float:
        return sorted(self.values[k], reverse=True)[self.in_heap[k]]

    def list_places(self) -> tuple[Place, ...]:
        """Return a row for each window, and a column for each type."""
        return tuple(self.keys)

    def list_heads(self) -> Heads:
        """Return the windows, and the types."""
        types = (f"type {z + 1}: worth {worth:g}" for z, (worth, _) in enumerate(self.types))
        return ("window of a", "window of b"), tuple(types)

    def make_table(self) -> Rows:
        """Return the shares of each window and type."""
        rows = [HEADING]
        for k, (i, z) in enumerate(self.keys):
            worth, frequency = self.types[z]
            by_sort = f"{self.filled[k]:.2f}" if self.filled else ""
            name, heap = f"{NAMES[i]}, type {z + 1}", f"{self._sum_shares()[k]:.2f}"
            rows.append((name, f"{worth:g}", f"{frequency:g}", heap, by_sort))
        return tuple(rows)
