"""What the paths of a plan would do, from counts, rates and selectivities alone: intermediate results, traffic, results.

Expectations, not measurements. Intermediate results multiply along a path as in Gu 2007, Eq. 3; a pair of tuples matches with
the selectivity of its two streams when both are in their windows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from math import prod

import numpy as np

from toolkit.plan import Block, Matches, Path, Route, Visit

Span = tuple[int, int]


def within(new: Span, old: Span, window: int | None) -> float:
    """The fraction of pairs (t, u), t uniform in ``new`` and u in ``old``, with t - u < W."""
    return 1.0 if window is None else _within(new[1] + 1 - new[0], old[1] + 1 - old[0], new[0] - old[0], window)


@lru_cache(maxsize=1 << 16)
def _within(new: int, old: int, lag: int, window: int) -> float:
    """The same for spans of these lengths, ``new`` beginning ``lag`` after ``old``: what pairs of blocks have in common."""

    def half_square(x: int) -> float:
        return max(x, 0) ** 2 / 2

    edge = window - lag
    near = half_square(edge + old) - half_square(edge - new + old) - half_square(edge) + half_square(edge - new)
    return near / (new * old)


Step = tuple[Visit, float, list[tuple[int, int, float]]]
"""A hop: which streams it joins with which, their selectivity, and by host the tuples there and those within the windows."""


@dataclass(frozen=True)
class Journey:
    """A path as counts: ``rows`` tuples set out."""

    rows: int
    steps: list[Step]


def journeys(
    routes: Iterable[Route], blocks: Mapping[int, Block], sigma: np.ndarray, windows: Sequence[int | None]
) -> list[Journey]:
    """The paths of the routes whose blocks have rows. ``blocks`` are those with rows, their spans known; ``sigma`` is m x m, the
    selectivity of each pair of streams; ``windows`` are in microseconds."""
    return [
        Journey(blocks[r.block.id].rows, _steps(blocks[r.block.id], path, blocks, sigma, windows))
        for r in routes if r.block.id in blocks for path in r.paths
    ]  # fmt: skip


def _steps(f: Block, path: Path, blocks: Mapping[int, Block], sigma: np.ndarray, windows: Sequence[int | None]) -> list[Step]:
    visited: tuple[int, ...] = (f.stream,)
    steps = []
    for hop in path:
        matching = prod(float(sigma[v, hop.stream]) for v in visited)
        there = []
        for h, ids in hop.probes.items():
            met = [blocks[b] for b in ids if b in blocks]
            there.append((h, sum(b.rows for b in met), sum(b.rows * _near(f, b, windows) for b in met)))
        steps.append(((visited, hop.stream), matching, there))
        visited = tuple(sorted((*visited, hop.stream)))
    return steps


def _near(f: Block, b: Block, windows: Sequence[int | None]) -> float:
    assert f.span is not None and b.span is not None
    return within(f.span, b.span, windows[b.stream]) + within(b.span, f.span, windows[f.stream]) - 1


@dataclass
class Expected:
    """What hosts do in one batch. ``share`` is the fraction of its probes that each host gets done.

    ``stages`` has, by hop and for every host, (arrived, sent, probed, compared), as Usage names them; ``results`` is by host.
    """

    share: np.ndarray
    stages: list[np.ndarray] = field(default_factory=list)
    matches: Matches = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.results = np.zeros(len(self.share))
        self._stage(0)

    def add(self, journey: Journey) -> None:
        found: dict[int, float] = {}
        for k, (visit, sigma, there) in enumerate(journey.steps):
            entering = sum(found.values()) if k else float(journey.rows)
            self._stage(k)
            self._send(k, found, [h for h, *_ in there])
            found = {h: self._probe(k, h, entering, rows, near * sigma, visit) for h, rows, near in there}
        for h, n in found.items():
            self.results[h] += n

    def _stage(self, k: int) -> None:
        if k == len(self.stages):
            self.stages.append(np.zeros((4, len(self.share))))

    def _send(self, k: int, found: Mapping[int, float], to: Collection[int]) -> None:
        """What one hop found goes to all hosts of the next, but need not travel to the host where it is."""
        entering = sum(found.values())
        if not entering:
            return
        for h in to:
            self.stages[k][0, h] += entering - found.get(h, 0.0)
        for h, n in found.items():
            self.stages[k - 1][1, h] += n * (len(to) - (h in to))

    def _probe(self, k: int, host: int, entering: float, rows: int, matching: float, visit: Visit) -> float:
        n = entering * self.share[host]
        self.stages[k][2, host] += n
        self.stages[k][3, host] += n * rows
        pairs, matched = self.matches.get(visit, (0.0, 0.0))
        self.matches[visit] = (pairs + n * rows, matched + n * matching)
        return float(n * matching)
