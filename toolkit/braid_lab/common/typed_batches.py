"""Rows typed into a stepper batch by batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from braid.util.validation import read_natural

from braid_lab.common.tuple_models import NAMES

MOST_TYPED = 40
"""Maximum number of rows in all batches: nobody goes through the steps of more."""


class TypedTuple(NamedTuple):
    """A tuple of a stream with a value for each of its columns, and its number from 1."""

    batch: int
    stream: int
    number: int
    values: tuple[int, ...]

    def __str__(self) -> str:
        return f"{NAMES[self.stream]}{self.number}"


def parse_batches(text: str, columns: Sequence[int]) -> list[list[TypedTuple]]:
    """Return typed tuples by batch: a word each, and ``/`` where the next batch begins.

    ``columns``: by stream, the number of its columns. A word is the letter of the stream, a colon
    and a digit for each column.

    Raises ValueError for a word that is no such tuple, and for none or too many.

    >>> print(*(" ".join(map(str, b)) for b in parse_batches("a:1 b:1 / a:2", (1, 1))), sep=" / ")
    a1 b1 / a2
    """
    batches, counts = [list[TypedTuple]()], [0] * len(columns)
    for word in text.split():
        if word == "/":
            batches.append([])
            continue
        stream, values = _parse_word(word, columns)
        counts[stream] += 1
        batches[-1].append(TypedTuple(len(batches) - 1, stream, counts[stream], values))
    if not 1 <= sum(counts) <= MOST_TYPED or len(batches) > MOST_TYPED:
        raise ValueError(
            f"there are {sum(counts)} rows in {len(batches)} batches; give 1 to {MOST_TYPED} rows, "
            f"in at most {MOST_TYPED} batches"
        )
    return batches


def _parse_word(word: str, columns: Sequence[int]) -> tuple[int, tuple[int, ...]]:
    letter, _, digits = word.partition(":")
    stream = NAMES[: len(columns)].find(letter) if len(letter) == 1 else -1
    values = [read_natural(digit) for digit in digits]
    if stream < 0 or None in values or len(values) != columns[stream]:
        words = (f"{NAMES[s]}:{'123456'[:n]}" for s, n in enumerate(columns))
        raise ValueError(
            f"{word!r} is no row; one is the letter of a stream, a colon, and a digit for each of "
            f"its columns, as in {' or '.join(dict.fromkeys(words))}"
        )
    return stream, tuple(value for value in values if value is not None)
