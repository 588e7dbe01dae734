"""Phases of a batch with their durations, and facts of the next plan from past batches."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain

import msgspec

from braid.core.batch_report import BatchReport, HostMetrics
from braid.core.batch_symptoms import SPREAD, BatchSymptoms, FrequentValue
from braid.core.facts import AGES, AgedMatches, HostUsage, Matches
from braid.core.frequent_values import EARLIER_WEIGHT, OTHERS, keep_frequent_values
from braid.core.placement import Placement
from braid.core.plan import Block, Plan
from braid.core.run_events import BatchCommitted
from braid.core.run_state import RunState

PHASES = ("source", "planning", "transfer", "kernels", "commit")
"""Phases of a batch, in order.

- "source": until the tuples have arrived from the source.
- "planning": compaction and plan.
- "transfer": tuples, partial results and reports to and from the hosts, including Spark's jobs.
- "kernels": the slowest task of each stage, while its hosts derive, build, probe and write.
- "commit": computing the next state.
"""

_LEAST_SHARE = 0.01
"""Least share of a stream of a frequent value that is recorded."""

PHASE_COLUMNS = {
    "source": "source_seconds",
    "planning": "planning_seconds",
    "transfer": "transfer_seconds",
    "kernels": "kernel_seconds",
    "commit": "commit_seconds",
    "total": "total_seconds",
}
"""Column of ``JoinRun.metrics`` by phase."""


def split_batch_seconds(
    total: float, source: float, planning: float, kernels: float, commit: float
) -> dict[str, float]:
    """Return the seconds of a batch by phase, and "total". "transfer" is the remainder."""
    transfer = max(0.0, total - source - planning - kernels - commit)
    parts = dict(zip(PHASES, (source, planning, transfer, kernels, commit), strict=True))
    return parts | {"total": total}


_EARLIER_WEIGHT = 0.75
"""Weight of all earlier batches' matches, relative to those of the last batch."""


class LiveBlocks(dict[int, Block]):
    """The live blocks of a run by id. Apply its commits in order."""

    def apply_commit(self, event: BatchCommitted) -> None:
        """Remove the blocks that a commit dropped, and add those that are new or changed."""
        self.apply_changes(event.changed_blocks, event.dropped_block_ids)

    def apply_changes(self, blocks: Iterable[Block], dropped: Iterable[int] = ()) -> None:
        """Remove the dropped block ids, and add or replace blocks."""
        for id in dropped:
            self.pop(id, None)
        self.update((b.id, b) for b in blocks)


def host_usages(e: BatchCommitted) -> tuple[HostUsage, ...]:
    """Return the usage of each host in a batch."""
    return tuple(
        HostUsage(
            received_tuples=h.received_tuples,
            received_partials=h.received_partials,
            sent_partials=h.sent_partials,
            probes=h.probes,
            compared_pairs=h.compared_pairs,
            stored_tuples=h.stored_tuples,
            stored_bytes=h.stored_bytes,
            network_bytes=h.received_bytes + h.received_partial_bytes + h.migrated_bytes,
        )
        for h in e.host_metrics
    )


def fade_match_counts(earlier: AgedMatches, batch: AgedMatches) -> AgedMatches:
    """Return the matches of a batch plus the faded matches before it."""
    sums = {
        at: (_EARLIER_WEIGHT * pairs, _EARLIER_WEIGHT * matched)
        for at, (pairs, matched) in earlier.items()
    }
    for at, (pairs, matched) in batch.items():
        before = sums.get(at, (0, 0))
        sums[at] = (pairs + before[0], matched + before[1])
    return sums


def sum_matches_by_step(matches: AgedMatches) -> Matches:
    """Return the matches by step, summed over ages."""
    totals: Matches = {}
    for (visit, _), (pairs, matched) in matches.items():
        before = totals.get(visit, (0, 0))
        totals[visit] = (before[0] + pairs, before[1] + matched)
    return totals


def fade_key_counts(
    earlier: Sequence[Mapping[int, float]],
    batch: Sequence[Mapping[int, int]],
    keys_per_value: int = 1,
) -> tuple[dict[int, float], ...]:
    """Return the tuples of a batch by stream and number, plus the faded counts before it.

    If join values have several keys, only frequent ones keep their counts.
    """
    if not batch:
        return tuple(dict(old) for old in earlier)
    pairs = zip(earlier or ({},) * len(batch), batch, strict=True)
    weight = _EARLIER_WEIGHT if keys_per_value == 1 else EARLIER_WEIGHT
    sums = (
        {k: weight * old.get(k, 0) + new.get(k, 0) for k in old.keys() | new.keys()}
        for old, new in pairs
    )
    return tuple(sums) if keys_per_value == 1 else tuple(map(keep_frequent_values, sums))


