"""The replicas of a task's hosts: what they hold, derive and take in."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from braid.core.clocks import Spread
from braid.core.environment import environment
from braid.core.plan import Derivation, Keys
from braid.core.report import HostDid, Replica, Report, Size
from braid.core.state import Address
from braid.core.state import Place as StoredAt
from braid.engine.copies import Copies
from braid.engine.files import BlockFiles, keep, replica
from braid.engine.fresh import Fresh
from braid.engine.wire import Batch
from braid.local.build import merge
from braid.local.rows import Rows


class Replicas:
    """What the hosts of one task attempt hold, with a count of what each did. Files are named by
    ``stem``; only those that a report carries to the driver come into being.
    """

    def __init__(self, batch: Batch, partition: int, stem: str, copies: Copies) -> None:
        folder = copies.folder / "blocks"
        self.batch, self.partition = batch, partition
        self.counts: dict[int, HostDid] = {}
        self.told: list[Replica] = []
        self.files = BlockFiles(folder, stem, batch.spec.force, batch.spec.echoes)
        self._seals, self._copies = dict(batch.files), copies
        keep(folder, self._seals)
        self._made: dict[StoredAt, tuple[Address, Rows]] = {}
        self._open: dict[Address, Rows] = {}

    def mine(self, host: int) -> bool:
        """Whether a host is packed on this task's partition."""
        return host % self.batch.spec.partitions == self.partition

    def count(self, host: int) -> HostDid:
        """What a host did so far."""
        return self.counts.setdefault(host, HostDid())

    def rows(self, block: int, host: int) -> Rows | None:
        """A host's replica of a block; None when the block turned out to have no rows there."""
        if (block, host) in self._made:
            return self._made[block, host][1]
        address = self.batch.places.get((block, host))
        if address is None:
            return None
        self._made[block, host] = (address, self._opened(address))
        return self._made[block, host][1]

    def _opened(self, address: Address) -> Rows:
        """What lies there, which hosts share that have it from one another."""
        if address not in self._open:
            file = self._copies.block(address.file)
            seal = self._seals[address.file]
            self._open[address] = replica(str(file), address.part, address.keys, seal)
        return self._open[address]

    def derive(self) -> None:
        """Make the derived blocks of these hosts, in the order of the plan. A dense cut of one's
        own replica is a view. Hosts that make the same of the same share it.
        """
        for d in self.batch.derivations:
            shared: dict[Any, tuple[Address, Rows]] = {}
            for host, source in d.reads.items():
                if self.mine(host):
                    with _clock(self.count(host)):
                        self._derive(d, host, source, shared)

    def _derive(
        self, d: Derivation, host: int, source: int, shared: dict[Any, tuple[Address, Rows]]
    ) -> None:
        found = [s for s in d.sources if self.rows(s, source) is not None]
        if not found:
            return
        own = host == source
        same = (own, *(self._made[s, source][0] for s in found))
        if same not in shared:
            shared[same] = self._merged(d, [self._made[s, source] for s in found], own)
        size = self._keep(d.block.id, host, *shared[same])
        if size is not None and not own:
            count = self.count(host)
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
        return self.files.write(d.block.stream, rows.batch) if some else Address("", 0), rows

    def _keep(
        self,
        block: int,
        host: int,
        address: Address,
        rows: Rows,
        late: int = 0,
        spread: Spread | None = None,
    ) -> Size | None:
        """Note a replica for the report; an empty one does not come into being."""
        if (count := rows.count()) == 0:
            return None
        made = Size(count, rows.nbytes * count // rows.batch.num_rows, rows.span(), late, spread)
        self._made[block, host] = (address, rows)
        self.told.append(Replica(block, host, address, made))
        return made

    def take(self, fresh: Iterable[Fresh]) -> dict[tuple[int, int], Rows]:
        """The fresh blocks by (block, host), of the hosts here; those that store one keep it. They
        are the last that is written.
        """
        self.files.end()
        here: dict[tuple[int, int], Rows] = {}
        for f in fresh:
            for host in filter(self.mine, f.hosts):
                here[f.block.id, host] = f.rows
                count = self.count(host)
                count.received += f.rows.batch.num_rows
                count.received_bytes += f.size
                count.seconds += f.seconds
            if f.address is not None:
                for host in filter(self.mine, f.block.hosts):
                    self._keep(f.block.id, host, f.address, f.rows, f.late, f.spread)
        return here

    def learn(self, report: Report) -> None:
        """Know the blocks that an earlier task made on these hosts."""
        self._seals |= report.files
        for r in report.replicas:
            if self.mine(r.host):
                self._made[r.block, r.host] = (r.address, self._opened(r.address))


class _clock:
    """Adds the wall-clock seconds of a with-block to a host's count."""

    def __init__(self, counts: HostDid) -> None:
        self.counts = counts

    def __enter__(self) -> None:
        self.began = environment().clock()

    def __exit__(self, *_: object) -> None:
        self.counts.seconds += environment().clock() - self.began


def _is_dense(view: Rows) -> bool:
    """Whether a third of the rows in the file count, so that a half is. A probe of a view searches
    and filters all of them.
    """
    chosen = view.chosen()
    return chosen is None or bool(3 * np.count_nonzero(chosen) >= len(chosen))


def _narrow(a: Keys | None, b: Keys) -> Keys:
    return b if a is None else (max(a[0], b[0]), min(a[1], b[1]))
