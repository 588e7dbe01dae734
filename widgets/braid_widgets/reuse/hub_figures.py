"""Key figures of a hub, shown in the strip above its map."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from math import isfinite
from typing import Any

from braid.papers.reuse.hub_events import HubBatchCommitted, HubStarted, QueryEnded, QuerySubmitted

from braid_widgets.base.key_figures import RECENT, KeyFigure

ALONE = "a new join"
"""Prefix in ``QuerySubmitted.alternatives`` of the plan without reuse."""


class HubFigures:
    """Folds in a hub's events in order and returns its key figures after each of them."""

    def __init__(self) -> None:
        self.site = True
        self.last: HubBatchCommitted | None = None
        self.results = 0
        self.recent: deque[HubBatchCommitted] = deque(maxlen=RECENT)
        self.asked: dict[str, tuple[float, float]] = {}

    def apply_events(self, events: Iterable[Any]) -> HubFigures:
        """Fold events in."""
        for e in events:
            if isinstance(e, HubStarted):
                self.site = len(e.network["nodes"]) == 1
            elif isinstance(e, QuerySubmitted):
                self.asked[e.name] = isolated_cost(e), e.cost_modelled
            elif isinstance(e, QueryEnded):
                self.asked.pop(e.name, None)
            elif isinstance(e, HubBatchCommitted):
                self.last = e
                self.results += sum(metrics.results for metrics in e.operator_metrics)
                self.recent.append(e)
        return self

    def key_figures(self) -> Iterator[KeyFigure]:
        """Return the figures after the last batch."""
        if self.last is None:
            return
        seconds = sum(e.seconds for e in self.recent)
        received = sum(sum(e.received_tuples.values()) for e in self.recent)
        meaning = f"tuples in by seconds of the batches, over the last {len(self.recent)}"
        yield KeyFigure("tuples in", f"{received / seconds:,.0f}/s" if seconds else "–", meaning)
        now = sum(metrics.results for metrics in self.last.operator_metrics)
        note = f"of all operators; {now:,} of them in this batch"
        yield KeyFigure("results so far", f"{self.results:,}", note)
        live, size = (sum(getattr(d, n) for d in self.last.operator_metrics) for n in _HELD)
        yield KeyFigure("held", f"{live:,} tuples · {_format_bytes(size)}", "held by all operators")
        yield KeyFigure("queries", f"{len(self.asked):,}", "that are answered now")
        yield KeyFigure(
            "operators", f"{len(self.last.operator_metrics):,}", "the joins that answer them"
        )
        yield from self._make_savings_figure()

    def _make_savings_figure(self) -> Iterator[KeyFigure]:
        """Return how much reuse saves the active queries."""
        without = sum(alone for alone, _ in self.asked.values())
        saved = without - sum(added for _, added in self.asked.values())
        if not without:
            return
        share = f"{saved / without:.0%}"
        value = share if self.site else f"{_format_bytes(saved)} ({share})"
        what = "work" if self.site else "bytes in transit"
        yield KeyFigure(
            f"{what} saved by reuse (modelled)",
            value,
            "what a join of its own would have added for each query when it was asked, less what "
            "was added",
        )


_HELD = ("live_tuples", "live_bytes")


def isolated_cost(asked: QuerySubmitted) -> float:
    """Return the added cost of a new join for a query, or of the chosen plan if no join was
    possible.
    """
    costs = [cost for what, cost in asked.alternatives if what.startswith(ALONE) and isfinite(cost)]
    return min(costs, default=asked.cost_modelled)


def _format_bytes(size: float) -> str:
    """Return a size with at most three digits before the unit."""
    for most, unit in ((1e3, "bytes"), (1e6, "kB")):
        if abs(size) < most:
            return f"{size * 1e3 / most:,.3g} {unit}"
    return f"{size / 1e6:,.1f} MB"
