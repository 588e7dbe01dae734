"""What a task does for its hosts in one batch: derive blocks, build fresh ones, probe, ship,
emit, report.

A task serves the hosts h with ``h % partitions`` equal to its partition. Files are named by task
attempt; only those that a report carries to the driver come into being.
"""

from __future__ import annotations

import pyarrow as pa

from braid.core.environment import environment
from braid.core.harvest import Harvested
from braid.core.report import KeyCount, Matched, Report
from braid.engine.copies import Copies
from braid.engine.files import ResultFile
from braid.engine.fresh import Cutter
from braid.engine.probing import Probing
from braid.engine.replicas import Replicas
from braid.engine.wire import Batch
from braid.local.harvest import Reaper
from braid.local.rows import Rows


class Task:
    """One task attempt, whatever its stage."""

    def __init__(self, batch: Batch, partition: int) -> None:
        self.batch, self.partition = batch, partition
        spec = batch.spec
        stem, self.copies = f"{batch.number:06d}-{partition}-{environment().token()}", Copies(batch)
        self.reaper: Reaper | None = None
        if batch.harvest is not None and spec.worth is not None:
            self.reaper = Reaper(batch.harvest, spec.worth, len(spec.columns))
        self.replicas = Replicas(batch, partition, stem, self.copies)
        typed = self.reaper is not None and self.reaper.worth.typed
        self.cutter = Cutter(batch, self.replicas.files, typed)
        self.results = ResultFile(spec, self.copies.folder / "new", stem)
        self.probing = Probing(self.replicas, self.results, self.reaper)

    def take_in(self, arrived: dict[int, list[pa.RecordBatch]]) -> dict[tuple[int, int], Rows]:
        """Sort what was routed here into fresh blocks, by (block, host), and store those that are
        stored here.
        """
        mine = self.replicas.mine
        routes = [r for r in self.batch.routes if r.fresh and any(map(mine, r.hosts()))]
        return self.replicas.take(self.cutter.cut(arrived, routes, mine))

    def report(self) -> Report:
        """What the driver has to know, when all is done: the files are whole then."""
        results, blocks = self.results.close(), self.replicas.files.close()
        self.copies.put(blocks, results)
        matches = self.probing.matches.items()
        return Report(
            hosts=self.replicas.counts,
            replicas=self.replicas.told,
            results=[*results],
            files=blocks | results,
            worker=environment().host(),
            matches=[Matched(*visit, age, *n) for (visit, age), n in matches],
            key_counts=[
                KeyCount(stream, key, n)
                for stream, counts in self.cutter.key_counts.items()
                for key, n in counts.items()
            ],
            harvested=self._harvested(),
            served=self.results.served,
        )

    def _harvested(self) -> Harvested | None:
        """What came of the harvest here."""
        if (r := self.reaper) is None:
            return None
        types = tuple(self.cutter.kinds.get(s, {}) for s in range(len(self.batch.spec.columns)))
        return Harvested(
            tuple(r.yields()),
            types if r.worth.typed else (),
            variance=0.0 if r.variance_known else None,
            probing=self.probing.seconds,
            terms=tuple(r.terms()),
            sketches=tuple(tuple(z.tolist()) for z in r.sketches),
        )
