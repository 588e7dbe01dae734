"""What share of the tuples that set out takes part when a join cannot keep up, and what came of it.
A shedder (shedder.py) decides. Source: Gedik 2007.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from math import exp, fsum
from typing import Literal, NamedTuple

Item = tuple[int, int, int]
"""(k, i, j): tuples of stream k against basic window j of stream i."""


@dataclass(frozen=True, slots=True)
class SheddingPlan:
    """Selective processing of one batch: what share of the fresh tuples meets which blocks.

    ``basic`` maps a block to j, its basic window; the youngest is 0. ``shares`` has, by item, a
    share in (0, 1] for each type of tuple of stream k; a tuple meets a block when the hash of both,
    as a number in [0, 1), lies below it. ``types`` are, by stream, the codes of types, rising; none
    are one type. Only the first hop of fresh blocks is thinned, and only where ``shares`` has the
    item.

    ``expected`` has, by fresh block, the rows that the shares are made for: where more come, each
    share is that much less (the burst guard). ``keep`` is, by stream, the share of tuples that come
    in at all; none are left out when it is empty.
    """

    basic_windows: Mapping[int, int] = field(default_factory=dict)
    shares: Mapping[Item, tuple[float, ...]] = field(default_factory=dict)
    types: tuple[tuple[int, ...], ...] = ()
    expected_tuples: Mapping[int, float] = field(default_factory=dict)
    keep_shares: tuple[float, ...] = ()

    def type_count(self, stream: int) -> int:
        """How many types of tuples of a stream are told apart, at least 1."""
        return max(1, len(self.types[stream])) if self.types else 1

    def is_full_join(self, rows: int) -> bool:
        """Whether all tuples take part in all, of a stream that brings at most so many rows."""
        return (
            not self.keep_shares
            and all(min(by_type) >= 1 for by_type in self.shares.values())
            and all(not most or rows <= most for most in self.expected_tuples.values())
        )


class ItemYield(NamedTuple):
    """What came of an item in a batch. ``considered`` are pairs (tuple that set out, row of a
    block) and ``found`` those that matched at the first hop, by type of the fresh tuple; ``value``
    is the utility of what was found. ``left_out`` are the pairs that were not considered.
    """

    stream: int
    window: int
    basic_window: int
    considered_pairs: tuple[float, ...]
    matches: tuple[float, ...]
    value: tuple[float, ...]
    skipped_pairs: float

    @property
    def item_key(self) -> Item:
        """What it came of."""
        return self.stream, self.window, self.basic_window

    @staticmethod
    def sum_yields(several: Sequence[ItemYield]) -> ItemYield:
        """Several of one item and as many types as one, whatever their order."""
        if len(several) == 1:
            return several[0]

        def sums(of: Iterable[tuple[float, ...]]) -> tuple[float, ...]:
            return tuple(map(fsum, zip(*of, strict=True)))

        return ItemYield(
            *several[0].item_key,
            sums(y.considered_pairs for y in several),
            sums(y.matches for y in several),
            sums(y.value for y in several),
            fsum(y.skipped_pairs for y in several),
        )


class WeightedTerm(NamedTuple):
    """Of a sum in a task's report, a value that was added so many ``times``, for tuples of a type;
    ``item`` is that of a yield's value, None for a sum of all. Sums of terms do not depend on who
    counted what, nor in which order.
    """

    owner: Literal["value", "estimated", "variance", "utility", "estimated_utility"]
    item: Item | None
    kind: int
    value: float
    multiplicity: float


@dataclass(frozen=True, slots=True)
class SheddingOutcome:
    """What came of a batch's harvest, of all hosts together.

    ``types`` counts, by stream, the fresh tuples of each type. ``estimated`` is the sum of all
    results' weights, an unbiased estimate of the results of the full join (Horvitz and Thompson
    1952), ``variance`` an unbiased estimate of its variance, None where there is none.
    ``utility`` is what the results are worth, ``estimated_utility`` what those of the full join
    are. ``probing`` are the measured seconds that the busiest partition probed, ``seconds`` those
    of the whole turn; None: not measured. ``terms`` are what is still to be added, in the report of
    a task. ``sketches`` are sums of results with signs: they tell the variance that results of one
    draw have together, wherever they are found; see ``squared``. Where tuples were left out as they
    came, draws last longer than a batch, and so sketches of batches are added.
    """

    yields: tuple[ItemYield, ...] = ()
    types: tuple[Mapping[int, int], ...] = ()
    estimated_results: float = 0.0
    variance: float | None = 0.0
    utility: float = 0.0
    estimated_utility: float = 0.0
    probe_seconds: float = 0.0
    seconds: float | None = None
    terms: tuple[WeightedTerm, ...] = ()
    sketches: tuple[tuple[float, ...], ...] = ()

    @property
    def considered_pairs(self) -> float:
        """All pairs that were considered."""
        return sum(sum(y.considered_pairs) for y in self.yields)

    @property
    def skipped_pairs(self) -> float:
        """All pairs that were left out."""
        return sum(y.skipped_pairs for y in self.yields)


def estimate_variances(sketches: Sequence[Sequence[float]]) -> float:
    """Of each sketch, an unbiased estimate of the sum, over all draws, of the square of what the
    results of a draw add up to (Alon, Matias and Szegedy 1996): every sum has a sign of its own for
    each draw, so that in the mean of their squares what is of two draws cancels out.
    """
    return fsum(fsum(z * z for z in each) / len(each) for each in sketches if each)


def sum_sketches(several: Iterable[Sequence[Sequence[float]]]) -> tuple[tuple[float, ...], ...]:
    """Sketches of several tasks, or batches, as those of all."""
    known = [each for each in several if each]
    return tuple(tuple(map(fsum, zip(*same, strict=True))) for same in zip(*known, strict=True))


LOWEST = -10_000
"""The code of the type of tuples that are worth nothing, below that of any number above 0."""


def utility_of_type(code: int) -> float:
    """What a tuple of a type is worth: codes are 10 ln V, rounded, so that there are few."""
    return exp(code / 10) if code > LOWEST else 0.0


@dataclass(frozen=True, slots=True)
class ResultUtility:
    """What a result is worth: that of its members, the most of them or their mean (``combine``).
    Each result is worth 1 where tuples have no types (``typed``). ``by_value``: tuples that do not
    come in are chosen by the value that an equality joins on, and not each by itself.
    """

    typed: bool = False
    is_by_value: bool = False
    combine: Literal["max", "mean"] = "max"


def merge_outcomes(parts: Sequence[SheddingOutcome]) -> SheddingOutcome:
    """What came of a harvest in several tasks as one, whoever did what, and in whatever order."""
    yields: dict[Item, list[ItemYield]] = {}
    for y in chain.from_iterable(part.yields for part in parts):
        yields.setdefault(y.item_key, []).append(y)
    types: list[dict[int, int]] = []
    for part in parts:
        types += [{} for _ in range(len(part.types) - len(types))]
        for mine, theirs in zip(types, part.types, strict=False):
            for code, n in theirs.items():
                mine[code] = mine.get(code, 0) + n
    sums = _sum_terms(chain.from_iterable(part.terms for part in parts))
    whole = (ItemYield.sum_yields(yields[item]) for item in sorted(yields))
    valued = {item for of, item, _ in sums if of == "value"}
    return SheddingOutcome(
        tuple(_add_term_values(y, sums) if y.item_key in valued else y for y in whole),
        tuple(types),
        fsum(p.estimated_results for p in parts) + sums.get(("estimated", None, 0), 0.0),
        _sum_variances(parts, sums),
        fsum(p.utility for p in parts) + sums.get(("utility", None, 0), 0.0),
        fsum(p.estimated_utility for p in parts) + sums.get(("estimated_utility", None, 0), 0.0),
        max((p.probe_seconds for p in parts), default=0.0),
        sketches=sum_sketches(p.sketches for p in parts),
    )


_Sum = tuple[str, Item | None, int]
"""What a term is added to: its first three fields."""


def _sum_terms(terms: Iterable[WeightedTerm]) -> dict[_Sum, float]:
    times: dict[_Sum, dict[float, float]] = {}
    for t in terms:
        mine = times.setdefault(t[:3], {})
        mine[t.value] = mine.get(t.value, 0.0) + t.multiplicity
    return {at: fsum(v * n for v, n in mine.items()) for at, mine in times.items()}


def _sum_variances(parts: Sequence[SheddingOutcome], sums: Mapping[_Sum, float]) -> float | None:
    if any(p.variance is None for p in parts):
        return None
    return fsum(p.variance or 0.0 for p in parts) + sums.get(("variance", None, 0), 0.0)


def _add_term_values(y: ItemYield, sums: Mapping[_Sum, float]) -> ItemYield:
    more = (sums.get(("value", y.item_key, z), 0.0) for z in range(len(y.value)))
    return y._replace(value=tuple(a + b for a, b in zip(y.value, more, strict=True)))
