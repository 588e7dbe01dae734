"""Probing: blocks are sent along the paths of their routes, hop by hop."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import NamedTuple

import numpy as np

from braid.core.facts import AgedMatches, Visit
from braid.core.plan import Hop
from braid.execution.host_replicas import ReplicaStore
from braid.kernels.block_builder import gather_blocks
from braid.kernels.block_rows import BlockRows, PartialMatches
from braid.kernels.exact_sums import OrderIndependentSum
from braid.kernels.pair_sampling import PairSampler, SampledMeeting
from braid.kernels.probe import BYTES, BlockJoiner, ProbeInput
from braid.storage.block_files import ResultFileWriter
from braid.util.environment import current_environment

Place = tuple[int, int, int]
"""Where partial results are in the plan: number of the route, of its path, of the hop that comes
next.
"""


_SMALL = 4096
"""Rows of a block that is met together with others: searching each costs more than sorting them."""


class ProbeBatch(NamedTuple):
    """What a hop meets at once: a block on a host, or several small ones, each on its host, with
    their ``sizes``. ``stored``: they were there before this batch. ``drawn``: not all that set out
    meet the block, or each counts for itself, in a run that sheds load.
    """

    hosts: Sequence[int]
    blocks: Sequence[int]
    rows: BlockRows
    is_stored: bool
    sizes: Sequence[int]
    drawn: bool = False


@dataclass
class ProbeOutcome:
    """What comes of a Met: candidate pairs and matches, block by block; those of partial results
    that have weights, which meet each block by itself, by their weights.
    """

    met: ProbeBatch
    compared_pairs: np.ndarray
    matched_pairs: np.ndarray
    is_weighted: OrderIndependentSum = field(default_factory=OrderIndependentSum)
    meeting: SampledMeeting | None = None

    @staticmethod
    def empty(met: ProbeBatch) -> ProbeOutcome:
        """Nothing yet."""
        return ProbeOutcome(met, np.zeros(len(met.blocks), int), np.zeros(len(met.blocks)))

    def count_matches(self, found: PartialMatches, stream: int) -> np.ndarray:
        """Count what was found, and say how much of it in each block."""
        here = self.met.rows.count_by_block(found.parts[stream][1])
        if found.weights is None:
            self.matched_pairs += here
        else:
            self.is_weighted.add_values(found.weights, np.ones(len(found)))
        if self.meeting is not None:
            self.meeting.count_matches(found)
        return here


class PathProber:
    """What the hosts of one task attempt find, and what they pass on.

    ``pending`` are partial results that wait for a hop here, ``leaving`` those for other tasks,
    ``matches`` the candidate pairs and matches by visit and age, ``seconds`` what it took.
    """

    def __init__(
        self, replicas: ReplicaStore, results: ResultFileWriter, reaper: PairSampler | None
    ) -> None:
        self.replicas, self.results, self.reaper = replicas, results, reaper
        self.batch, self.mine = replicas.batch, replicas.is_local_host
        spec = self.batch.spec
        self.joiner = BlockJoiner(
            spec.predicate,
            spec.windows,
            self.batch.watermarks,
            self.batch.bitmaps,
            self.batch.batch,
        )
        self.fresh = {r.block.id for r in self.batch.routes if r.is_fresh}
        self.matches: AgedMatches = {}
        self.pending: dict[Place, list[PartialMatches]] = {}
        self.leaving: dict[Place, list[PartialMatches]] = {}
        self.seconds = 0.0
        self._gathers: dict[tuple[int, ...], tuple[BlockRows, Sequence[BlockRows]]] = {}
        """Small blocks that are met at once, by the identities of their rows, which are kept with
        them."""

    def probe_paths(self, here: dict[tuple[int, int], BlockRows]) -> None:
        """Send every block of these hosts along its paths, as far as they stay in this task."""
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
                    start = PartialMatches({route.block.stream: (rows, rows.row_positions())})
                    self.probe_hop(start, (number, path_number, 0), hosts)
        self.probe_pending()

    def probe_pending(self) -> None:
        """Follow what waits, hop by hop, as far as it stays in this task; what other tasks need is
        packed once for each.
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
        """One hop on these hosts; what it finds is a result, or waits for the next hop."""
        began = current_environment().read_clock()
        met = self._make_probe_batches(partial, place, hosts)
        for host in hosts:
            self.replicas.host_metrics(host).probes += len(partial)
        for at, several in groupby(met, key=lambda m: m.hosts):
            since = current_environment().read_clock()
            self._probe_batches(partial, place, list(several))
            seconds = (current_environment().read_clock() - since) / len(at)
            for host in at:
                self.replicas.host_metrics(host).seconds += seconds
        self.seconds += current_environment().read_clock() - began

    def _make_probe_batches(
        self, partial: PartialMatches, place: Place, hosts: Sequence[int]
    ) -> list[ProbeBatch]:
        """What a hop meets on these hosts: block by block, but small ones all at once, unless they
        are too large together. A block is met by itself where tuples are drawn for it, or have
        weights, or where it has queries of its own.
        """
        fresh, probes = self.batch.routes[place[0]].is_fresh, self._find_hop(place).blocks_by_host
        alone: list[ProbeBatch] = []
        small: dict[tuple[bool, int], list[tuple[int, int, BlockRows]]] = {}
        held = group = 0
        apart = partial.weights is not None or self.batch.bitmaps is not None
        some_drawn = self._may_sample(partial, place)
        for host in hosts:
            for block in probes.get(host, ()):
                if (rows := self.replicas.replica_rows(block, host)) is None:
                    continue
                stored = block not in self.fresh and fresh
                drawn = some_drawn and self._is_sampled(partial, place, block)
                size = rows.batch.num_rows
                if apart or drawn or size > _SMALL:
                    alone.append(ProbeBatch((host,), (block,), rows, stored, (size,), drawn))
                    continue
                if block not in self.fresh:  # which were one column already
                    held += rows.buffer_bytes
                if held > BYTES:
                    group, held = group + 1, rows.buffer_bytes
                small.setdefault((stored, group), []).append((host, block, rows))
        return alone + [
            self._gather_small_blocks(place, few, stored) for (stored, _), few in small.items()
        ]

    def _sheds_load(self, place: Place) -> bool:
        """Whether shares of a harvest apply to a hop: to the first of fresh blocks."""
        return self.reaper is not None and not place[2] and self.batch.routes[place[0]].is_fresh

    def _may_sample(self, partial: PartialMatches, place: Place) -> bool:
        """Whether ``_drawn`` may be true of some block."""
        if self.reaper is None or not self._sheds_load(place):
            return False
        rows, _ = partial.parts[self.batch.routes[place[0]].block.stream]
        return self.batch.bitmaps is not None or not self.reaper.takes_all_tuples(rows)

    def _is_sampled(self, partial: PartialMatches, place: Place, block: int) -> bool:
        """Whether a block is met by some of those that set out, or each counts for itself."""
        assert self.reaper is not None
        mine, window = self.batch.routes[place[0]].block, self._find_hop(place).stream
        all_meet = self.reaper.meets_all(partial, mine.stream, window, mine.id, block)
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
            indexes = self.batch.spec.predicate.index_columns(self._find_hop(place).stream)
            self._gathers[key] = (gather_blocks(each, indexes), each)
        return ProbeBatch(hosts, blocks, self._gathers[key][0], stored, sizes)

    def _probe_batches(
        self, partial: PartialMatches, place: Place, several: Sequence[ProbeBatch]
    ) -> None:
        """What is met on the same hosts."""
        route, path_number, hop = place
        path = self.batch.routes[route].paths[path_number]
        following = (route, path_number, hop + 1)
        encounters = [ProbeOutcome.empty(met) for met in several]
        done = 0
        probes = (self._make_probe_input(partial, place, e) for e in encounters)
        for n, found in self.joiner.probe_blocks(probes, path[hop].stream):
            for e in encounters[done:n]:
                self._count_probe_outcome(partial, place, e)
            done = n
            here = encounters[n].count_matches(found, path[hop].stream)
            if hop + 1 < len(path):
                self._forward_matches(found, following, several[n].hosts, here)
            else:
                self._write_results(found, several[n].hosts, here)
        for e in encounters[done:]:
            self._count_probe_outcome(partial, place, e)

    def _make_probe_input(
        self, partial: PartialMatches, place: Place, e: ProbeOutcome
    ) -> ProbeInput:
        """Those that set out, or that are drawn of them when load is shed."""
        e.meeting = self._sample_meeting(partial, place, e.met)
        drawn = partial if e.meeting is None else e.meeting.partial
        return ProbeInput(drawn, e.met.rows, e.met.is_stored, e)

    def _count_probe_outcome(self, partial: PartialMatches, place: Place, e: ProbeOutcome) -> None:
        """Count what came of it, when all of it is known."""
        if e.meeting is not None:
            self.replicas.host_metrics(e.met.hosts[0]).skipped_pairs += (
                e.meeting.skipped_tuples * e.meeting.size
            )
            e.meeting.finish()
            e.meeting = None
        matched = (e.matched_pairs + e.is_weighted.total_value()).tolist()
        stream, source = self._find_hop(place).stream, self.batch.routes[place[0]].block.stream
        visit = (tuple(sorted(partial.parts)), stream)
        met = e.met
        reaper = self.reaper if self._sheds_load(place) and not met.drawn else None
        each = zip(
            met.hosts, met.blocks, met.sizes, e.compared_pairs.tolist(), matched, strict=True
        )
        for host, block, size, compared, matches in each:
            self.replicas.host_metrics(host).compared_pairs += compared
            pairs = len(partial) * size
            self._count_matches((visit, self.batch.block_ages.get(block, 0)), pairs, matches)
            if reaper is not None:
                reaper.count_full_meeting(source, stream, block, pairs, matches)

    def _sample_meeting(
        self, partial: PartialMatches, place: Place, met: ProbeBatch
    ) -> SampledMeeting | None:
        """How those that are drawn of tuples that set out meet a block; None where all do."""
        if self.reaper is None or not met.drawn:
            return None
        mine, window = self.batch.routes[place[0]].block, self._find_hop(place).stream
        return self.reaper.sample_pair(
            partial, mine.stream, window, mine.id, met.blocks[0], met.rows
        )

    def _write_results(self, found: PartialMatches, hosts: Sequence[int], here: np.ndarray) -> None:
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
        """What was found on these hosts, so much on each, goes to the next hop's."""
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
        """What found something here goes once to every other partition on which the next hop has
        hosts.
        """
        for place, found in self.leaving.items():
            hosts = self._find_hop(place).blocks_by_host
            partitions = {h % self.batch.spec.partitions for h in hosts} - {self.replicas.partition}
            for partial in PartialMatches.concat_bounded(found, BYTES):
                yield sorted(partitions), place, partial
