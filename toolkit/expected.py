"""What the paths of a plan would do, from counts, rates and selectivities alone: intermediate results, traffic, results.

Expectations, not measurements. Intermediate results multiply along a path as in Gu 2007, Eq. 3; a pair of tuples matches with
the selectivity of its two streams when both are in their windows.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

import numpy as np

from toolkit.plan import Block, Matches, Path, Route, Visit

Span = tuple[int, int]


def within(new: Span, old: Span, window: int | None) -> float:
    """The fraction of pairs (t, u), t uniform in ``new`` and u in ``old``, with t - u < W."""
    if window is None:
        return 1.0
    a, b, c, d = new[0], new[1] + 1, old[0], old[1] + 1

    def half_square(x: int) -> float:
        return max(x, 0) ** 2 / 2

    near = half_square(window - a + d) - half_square(window - b + d) - half_square(window - a + c) + half_square(window - b + c)
    return near / ((b - a) * (d - c))


@dataclass
class Expected:
    """What hosts do in one batch. ``sigma`` is m x m, the selectivity of each pair of streams; ``windows`` are in microseconds;
    ``share`` is the fraction of its probes that each host gets done.

    ``stages`` has, by hop and for every host, (arrived, sent, probed, compared), as Usage names them; ``results`` is by host.
    """

    sigma: np.ndarray
    windows: Sequence[int | None]
    share: np.ndarray
    stages: list[np.ndarray] = field(default_factory=list)
    matches: Matches = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.results = np.zeros(len(self.share))

    def add(self, route: Route, blocks: Mapping[int, Block]) -> None:
        """The paths of one route; ``blocks`` are those with rows, and their rows and spans are known."""
        for path in route.paths:
            self._follow(blocks[route.block.id], path, blocks)

    def _follow(self, f: Block, path: Path, blocks: Mapping[int, Block]) -> None:
        visited: tuple[int, ...] = (f.stream,)
        found: dict[int, float] = {}
        for k, hop in enumerate(path):
            entering = sum(found.values()) if k else float(f.rows)
            self._stage(k)
            self._send(k, found, hop.probes.keys())
            sigma = prod(self.sigma[v, hop.stream] for v in visited)
            found = {
                h: self._probe(k, f, h, [blocks[b] for b in ids if b in blocks], entering, (visited, hop.stream), sigma)
                for h, ids in hop.probes.items()
            }
            visited = tuple(sorted((*visited, hop.stream)))
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

    def _probe(self, k: int, f: Block, host: int, blocks: list[Block], entering: float, visit: Visit, sigma: float) -> float:
        n = entering * self.share[host]
        rows = sum(b.rows for b in blocks)
        near = sum(b.rows * self._near(f, b) for b in blocks)
        self.stages[k][2, host] += n
        self.stages[k][3, host] += n * rows
        pairs, matched = self.matches.get(visit, (0.0, 0.0))
        self.matches[visit] = (pairs + n * rows, matched + n * near * sigma)
        return float(n * near * sigma)

    def _near(self, f: Block, b: Block) -> float:
        assert f.span is not None and b.span is not None
        return within(f.span, b.span, self.windows[b.stream]) + within(b.span, f.span, self.windows[f.stream]) - 1