def count_discarded_tuples(
    blocks: Iterable[Block], plan: Plan, left: Mapping[int, Block]
) -> dict[int, int]:
    """Return, by host, the number of tuples that the placement's plan discards.

    These are the tuples of dropped blocks, without those kept in narrower blocks.
    """
    blocks_by_id = {b.id: b for b in blocks}
    count: dict[int, int] = {}
    for id, hosts in plan.drops.items():
        for h in hosts:
            count[h] = count.get(h, 0) + (blocks_by_id[id].rows if id in blocks_by_id else 0)
    for d in plan.derivations:
        for h, source in d.source_hosts.items():
            if h == source and d.block.id in left and d.block.id not in d.source_blocks:
                count[h] = count.get(h, 0) - left[d.block.id].rows
    return {h: n for h, n in count.items() if n > 0}


def count_hosts(blocks: Iterable[Block]) -> int:
    """Return the minimum number of hosts, from the hosts of some blocks; 1 if there are none."""
    return 1 + max((max(hosts) for hosts in {b.hosts for b in blocks} if hosts), default=0)


def measure_hosts(
    hosts: int,
    blocks: Iterable[Block],
    plan: Plan,
    before: Mapping[int, Block],
    now: Mapping[int, Block],
    reported: Mapping[int, HostMetrics],
) -> tuple[HostMetrics, ...]:
    """Return the metrics of each host, including hosts that have left but still held a block.

    Parameters
    ----------
    hosts
        Number of hosts of the placement.
    blocks, plan
        The blocks that the placement planned from, and its plan.
    before, now
        The live blocks before and after the batch.
    reported
        The metrics that the tasks reported.
    """
    touched = count_hosts(chain(before.values(), now.values()))
    width = max([hosts, touched, *(1 + h for h in reported)])
    stored, size = [0] * width, [0] * width
    alike: dict[tuple[int, ...], tuple[int, int]] = {}
    for b in now.values():
        rows, held = alike.get(b.hosts, (0, 0))
        alike[b.hosts] = rows + b.rows, held + b.size_bytes
    for places, (rows, held) in alike.items():
        for h in places:
            stored[h] += rows
            size[h] += held
    gone = count_discarded_tuples(blocks, plan, now)
    return tuple(
        msgspec.structs.replace(
            reported.get(h, HostMetrics()),
            stored_tuples=stored[h],
            stored_bytes=size[h],
            discarded_tuples=gone.get(h, 0),
        )
        for h in range(width)
    )


def measure_symptoms(
    placement: Placement, windows: Sequence[int | None], after: RunState, outcome: BatchReport
) -> BatchSymptoms:
    """Return the symptoms of a batch, by the state ``after`` it.

    ``windows``: microseconds by stream; None: full history.
    """
    counts = after.key_counts if placement.keys_per_value > 1 else ()
    spread = _sum_spread(outcome.matches, windows)
    return BatchSymptoms(outcome.late_by, spread, _find_most_frequent(counts))


def _sum_spread(matches: AgedMatches, windows: Sequence[int | None]) -> dict[int, tuple[int, ...]]:
    sums: dict[int, list[float]] = {}
    for ((_, probed), age), (_, matched) in matches.items():
        if windows[probed] is not None:
            sums.setdefault(probed, [0.0] * SPREAD)[age * SPREAD // AGES] += matched
    return {stream: tuple(map(round, counts)) for stream, counts in sums.items()}


def _find_most_frequent(counts: Sequence[Mapping[int, float]]) -> FrequentValue | None:
    """Return the value with the greatest share of a stream; None: no value has one percent."""
    shares = [
        FrequentValue(stream, value, round(tuples / sum(of_stream.values()), 4))
        for stream, of_stream in enumerate(counts)
        for value, tuples in of_stream.items()
        if value != OTHERS and tuples >= _LEAST_SHARE * sum(of_stream.values())
    ]
    return max(shares, key=lambda each: each.share, default=None)
