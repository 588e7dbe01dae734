"""Hash functions: deterministic numbers that look random, and draws that sample tuples."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from braid.core.reserved_columns import DRAW
from braid.kernels.block_orders import is_order_column
from braid.kernels.host_block_rows import take_block_rows

Floats = npt.NDArray[np.float64]
Int64 = npt.NDArray[np.int64]
Uint64 = npt.NDArray[np.uint64]
GOLDEN = np.uint64(0x9E3779B97F4A7C15)
"""Increment of splitmix64's counter."""


def mix_bits(values: Uint64) -> Uint64:
    """Return the finalizer of splitmix64, a bijection that makes counters look random.

    Source: Steele, Lea and Flood 2014.
    """
    values = values + GOLDEN
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


_ALL = (1 << 64) - 1
_P1, _P2, _P3, _P4, _P5 = (
    0x9E3779B185EBCA87,
    0xC2B2AE3D27D4EB4F,
    0x165667B19E3779F9,
    0x85EBCA77C2B2AE63,
    0x27D4EB2F165667C5,
)
"""The primes of XXH64."""
_SEED = 42
"""Initial value of Spark's ``xxhash64``."""


def xxhash64(seed: int, values: Int64) -> Int64:
    """Return Spark's ``xxhash64(seed, value)`` of each ``bigint`` value.

    As in Spark, the seed is an ``int`` if it fits.
    """
    began = _hash_int(seed, _SEED) if seed < 1 << 31 else _hash_longs(np.array([seed]), _SEED)[0]
    return _hash_longs(values, int(began)).view(np.int64)


def _hash_longs(values: Int64, seed: int) -> Uint64:
    h = values.view(np.uint64) * np.uint64(_P2)
    h = _rotate_left(h, 31)
    h *= np.uint64(_P1)
    h ^= np.uint64(seed + _P5 + 8 & _ALL)
    h = _rotate_left(h, 27)
    h *= np.uint64(_P1)
    h += np.uint64(_P4)
    for shift, prime in ((33, _P2), (29, _P3)):
        h ^= h >> np.uint64(shift)
        h *= np.uint64(prime)
    h ^= h >> np.uint64(32)
    return h


def _rotate_left(values: Uint64, bits: int) -> Uint64:
    turned = values << np.uint64(bits)
    turned |= values >> np.uint64(64 - bits)
    return turned


def _hash_int(value: int, seed: int) -> int:
    h = (seed + _P5 + 4 & _ALL) ^ (value * _P1 & _ALL)
    h = ((h << 23 | h >> 41) * _P2 + _P3) & _ALL
    h = (h ^ h >> 33) * _P2 & _ALL
    h = (h ^ h >> 29) * _P3 & _ALL
    return h ^ h >> 32


def draw_numbers(numbers: Uint64, block: int) -> Floats:
    """Return a number in [0, 1) for each tuple, different for each block."""
    return np.asarray((sampling_hashes(numbers, block) >> np.uint64(11)) * 2.0**-53, np.float64)


def sampling_hashes(numbers: Uint64, block: int) -> Uint64:
    """Return the hash by which each tuple is sampled, different for each block."""
    return mix_bits(numbers ^ mix_bits(np.array([block], np.uint64)))


def distinct_hashes(rows: pa.RecordBatch) -> Uint64:
    """Return the hashes of tuples, made distinct among equal ones by rank.

    Equal tuples are interchangeable, but must not be sampled all or none. Different tuples with the
    same hash are ranked by content, so that their order in a task does not matter.
    """
    numbers = rows.column(DRAW).to_numpy(zero_copy_only=False)
    order = np.argsort(numbers, kind="stable")
    new = np.ones(len(order), bool)
    new[1:] = np.diff(numbers[order]) != 0
    if new.all():
        return numbers.astype(np.uint64)
    tied = np.flatnonzero(~(new & np.append(new[1:], True)))
    order[tied] = order[tied][_order_by_content(take_block_rows(rows, order[tied]))]
    rank = np.arange(len(order)) - np.flatnonzero(new)[np.cumsum(new) - 1]
    hashes = numbers.astype(np.uint64)
    hashes[order] += rank.astype(np.uint64) * GOLDEN
    return hashes


def _order_by_content(rows: pa.RecordBatch) -> Int64:
    """Return the order of tuples by hash, then by all sortable columns."""
    names = [DRAW, *(f.name for f in rows.schema if f.name != DRAW and not _is_nested(f.type))]
    # Columns that store orders depend on the order of the rows.
    keys = [(name, "ascending") for name in names if not is_order_column(name)]
    return np.asarray(pc.sort_indices(rows, sort_keys=keys).to_numpy(), np.int64)


def _is_nested(kind: pa.DataType) -> bool:
    return bool(pa.types.is_nested(kind) or pa.types.is_null(kind))
