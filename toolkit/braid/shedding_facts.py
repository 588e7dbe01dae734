"""Find how load shedding met combinations of tuples: their shares, and their sampling hashes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

import numpy as np

from braid.core.combination_facts import TupleFacts
from braid.core.pair_shedding import Admission, PairShedding
from braid.core.plan import Route
from braid.kernels.hashing import draw_numbers
from braid.kernels.shedding_sampler import ARRIVAL, classify_utilities
from braid.papers.shedding.run_events import SheddingPlanned
from braid.stored_tuples import TuplePlace
from braid.tuple_places import TuplePlaces

_ALL = 1.0
"""Share of a pair that is not sampled."""


class SheddingSearch:
    """The shedding of a run, from its events.

    ``places``: the places of its tuples. Equal tuples of a batch have different sampling hashes.
    """

    def __init__(self, places: TuplePlaces) -> None:
        self._places, self.run = places, places.events

    @cached_property
    def _plans(self) -> Mapping[int, SheddingPlanned]:
        return {e.batch: e for e in self.run.events if isinstance(e, SheddingPlanned)}

    def find_shedding(self, tuples: Sequence[TupleFacts]) -> PairShedding:
        """Return how load shedding met a combination of tuples."""
        if any(fact.batch is None for fact in tuples):
            return PairShedding()
        fresh = max(tuples, key=lambda fact: (fact.batch or 0, self._places.find_stream(fact)))
        if (plan := self._plans.get(fresh.batch or 0)) is None:
            return PairShedding()
        if plan.keep_shares:
            return PairShedding(fresh.batch, admissions=tuple(map(self._find_admission, tuples)))
        if len(tuples) > 2 or len(self.run.stream_names) > 2 or len(tuples) < 2:
            streams = {self._places.find_stream(fresh)}
            shares = {min(1.0, s) for i in plan.items if i.stream in streams for s in i.shares}
            return PairShedding(fresh.batch, (min(shares, default=_ALL), max(shares, default=_ALL)))
        (partner,) = (fact for fact in tuples if fact is not fresh)
        return self._find_pair_shedding(plan, fresh, partner)

    def _find_admission(self, fact: TupleFacts) -> Admission:
        assert fact.batch is not None
        plan, stream = self._plans.get(fact.batch), self._places.find_stream(fact)
        share = plan.keep_shares[stream] if plan is not None else None
        number = _draw_number(self._places.find_place(fact), ARRIVAL)
        return Admission(fact.label, fact.batch, share, number)

    def _find_pair_shedding(
        self, plan: SheddingPlanned, fresh: TupleFacts, partner: TupleFacts
    ) -> PairShedding:
        place, other = self._places.find_place(fresh), self._places.find_stream(partner)
        if not self._places.list_blocks(partner):
            return PairShedding()
        meetings = [*self._list_meetings(fresh, partner)]
        shares = [
            share
            for route, block in meetings
            for share in self._list_shares(plan, route, block, other, place)
        ]
        if len(meetings) == len(shares) == 1 and self._places.is_unique(fresh):
            return PairShedding(fresh.batch, (*shares,), _draw_number(place, meetings[0][1]))
        return PairShedding(fresh.batch, (*sorted({*shares}),) or (_ALL,))

    def _list_meetings(self, fresh: TupleFacts, partner: TupleFacts) -> Iterator[tuple[Route, int]]:
        """Yield each route by which a tuple may have probed another one, and the block probed."""
        assert fresh.batch is not None
        fresh_blocks = {ids[0] for ids in self._places.list_blocks(fresh)}
        partner_blocks = {id for ids in self._places.list_blocks(partner) for id in ids}
        other = self._places.find_stream(partner)
        for route in self.run.plans_by_batch[fresh.batch].routes:
            if route.is_fresh and route.block.id in fresh_blocks:
                for path in route.paths:
                    for block in path[0].probed_blocks() if path[0].stream == other else ():
                        if block in partner_blocks:
                            yield route, block

    def _list_shares(
        self,
        plan: SheddingPlanned,
        route: Route,
        block: int,
        stream: int,
        place: TuplePlace,
    ) -> list[float]:
        """Return the share of pairs of a fresh block and a probed one, or those of all types."""
        item = route.block.stream, stream, plan.basic_window_by_block.get(block, -1)
        by_type = next((i.shares for i in plan.items if i[:3] == item), (_ALL,))
        types = plan.types[route.block.stream] if plan.types else ()
        if len(types) > 1 and place.utility is not None:
            code = classify_utilities(np.array([place.utility]))
            at = min(int(np.searchsorted(np.array(types), code)[0]), len(types) - 1)
            by_type = by_type[at : at + 1]
        expected = plan.expected_tuples.get(route.block.id, 0.0)
        rows = self.run.blocks[route.block.id].rows
        guard = min(1.0, expected / rows) if expected and rows else 1.0
        return sorted({share * guard for share in by_type})


def _draw_number(place: TuplePlace, block: int) -> float | None:
    """Return the number by which a tuple is sampled for a block; None: its hash is unknown."""
    if place.sampling_hash is None:
        return None
    return float(draw_numbers(np.array([place.sampling_hash], np.uint64), block)[0])
