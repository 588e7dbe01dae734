"""Functions of vectors for many pairs at once, against the textbook."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pyarrow as pa
import pytest
from braid.condition.residual_predicate import FUNCTIONS
from braid.kernels.vectors import VectorColumn, pairwise_measure


def column(matrix: np.ndarray) -> pa.Array:
    return pa.FixedSizeListArray.from_arrays(pa.array(matrix.reshape(-1)), matrix.shape[1]).cast(
        pa.list_(pa.float32())
    )


def textbook(function: str, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    x, y = x.astype(np.float64), y.astype(np.float64)
    if function == "vector_l2_distance":
        return np.linalg.norm(x - y, axis=1)
    inner = (x * y).sum(axis=1)
    return (
        inner
        if function == "vector_inner_product"
        else inner / np.linalg.norm(x, axis=1) / np.linalg.norm(y, axis=1)
    )


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("dimensions", [1, 40, 20_000])
@pytest.mark.parametrize("share", [1.0, 0.2, 0.01])
def test_functions(function, dimensions, share):
    """All pairs or few, in several tiles, in any order; some vectors are nearly equal."""
    draw = np.random.default_rng(dimensions)
    sizes = (60, 110) if dimensions > 10_000 else (130, 150)  # two by three tiles, or more
    x, y = (draw.normal(size=(n, dimensions)).astype(np.float32) for n in sizes)
    y[:5] = x[:5] * np.float32(1 + 1e-6)
    left, right = (a.ravel() for a in np.indices(sizes))
    chosen = draw.permutation(np.flatnonzero(draw.random(len(left)) < share))
    left, right = np.append(left[chosen], [0, 1]), np.append(right[chosen], [0, 1])
    found = pairwise_measure(
        function,
        VectorColumn.from_arrow(column(x)),
        left,
        VectorColumn.from_arrow(column(y)),
        right,
    )
    sampled = draw.choice(len(left), 60)
    sampled[:2] = len(left) - 2, len(left) - 1
    want = textbook(function, x[left[sampled]], y[right[sampled]])
    scale = dimensions if function == "vector_inner_product" else 1
    assert found.to_numpy()[sampled] == pytest.approx(want, rel=1e-8, abs=1e-12 * scale)


def test_null_is_where_spark_has_it():
    x = pa.array([[1, 2], None, [1, None], [0, 0], [3, 4]], pa.list_(pa.float32()))
    v, at = VectorColumn.from_arrow(x), np.arange(5)
    assert pairwise_measure("vector_l2_distance", v, at, v, at).to_pylist() == [0, None, None, 0, 0]
    assert pairwise_measure("vector_inner_product", v, at, v, at).to_pylist() == [
        5,
        None,
        None,
        0,
        25,
    ]
    assert pairwise_measure("vector_cosine_similarity", v, at, v, at).to_pylist() == [
        pytest.approx(1),
        None,
        None,
        None,
        1,
    ]


def test_infinite_components_are_far_away():
    v = VectorColumn.from_arrow(
        pa.array([[np.inf, 0], [1, 0], [np.nan, 0]], pa.list_(pa.float32()))
    )
    found = pairwise_measure("vector_l2_distance", v, np.array([0, 1, 2]), v, np.array([1, 1, 1]))
    assert (
        found.to_pylist()[:2] == [np.inf, 0] and np.isnan(found[2].as_py()) and not found.null_count
    )


def test_a_slice_of_a_block_and_no_vectors_at_all():
    x = column(np.arange(20, dtype=np.float32).reshape(10, 2))
    part, none = VectorColumn.from_arrow(x.slice(4, 3)), VectorColumn.from_arrow(x.slice(0, 0))
    assert part.matrix.tolist() == [[8, 9], [10, 11], [12, 13]]
    assert (
        len(
            pairwise_measure("vector_l2_distance", none, np.array([], int), part, np.array([], int))
        )
        == 0
    )


def test_dimensions_must_agree():
    with pytest.raises(ValueError, match="vectors of 2 and of 3 dimensions are in one stream"):
        VectorColumn.from_arrow(pa.array([[1, 2], [1, 2, 3]], pa.list_(pa.float32())))
    a, b = (VectorColumn.from_arrow(column(np.ones((2, d), np.float32))) for d in (2, 3))
    with pytest.raises(ValueError, match="of 2 and of 3 dimensions; they must be alike"):
        pairwise_measure("vector_l2_distance", a, np.array([0]), b, np.array([0]))


@pytest.mark.parametrize("share", [1.0, 0.05])
def test_images_are_not_copied_for_each_pair(share):
    """10,000 pairs of 100 and 100 images of 80 kB would be 1.6 GB.

    The images are views, and few of them are converted to doubles.
    """
    draw = np.random.default_rng(1)
    images = [column(draw.random((100, 20_000), np.float32)) for _ in range(2)]
    left, right = (a.ravel() for a in np.indices((100, 100)))
    chosen = np.flatnonzero(draw.random(10_000) < share)
    tracemalloc.start()
    a, b = map(VectorColumn.from_arrow, images)
    pairwise_measure("vector_l2_distance", a, left[chosen], b, right[chosen])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert np.shares_memory(a.matrix, images[0].values.to_numpy())
    assert peak < 60e6
