"""Streams of vectors that match if they are close: concepts seen in video, and images.

A tuple shows one of K scenes, in Gaussian noise. Scenes are drawn uniformly, so two tuples show the
same one with probability 1/K. The match distance is far from both the distances within a scene and
those between scenes. So the selectivity of a pair of streams is 1/K, and that of a group of m
tuples is 1/K ** (m - 1).

Sources: the video correlation of Gu, Yu and Wang, ICDE 2007, section 5 (frames are points of a
40-dimensional concept space), and the image streams of Wang, "State-Slice", 2008, section 16.1
(three costs of a comparison, by the number of pixels).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from math import sqrt

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from braid_lab.workloads.base import BATCH, Workload
from braid_lab.workloads.poisson_arrivals import Arrivals, draw_rates

CONCEPTS = 40
"""Dimensions of the concept space."""
COSTS = {"concepts": CONCEPTS, "small": 5_000, "middle": 10_000, "large": 20_000}
"""Dimensions by the name of a cost: Gu's concepts, and Wang's images in pixels.

A pixel is one number here, its luminance.
"""
NOISE = 0.3
"""Standard deviation of the noise; that of a scene's components is 1."""


def match_distance(dimensions: int) -> float:
    """Return the distance below which vectors match.

    It is in the middle between the distances within a scene and between two. Squared, these are
    about 2 NOISE^2 D and (2 + 2 NOISE^2) D.
    """
    within, between = 2 * NOISE**2 * dimensions, (2 + 2 * NOISE**2) * dimensions
    return round((sqrt(within) + sqrt(between)) / 2, 3)


def closeness_condition(streams: Sequence[str], dimensions: int) -> str:
    """Return a condition that all pairs of a group are close."""
    d = match_distance(dimensions)
    return " AND ".join(
        f"vector_l2_distance({a}.v, {b}.v) < {d}" for a, b in combinations(streams, 2)
    )


def make_tables(arrivals: Arrivals, dimensions: int, scenes: int) -> dict[str, pa.Table]:
    """Return the tuples of ``arrivals``, each with its ``scene`` and ``v``, the vector.

    A vector is an array of floats. Raises ValueError if there are fewer than two scenes or no
    dimensions.
    """
    if scenes < 2 or dimensions < 1:
        raise ValueError(
            f"scenes is {scenes} and dimensions {dimensions}; there must be 2 scenes and 1 "
            "dimension or more"
        )
    centres = (
        np.random.default_rng([arrivals.seed, 4])
        .normal(size=(scenes, dimensions))
        .astype(np.float32)
    )
    shown = {}
    for number, (alias, table) in enumerate(arrivals.make_tables().items()):
        draw = np.random.default_rng([arrivals.seed, 5, number])
        scene = draw.integers(0, scenes, table.num_rows)
        vectors = draw.standard_normal((table.num_rows, dimensions), np.float32)
        vectors *= np.float32(NOISE)
        vectors += centres[scene]
        lists = pa.FixedSizeListArray.from_arrays(pa.array(vectors.reshape(-1)), dimensions).cast(
            pa.list_(pa.float32())
        )
        plain = table.select(["id", "ts", BATCH])
        shown[alias] = plain.append_column("scene", pa.array(scene, pa.int32())).append_column(
            "v", lists
        )
    return shown


def vector_streams(
    spark: SparkSession,
    cost: str = "concepts",
    rates: Sequence[float] = (),
    streams: int = 3,
    seconds: float = 60.0,
    batches: int = 20,
    window: float | None = 30.0,
    sigma: float = 0.1,
    seed: int = 0,
) -> Workload:
    """Return streams of vectors at one of ``COSTS``.

    sigma, the selectivity of a pair of streams, is 1/K for a whole number K. Rates, in tuples per
    second, are drawn from Gu's range for concepts, and 1 for images, which have 20 to 80 kB each.
    The tuples are made on the driver. Raises ValueError for settings out of range.
    """
    if cost not in COSTS:
        raise ValueError(f"no cost is named {cost!r}; there are: {', '.join(COSTS)}")
    if not 0 < sigma <= 0.5 or batches < 1:
        raise ValueError(
            f"sigma is {sigma} and batches {batches}; sigma must be over 0, at most 0.5, and "
            "batches 1 or more"
        )
    rates = tuple(rates) or (draw_rates(streams, seed) if cost == "concepts" else (1.0,) * streams)
    arrivals = Arrivals(rates, seconds, seconds / batches, (window,) * len(rates), seed=seed)
    frames = {
        a: spark.createDataFrame(t)
        for a, t in make_tables(arrivals, COSTS[cost], round(1 / sigma)).items()
    }
    return Workload(
        f"Vectors, {cost}",
        frames,
        closeness_condition(arrivals.stream_aliases, COSTS[cost]),
        "ts",
        arrivals.window_texts(),
    )
