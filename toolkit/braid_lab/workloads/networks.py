"""Networks of the stream-reuse paper: figure 1, and transit-stub networks with regions.

Source: Seshadri 2008, sections 2.1 (figure 1), 4.2 (regions) and 5.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import combinations

import numpy as np
import numpy.typing as npt
from braid.papers.reuse.network import Floats, Kind, Network, Node


def make_network(
    links: Iterable[tuple[str, str, float]],
    sources: Iterable[str] = (),
    sinks: Iterable[str] = (),
) -> Network:
    """Return a network with the nodes that the links name.

    For a graph of networkx, pass ``graph.edges.data("latency")``.
    """
    parsed = tuple((str(a), str(b), float(latency)) for a, b, latency in links)
    kinds: dict[str, Kind] = {n: "node" for a, b, _ in parsed for n in (a, b)}
    kinds.update({n: "source" for n in sources})
    kinds.update({n: "sink" for n in sinks})
    return Network(tuple(Node(n, kind) for n, kind in kinds.items()), parsed)


def make_figure_1() -> Network:
    """Return the network N of figure 1. Latencies are in milliseconds.

    The links cannot be read from the text available to us. These are chosen so that the statements
    of section 2.1 hold.
    """
    places: dict[str, tuple[Kind, float, float]] = {
        "FLIGHTS": ("source", 0, 3), "CHECKINS": ("source", 0, 1),
        "WEATHER": ("source", 4, 4), "BAGGAGE": ("source", 6, 4),
        "N1": ("node", 1.5, 2.5), "N2": ("node", 2, 0.5), "N3": ("node", 5, 2.8),
        "N4": ("node", 6.5, 1.5), "N5": ("node", 4.5, 0.4),
        "SINK1": ("sink", 2, -1), "SINK2": ("sink", 8, 1.5), "SINK3": ("sink", 7, 3),
        "SINK4": ("sink", 0.5, 4),
    }  # fmt: skip
    links = (
        ("FLIGHTS", "N1", 2), ("CHECKINS", "N1", 1), ("FLIGHTS", "N2", 2), ("CHECKINS", "N2", 2),
        ("WEATHER", "N3", 2), ("BAGGAGE", "N3", 1), ("N1", "N3", 5), ("N3", "N4", 5),
        ("N4", "N5", 5), ("N5", "N2", 5), ("N2", "SINK1", 1), ("N4", "SINK2", 1),
        ("N3", "SINK3", 1), ("N1", "SINK4", 2),
    )  # fmt: skip
    regions = (
        ("FLIGHTS", "CHECKINS", "N1", "N2", "SINK1", "SINK4"),
        ("WEATHER", "BAGGAGE", "N3", "SINK3"),
        ("N4", "N5", "SINK2"),
    )
    return Network(
        tuple(Node(name, kind, (x, y)) for name, (kind, x, y) in places.items()),
        tuple((a, b, float(ms)) for a, b, ms in links),
        regions,
    )


def transit_stub(
    transit: int = 4, stubs: int = 3, size: int = 10, regions: int = 8, seed: int = 0
) -> Network:
    """Return a transit-stub network, after GT-ITM's scheme.

    ``transit`` nodes form a ring with chords. Each has ``stubs`` domains of ``size`` nodes. Every
    node is a site. Latencies: 15 to 25 ms between transit nodes, 8 to 12 to a stub domain, 1 to 6
    within one. The defaults give 124 nodes.
    """
    rng = np.random.default_rng(seed)
    nodes, links = [], []
    for t in range(transit):
        angle = 2 * np.pi * t / transit
        nodes.append(Node(f"T{t}", "site", _round_point(10 * np.cos(angle), 10 * np.sin(angle))))
        for s in range(stubs):
            turn = angle + (s - (stubs - 1) / 2) * 2 * np.pi / transit / (stubs + 0.5)
            names = [f"T{t}S{s}N{n}" for n in range(size)]
            centre = 22 * np.cos(turn), 22 * np.sin(turn)
            nodes += [
                Node(
                    name, "site", _round_point(*(c + d for c, d in zip(centre, spot, strict=True)))
                )
                for name, spot in zip(names, rng.normal(0, 2, (size, 2)), strict=True)
            ]
            links.append((f"T{t}", names[0], float(rng.uniform(8, 12))))
            for i in range(1, size):
                links.append((names[int(rng.integers(i))], names[i], float(rng.uniform(1, 6))))
            extra = [p for p in combinations(names, 2) if rng.random() < 1 / size]
            links += [(a, b, float(rng.uniform(1, 6))) for a, b in extra]
    for a, b in combinations(range(transit), 2):
        if b - a in (1, transit - 1) or rng.random() < 0.5:
            links.append((f"T{a}", f"T{b}", float(rng.uniform(15, 25))))
    network = Network(tuple(nodes), tuple(links))
    return cluster_by_latency(network, regions, seed) if regions > 1 else network


def _round_point(x: float, y: float) -> tuple[float, float]:
    return round(float(x), 3), round(float(y), 3)


def cluster_by_latency(network: Network, regions: int, seed: int = 0) -> Network:
    """Return the network divided into regions of nearby nodes (section 4.2).

    K-means clusters coordinates whose distances approximate the latencies.
    """
    points = embed_latencies(network.latency_ms)
    labels = _k_means(points, regions, np.random.default_rng(seed))
    names = [n.name for n in network.nodes]
    groups = (tuple(n for n, label in zip(names, labels, strict=True) if label == r)
              for r in range(regions))  # fmt: skip
    return replace(network, regions=tuple(g for g in groups if g))


def embed_latencies(latency: Floats, dimensions: int = 3) -> Floats:
    """Return points whose distances approximate the latencies, (nodes, dimensions).

    Computed by classical multidimensional scaling. An unreachable node counts as twice as far as
    the farthest one.
    """
    finite = latency[np.isfinite(latency)].max(initial=0.0)
    squares = np.where(np.isfinite(latency), latency, 2 * finite) ** 2
    mean = squares.mean(0)
    centred = -0.5 * (squares - mean - mean[:, None] + squares.mean())
    values, vectors = np.linalg.eigh(centred)
    largest = slice(-1, -dimensions - 1, -1)
    points: Floats = vectors[:, largest] * np.sqrt(np.maximum(values[largest], 0.0))
    return points


def _k_means(points: Floats, k: int, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """Return the cluster of each point (Lloyd's algorithm, k-means++ starts)."""
    centres = points[[int(rng.integers(len(points)))]]
    while len(centres) < min(k, len(points)):
        near = _compute_squared_distances(points, centres).min(1)
        chance = near / near.sum() if near.sum() > 0 else None
        centres = np.vstack([centres, points[rng.choice(len(points), p=chance)]])
    labels = np.zeros(len(points), np.int64)
    for _ in range(100):
        new = _compute_squared_distances(points, centres).argmin(1)
        if (new == labels).all() and _ > 0:
            break
        labels = new
        for c in range(len(centres)):
            if (labels == c).any():
                centres[c] = points[labels == c].mean(0)
    return labels


def _compute_squared_distances(points: Floats, centres: Floats) -> Floats:
    squares: Floats = ((points[:, None, :] - centres[None, :, :]) ** 2).sum(2)
    return squares
