"""Records of the answers of outer, semi and anti joins, which a run's state holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

Limit = int
"""Event time in microseconds below which tuples are answered."""
LAST = (1 << 63) - 1
"""Limit after all event times, as JSON has no infinity."""


def to_limit(horizon: float) -> Limit:
    """Return a finite limit for a horizon."""
    return int(min(horizon, LAST))


_QUERIES = 64
"""Births of one query between two of another in ``make_mark_key``."""


def make_mark_key(birth: int, query: int | None) -> int:
    """Return the key of a bitmap: the birth, or the birth and the bit of a query.

    A run that serves many queries has a bitmap of each birth for each of them. None: it serves
    none.
    """
    return birth if query is None else birth * _QUERIES + query


def split_mark_key(key: int, is_shared: bool) -> tuple[int, int | None]:
    """Return the birth and the query of a key; see ``make_mark_key``."""
    return divmod(key, _QUERIES) if is_shared else (key, None)


class Origin(NamedTuple):
    """The birth of a block whose rows are numbered as in another block, and that block's rows."""

    birth: int
    rows: int


class MatchedRows(NamedTuple):
    """Match bitmap of a birth.

    - ``rows``: rows of the birth.
    - ``matches``: those that are in some result.
    - ``file``, ``record_batch``: where the bitmap is; file "": all rows matched.
    - ``new_matches``: those that were in none before the last batch, in a semi join, which writes
      them in the next one. Their own bitmap is beside the other.
    """

    rows: int
    matches: int
    file: str = ""
    record_batch: int = 0
    new_matches: int = 0

    @property
    def is_full(self) -> bool:
        """Whether all rows matched."""
        return self.matches == self.rows


class AnswerCount(NamedTuple):
    """Answered tuples of a stream, and those of them that are in no result."""

    answered: int = 0
    unmatched: int = 0

    def add_counts(self, more: AnswerCount) -> AnswerCount:
        """Return the sums."""
        return AnswerCount(self.answered + more.answered, self.unmatched + more.unmatched)


@dataclass(frozen=True, slots=True)
class AnswerState:
    """The record of what a run has answered.

    - ``until``: by stream, the event time in microseconds below which stored tuples are answered;
      None: none are. Empty in a run that serves many queries.
    - ``until_by_query``: the same by the bit of a query that is not an inner join.
    - ``held``: by block with pending pairs, the event time below which its tuples are answered;
      None: none are.
    - ``origins``: births of blocks that are not their own.
    - ``matched``: match bitmaps by ``make_mark_key``. A birth without one has no match.
    - ``waiting``: by stream, stored tuples that are not final. They are not counted in a run that
      serves many queries.
    - ``checked``: the record of ``AnswerLedger``, by block (by ``make_mark_key``, of the block, in
      a run that serves many queries); empty unless plans are checked.
    """

    until: tuple[int | None, ...] = ()
    held: Mapping[int, int | None] = field(default_factory=dict)
    origins: Mapping[int, Origin] = field(default_factory=dict)
    matched: Mapping[int, MatchedRows] = field(default_factory=dict)
    waiting: tuple[int, ...] = ()
    checked: Mapping[int, Limit] = field(default_factory=dict)
    until_by_query: Mapping[int, tuple[int | None, ...]] = field(default_factory=dict)

    def find_until(self, stream: int, query: int | None) -> int | None:
        """Return the event time below which tuples of a stream are answered; None: none are."""
        if query is None:
            return self.until[stream]
        return self.until_by_query[query][stream] if query in self.until_by_query else None

    def find_birth(self, block: int) -> int:
        """Return the birth of a block."""
        return self.origins[block].birth if block in self.origins else block

    def bitmap_files(self) -> set[str]:
        """Return the files of bitmaps."""
        return {m.file for m in self.matched.values() if m.file}
