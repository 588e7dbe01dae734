"""Load shedding: the plan of a batch's shares, and its outcome. A shedder decides on the plan.

Source: Gedik 2007.
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
    """Selective processing of one batch: the share of fresh tuples that meets each block.

    Only the first hop of fresh blocks is sampled, and only for items in ``shares``.

    - ``basic_windows``: by block, its basic window j; the youngest is 0.
    - ``shares``: by item, a share in (0, 1] for each type of tuple of stream k. A tuple meets a
      block if the hash of both, as a number in [0, 1), is below it.
    - ``types``: by stream, the codes of types, ascending; empty: one type.
    - ``expected_tuples``: by fresh block, the rows that the shares are computed for. If more
      arrive, each share shrinks in proportion (the burst guard).
    - ``keep_shares``: by stream, the share of tuples admitted; empty: all are.
    """

    basic_windows: Mapping[int, int] = field(default_factory=dict)
    shares: Mapping[Item, tuple[float, ...]] = field(default_factory=dict)
    types: tuple[tuple[int, ...], ...] = ()
    expected_tuples: Mapping[int, float] = field(default_factory=dict)
    keep_shares: tuple[float, ...] = ()

    def type_count(self, stream: int) -> int:
        """Return the number of types of a stream's tuples, at least 1."""
        return max(1, len(self.types[stream])) if self.types else 1

    def is_full_join(self, rows: int) -> bool:
        """Return whether nothing is shed if a stream brings at most ``rows`` tuples."""
        return (
            not self.keep_shares
            and all(min(by_type) >= 1 for by_type in self.shares.values())
            and all(not most or rows <= most for most in self.expected_tuples.values())
        )


class ItemYield(NamedTuple):
    """The yield of an item in a batch. Tuples of numbers are by type of the fresh tuple.

    - ``considered_pairs``: pairs (probing tuple, row of a block) that were considered.
    - ``matches``: pairs that matched at the first hop.
    - ``value``: utility of the results.
    - ``skipped_pairs``: pairs that were not considered.
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
        """The item as a tuple (k, i, j)."""
        return self.stream, self.window, self.basic_window

    @staticmethod
    def sum_yields(several: Sequence[ItemYield]) -> ItemYield:
        """Return the sum of several yields of one item. The order does not matter."""
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
    """A term of a sum in a task's report: ``value`` times ``multiplicity``.

    Sums of terms do not depend on the division among tasks or on order.

    - ``owner``: the sum that it belongs to.
    - ``item``: item of a yield's value; None: a sum over all items.
    - ``kind``: type of the tuples.
    - ``value``: value of one addend.
    - ``multiplicity``: how often it is added.
    """

    owner: Literal["value", "estimated", "variance", "utility", "estimated_utility"]
    item: Item | None
    kind: int
    value: float
    multiplicity: float


@dataclass(frozen=True, slots=True)
class SheddingOutcome:
    """The outcome of a batch's shedding, over all hosts.

    - ``yields``: yield of each item.
    - ``types``: by stream, the fresh tuples of each type.
    - ``estimated_results``: the sum of all results' weights, an unbiased estimate of the full
      join's results (Horvitz and Thompson 1952).
    - ``variance``: unbiased estimate of its variance; None: unknown.
    - ``utility``, ``estimated_utility``: utility of the results, and estimated utility of the full
      join's.
    - ``probe_seconds``: measured probing time of the busiest partition.
    - ``seconds``: duration of the whole batch; None: not measured.
    - ``terms``: terms still to be added, in a task's report.
    - ``sketches``: signed sums of results, from which the variance of results that share a draw is
      estimated (see ``estimate_variances``). If tuples were skipped at arrival, a draw lasts longer
      than a batch, and the sketches of batches are added.
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
        """Number of pairs that were considered."""
        return sum(sum(y.considered_pairs) for y in self.yields)

    @property
    def skipped_pairs(self) -> float:
        """Number of pairs that were skipped."""
        return sum(y.skipped_pairs for y in self.yields)


