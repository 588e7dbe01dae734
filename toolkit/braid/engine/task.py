"""What a task does for its hosts in one batch: derive blocks, build fresh ones, probe, ship,
emit, report.

A task serves the hosts h with ``h % partitions`` equal to its partition. Files are named by task
attempt; only those that a report carries to the driver come into being.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from socket import gethostname
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from braid.core.columns import ROUTING, TIME
from braid.core.events import HostDid
from braid.core.facts import AgedMatches, Visit
from braid.core.harvest import Harvested
from braid.core.plan import Block, Derivation, Hop, Keys, Route
from braid.core.report import KeyCount, Matched, Replica, Report, Size
from braid.core.state import Address
from braid.core.state import Place as StoredAt
from braid.engine.files import BlockFiles, ResultFile, keep, replica
from braid.engine.wire import Batch
from braid.local.build import build, gather, merge
from braid.local.harvest import Meeting, Reaper, kinds
from braid.local.probe import Joiner, Meet
from braid.local.rows import Partial, Rows, nbytes
from braid.local.sums import Sums

Place = tuple[int, int, int]
"""Where partial results are in the plan: number of the route, of its path, of the hop that comes
next.
"""


_SMALL = 4096
"""Rows of a block that is met together with others: searching each costs more than sorting them."""


class Met(NamedTuple):
    """What a hop meets at once: a block on a host, or several small ones, each on its host, with
    their ``sizes``. ``stored``: they were there before this batch.
    """

    hosts: Sequence[int]
    blocks: Sequence[int]
    rows: Rows
    stored: bool
    sizes: Sequence[int]


@dataclass
class Encounter:
    """What comes of a Met: candidate pairs and matches, block by block; those of a run that sheds
    load, in which each block is met by itself, by their weights.
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


class Fresh(NamedTuple):
    """A fresh block: the ``hosts`` that store it or probe with it, its rows, the bytes of its
    tuples, where it is stored, if it is, its late tuples, and the seconds that each host worked on
    it.
    """

    block: Block
    hosts: Collection[int]
    rows: Rows
    size: int
    address: Address | None
    late: int
    seconds: float = 0.0


