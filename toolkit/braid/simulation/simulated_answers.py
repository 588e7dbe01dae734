"""Answers of a simulated outer, semi, anti or as-of join: which of the tuples are final."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from itertools import combinations

import numpy as np

from braid.core.answer_state import AnswerCount
from braid.core.asof_releases import LEFT
from braid.core.batch_work import BatchWork, RunRules
from braid.core.plan import Keys, Release, Settle
from braid.core.run_state import RunState
from braid.simulation.keyed_tuples import KeyedTuples


class SimulatedAnswers:
    """The stored tuples of a simulated run by the batch in which they arrived.

    The event times of a batch's tuples are uniform. A tuple is thus known by its batch, its routing
    key and its rank among those, so that cuts and merges lose none. How many tuples have no partner
    is an expectation, as if all combinations matched independently.
    """

    def __init__(self, rules: RunRules, selectivity: np.ndarray) -> None:
        self._rules, self._selectivity = rules, selectivity
        self._arrived: dict[int, dict[int, KeyedTuples]] = {}
        """By live block and batch, the tuples by routing key."""
        self._spans: dict[int, tuple[int, int]] = {}
        """By batch, the event time at which it begins and ends."""

    def count_answers(self, work: BatchWork, state: RunState) -> dict[int, AnswerCount]:
        """Return the answered tuples by stream. This precedes ``store_blocks``."""
        answers: dict[int, AnswerCount] = {}
        for settle in work.settles:
            self._add_count(answers, settle.block, settle.stream, settle, state)
        for release in work.releases:
            self._add_count(answers, release.block.id, LEFT, release, state)
        return answers

    def _add_count(
        self,
        answers: dict[int, AnswerCount],
        block: int,
        stream: int,
        due: Settle | Release,
        state: RunState,
    ) -> None:
        since = float("-inf") if due.since is None else due.since
        answered = sum(
            self._count_below(batch, tuples, due.until) - self._count_below(batch, tuples, since)
            for batch, tuples in self._arrived[block].items()
        )
        unmatched = round(answered * self._expect_unmatched(stream, state))
        before = answers.get(stream, AnswerCount())
        answers[stream] = before.add_counts(AnswerCount(answered, unmatched))

    def _count_below(self, batch: int, tuples: KeyedTuples, limit: float) -> int:
        """Return the tuples of a batch whose event time is below a limit."""
        begin, end = self._spans[batch]
        share = min(1.0, max(0.0, (limit - begin) / (end - begin)))
        return int(np.floor(tuples.counts * share).sum())

    def _expect_unmatched(self, stream: int, state: RunState) -> float:
        """Return the expected share of the answered tuples that have no partner."""
        elapsed = max(end for _, end in self._spans.values())
        partners = 1.0
        for other, received in enumerate(state.received):
            if other != stream:
                reach = (self._rules.reach[stream][other], self._rules.reach[other][stream])
                spans = [elapsed if most is None else most for most in reach]
                partners *= received * min(1.0, sum(spans) / elapsed)
        pairs = combinations(range(len(state.received)), 2)
        selectivity = float(np.prod([self._selectivity[pair] for pair in pairs]))
        return float((1 - selectivity) ** partners)

    def store_blocks(
        self, work: BatchWork, tuples: Mapping[int, KeyedTuples], span: tuple[int, int]
    ) -> None:
        """Follow the derivations of a batch, and add its fresh blocks.

        ``tuples``: by block, the tuples by routing key. ``span``: event times of the batch.
        """
        batch = work.facts.batch
        self._spans[batch] = span
        for d in work.combined_plan.derivations:
            self._arrived[d.block.id] = self._derive(d.source_blocks, d.block.key_range)
        for route in work.plan.routes:
            if route.is_fresh:
                self._arrived[route.block.id] = {batch: tuples[route.block.id]}

    def _derive(self, sources: Collection[int], keys: Keys) -> dict[int, KeyedTuples]:
        parts: dict[int, list[KeyedTuples]] = {}
        for source in sources:
            for batch, tuples in self._arrived[source].items():
                parts.setdefault(batch, []).append(tuples.select_range(keys))
        return {batch: KeyedTuples.add_parts(each) for batch, each in parts.items()}

    def keep_only(self, live: Collection[int]) -> None:
        """Forget all other blocks."""
        self._arrived = {id: batches for id, batches in self._arrived.items() if id in live}