def estimate_variances(sketches: Sequence[Sequence[float]]) -> float:
    """Return an unbiased estimate of the variance from sketches.

    For each sketch it estimates the sum, over all draws, of the squared total of a draw's results.
    Each sum gives every draw a random sign, so products of two draws cancel in the mean of squares.
    Source: Alon, Matias and Szegedy 1996.
    """
    return fsum(fsum(z * z for z in each) / len(each) for each in sketches if each)


def sum_sketches(several: Iterable[Sequence[Sequence[float]]]) -> tuple[tuple[float, ...], ...]:
    """Return the sum of the sketches of several tasks or batches."""
    sketches = [each for each in several if each]
    return tuple(tuple(map(fsum, zip(*same, strict=True))) for same in zip(*sketches, strict=True))


LOWEST = -10_000
"""Code of the type of tuples with utility 0. It is below that of any positive utility."""


def utility_of_type(code: int) -> float:
    """Return the utility of a type.

    Codes are 10 ln V, rounded to keep the number of types small.
    """
    return exp(code / 10) if code > LOWEST else 0.0


@dataclass(frozen=True, slots=True)
class ResultUtility:
    """The utility of a result, computed from its members.

    - ``typed``: whether tuples have types. If not, each result has utility 1.
    - ``is_by_value``: whether skipped tuples are sampled by the value of the join's equality
      instead of one by one.
    - ``combine``: maximum or mean of the members' utilities. Default: "max".
    """

    typed: bool = False
    is_by_value: bool = False
    combine: Literal["max", "mean"] = "max"


def merge_outcomes(parts: Sequence[SheddingOutcome]) -> SheddingOutcome:
    """Merge the outcomes of several tasks.

    The division among tasks and their order do not matter.
    """
    yields: dict[Item, list[ItemYield]] = {}
    for y in chain.from_iterable(part.yields for part in parts):
        yields.setdefault(y.item_key, []).append(y)
    types: list[dict[int, int]] = []
    for part in parts:
        types += [{} for _ in range(len(part.types) - len(types))]
        for own_type, theirs in zip(types, part.types, strict=False):
            for code, n in theirs.items():
                own_type[code] = own_type.get(code, 0) + n
    sums = _sum_terms(chain.from_iterable(part.terms for part in parts))
    summed = (ItemYield.sum_yields(yields[item]) for item in sorted(yields))
    valued = {item for of, item, _ in sums if of == "value"}
    return SheddingOutcome(
        tuple(_add_term_values(y, sums) if y.item_key in valued else y for y in summed),
        tuple(types),
        fsum(p.estimated_results for p in parts) + sums.get(("estimated", None, 0), 0.0),
        _sum_variances(parts, sums),
        fsum(p.utility for p in parts) + sums.get(("utility", None, 0), 0.0),
        fsum(p.estimated_utility for p in parts) + sums.get(("estimated_utility", None, 0), 0.0),
        max((p.probe_seconds for p in parts), default=0.0),
        sketches=sum_sketches(p.sketches for p in parts),
    )


_Sum = tuple[str, Item | None, int]
"""The sum that a term belongs to: its first three fields."""


def _sum_terms(terms: Iterable[WeightedTerm]) -> dict[_Sum, float]:
    times: dict[_Sum, dict[float, float]] = {}
    for t in terms:
        by_value = times.setdefault(t[:3], {})
        by_value[t.value] = by_value.get(t.value, 0.0) + t.multiplicity
    return {at: fsum(v * n for v, n in by_value.items()) for at, by_value in times.items()}


def _sum_variances(parts: Sequence[SheddingOutcome], sums: Mapping[_Sum, float]) -> float | None:
    if any(p.variance is None for p in parts):
        return None
    return fsum(p.variance or 0.0 for p in parts) + sums.get(("variance", None, 0), 0.0)


def _add_term_values(y: ItemYield, sums: Mapping[_Sum, float]) -> ItemYield:
    more = (sums.get(("value", y.item_key, z), 0.0) for z in range(len(y.value)))
    return y._replace(value=tuple(a + b for a, b in zip(y.value, more, strict=True)))