@dataclass
class Task:
    """One task attempt, whatever its stage."""

    batch: Batch
    partition: int
    counts: dict[int, HostDid] = field(default_factory=dict)
    made: dict[StoredAt, tuple[Address, Rows]] = field(default_factory=dict)
    replicas: list[Replica] = field(default_factory=list)
    matches: AgedMatches = field(default_factory=dict)
    key_counts: dict[int, dict[int, int]] = field(default_factory=dict)
    pending: dict[Place, list[Partial]] = field(default_factory=dict)
    leaving: dict[Place, list[Partial]] = field(default_factory=dict)
    kinds: dict[int, dict[int, int]] = field(default_factory=dict)
    probing: float = 0.0
    opened: dict[Address, Rows] = field(default_factory=dict)
    gathered: dict[tuple[int, ...], tuple[Rows, Sequence[Rows]]] = field(default_factory=dict)
    """Small blocks that are met at once, by the identities of their rows, which are kept with
    them."""

    def __post_init__(self) -> None:
        spec = self.batch.spec
        stem = f"{self.batch.number:06d}-{self.partition}-{uuid.uuid4().hex[:8]}"
        folder = Path(spec.folder)
        self.seals = dict(self.batch.files)
        keep(folder / "blocks", self.seals)
        self.blocks = BlockFiles(folder / "blocks", stem, spec.force)
        self.results = ResultFile(spec, folder / "new", stem)
        self.joiner = Joiner(
            spec.predicate, spec.windows, self.batch.watermarks, self.batch.bitmaps
        )
        self.fresh = {r.block.id for r in self.batch.routes if r.fresh}
        self.reaper: Reaper | None = None
        if self.batch.harvest is not None and spec.worth is not None:
            self.reaper = Reaper(self.batch.harvest, spec.worth, len(spec.columns))

    def mine(self, host: int) -> bool:
        """Whether a host is packed on this task's partition."""
        return host % self.batch.spec.partitions == self.partition

    def rows(self, block: int, host: int) -> Rows | None:
        """A host's replica of a block; None when the block turned out to have no rows there."""
        if (block, host) in self.made:
            return self.made[block, host][1]
        address = self.batch.places.get((block, host))
        if address is None:
            return None
        self.made[block, host] = (address, self._opened(address))
        return self.made[block, host][1]

    def _opened(self, address: Address) -> Rows:
        """What lies there, which hosts share that have it from one another."""
        if address not in self.opened:
            file = Path(self.batch.spec.folder) / "blocks" / address.file
            seal = self.seals[address.file]
            self.opened[address] = replica(str(file), address.part, address.keys, seal)
        return self.opened[address]

    def derive(self) -> None:
        """Make the derived blocks of these hosts, in the order of the plan. A dense cut of one's
        own replica is a view. Hosts that make the same of the same share it.
        """
        for d in self.batch.derivations:
            shared: dict[Any, tuple[Address, Rows]] = {}
            for host, source in d.reads.items():
                if self.mine(host):
                    with _clock(self._count(host)):
                        self._derive(d, host, source, shared)

    def _derive(
        self, d: Derivation, host: int, source: int, shared: dict[Any, tuple[Address, Rows]]
    ) -> None:
        found = [s for s in d.sources if self.rows(s, source) is not None]
        if not found:
            return
        own = host == source
        same = (own, *(self.made[s, source][0] for s in found))
        if same not in shared:
            shared[same] = self._merged(d, [self.made[s, source] for s in found], own)
        size = self._keep(d.block.id, host, *shared[same])
        if size is not None and not own:
            count = self._count(host)
            count.moved += size.rows
            count.moved_bytes += size.bytes

    def _merged(
        self, d: Derivation, found: list[tuple[Address, Rows]], own: bool
    ) -> tuple[Address, Rows]:
        parts = [Rows(r.batch, _narrow(r.keys, d.block.keys)) for _, r in found]
        if len(parts) == 1 and own and _is_dense(parts[0]):
            return found[0][0]._replace(keys=parts[0].keys), parts[0]
        rows = Rows(merge(parts, self.batch.spec.predicate.indexes(d.block.stream)))
        some = rows.batch.num_rows
        return self.blocks.write(d.block.stream, rows.batch) if some else Address("", 0), rows

    def _keep(
        self, block: int, host: int, address: Address, rows: Rows, late: int = 0
    ) -> Size | None:
        """Note a replica for the report; an empty one does not come into being."""
        if (count := rows.count()) == 0:
            return None
        made = Size(count, rows.nbytes * count // rows.batch.num_rows, rows.span(), late)
        self.made[block, host] = (address, rows)
        self.replicas.append(Replica(block, host, address, made))
        return made

    def take_in(self, arrived: dict[int, list[pa.RecordBatch]]) -> dict[tuple[int, int], Rows]:
        """Sort what was routed here into fresh blocks, by (block, host), and store those that are
        stored here.
        """
        mine = [r for r in self.batch.routes if r.fresh and any(map(self.mine, r.hosts()))]
        return self.take(self.cut(arrived, mine, self.mine))

    def cut(
        self,
        arrived: dict[int, list[pa.RecordBatch]],
        routes: Sequence[Route],
        serves: Callable[[int], bool],
    ) -> list[Fresh]:
        """Make the fresh blocks of these routes for the hosts that it serves, here or in other
        tasks: sorted once, and written once.
        """
        found: list[Fresh] = []
        for s, batches in arrived.items():
            began = time.perf_counter()
            whole = batches[0] if len(batches) == 1 else pa.concat_batches(batches)
            made = [self._fresh(*each, serves) for each in self._split(whole, s, routes)]
            seconds = time.perf_counter() - began
            came = sum(f.rows.batch.num_rows * len([*filter(serves, f.hosts)]) for f in made)
            found += [f._replace(seconds=seconds / came * f.rows.batch.num_rows) for f in made]
        return found

    def take(self, fresh: Iterable[Fresh]) -> dict[tuple[int, int], Rows]:
        """The fresh blocks by (block, host), of the hosts here; those that store one keep it."""
        here: dict[tuple[int, int], Rows] = {}
        for f in fresh:
            for host in filter(self.mine, f.hosts):
                here[f.block.id, host] = f.rows
                count = self._count(host)
                count.received += f.rows.batch.num_rows
                count.received_bytes += f.size
                count.seconds += f.seconds
            if f.address is not None:
                for host in filter(self.mine, f.block.hosts):
                    self._keep(f.block.id, host, f.address, f.rows, f.late)
        return here

    def _split(
        self, whole: pa.RecordBatch, stream: int, routes: Sequence[Route]
    ) -> Iterator[tuple[Route, pa.RecordBatch]]:
        """The rows of the fresh block of each route of a stream, sorted by the first index: they
        are copied once, and every block is a view of them.
        """
        routes = [r for r in routes if r.block.stream == stream]
        if not routes:
            return
        number = np.full(self.batch.keys, len(routes), np.int16 if len(routes) < 1 << 15 else int)
        for n, route in enumerate(routes):
            number[slice(*route.block.keys)] = n
        block = number[whole.column(ROUTING).to_numpy()]
        ends = np.cumsum(np.bincount(block, minlength=len(routes)))[: len(routes)]
        key = whole.column(self.batch.spec.predicate.indexes(stream)[0])
        key = key.to_numpy(zero_copy_only=False)
        if ends[-1] < len(block):
            at = np.flatnonzero(block < len(routes))
            order = at[np.argsort(key[at])]
        else:
            order = np.argsort(key)
        if ends[0] < ends[-1]:
            order = order[np.argsort(block[order], kind="stable")]
        rows = whole.take(pa.array(order))
        for route, first, last in zip(routes, [0, *ends], ends, strict=False):
            if first < last:
                yield route, rows.slice(first, last - first)

    def _fresh(self, route: Route, part: pa.RecordBatch, serves: Callable[[int], bool]) -> Fresh:
        """The fresh block of these rows, written when a host that is served stores it: hosts share
        the file.
        """
        block = route.block
        rows = Rows(build(part, self.batch.spec.predicate.indexes(block.stream), ordered=True))
        if serves(block.hosts[0]):
            self._trace(rows, block.stream)
        address, late = None, 0
        if any(map(serves, block.hosts)):
            address = self.blocks.write(block.stream, rows.batch)
            late = self._late(rows, block.stream)
        return Fresh(block, route.hosts(), rows, nbytes(part), address, late)

    def _trace(self, rows: Rows, stream: int) -> None:
        """Count the fresh tuples by routing key, which in a run for many queries tells how long
        each is of use, and by type, in a run that sheds load by utility.
        """
        if self.batch.bitmaps is not None:
            _tally(self.key_counts.setdefault(stream, {}), rows.numpy(ROUTING))
        if self.reaper is not None and self.reaper.worth.typed:
            _tally(self.kinds.setdefault(stream, {}), kinds(rows))

    def _late(self, rows: Rows, stream: int) -> int:
        """Rows behind what the other streams' stored tuples were kept for: they may have missed
        partners.
        """
        bounds = [
            h
            for s, (h, w) in enumerate(
                zip(self.batch.watermarks, self.batch.spec.windows, strict=True)
            )
            if s != stream and h is not None and w is not None
        ]
        return int(np.count_nonzero(rows.numpy(TIME) < max(bounds))) if bounds else 0

    def probe(self, here: dict[tuple[int, int], Rows]) -> None:
        """Send every block of these hosts along its paths, as far as they stay in this task."""
        for number, route in enumerate(self.batch.routes):
            for path_number, path in enumerate(route.paths):
                together: dict[int, tuple[Rows, list[int]]] = {}
                for host in filter(self.mine, path[0].probes):
                    rows = (
                        here.get((route.block.id, host))
                        if route.fresh
                        else self.rows(route.block.id, host)
                    )
                    if rows is not None:
                        together.setdefault(id(rows), (rows, []))[1].append(host)
                for rows, hosts in together.values():
                    chosen = rows.chosen()
                    at = (
                        np.arange(rows.batch.num_rows) if chosen is None else np.flatnonzero(chosen)
                    )
                    start = Partial({route.block.stream: (rows, at)})
                    self.follow(start, (number, path_number, 0), hosts)
        self.go_on()

    def go_on(self) -> None:
        """Follow what waits, hop by hop, as far as it stays in this task; what other tasks need is
        packed once for each.
        """
        while self.pending:
            place = min(self.pending, key=lambda place: place[2])
            partial = Partial.concat(self.pending.pop(place))
            self.follow(partial, place, [*filter(self.mine, self._hop(place).probes)])

    def _hop(self, place: Place) -> Hop:
        route, path, hop = place
        return self.batch.routes[route].paths[path][hop]

    def follow(self, partial: Partial, place: Place, hosts: Sequence[int]) -> None:
        """One hop on these hosts; what it finds is a result, or waits for the next hop."""
        began = time.perf_counter()
        met = self._met(place, hosts)
        for host in hosts:
            self._count(host).probed += len(partial)
        for at, several in groupby(met, key=lambda m: m.hosts):
            since = time.perf_counter()
            self._follow(partial, place, list(several))
            seconds = (time.perf_counter() - since) / len(at)
            for host in at:
                self._count(host).seconds += seconds
        self.probing += time.perf_counter() - began

    def _met(self, place: Place, hosts: Sequence[int]) -> list[Met]:
        """What a hop meets on these hosts: block by block, but small ones all at once. Where each
        block has its own share, or queries of its own, it is met by itself.
        """
        fresh, probes = self.batch.routes[place[0]].fresh, self._hop(place).probes
        alone: list[Met] = []
        small: dict[bool, list[tuple[int, int, Rows]]] = {}
        whole = self.reaper is not None or self.batch.bitmaps is not None
        for host in hosts:
            for block in probes.get(host, ()):
                if (rows := self.rows(block, host)) is None:
                    continue
                stored = block not in self.fresh and fresh
                if whole or rows.batch.num_rows > _SMALL:
                    alone.append(Met((host,), (block,), rows, stored, (rows.batch.num_rows,)))
                else:
                    small.setdefault(stored, []).append((host, block, rows))
        return alone + [self._gathered(place, few, stored) for stored, few in small.items()]

    def _gathered(self, place: Place, few: list[tuple[int, int, Rows]], stored: bool) -> Met:
        hosts, blocks, each = zip(*few, strict=True)
        sizes = tuple(rows.batch.num_rows for rows in each)
        if len(each) == 1:
            return Met(hosts, blocks, each[0], stored, sizes)
        key = tuple(map(id, each))
        if key not in self.gathered:
            indexes = self.batch.spec.predicate.indexes(self._hop(place).stream)
            self.gathered[key] = (gather(each, indexes), each)
        return Met(hosts, blocks, self.gathered[key][0], stored, sizes)

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
        e.meeting = self._meeting(partial, place, e.met.blocks[0], e.met.rows)
        drawn = partial if e.meeting is None else e.meeting.partial
        return Meet(drawn, e.met.rows, e.met.stored, e)

    def _end(self, partial: Partial, place: Place, e: Encounter) -> None:
        """Count what came of it, when all of it is known."""
        if e.meeting is not None:
            e.meeting.end()
            e.meeting = None
        matched = e.matched + e.weighed.total()
        visit = (tuple(sorted(partial.parts)), self._hop(place).stream)
        met = e.met
        each = zip(met.hosts, met.blocks, met.sizes, e.compared.tolist(), matched, strict=True)
        for host, block, size, compared, matches in each:
            self._count(host).compared += compared
            at = (visit, self.batch.ages.get(block, 0))
            self._match(at, len(partial) * size, float(matches))

    def _meeting(self, partial: Partial, place: Place, block: int, rows: Rows) -> Meeting | None:
        """How tuples that set out meet a block when load is shed; None where all of them do."""
        route = self.batch.routes[place[0]]
        if self.reaper is None or place[2] or not route.fresh:
            return None
        window = self._hop(place).stream
        return self.reaper.meet(partial, route.block.stream, window, route.block.id, block, rows)

    def _result(self, found: Partial, hosts: Sequence[int], here: np.ndarray) -> None:
        weights = None if self.reaper is None else self.reaper.result(found)
        self.results.add(found, weights)
        for host, number in zip(hosts, here.tolist(), strict=True):
            self._count(host).results += number

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
                    self._count(source).sent += number
                    self._count(host).arrived += number
                    self._count(host).arrived_bytes += round(number * size)
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
            partitions = {h % self.batch.spec.partitions for h in hosts} - {self.partition}
            yield sorted(partitions), place, Partial.concat(found)

    def _count(self, host: int) -> HostDid:
        return self.counts.setdefault(host, HostDid())

    def report(self) -> Report:
        """What the driver has to know, when all is done: the files are whole then."""
        blocks, results = self.blocks.close(), self.results.close()
        return Report(
            hosts=self.counts,
            replicas=self.replicas,
            results=[*results],
            files=blocks | results,
            worker=gethostname(),
            matches=[Matched(*visit, age, *n) for (visit, age), n in self.matches.items()],
            key_counts=[
                KeyCount(stream, key, n)
                for stream, counts in self.key_counts.items()
                for key, n in counts.items()
            ],
            harvested=self._harvested(),
        )

    def _harvested(self) -> Harvested | None:
        """What came of the harvest here."""
        if (r := self.reaper) is None:
            return None
        types = tuple(self.kinds.get(s, {}) for s in range(len(self.batch.spec.columns)))
        types = types if r.worth.typed else ()
        return Harvested(
            tuple(r.yields()),
            types,
            variance=0.0 if r.variance_known else None,
            probing=self.probing,
            terms=tuple(r.terms()),
            sketches=tuple(tuple(z.tolist()) for z in r.sketches),
        )

    def learn(self, report: Report) -> None:
        """Know the blocks that an earlier task made on these hosts."""
        self.seals |= report.files
        for r in report.replicas:
            if self.mine(r.host):
                self.made[r.block, r.host] = (r.address, self._opened(r.address))


class _clock:
    """Adds the wall-clock seconds of a with-block to a host's count."""

    def __init__(self, counts: HostDid) -> None:
        self.counts = counts

    def __enter__(self) -> None:
        self.began = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        self.counts.seconds += time.perf_counter() - self.began


def _tally(counts: dict[int, int], values: np.ndarray) -> None:
    """Count how often each value is there."""
    for value, n in zip(*(each.tolist() for each in np.unique_counts(values)), strict=True):
        counts[value] = counts.get(value, 0) + n


def _is_dense(view: Rows) -> bool:
    """Whether a third of the rows in the file count, so that a half is. A probe of a view searches
    and filters all of them.
    """
    chosen = view.chosen()
    return chosen is None or bool(3 * np.count_nonzero(chosen) >= len(chosen))


def _narrow(a: Keys | None, b: Keys) -> Keys:
    return b if a is None else (max(a[0], b[0]), min(a[1], b[1]))
