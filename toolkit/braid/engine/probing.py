"""Probing: blocks are sent along the paths of their routes, hop by hop."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import NamedTuple

import numpy as np

from braid.core.environment import environment
from braid.core.facts import AgedMatches, Visit
from braid.core.plan import Hop
from braid.engine.files import ResultFile
from braid.engine.replicas import Replicas
from braid.local.build import gather
from braid.local.harvest import Meeting, Reaper
from braid.local.probe import BYTES, Joiner, Meet
from braid.local.rows import Partial, Rows
from braid.local.sums import Sums

Place = tuple[int, int, int]
"""Where partial results are in the plan: number of the route, of its path, of the hop that comes
next.
"""


_SMALL = 4096
"""Rows of a block that is met together with others: searching each costs more than sorting them."""


class Met(NamedTuple):
    """What a hop meets at once: a block on a host, or several small ones, each on its host, with
    their ``sizes``. ``stored``: they were there before this batch. ``drawn``: not all that set out
    meet the block, or each counts for itself, in a run that sheds load.
    """

    hosts: Sequence[int]
    blocks: Sequence[int]
    rows: Rows
    stored: bool
    sizes: Sequence[int]
    drawn: bool = False


@dataclass
class Encounter:
    """What comes of a Met: candidate pairs and matches, block by block; those of partial results
    that have weights, which meet each block by itself, by their weights.
    """

    met: Met
    compared: np.ndarray
    matched: np.ndarray
    weighed: Sums = field(default_factory=Sums)
    meeting: Meeting | None = None

    @staticmethod
    def of(met: Met) -> Encounter:
        """Nothing yet."""
        return Encounter(met, np.zeros(len(met.blocks), int), np.zeros(len(met.blocks)))

    def note(self, found: Partial, stream: int) -> np.ndarray:
        """Count what was found, and say how much of it in each block."""
        here = self.met.rows.tally(found.parts[stream][1])
        if found.weights is None:
            self.matched += here
        else:
            self.weighed.add(found.weights, np.ones(len(found)))
        if self.meeting is not None:
            self.meeting.note(found)
        return here


class Probing:
    """What the hosts of one task attempt find, and what they pass on.

    ``pending`` are partial results that wait for a hop here, ``leaving`` those for other tasks,
    ``matches`` the candidate pairs and matches by visit and age, ``seconds`` what it took.
    """

    def __init__(self, replicas: Replicas, results: ResultFile, reaper: Reaper | None) -> None:
        self.replicas, self.results, self.reaper = replicas, results, reaper
        self.batch, self.mine = replicas.batch, replicas.mine
        spec = self.batch.spec
        self.joiner = Joiner(
            spec.predicate,
            spec.windows,
            self.batch.watermarks,
            self.batch.bitmaps,
            self.batch.number,
        )
        self.fresh = {r.block.id for r in self.batch.routes if r.fresh}
        self.matches: AgedMatches = {}
        self.pending: dict[Place, list[Partial]] = {}
        self.leaving: dict[Place, list[Partial]] = {}
        self.seconds = 0.0
        self._gathers: dict[tuple[int, ...], tuple[Rows, Sequence[Rows]]] = {}
        """Small blocks that are met at once, by the identities of their rows, which are kept with
        them."""

    def probe(self, here: dict[tuple[int, int], Rows]) -> None:
        """Send every block of these hosts along its paths, as far as they stay in this task."""
        for number, route in enumerate(self.batch.routes):
            for path_number, path in enumerate(route.paths):
                together: dict[int, tuple[Rows, list[int]]] = {}
                for host in filter(self.mine, path[0].probes):
                    rows = (
                        here.get((route.block.id, host))
                        if route.fresh
                        else self.replicas.rows(route.block.id, host)
                    )
                    if rows is not None:
                        together.setdefault(id(rows), (rows, []))[1].append(host)
                for rows, hosts in together.values():
                    start = Partial({route.block.stream: (rows, rows.places())})
                    self.follow(start, (number, path_number, 0), hosts)
        self.go_on()

    def go_on(self) -> None:
        """Follow what waits, hop by hop, as far as it stays in this task; what other tasks need is
        packed once for each.
        """
        while self.pending:
            place = min(self.pending, key=lambda place: place[2])
            hosts = [*filter(self.mine, self._hop(place).probes)]
            for partial in Partial.together(self.pending.pop(place), BYTES):
                self.follow(partial, place, hosts)

    def _hop(self, place: Place) -> Hop:
        route, path, hop = place
        return self.batch.routes[route].paths[path][hop]

    def follow(self, partial: Partial, place: Place, hosts: Sequence[int]) -> None:
        """One hop on these hosts; what it finds is a result, or waits for the next hop."""
        began = environment().clock()
        met = self._met(partial, place, hosts)
        for host in hosts:
            self.replicas.count(host).probed += len(partial)
        for at, several in groupby(met, key=lambda m: m.hosts):
            since = environment().clock()
            self._follow(partial, place, list(several))
            seconds = (environment().clock() - since) / len(at)
            for host in at:
                self.replicas.count(host).seconds += seconds
        self.seconds += environment().clock() - began

    def _met(self, partial: Partial, place: Place, hosts: Sequence[int]) -> list[Met]:
        """What a hop meets on these hosts: block by block, but small ones all at once, unless they
        are too large together. A block is met by itself where tuples are drawn for it, or have
        weights, or where it has queries of its own.
        """
        fresh, probes = self.batch.routes[place[0]].fresh, self._hop(place).probes
        alone: list[Met] = []
        small: dict[tuple[bool, int], list[tuple[int, int, Rows]]] = {}
        held = group = 0
        apart = partial.weights is not None or self.batch.bitmaps is not None
        some_drawn = self._some_drawn(partial, place)
        for host in hosts:
            for block in probes.get(host, ()):
                if (rows := self.replicas.rows(block, host)) is None:
                    continue
                stored = block not in self.fresh and fresh
                drawn = some_drawn and self._drawn(partial, place, block)
                size = rows.batch.num_rows
                if apart or drawn or size > _SMALL:
                    alone.append(Met((host,), (block,), rows, stored, (size,), drawn))
                    continue
                if block not in self.fresh:  # which were one column already
                    held += rows.held
                if held > BYTES:
                    group, held = group + 1, rows.held
                small.setdefault((stored, group), []).append((host, block, rows))
        return alone + [self._gathered(place, few, stored) for (stored, _), few in small.items()]

    def _sheds(self, place: Place) -> bool:
        """Whether shares of a harvest apply to a hop: to the first of fresh blocks."""
        return self.reaper is not None and not place[2] and self.batch.routes[place[0]].fresh

    def _some_drawn(self, partial: Partial, place: Place) -> bool:
        """Whether ``_drawn`` may be true of some block."""
        if self.reaper is None or not self._sheds(place):
            return False
        rows, _ = partial.parts[self.batch.routes[place[0]].block.stream]
        return self.batch.bitmaps is not None or not self.reaper.takes_all(rows)

    def _drawn(self, partial: Partial, place: Place, block: int) -> bool:
        """Whether a block is met by some of those that set out, or each counts for itself."""
        assert self.reaper is not None
        mine, window = self.batch.routes[place[0]].block, self._hop(place).stream
        all_meet = self.reaper.all_meet(partial, mine.stream, window, mine.id, block)
        return self.batch.bitmaps is not None or not all_meet

    def _gathered(self, place: Place, few: list[tuple[int, int, Rows]], stored: bool) -> Met:
        hosts, blocks, each = zip(*few, strict=True)
        sizes = tuple(rows.batch.num_rows for rows in each)
        if len(each) == 1:
            return Met(hosts, blocks, each[0], stored, sizes)
        key = tuple(map(id, each))
        if key not in self._gathers:
            indexes = self.batch.spec.predicate.indexes(self._hop(place).stream)
            self._gathers[key] = (gather(each, indexes), each)
        return Met(hosts, blocks, self._gathers[key][0], stored, sizes)

    def _follow(self, partial: Partial, place: Place, several: Sequence[Met]) -> None:
        """What is met on the same hosts."""
        route, path_number, hop = place
        path = self.batch.routes[route].paths[path_number]
        following = (route, path_number, hop + 1)
        encounters = [Encounter.of(met) for met in several]
        done = 0
        probes = (self._meet(partial, place, e) for e in encounters)
        for n, found in self.joiner.probe_all(probes, path[hop].stream):
            for e in encounters[done:n]:
                self._end(partial, place, e)
            done = n
            here = encounters[n].note(found, path[hop].stream)
            if hop + 1 < len(path):
                self._onward(found, following, several[n].hosts, here)
            else:
                self._result(found, several[n].hosts, here)
        for e in encounters[done:]:
            self._end(partial, place, e)

    def _meet(self, partial: Partial, place: Place, e: Encounter) -> Meet:
        """Those that set out, or that are drawn of them when load is shed."""
        e.meeting = self._meeting(partial, place, e.met)
        drawn = partial if e.meeting is None else e.meeting.partial
        return Meet(drawn, e.met.rows, e.met.stored, e)

    def _end(self, partial: Partial, place: Place, e: Encounter) -> None:
        """Count what came of it, when all of it is known."""
        if e.meeting is not None:
            self.replicas.count(e.met.hosts[0]).shed += e.meeting.left * e.meeting.size
            e.meeting.end()
            e.meeting = None
        matched = (e.matched + e.weighed.total()).tolist()
        stream, source = self._hop(place).stream, self.batch.routes[place[0]].block.stream
        visit = (tuple(sorted(partial.parts)), stream)
        met = e.met
        reaper = self.reaper if self._sheds(place) and not met.drawn else None
        each = zip(met.hosts, met.blocks, met.sizes, e.compared.tolist(), matched, strict=True)
        for host, block, size, compared, matches in each:
            self.replicas.count(host).compared += compared
            pairs = len(partial) * size
            self._match((visit, self.batch.ages.get(block, 0)), pairs, matches)
            if reaper is not None:
                reaper.met(source, stream, block, pairs, matches)

    def _meeting(self, partial: Partial, place: Place, met: Met) -> Meeting | None:
        """How those that are drawn of tuples that set out meet a block; None where all do."""
        if self.reaper is None or not met.drawn:
            return None
        mine, window = self.batch.routes[place[0]].block, self._hop(place).stream
        return self.reaper.meet(partial, mine.stream, window, mine.id, met.blocks[0], met.rows)

    def _result(self, found: Partial, hosts: Sequence[int], here: np.ndarray) -> None:
        weights = None if self.reaper is None else self.reaper.result(found)
        self.results.add(found, weights)
        for host, number in zip(hosts, here.tolist(), strict=True):
            self.replicas.count(host).results += number

    def _match(self, at: tuple[Visit, int], pairs: float, matched: float) -> None:
        before = self.matches.get(at, (0, 0))
        self.matches[at] = (before[0] + pairs, before[1] + matched)

    def _onward(
        self, found: Partial, place: Place, sources: Sequence[int], here: np.ndarray
    ) -> None:
        """What was found on these hosts, so much on each, goes to the next hop's."""
        if not len(found):
            return
        size = found.nbytes / len(found)
        for source, number in zip(sources, here.tolist(), strict=True):
            for host in self._hop(place).probes:
                if host != source:
                    self.replicas.count(source).sent += number
                    self.replicas.count(host).arrived += number
                    self.replicas.count(host).arrived_bytes += round(number * size)
        if any(map(self.mine, self._hop(place).probes)):
            self.pending.setdefault(place, []).append(found)
        if not all(map(self.mine, self._hop(place).probes)):
            self.leaving.setdefault(place, []).append(found)

    def ship(self) -> Iterator[tuple[list[int], Place, Partial]]:
        """What found something here goes once to every other partition on which the next hop has
        hosts.
        """
        for place, found in self.leaving.items():
            hosts = self._hop(place).probes
            partitions = {h % self.batch.spec.partitions for h in hosts} - {self.replicas.partition}
            for partial in Partial.together(found, BYTES):
                yield sorted(partitions), place, partial
