"""The hypercube, recomputed in a few lines that share no code with the project.

The text of Afrati and Ullman 2010 is not at hand; recomputed is what follows from its idea: a
stream is hashed on the dimensions that it has and replicated along the others.
"""

from __future__ import annotations

from collections import Counter
from functools import cache
from itertools import product
from math import prod
from random import Random
from typing import Any

import pytest
from braid.core.run_events import BatchCommitted
from braid.papers.hypercube.hypercube import HyperCube
from braid.papers.hypercube.run_events import SharesChosen
from braid.papers.hypercube.shares import CubeSize, find_best_shares
from braid_lab.hypercube.experiments import ChainSetting, run_chain_join

pytestmark = pytest.mark.unit
CHAIN = ((0, 1), (1, 2))
SETTING = ChainSetting((40, 5, 5), (5, 5, 40), batches=16, values=40, window_batches=16)


def received(shares: tuple[int, ...], rates: tuple[float, ...], dimensions: Any = CHAIN) -> float:
    """Return the sum over streams of the rate times the shares of the dimensions that it lacks."""
    return sum(
        rate * prod(p for p, streams in zip(shares, dimensions, strict=True) if s not in streams)
        for s, rate in enumerate(rates)
    )


@cache
def run() -> list[Any]:
    return run_chain_join(HyperCube(16), SETTING)


@pytest.mark.parametrize("seed", range(5))
def test_the_best_shares_receive_least_of_all_factorizations(seed: int) -> None:
    draw = Random(seed)
    dimensions = ((0, 1), (1, 2), (0, 2))[: draw.randint(2, 3)]
    rates = tuple(draw.uniform(1, 50) for _ in range(3))
    hosts = draw.choice((12, 16, 24))
    each = [
        shares
        for shares in product(range(1, hosts + 1), repeat=len(dimensions))
        if prod(shares) == hosts
    ]
    best = find_best_shares(CubeSize(hosts, hosts), dimensions, rates)
    least = min(received(shares, rates, dimensions) for shares in each)
    assert received(best, rates, dimensions) == pytest.approx(least)


def test_hosts_receive_each_batch_what_the_shares_in_force_say() -> None:
    shares = {e.batch: e.shares for e in run() if isinstance(e, SharesChosen)}
    assert len(shares) > 2, "they follow the rates"
    now: tuple[int, ...] = ()
    for e in run():
        if isinstance(e, BatchCommitted) and any(e.received_tuples):
            now = shares.get(e.batch, now)
            assert e.total_host_metrics.received_tuples == received(now, e.received_tuples)


def test_every_result_is_found_once_while_the_shares_change() -> None:
    a, b, c = SETTING.make_streams().values()
    of_x, of_y = Counter(a["x"].to_pylist()), Counter(c["y"].to_pylist())
    truth = sum(
        of_x[x] * of_y[y] for x, y in zip(b["x"].to_pylist(), b["y"].to_pylist(), strict=True)
    )
    assert sum(e.results for e in run() if isinstance(e, BatchCommitted)) == truth > 0
