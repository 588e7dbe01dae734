"""Numbers of batches in texts and commands, which count from 1.

Events, files, columns and arguments in Python count from 0, as Spark does.
"""

from __future__ import annotations


def display_batch(batch: int) -> int:
    """Return the number that a reader sees of a batch; 0: none, of -1.

    >>> display_batch(0), read_batch_number(1)
    (1, 0)
    """
    return batch + 1


def read_batch_number(number: int) -> int:
    """Return the batch of a number that a user gives; -1: none, of 0."""
    return number - 1


def display_batch_range(first: int, last: int) -> str:
    """Return a range of batches in words, both ends included.

    >>> display_batch_range(0, 4)
    'batches 1 to 5'
    """
    return f"batches {display_batch(first)} to {display_batch(last)}"
