"""Probe blocks: send them along the paths of their routes, hop by hop."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from operator import add

import numpy as np

from braid.core.facts import AgedMatches
from braid.core.plan import Route
from braid.core.reserved_columns import TIME
from braid.execution.host_replicas import ReplicaStore
from braid.execution.probe_pools import SMALL, Arrival, Place, PoolBuilder, ProbePool, Step
from braid.kernels.host_block_rows import BlockRows, PartialMatches
from braid.kernels.match_marks import MatchMarker
from braid.kernels.meetings import split_by_origin
from braid.kernels.order_independent_sums import OrderIndependentSum
from braid.kernels.probe import BYTES, BlockJoiner, ProbeInput
from braid.kernels.shedding_sampler import PairSampler, SampledMeeting
from braid.storage.block_files import ResultFileWriter
from braid.util.clock_and_threads import current_environment


@dataclass
class ProbeOutcome:
    """Outcome of a ProbePool: compared pairs, matches and their bytes, by meeting.

    Partial results with weights, which probe one block at a time, are counted by their weights.
    """

    pool: ProbePool
    compared_pairs: np.ndarray
    matches: np.ndarray
    match_bytes: int = 0
    match_weights: OrderIndependentSum = field(default_factory=OrderIndependentSum)
    is_weighted: bool = False
    sampled: SampledMeeting | None = None

    @staticmethod
    def empty(pool: ProbePool) -> ProbeOutcome:
        """Return an outcome without pairs."""
        count = pool.meetings.count
        return ProbeOutcome(pool, np.zeros(count, np.int64), np.zeros(count, np.int64))

    def count_matches(self, matches: PartialMatches, stream: int) -> None:
        """Count matches with rows of ``stream``."""
        self.matches += self.pool.meetings.count_matches(matches, stream)
        self.match_bytes += matches.nbytes
        if matches.weights is not None:
            self.is_weighted = True
            self.match_weights.add_values(matches.weights, np.ones(len(matches)))
        if self.sampled is not None:
            self.sampled.count_matches(matches)

    def matched_pairs(self) -> np.ndarray:
        """Return the matches by meeting, or the sum of their weights."""
        if self.is_weighted:
            return np.array([self.match_weights.total_value()])
        return self.matches.astype(float)


class PathProber:
    """Probing by the hosts of one task attempt.

    - ``pending``: partial results that wait for a hop in this task.
    - ``leaving``: partial results for other tasks.
    - ``matches``: candidate pairs and matches by visit and age.
    - ``seconds``: time of all probes.
    - ``marker``: marker of the rows of preserved streams that are in some result.
    """

    def __init__(
        self, replicas: ReplicaStore, results: ResultFileWriter, sampler: PairSampler | None
    ) -> None:
        self.replicas, self.results, self.sampler = replicas, results, sampler
        self.batch, self.is_local = replicas.batch, replicas.is_local_host
        spec = self.batch.spec
        self.joiner = BlockJoiner(
            spec.predicate,
            self.batch.horizons,
            self.batch.bitmaps,
            self.batch.batch,
        )
        self.pools = PoolBuilder(replicas, sampler)
        self.matches: AgedMatches = {}
        self.pending: dict[Place, list[PartialMatches]] = {}
        self.leaving: dict[Place, list[PartialMatches]] = {}
        self.seconds = 0.0
        self.marker = MatchMarker(self.batch.list_preserved())

    def probe_paths(self, here: dict[tuple[int, int], BlockRows]) -> None:
        """Send every block of these hosts along its paths, until they leave this task."""
        self._probe_arrivals(self._list_arrivals(here))
        self.probe_pending()

    def probe_share(self, here: dict[tuple[int, int], BlockRows], number: int, tasks: int) -> None:
        """Send a share of the rows of all hosts' blocks along their paths, to the end.

        Few rows are not cut. ``number``: of the share, from 0. ``tasks``: number of shares.
        """
        self.is_local = lambda host: True
        arrivals = enumerate(self._list_arrivals(here))
        shares = (_take_share(arrival, n + number, number, tasks) for n, arrival in arrivals)
        self._probe_arrivals([share for share in shares if share is not None])
        self.probe_pending()

    def _list_arrivals(self, here: dict[tuple[int, int], BlockRows]) -> list[Arrival]:
        """Return the blocks of these hosts at the first hops of their paths."""
        arrivals = []
        for number, route in enumerate(self.batch.routes):
            for path_number, path in enumerate(route.paths):
                together: dict[int, tuple[BlockRows, list[int]]] = {}
                for host in filter(self.is_local, path[0].blocks_by_host):
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
                    arrivals.append(Arrival((number, path_number, 0), start, hosts, len(at)))
        return arrivals

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
            hop = min(hop for _, _, hop in self.pending)
            arrivals = []
            for place in [place for place in self.pending if place[2] == hop]:
                hosts = [*filter(self.is_local, self.pools.find_hop(place).blocks_by_host)]
                for partial in PartialMatches.concat_bounded(self.pending.pop(place), BYTES):
                    arrivals.append(Arrival(place, partial, hosts, len(partial)))
            self._probe_arrivals(arrivals)

    def _probe_arrivals(self, arrivals: Sequence[Arrival]) -> None:
        """Probe with partial results. Matches are results, or wait for the next hop."""
        by_step: dict[Step, list[Arrival]] = {}
        for arrival in arrivals:
            joined = frozenset(arrival.partial.parts)
            stream = self.pools.find_hop(arrival.place).stream
            by_step.setdefault((joined, stream), []).append(arrival)
            for host in arrival.hosts:
                self.replicas.host_metrics(host).probes += arrival.size
        for step, several in by_step.items():
            began = current_environment().read_clock()
            tally = self.joiner.find_tally(*step)
            tally.rows += sum(arrival.size for arrival in several)
            outcomes = self._probe_pools(
                self.pools.make_pools(several, tally.step.access_path), step
            )
            took = current_environment().read_clock() - began
            self._share_seconds(outcomes, took)
            self.seconds, tally.seconds = self.seconds + took, tally.seconds + took

    def _probe_pools(self, pools: Sequence[ProbePool], step: Step) -> list[ProbeOutcome]:
        """Probe the pools of one step. Return their outcomes."""
        outcomes = [ProbeOutcome.empty(pool) for pool in pools]
        done = 0
        probes = map(self._make_probe_input, outcomes)
        for n, matches in self.joiner.probe_blocks(probes, step[1]):
            for outcome in outcomes[done:n]:
                self._count_probe_outcome(outcome, step)
            done = n
            outcomes[n].count_matches(matches, step[1])
            self._pass_on(matches, outcomes[n].pool)
        for outcome in outcomes[done:]:
            self._count_probe_outcome(outcome, step)
        return outcomes

    def _make_probe_input(self, outcome: ProbeOutcome) -> ProbeInput:
        """Return the probes of a pool: all of them, or a sample if load is shed."""
        pool = outcome.pool
        outcome.sampled = self._sample_meeting(pool)
        drawn = pool.partial if outcome.sampled is None else outcome.sampled.partial
        is_stored, since = pool.key.is_stored, pool.key.since
        return ProbeInput(drawn, pool.rows, is_stored, outcome, since, pool.meetings)

    def _sample_meeting(self, pool: ProbePool) -> SampledMeeting | None:
        """Return the sampled meeting of probes and a block; None if all probes meet it."""
        if self.sampler is None or not pool.key.is_drawn:
            return None
        route, path, hop = pool.arrivals[0].place
        fresh = self.batch.routes[route].block
        window = self.batch.routes[route].paths[path][hop].stream
        return self.sampler.sample_pair(
            pool.partial, fresh.stream, window, fresh.id, pool.blocks[0], pool.rows
        )

    def _count_probe_outcome(self, outcome: ProbeOutcome, step: Step) -> None:
        """Add the complete outcome of a probe to the metrics."""
        pool = outcome.pool
        if outcome.sampled is not None:
            skipped = outcome.sampled.skipped_tuples * outcome.sampled.size
            metrics = self.replicas.host_metrics(int(pool.hosts[0]))
            metrics.skipped_pairs += skipped
            metrics.considered_pairs -= skipped
            outcome.sampled.finish()
            outcome.sampled = None
        self._count_at_hosts(outcome)
        self._count_by_block(outcome, step)

    def _count_at_hosts(self, outcome: ProbeOutcome) -> None:
        pool = outcome.pool
        hosts, at = pool.hosts, np.zeros(1, np.int64)
        if len(hosts) > 1:
            hosts, at = np.unique(hosts, return_inverse=True)
        compared = _sum_by_number(at, outcome.compared_pairs)
        considered = np.zeros(len(hosts), int)
        if self.pools.sheds_load(pool.arrivals[0].place):
            considered = _sum_by_number(at, pool.count_possible_pairs())
        results = np.zeros(len(hosts), int)
        if self._is_last(pool.arrivals[0].place):
            if self.batch.spec.kind.writes_pairs:
                results = _sum_by_number(at, outcome.matches)
        else:
            self._count_forwarded(outcome)
        counts = (hosts, compared, considered, results)
        for host, pairs, met, written in zip(*(each.tolist() for each in counts), strict=True):
            metrics = self.replicas.host_metrics(host)
            metrics.compared_pairs += pairs
            metrics.considered_pairs += met
            metrics.results += written

    def _count_by_block(self, outcome: ProbeOutcome, step: Step) -> None:
        """Count pairs and matches by age, and by block if the run sheds load."""
        pool, (joined, stream) = outcome.pool, step
        visit, size = (tuple(sorted(joined)), stream), len(pool.blocks)
        pairs = _sum_by_number(pool.block_numbers, pool.count_possible_pairs(), size)
        matched = _sum_by_number(pool.block_numbers, outcome.matched_pairs(), size)
        ages = np.array([self.batch.block_ages.get(block, 0) for block in pool.blocks])
        of_ages = _sum_by_number(ages, pairs), _sum_by_number(ages, matched)
        for age in np.unique(ages).tolist():
            before = self.matches.get((visit, age), (0, 0))
            more = (values[age].item() for values in of_ages)
            self.matches[visit, age] = tuple(map(add, before, more))
        place = pool.arrivals[0].place
        if self.sampler is None or not self.pools.sheds_load(place) or pool.key.is_drawn:
            return
        [source] = joined
        for block, possible, matches in zip(
            pool.blocks, pairs.tolist(), matched.tolist(), strict=True
        ):
            self.sampler.count_full_meeting(source, stream, block, possible, matches)

    def _share_seconds(self, outcomes: Sequence[ProbeOutcome], seconds: float) -> None:
        """Share the seconds of probes among their hosts, by probes and compared pairs."""
        shares = np.zeros(1 + max((int(each.pool.hosts.max()) for each in outcomes), default=0))
        for outcome in outcomes:
            pool = outcome.pool
            work = pool.probes[pool.arrival_numbers] + outcome.compared_pairs
            shares += np.bincount(pool.hosts, work, len(shares))
        per_unit = seconds / max(1.0, float(shares.sum()))
        for host in np.flatnonzero(shares).tolist():
            self.replicas.host_metrics(host).seconds += float(shares[host]) * per_unit

    def _is_last(self, place: Place) -> bool:
        route, path, hop = place
        return hop + 1 == len(self.batch.routes[route].paths[path])

    def _pass_on(self, matches: PartialMatches, pool: ProbePool) -> None:
        """Write results, or forward partial results to the next hop of each path."""
        if self._is_last(pool.arrivals[0].place):
            self._write_results(matches)
            return
        for number, partial in split_by_origin(matches):
            route, path, hop = pool.arrivals[number].place
            self._forward_matches(partial, (route, path, hop + 1))

    def _write_results(self, matches: PartialMatches) -> None:
        self.marker.mark_results(matches)
        if not self.batch.spec.kind.writes_pairs:
            return
        pairs = self._select_pairs(matches)
        if len(pairs):
            weights = None if self.sampler is None else self.sampler.result_weights(pairs)
            self.results.append_results(pairs, weights)

    def _select_pairs(self, matches: PartialMatches) -> PartialMatches:
        """Return the results that some query has as pairs, if there are queries of other kinds."""
        if self.batch.bitmaps is None or not self.batch.bitmaps.kinds:
            return matches
        assert matches.queries is not None, "results of a run with queries serve some"
        matches.queries = matches.queries & self.batch.bitmaps.pair_mask
        return matches.take_positions(np.flatnonzero(matches.queries))

    def _forward_matches(self, matches: PartialMatches, place: Place) -> None:
        hosts = self.pools.find_hop(place).blocks_by_host
        if any(map(self.is_local, hosts)):
            self.pending.setdefault(place, []).append(matches)
        if not all(map(self.is_local, hosts)):
            self.leaving.setdefault(place, []).append(matches)

    def _count_forwarded(self, outcome: ProbeOutcome) -> None:
        """Count partial results at their hosts and at those of the next hop."""
        pool, total = outcome.pool, int(outcome.matches.sum())
        size = outcome.match_bytes / max(1, total)
        some = np.flatnonzero(outcome.matches)
        each = zip(pool.hosts[some].tolist(), pool.arrival_numbers[some].tolist(), strict=True)
        for (source, arrival), number in zip(each, outcome.matches[some].tolist(), strict=True):
            route, path, hop = pool.arrivals[arrival].place
            for host in self.pools.find_hop((route, path, hop + 1)).blocks_by_host:
                if host != source:
                    self.replicas.host_metrics(source).sent_partials += number
                    metrics = self.replicas.host_metrics(host)
                    metrics.received_partials += number
                    metrics.received_partial_bytes += round(number * size)

    def shipments(self) -> Iterator[tuple[list[int], Place, PartialMatches]]:
        """Yield leaving partial results, once for each other partition that has their next hop."""
        for place, partials in self.leaving.items():
            hosts = self.pools.find_hop(place).blocks_by_host
            partitions = {h % self.batch.spec.partitions for h in hosts} - {self.replicas.partition}
            for partial in PartialMatches.concat_bounded(partials, BYTES):
                yield sorted(partitions), place, partial


def _take_share(arrival: Arrival, turn: int, number: int, tasks: int) -> Arrival | None:
    """Return a share of an arrival's rows: all of few rows if it is the task's turn, else None."""
    size = arrival.size
    if size <= SMALL:
        return arrival if turn % tasks == 0 else None
    at = np.arange(size * number // tasks, size * (number + 1) // tasks)
    return arrival._replace(partial=arrival.partial.take_positions(at), size=len(at))


def _sum_by_number(numbers: np.ndarray, values: np.ndarray, size: int = 0) -> np.ndarray:
    """Return the sums of whole numbers or weights by number; exact below 2^53."""
    sums = np.bincount(numbers, values, size)
    return sums.astype(values.dtype)
