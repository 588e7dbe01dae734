"""Which tuples take part when a join sheds load: drawn by a hash of the tuple and of the block that
it is to meet, so that a task that is tried again draws the same. NumPy only.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from braid.core.columns import DRAW, KEPT, WORTH
from braid.core.harvest import LOWEST, Harvest, Item, Term, Worth, Yield, utility
from braid.local.mixing import GOLDEN, Uint64, mix
from braid.local.rows import Partial, Rows, rows_at
from braid.local.sums import SIGNS, Sums, sketched

Floats = npt.NDArray[np.float64]
_COMES_IN = (1 << 64) - 1
"""Stands for the block where it is drawn whether a tuple comes in at all."""
_OF_RESULTS: tuple[Literal["estimated", "utility", "estimated_utility"], ...] = (
    "estimated",
    "utility",
    "estimated_utility",
)
"""What results that have no weight and are worth 1 are summed up for."""


def draws(numbers: Uint64, block: int) -> Floats:
    """A number in [0, 1) for each tuple, anew for each block."""
    return np.asarray((coins(numbers, block) >> np.uint64(11)) * 2.0**-53, np.float64)


def coins(numbers: Uint64, block: int) -> Uint64:
    """What each tuple is drawn by, anew for each block."""
    return mix(numbers ^ mix(np.array([block], np.uint64)))


def told_apart(rows: pa.RecordBatch) -> Uint64:
    """The hashes of tuples, made different among equal ones by their rank: equal tuples may take
    each other's place, but must not all be drawn or none. Tuples that differ and have one hash
    keep their rank, in whatever order a task has them: they are ranked by what they hold.
    """
    numbers = rows.column(DRAW).to_numpy(zero_copy_only=False)
    order = np.argsort(numbers, kind="stable")
    new = np.ones(len(order), bool)
    new[1:] = np.diff(numbers[order]) != 0
    if new.all():
        return numbers.astype(np.uint64)
    tied = np.flatnonzero(~(new & np.append(new[1:], True)))
    order[tied] = order[tied][_by_content(rows_at(rows, order[tied]))]
    rank = np.arange(len(order)) - np.flatnonzero(new)[np.cumsum(new) - 1]
    found = numbers.astype(np.uint64)
    found[order] += rank.astype(np.uint64) * GOLDEN
    return found


def _by_content(rows: pa.RecordBatch) -> npt.NDArray[np.int64]:
    """The order of tuples by their hash, then by all columns that have an order."""
    names = [DRAW, *(f.name for f in rows.schema if f.name != DRAW and not _nested(f.type))]
    # Permutations of other indexes depend on the order of the rows themselves.
    keys = [(name, "ascending") for name in names if not name.startswith("__p:")]
    return np.asarray(pc.sort_indices(rows, sort_keys=keys).to_numpy(), np.int64)


def _nested(kind: pa.DataType) -> bool:
    return bool(pa.types.is_nested(kind) or pa.types.is_null(kind))


def came_in(rows: pa.RecordBatch, share: float) -> pa.RecordBatch:
    """The tuples that come in when only a share does, with a column that remembers it."""
    numbers = rows.column(DRAW).to_numpy().astype(np.uint64)
    chosen = rows
    if share < 1:
        chosen = rows_at(rows, np.flatnonzero(draws(numbers, _COMES_IN) < share))
    return chosen.append_column(KEPT, pa.array(np.full(chosen.num_rows, share)))


@dataclass
class Tally:
    """What came of an item on the hosts of a task, by type of the fresh tuple."""

    considered: Floats
    found: Floats
    value: Sums
    left_out: float = 0.0

    @staticmethod
    def of(kinds: int) -> Tally:
        """Nothing yet."""
        return Tally(np.zeros(kinds), np.zeros(kinds), Sums(kinds))


@dataclass
class Meeting:
    """A fresh block meets another: the ``partial`` that was drawn for it, how many tuples ``left``
    out were, the type of each of the fresh block's tuples (None: one type), and what is found.
    """

    partial: Partial
    left: int
    stream: int
    size: int
    kinds: npt.NDArray[np.int64] | None
    tally: Tally
    reaper: Reaper
    matched: Floats | None = None

    def __post_init__(self) -> None:
        rows, at = self.partial.parts[self.stream]
        self.tally.left_out += self.left * self.size
        self._add(self.tally.considered, at, np.full(len(at), float(self.size)))
        if self.partial.weights is not None:
            self.matched = np.zeros(rows.batch.num_rows)

    def note(self, found: Partial) -> None:
        """Count matches of the first hop."""
        at, served = found.parts[self.stream][1], _served(found)
        self._add(self.tally.found, at, served)
        if self.reaper.worth.typed:
            kinds = None if self.kinds is None else self.kinds[at]
            self.tally.value.add(self.reaper.value(found), served, kinds)
        if self.matched is not None:
            self.matched += np.bincount(at, served, len(self.matched))

    def end(self) -> None:
        """Add to the variance: results^2 (1 - share) / share^2 for each tuple that was drawn."""
        if self.matched is not None and self.partial.weights is not None:
            y, w = self.matched[self.partial.parts[self.stream][1]], self.partial.weights
            if self.reaper.streams == 2:
                self.reaper.variance.add(w**2 - w, y**2)

    def _add(self, sums: Floats, at: npt.NDArray[np.int64], amounts: Floats) -> None:
        if self.kinds is None:
            sums[0] += amounts.sum()
        else:
            sums += np.bincount(self.kinds[at], amounts, len(sums))


@dataclass
class Reaper:
    """Thins what sets out by a harvest, and counts what came of it, for the hosts of one task.
    Once results are complete it weighs them. Where the variance does not follow from what each
    host finds alone, it sketches them: results of more than two ``streams`` by the draw of the
    first hop; where tuples are left out as they come, by the draws of their members.

    ``unthinned`` are items of blocks that all tuples met, each with its pairs and matches;
    ``unweighted`` are results that have no weight and are worth 1. Both are only added up when all
    is done.
    """

    harvest: Harvest
    worth: Worth
    streams: int = 2
    tallies: dict[Item, Tally] = field(default_factory=dict)
    unthinned: list[tuple[Item, float, float]] = field(default_factory=list)
    unweighted: int = 0
    estimated: Sums = field(default_factory=Sums)
    variance: Sums = field(default_factory=Sums)
    utility: Sums = field(default_factory=Sums)
    estimated_utility: Sums = field(default_factory=Sums)
    sketches: list[Floats] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.harvest.keep:
            number = 1 if self.worth.by_value else 2 if self.streams == 2 else 0
        else:
            number = 1 if self.streams > 2 else 0
        self.sketches = [np.zeros(SIGNS) for _ in range(number)]

    @property
    def variance_known(self) -> bool:
        """Not where tuples of three streams and more were left out one by one."""
        return not self.harvest.keep or self.worth.by_value or self.streams == 2

    def meet(
        self, partial: Partial, stream: int, window: int, fresh: int, block: int, rows: Rows
    ) -> Meeting | None:
        """Of the tuples of fresh block ``fresh`` of ``stream`` those that meet ``block`` of
        ``window``, each with its weight; None when the harvest says nothing of them.
        """
        item = self._item(stream, window, block)
        by_type = self.harvest.shares.get(item)
        if by_type is None:
            return None
        mine, at = partial.parts[stream]
        kinds, guard = self._kinds(mine, stream), self._guard(fresh, mine)
        drawn = partial
        if guard * min(by_type) < 1:
            each = np.array(by_type) * guard
            shares = np.full(len(at), each[0]) if kinds is None else each[kinds[at]]
            chosen = np.flatnonzero(draws(_numbers(mine), block)[at] < shares)
            drawn = partial.take(chosen)
            drawn.weights = 1 / shares[chosen]
            if self.streams > 2:
                drawn.coins = coins(_numbers(mine), block)[at[chosen]]
        left, size = len(partial) - len(drawn), rows.batch.num_rows
        return Meeting(drawn, left, stream, size, kinds, self._tally(item, len(by_type)), self)

    def takes_all(self, rows: Rows) -> bool:
        """Whether all tuples of a fresh block meet all others, and one counts as the other."""
        return not self.worth.typed and self.harvest.takes_all(rows.batch.num_rows)

    def all_meet(self, partial: Partial, stream: int, window: int, fresh: int, block: int) -> bool:
        """Whether all tuples of a fresh block meet another, and one counts as the other: their
        pairs need not be told apart by tuple then, and ``met`` counts them.
        """
        if self.worth.typed:
            return False
        by_type = self.harvest.shares.get(self._item(stream, window, block), (1.0,))
        return min(by_type) * self._guard(fresh, partial.parts[stream][0]) >= 1

    def met(self, stream: int, window: int, block: int, pairs: int, found: float) -> None:
        """Count pairs of a block that all tuples met, and their matches."""
        item = self._item(stream, window, block)
        if item in self.harvest.shares:
            self.unthinned.append((item, float(pairs), found))

    def _item(self, stream: int, window: int, block: int) -> Item:
        return stream, window, self.harvest.basic.get(block, -1)

    def _guard(self, fresh: int, rows: Rows) -> float:
        """What shares of a fresh block are multiplied by: 1 unless more came than was expected."""
        expected = self.harvest.expected.get(fresh, 0.0)
        return min(1.0, expected / rows.batch.num_rows) if expected else 1.0

    def _tally(self, item: Item, kinds: int) -> Tally:
        if item not in self.tallies:
            self.tallies[item] = Tally.of(kinds)
        return self.tallies[item]

    def _kinds(self, rows: Rows, stream: int) -> npt.NDArray[np.int64] | None:
        """By row, which of the harvest's types it is of; one that was not known is taken for the
        next that is worth more. None where there is one type.
        """
        types = self.harvest.types[stream] if self.harvest.types else ()
        if len(types) < 2:
            return None
        found = np.searchsorted(np.array(types), kinds(rows))
        return np.minimum(found, len(types) - 1)

    def value(self, found: Partial) -> Floats:
        """What each result is worth, as far as its members are there."""
        if not self.worth.typed:
            return np.ones(len(found))
        members = np.array([_utilities(rows)[at] for rows, at in found.parts.values()])
        return np.asarray(members.max(axis=0) if self.worth.combine == "max" else members.mean(0))

    def result(self, found: Partial) -> Floats | None:
        """The weights of complete results, which are counted; None: all are 1."""
        if found.weights is None and not (self.harvest.keep or self.worth.typed):
            self.unweighted += len(found) if found.queries is None else int(_served(found).sum())
            return None
        weights = np.ones(len(found)) if found.weights is None else found.weights
        weights = weights * self._entry(found)
        served, value = _served(found), self.value(found)
        self._sketch(found, weights, served)
        self.estimated.add(weights, served)
        self.utility.add(value, served)
        self.estimated_utility.add(value * weights, served)
        return weights

    def _sketch(self, found: Partial, weights: Floats, served: Floats) -> None:
        """Add results to the sketches: by the draw of the first hop, by the value that they join
        on, or by each of two members. A result shares both members with itself, which is counted
        for either and set right in the variance.
        """
        if not self.sketches:
            return
        alone = np.sqrt(weights**2 - weights) * served
        if not self.harvest.keep:
            if found.coins is not None:
                self.sketches[0] += sketched(found.coins, alone)
            return
        thrown = [
            coins(rows.numpy(DRAW)[at].astype(np.uint64), _COMES_IN)
            for rows, at in found.parts.values()
        ]
        if self.worth.by_value:
            self.sketches[0] += sketched(thrown[0], alone)
            return
        a, b = 1 / self._entered(found)
        self.sketches[0] += sketched(thrown[0], np.sqrt(a**2 - a) * b * served)
        self.sketches[1] += sketched(thrown[1], np.sqrt(b**2 - b) * a * served)
        self.variance.add(-a * b * (a - 1) * (b - 1), served**2)

    def _entered(self, found: Partial) -> Floats:
        """By member, the share of tuples that came in when it did; 1 where all did."""
        shares = [
            rows.numpy(KEPT)[at] if KEPT in rows.batch.schema.names else np.ones(len(at))
            for rows, at in found.parts.values()
        ]
        return np.array(shares)

    def _entry(self, found: Partial) -> Floats | float:
        """One over the chance that all members of a result came in."""
        if not self.harvest.keep:
            return 1.0
        entered = self._entered(found)
        chance = entered.min(axis=0) if self.worth.by_value else entered.prod(axis=0)
        return np.asarray(1 / chance)

    def yields(self) -> list[Yield]:
        """What came of the items; their value is among the terms. An item is there twice where only
        some of the blocks were met by all tuples; ``together`` adds them up.
        """
        sums: dict[Item, tuple[float, float]] = {}
        for item, pairs, found in self.unthinned:
            before = sums.get(item, (0.0, 0.0))
            sums[item] = before[0] + pairs, before[1] + found
        plain = (self._plain(item, *each) for item, each in sums.items())
        drawn = (
            Yield(
                *item,
                tuple(t.considered.tolist()),
                tuple(t.found.tolist()),
                (0.0,) * len(t.found),
                t.left_out,
            )
            for item, t in self.tallies.items()
        )
        return [*plain, *drawn]

    def _plain(self, item: Item, pairs: float, found: float) -> Yield:
        """What came of blocks that all tuples met: there is one type, so the first."""
        others = (0.0,) * (len(self.harvest.shares[item]) - 1)
        return Yield(*item, (pairs, *others), (found, *others), (0.0, *others), 0.0)

    def terms(self) -> list[Term]:
        """What the sums of all that came are made of."""
        found = [
            Term(of, None, 0, 1.0, float(self.unweighted)) for of in _OF_RESULTS if self.unweighted
        ]
        found += [*self.estimated.terms("estimated"), *self.variance.terms("variance")]
        found += self.utility.terms("utility")
        found += self.estimated_utility.terms("estimated_utility")
        for item, t in sorted(self.tallies.items()):
            found += t.value.terms("value", item)
        return found


def _numbers(rows: Rows) -> Uint64:
    """The hashes of a block's tuples, told apart."""
    return rows.made("drawn by", lambda: told_apart(rows.batch))


def kinds(rows: Rows) -> npt.NDArray[np.int64]:
    """By row, the code of its type: 10 ln V, rounded; LOWEST where V is no number above 0."""

    def coded() -> npt.NDArray[np.int64]:
        worth = rows.numpy(WORTH)
        counts = (worth > 0) & (worth < np.inf)
        codes = np.rint(10 * np.log(np.where(counts, worth, 1.0)))
        return np.where(counts, codes, LOWEST).astype(np.int64)

    return rows.made("of type", coded)


def _utilities(rows: Rows) -> Floats:
    """By row, the utility of its type."""

    def valued() -> Floats:
        known, at = np.unique(kinds(rows), return_inverse=True)
        return np.array([utility(code) for code in known.tolist()])[at]

    return rows.made("of utility", valued)


def _served(found: Partial) -> Floats:
    """How often each counts: once, or for each query that it serves."""
    if found.queries is None:
        return np.ones(len(found))
    return np.bitwise_count(found.queries).astype(float)
