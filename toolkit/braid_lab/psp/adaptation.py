"""When the rates grow: Wang 2008, Fig. 16.6 and 16.7, a ring with and without adaptation.

The ring is run without tuples and priced as in ``braid_lab.psp.experiments``. Rates, joins and the
20 nodes are the book's. It prints no costs: at ours, sending alone would fill every node once the
rates have grown, at any number of nodes. So costs are shares of ours at which the three nodes that
a run begins with keep up before the change and not after it, and 20 keep up with both.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import pandas as pd
from braid.core.run_events import BatchCommitted
from braid.papers.psp.ring import Ring
from braid.papers.psp.run_events import RingResized

from braid_lab.psp.experiments import RingSetting, busy_seconds


@dataclass(frozen=True)
class RateChange:
    """A change of rates by ``factor`` half-way through a run, at each of some ``prices``."""

    setting: RingSetting
    factor: float
    prices: tuple[float, ...]


MIDDLE, SMALL = (
    RingSetting(sigma=0.05, join="middle", step=0.25),
    RingSetting(sigma=0.2, step=0.25),
)
CHANGES = {
    "16.6": RateChange(MIDDLE, 2.0, (0.03, 0.05, 0.07)),
    "16.7ab": RateChange(SMALL, 2.0, (0.02, 0.03)),
    "16.7cd": RateChange(SMALL, 3.0, (0.005, 0.007, 0.01)),
}
"""Fig. 16.6 and 16.7."""
BOOK_NODES = 20
"""The processing nodes of section 16.1."""
PAIR_PART = 3
"""The part of a batch's time that is left to a node's pairs, as 1 / PAIR_PART of it."""


def adaptation_curves(
    figure: str,
    seconds: float = 60.0,
    nodes: int = 3,
    most: int = BOOK_NODES,
    seeds: Sequence[int] = (0,),
    prices: Sequence[float] = (),
) -> pd.DataFrame:
    """Return Fig. 16.6 and 16.7, counted, with and without adaptation.

    Columns: price, adapts, second, seed, nodes, response_modelled (seconds). A batch waits for
    those before it, then takes as long as its busiest node. With adaptation the ring takes nodes
    in, up to ``most``, by the pairs that it compares (``Ring(max_pairs_per_node=...)``: a third of
    what fills a node, because it sends and receives too). ``prices``: by default those of the
    figure. Raises ValueError for a figure that is not in CHANGES.
    """
    if figure not in CHANGES:
        raise ValueError(f"no figure is named {figure!r}; there are: {', '.join(CHANGES)}")
    change, frames = CHANGES[figure], []
    for price, seed in product(prices or change.prices, seeds):
        setting = replace(change.setting, seconds=seconds, seed=seed, price=price)
        third = int(setting.step / PAIR_PART / (setting.costs.compare_us * 1e-6))
        growing = Ring(nodes, max_pairs_per_node=third, max_hosts=most)
        for adapts, ring in ((False, Ring(nodes)), (True, growing)):
            events = setting.simulate_placement(ring, change.factor)
            curve = _simulate_queue(events, setting, nodes)
            frames.append(curve.assign(price=price, adapts=adapts, seed=seed))
    names = ["price", "adapts", "second", "seed", "nodes", "response_modelled"]
    return change.setting.record_run(
        pd.concat(frames, ignore_index=True)[names],
        nodes=nodes,
        most=most,
        pair_part=PAIR_PART,
        later_rate=change.factor * change.setting.rate,
        price_percent=tuple(100 * price for price in prices or change.prices),
        seconds=seconds,
    )


def _simulate_queue(events: Iterable[Any], setting: RingSetting, nodes: int) -> pd.DataFrame:
    waiting, rows = 0.0, []
    for e in events:
        if isinstance(e, RingResized):
            nodes = e.nodes
        if isinstance(e, BatchCommitted):
            takes = float(busy_seconds(e, setting).max())
            rows.append((round(e.batch * setting.step, 6), nodes, waiting + takes))
            waiting = max(0.0, waiting + takes - setting.step)
    return pd.DataFrame(rows, columns=["second", "nodes", "response_modelled"])
