"""Probe blocks: send them along the paths of their routes, hop by hop."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import NamedTuple

import numpy as np

from braid.core.facts import AgedMatches, Visit
from braid.core.plan import Hop, Route
from braid.core.reserved_columns import TIME
from braid.execution.host_replicas import ReplicaStore
from braid.kernels.block_builder import gather_blocks
from braid.kernels.exact_sums import OrderIndependentSum
from braid.kernels.host_block_rows import BlockRows, PartialMatches
from braid.kernels.match_marks import MatchMarker
from braid.kernels.probe import BYTES, BlockJoiner, ProbeInput
from braid.kernels.shedding_sampler import PairSampler, SampledMeeting
from braid.storage.block_files import ResultFileWriter
from braid.util.clock_and_threads import current_environment

Place = tuple[int, int, int]
"""Position of partial results in the plan: route, path, and next hop, each by number."""


_SMALL = 4096
"""Rows up to which blocks are probed together: searching each would cost more than sorting them."""


class ProbeBatch(NamedTuple):
    """Blocks that a hop probes at once: one block on a host, or several small ones on their hosts.

    - ``sizes``: rows of each block.
    - ``is_stored``: whether the blocks were stored before this batch.
    - ``drawn``: with load shedding, whether only a sample of the probes meets the block, or each
      match counts by itself.
    - ``since``: event time below which the tuples of a block with pending pairs are answered.
    """

    hosts: Sequence[int]
    blocks: Sequence[int]
    rows: BlockRows
    is_stored: bool
    sizes: Sequence[int]
    drawn: bool = False
    since: int | None = None


@dataclass
class ProbeOutcome:
    """Outcome of a ProbeBatch: compared pairs and matches by block.

    Partial results with weights, which probe one block at a time, are counted by their weights.
    """

    met: ProbeBatch
    compared_pairs: np.ndarray
    matched_pairs: np.ndarray
    match_weights: OrderIndependentSum = field(default_factory=OrderIndependentSum)
    meeting: SampledMeeting | None = None

    @staticmethod
    def empty(met: ProbeBatch) -> ProbeOutcome:
        """Return an outcome without pairs."""
        return ProbeOutcome(met, np.zeros(len(met.blocks), int), np.zeros(len(met.blocks)))

    def count_matches(self, found: PartialMatches, stream: int) -> np.ndarray:
        """Count matches. Return their number by block."""
        here = self.met.rows.count_by_block(found.parts[stream][1])
        if found.weights is None:
            self.matched_pairs += here
        else:
            self.match_weights.add_values(found.weights, np.ones(len(found)))
        if self.meeting is not None:
            self.meeting.count_matches(found)
        return here


class PathProber:
    """Probing by the hosts of one task attempt.

    - ``pending``: partial results that wait for a hop in this task.
    - ``leaving``: partial results for other tasks.
    - ``matches``: candidate pairs and matches by visit and age.
    - ``seconds``: time of all probes.
    - ``marker``: marker of the rows of preserved streams that are in some result.
    """

    def __init__(
        self, replicas: ReplicaStore, results: ResultFileWriter, reaper: PairSampler | None
    ) -> None:
        self.replicas, self.results, self.reaper = replicas, results, reaper
        self.batch, self.mine = replicas.batch, replicas.is_local_host
        spec = self.batch.spec
        self.joiner = BlockJoiner(
            spec.predicate,
            self.batch.horizons,
            self.batch.bitmaps,
            self.batch.batch,
        )
        self.fresh = {r.block.id for r in self.batch.routes if r.is_fresh}
        self.matches: AgedMatches = {}
        self.pending: dict[Place, list[PartialMatches]] = {}
        self.leaving: dict[Place, list[PartialMatches]] = {}
        self.seconds = 0.0
        self.marker = MatchMarker(spec.kind.preserved)
        self._gathers: dict[tuple[int, ...], tuple[BlockRows, Sequence[BlockRows]]] = {}
        """Small blocks that are probed together, by the identities of their rows.

        The rows are kept with them, so that identities stay unique.
        """

    def probe_paths(self, here: dict[tuple[int, int], BlockRows]) -> None:
        """Send every block of these hosts along its paths, until they leave this task."""
        for number, route in enumerate(self.batch.routes):
            for path_number, path in enumerate(route.paths):
                together: dict[int, tuple[BlockRows, list[int]]] = {}
                for host in filter(self.mine, path[0].blocks_by_host):
                    rows = (
                        here.get((route.block.id, host))
                        if route.is_fresh
                        else self.replicas.replica_rows(route.block.id, host)
                    )
                    if rows is not None:
                        together.setdefault(id(rows), (rows, []))[1].append(host)
                for rows, hosts in together.values():
                    at = self._find_open_rows(route, rows)
                    start = PartialMatches({route.block.stream: (rows, at)})
                    self.probe_hop(start, (number, path_number, 0), hosts)
        self.probe_pending()

    def _find_open_rows(self, route: Route, rows: BlockRows) -> np.ndarray:
        """Return the positions of a probing block's rows that are not answered."""
        at = rows.row_positions()
        since = None if route.is_fresh else self.batch.held.get(route.block.id)
        return at if since is None else at[rows.numpy_column(TIME)[at] >= since]

    def probe_pending(self) -> None:
        """Probe pending partial results, hop by hop, until they leave this task.

        Those for other tasks are collected in ``leaving``.
        """
        while self.pending:
            place = min(self.pending, key=lambda place: place[2])
            hosts = [*filter(self.mine, self._find_hop(place).blocks_by_host)]
            for partial in PartialMatches.concat_bounded(self.pending.pop(place), BYTES):
                self.probe_hop(partial, place, hosts)

    def _find_hop(self, place: Place) -> Hop:
        route, path, hop = place
        return self.batch.routes[route].paths[path][hop]

    def probe_hop(self, partial: PartialMatches, place: Place, hosts: Sequence[int]) -> None:
        """Probe one hop on these hosts. Matches are results, or wait for the next hop."""
        began = current_environment().read_clock()
        tally = self.joiner.find_tally(frozenset(partial.parts), self._find_hop(place).stream)
        tally.rows += len(partial)
        met = self._make_probe_batches(partial, place, hosts)
        for host in hosts:
            self.replicas.host_metrics(host).probes += len(partial)
        for at, several in groupby(met, key=lambda m: m.hosts):
            since = current_environment().read_clock()
            self._probe_batches(partial, place, list(several))
            seconds = (current_environment().read_clock() - since) / len(at)
            for host in at:
                self.replicas.host_metrics(host).seconds += seconds
        took = current_environment().read_clock() - began
        self.seconds, tally.seconds = self.seconds + took, tally.seconds + took

    def _make_probe_batches(
        self, partial: PartialMatches, place: Place, hosts: Sequence[int]
    ) -> list[ProbeBatch]:
        """Return the blocks that a hop probes on these hosts.

        Small blocks are probed together up to a size. A block is probed alone if tuples are sampled
        for it, if partial results have weights, or if the run serves several queries.
        """
        fresh, probes = self.batch.routes[place[0]].is_fresh, self._find_hop(place).blocks_by_host
        alone: list[ProbeBatch] = []
        small: dict[tuple[bool, int], list[tuple[int, int, BlockRows]]] = {}
        held = group = 0
        is_separate = partial.weights is not None or self.batch.bitmaps is not None
        some_drawn = self._may_sample(partial, place)
        for host in hosts:
            for block in probes.get(host, ()):
                if (rows := self.replicas.replica_rows(block, host)) is None:
                    continue
                stored = block not in self.fresh and fresh
                drawn = some_drawn and self._is_sampled(partial, place, block)
                size, since = rows.batch.num_rows, None if fresh else self.batch.held.get(block)
                if is_separate or drawn or size > _SMALL or since is not None:
                    alone.append(ProbeBatch((host,), (block,), rows, stored, (size,), drawn, since))
                    continue
                if block not in self.fresh:  # fresh blocks share the columns of one batch
                    held += rows.buffer_bytes
                if held > BYTES:
                    group, held = group + 1, rows.buffer_bytes
                small.setdefault((stored, group), []).append((host, block, rows))
        return alone + [
            self._gather_small_blocks(place, few, stored) for (stored, _), few in small.items()
        ]

    def _sheds_load(self, place: Place) -> bool:
        """Return whether load is shed at a hop: only at the first hop of fresh blocks."""
        return self.reaper is not None and not place[2] and self.batch.routes[place[0]].is_fresh

    def _may_sample(self, partial: PartialMatches, place: Place) -> bool:
        """Return whether ``_is_sampled`` may be true for some block."""
        if self.reaper is None or not self._sheds_load(place):
            return False
        rows, _ = partial.parts[self.batch.routes[place[0]].block.stream]
        return self.batch.bitmaps is not None or not self.reaper.takes_all_tuples(rows)

    def _is_sampled(self, partial: PartialMatches, place: Place, block: int) -> bool:
        """Return whether only a sample of the probes meets a block, or each match counts alone."""
        assert self.reaper is not None
        fresh, window = self.batch.routes[place[0]].block, self._find_hop(place).stream
        all_meet = self.reaper.meets_all(partial, fresh.stream, window, fresh.id, block)
        return self.batch.bitmaps is not None or not all_meet

    def _gather_small_blocks(
        self, place: Place, few: list[tuple[int, int, BlockRows]], stored: bool
    ) -> ProbeBatch:
        hosts, blocks, each = zip(*few, strict=True)
        sizes = tuple(rows.batch.num_rows for rows in each)
        if len(each) == 1:
            return ProbeBatch(hosts, blocks, each[0], stored, sizes)
        key = tuple(map(id, each))
        if key not in self._gathers:
            stream = self._find_hop(place).stream
            orders = self.batch.spec.predicate.stream_orders(stream)
            spec = self.batch.spec
            # Rows of different blocks are copied together on their way to a third stream.
            goes_on = len(spec.columns) > 2 and not spec.kind.is_inner
            is_numbered = goes_on or stream in spec.kind.preserved
            self._gathers[key] = (gather_blocks(each, orders, is_numbered), each)
        return ProbeBatch(hosts, blocks, self._gathers[key][0], stored, sizes)

    def _probe_batches(
        self, partial: PartialMatches, place: Place, several: Sequence[ProbeBatch]
    ) -> None:
        """Probe batches of blocks on the same hosts."""
        route, path_number, hop = place
        path = self.batch.routes[route].paths[path_number]
        following = (route, path_number, hop + 1)
        encounters = [ProbeOutcome.empty(met) for met in several]
        done = 0
        probes = (self._make_probe_input(partial, place, e) for e in encounters)
        for n, matches in self.joiner.probe_blocks(probes, path[hop].stream):
            for e in encounters[done:n]:
                self._count_probe_outcome(partial, place, e)
            done = n
            here = encounters[n].count_matches(matches, path[hop].stream)
            if hop + 1 < len(path):
                self._forward_matches(matches, following, several[n].hosts, here)
            else:
                self._write_results(matches, several[n].hosts, here)
        for e in encounters[done:]:
            self._count_probe_outcome(partial, place, e)

    def _make_probe_input(
        self, partial: PartialMatches, place: Place, e: ProbeOutcome
    ) -> ProbeInput:
        """Return the probes for a batch of blocks: all of them, or a sample if load is shed."""
        e.meeting = self._sample_meeting(partial, place, e.met)
        drawn = partial if e.meeting is None else e.meeting.partial
        return ProbeInput(drawn, e.met.rows, e.met.is_stored, e, e.met.since)

    def _count_probe_outcome(self, partial: PartialMatches, place: Place, e: ProbeOutcome) -> None:
        """Add the complete outcome of a probe to the metrics."""
        if e.meeting is not None:
            self.replicas.host_metrics(e.met.hosts[0]).skipped_pairs += (
                e.meeting.skipped_tuples * e.meeting.size
            )
            e.meeting.finish()
            e.meeting = None
        matched = (e.matched_pairs + e.match_weights.total_value()).tolist()
        stream, source = self._find_hop(place).stream, self.batch.routes[place[0]].block.stream
        visit = (tuple(sorted(partial.parts)), stream)
        met = e.met
        sampler = self.reaper if self._sheds_load(place) and not met.drawn else None
        each = zip(
            met.hosts, met.blocks, met.sizes, e.compared_pairs.tolist(), matched, strict=True
        )
        for host, block, size, compared, matches in each:
            self.replicas.host_metrics(host).compared_pairs += compared
            pairs = len(partial) * size
            self._count_matches((visit, self.batch.block_ages.get(block, 0)), pairs, matches)
            if sampler is not None:
                sampler.count_full_meeting(source, stream, block, pairs, matches)

    def _sample_meeting(
        self, partial: PartialMatches, place: Place, met: ProbeBatch
    ) -> SampledMeeting | None:
        """Return the sampled meeting of probes and a block; None if all probes meet it."""
        if self.reaper is None or not met.drawn:
            return None
        fresh, window = self.batch.routes[place[0]].block, self._find_hop(place).stream
        return self.reaper.sample_pair(
            partial, fresh.stream, window, fresh.id, met.blocks[0], met.rows
        )

    def _write_results(self, found: PartialMatches, hosts: Sequence[int], here: np.ndarray) -> None:
        self.marker.mark_results(found)
        if not self.batch.spec.kind.writes_pairs:
            return
        weights = None if self.reaper is None else self.reaper.result_weights(found)
        self.results.append_results(found, weights)
        for host, number in zip(hosts, here.tolist(), strict=True):
            self.replicas.host_metrics(host).results += number

    def _count_matches(self, at: tuple[Visit, int], pairs: float, matched: float) -> None:
        before = self.matches.get(at, (0, 0))
        self.matches[at] = (before[0] + pairs, before[1] + matched)

    def _forward_matches(
        self, found: PartialMatches, place: Place, sources: Sequence[int], here: np.ndarray
    ) -> None:
        """Forward matches to the hosts of the next hop. ``here``: matches by source host."""
        if not len(found):
            return
        size = found.nbytes / len(found)
        for source, number in zip(sources, here.tolist(), strict=True):
            for host in self._find_hop(place).blocks_by_host:
                if host != source:
                    self.replicas.host_metrics(source).sent_partials += number
                    self.replicas.host_metrics(host).received_partials += number
                    self.replicas.host_metrics(host).received_partial_bytes += round(number * size)
        if any(map(self.mine, self._find_hop(place).blocks_by_host)):
            self.pending.setdefault(place, []).append(found)
        if not all(map(self.mine, self._find_hop(place).blocks_by_host)):
            self.leaving.setdefault(place, []).append(found)

    def shipments(self) -> Iterator[tuple[list[int], Place, PartialMatches]]:
        """Yield leaving partial results, once for each other partition that has their next hop."""
        for place, partials in self.leaving.items():
            hosts = self._find_hop(place).blocks_by_host
            partitions = {h % self.batch.spec.partitions for h in hosts} - {self.replicas.partition}
            for partial in PartialMatches.concat_bounded(partials, BYTES):
                yield sorted(partitions), place, partial
