"""The arithmetic of the workloads: Zipf ranks and the phases of Fluct-Join."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from braid.kernels.hashing import mix_bits
from braid_lab.workloads.tpch import fluctuation_phases
from braid_lab.workloads.zipf_skew import remap_keys, zipf_probabilities
from hypothesis import given
from hypothesis import strategies as st


@given(size=st.integers(1, 500), z=st.floats(0, 8))
def test_zipf_is_a_distribution_that_falls_as_a_power_of_the_rank(size: int, z: float) -> None:
    p = zipf_probabilities(size, z)
    assert p.sum() == pytest.approx(1)
    assert p[-1] == pytest.approx(p[0] / size**z)


@given(z=st.floats(0, 8), seed=st.integers(0, 2**31))
def test_a_remap_is_a_function_of_row_skew_and_seed(z: float, seed: int) -> None:
    keys, rows = np.arange(10, 30), mix_bits(np.arange(100, dtype=np.uint64))
    mapped = remap_keys(keys, rows, z, seed)
    assert set(mapped) <= set(keys)
    assert (mapped[::-1] == remap_keys(keys, rows[::-1], z, seed)).all()


def test_the_extremes_of_a_hash_get_the_first_and_the_last_rank() -> None:
    ends = np.array([0, 2**64 - 1], dtype=np.uint64)
    first, last = remap_keys(np.arange(1000), ends, 1.0, seed=4)
    assert [first, last] == list(np.random.default_rng(4).permutation(1000)[[0, -1]])


@given(lines=st.integers(0, 100_000), orders=st.integers(0, 100_000), k=st.floats(1.5, 16))
def test_the_phases_alternate_and_send_everything(lines: int, orders: int, k: float) -> None:
    phases = fluctuation_phases(lines, orders, k)
    assert sum(n for side, n in phases if side == "l") == lines
    assert sum(n for side, n in phases if side == "o") == orders
    assert all(n > 0 for _, n in phases)
    sides = [side for side, _ in phases]
    assert all(a != b for a, b in pairwise(sides[:-2])), (
        "only what is left at the end may follow its own side"
    )


def test_each_phase_ends_at_k_or_its_inverse() -> None:
    """Lines and orders sent after each phase, at k = 4 (the orders end with the fourth phase):

    lines   141   141  2256   2256 | 36000  60175
    orders    0   564   564   9000 |  9000   9000
    """
    assert fluctuation_phases(60_175, 9_000, 4) == [
        ("l", 141),
        ("o", 564),
        ("l", 2115),
        ("o", 8436),
        ("l", 33744),
        ("l", 24175),
    ]
