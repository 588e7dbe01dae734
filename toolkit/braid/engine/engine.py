"""The batch loop's one turn: compaction, plan, execute, commit.

The driver decides from block facts, an executor moves and joins, files hold the state. Nothing here
knows a policy or Spark, and nothing in a policy knows Spark.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from braid.condition.predicate import windowed
from braid.core.codec import again
from braid.core.compaction import compact, watermarks_of
from braid.core.cover import CoverError, CoverLedger
from braid.core.events import BatchCommitted, HostDid
from braid.core.facts import Facts, Matches
from braid.core.history import discarded, key_counts, matches, planned, usage
from braid.core.placement import Placement
from braid.core.plan import Block, Plan, after, joined
from braid.core.query import Query, longest
from braid.engine.executor import Executor
from braid.engine.store import Slot, State, Store
from braid.engine.wire import Batch, JoinSpec
from braid.local.bitmaps import QueryBitmaps


@dataclass
class Outcome:
    """What the hosts report of one batch, merged: replicas by (block, host), counts by host, result
    files, matches, and fresh tuples by stream and routing key.
    """

    slots: dict[tuple[int, int], list[Any]]
    hosts: dict[int, dict[str, float]]
    results: list[str]
    matches: Matches
    key_counts: tuple[dict[int, int], ...] = ()


class Engine:
    """Runs batches of one query against one store; ``publish`` receives the events of each
    committed batch; ``executor`` runs the tasks, and may be another one from batch to batch.

    ``lateness`` is in microseconds. With ``check`` every plan is held against the cover rule before
    it runs. ``queries`` are those that a new run serves, if it serves many; ``query`` has no
    windows then.
    """

    def __init__(
        self,
        spec: JoinSpec,
        placement: Placement,
        store: Store,
        lateness: int,
        check: bool,
        publish: Callable[[list[Any]], None],
        executor: Executor,
        queries: tuple[Query, ...] = (),
    ) -> None:
        self.alone, self.placement, self.store = spec, placement, store
        self.lateness, self.publish, self.executor = lateness, publish, executor
        self.streams = len(spec.columns)
        self.state = store.state(placement.State) or self._first(queries)
        self.serve(self.state.queries)
        owed = {(a, b) for a, b in self.state.owed}
        checked = check and placement.coverage == "exactly once"
        self.ledger = CoverLedger(self.streams, placement.keying, owed) if checked else None

    def _first(self, queries: tuple[Query, ...]) -> State:
        none = [0] * self.streams
        policy = self.placement.start(self.streams)
        return State(
            -1, -1, {}, {}, 0, policy, none, none, none, [None] * self.streams, queries=queries
        )

    def serve(self, queries: tuple[Query, ...]) -> None:
        """Join for these queries from now on: in the longest of their windows."""
        self.spec, self.bitmaps = self.alone, None
        if queries:
            windows = longest(queries)
            self.spec = replace(
                self.alone, predicate=windowed(self.alone.predicate, windows), windows=windows
            )
            self.bitmaps = QueryBitmaps.of(queries)

    def run(self, frame: Any, epoch: int, seen: Callable[[], Sequence[int | None]] = tuple) -> None:
        """Execute and commit Spark's micro-batch ``epoch`` of the streams' union, unless it has
        been committed before.

        ``seen`` tells afterwards, by stream, the latest event time (microseconds) of all tuples
        that came, if more came than ``frame`` has: event time goes on with those too that no query
        selects.
        """
        if epoch > self.state.epoch:
            self._turn(frame, epoch, seen)

    def finish(self, frame: Any, stopped: Callable[[], bool]) -> None:
        """At the end of the input, run batches of no tuples (``frame`` is empty) until no migration
        owes results.
        """
        while self.placement.owes(self.state.policy) and not stopped():
            self._turn(frame, self.state.epoch, tuple)

    def _turn(self, frame: Any, epoch: int, seen: Callable[[], Sequence[int | None]]) -> None:
        number = self.state.batch + 1
        began = time.perf_counter()
        kept, plan = self._plan(number)
        planning = time.perf_counter() - began
        outcome = self._execute(frame, number, kept, plan)
        executed = time.perf_counter()
        state = self._next(number, epoch, kept, plan, outcome, seen())
        committed = self._committed(state, kept, plan, outcome)
        state.usage, state.matches = usage(committed), matches(self.state.matches, outcome.matches)
        state.queries, state.key_counts = (
            self.state.queries,
            key_counts(self.state.key_counts, outcome.key_counts),
        )
        snapshot = self.store.snapshot(state)
        seconds = {
            "plan": planning,
            "execute": executed - began - planning,
            "commit": time.perf_counter() - executed,
        }
        seconds["total"] = sum(seconds.values())
        happened = [
            planned(number, joined(kept, plan)),
            *plan.events,
            replace(committed, seconds=seconds),
        ]
        self._commit(state, snapshot, outcome.results, happened)

    def _commit(self, state: State, snapshot: str, results: list[str], happened: list[Any]) -> None:
        self.store.commit(state.batch, snapshot, results, happened)
        self.store.tidy(state, snapshot)
        self.state = state
        self.publish(happened)

    def amend(
        self,
        queries: tuple[Query, ...],
        policy: Any,
        replicas: list[list[Any]] | None,
        happened: list[Any],
        began: float,
    ) -> None:
        """Commit a batch of no tuples after which other queries are served, or the placement's
        state is ``policy``.

        ``replicas`` tell every block's rows anew, as the hosts do (see ``_keep`` in task.py): a
        block that they leave out is gone. None leaves all as they are. ``began`` is when that work
        did, by ``time.perf_counter``.
        """
        old, none = self.state, [0] * self.streams
        state = replace(
            old, batch=old.batch + 1, policy=policy, queries=queries, last_received=none
        )
        if queries != old.queries:
            state.key_counts = ()  # a routing key is a rank among the queries' windows
        outcome = Outcome({}, {}, [], {})
        if replicas is not None:
            outcome.slots = {(line[0], line[1]): line for line in replicas}
            state.blocks = {b.id: _measured(b, outcome, {}) for b in old.blocks.values()}
            state.blocks = {
                id: replace(b, keys=(0, self.placement.keys))
                for id, b in state.blocks.items()
                if b.rows
            }
            state.slots = {
                (b.id, h): self._slot(b, h, outcome) for b in state.blocks.values() for h in b.hosts
            }
        committed = self._committed(state, Plan(), Plan(), outcome)
        snapshot, total = self.store.snapshot(state), time.perf_counter() - began
        seconds = {"plan": 0.0, "execute": total, "commit": 0.0, "total": total}
        self._commit(state, snapshot, [], [*happened, replace(committed, seconds=seconds)])
        self.serve(queries)

    def _plan(self, number: int) -> tuple[Plan, Plan]:
        """The compaction that is due, and the placement's plan for the blocks that it leaves."""
        s = self.state
        blocks = tuple(s.blocks.values())
        expected = watermarks_of(s.latest, self.lateness)
        slices = self.placement.slices(s.policy)
        kept = compact(blocks, s.next_id, s.pinned, self.spec.windows, expected, slices)
        facts = Facts(
            number,
            self.spec.predicate.aliases,
            after(blocks, kept),
            s.next_id + len(kept.derivations),
            tuple(s.received),
            tuple(s.received_bytes),
            tuple(s.last_received),
            self.spec.windows,
            tuple(s.latest),
            s.usage,
            s.matches,
            expected,
            s.queries,
            s.key_counts,
        )
        plan = self.placement.plan(facts, again(s.policy, self.placement.State))
        if self.ledger is not None:
            _check_tiles(plan, self.streams, self.placement.keys)
            self.ledger.check(blocks, joined(kept, plan))
        return kept, plan

    def _execute(self, frame: Any, number: int, kept: Plan, plan: Plan) -> Outcome:
        spec, whole = self.spec, joined(kept, plan)
        expected = watermarks_of(self.state.latest, self.lateness)
        keys, slots = self.placement.keys, self.state.slots
        batch = Batch(
            spec, number, keys, plan.routes, whole.derivations, slots, expected, self.bitmaps
        )
        return _merge(self.executor.execute(frame, batch), self.streams)

    def _next(
        self,
        number: int,
        epoch: int,
        kept: Plan,
        plan: Plan,
        outcome: Outcome,
        seen: Sequence[int | None],
    ) -> State:
        """The state that the batch leaves: blocks with the rows that were reported, and where their
        replicas are.
        """
        old = self.state
        live = {b.id: b for b in after(after(old.blocks.values(), kept), plan)}
        live |= {r.block.id: r.block for r in plan.routes if r.fresh}
        derived = {d.block.id for d in (*kept.derivations, *plan.derivations)}
        fresh = {r.block.id for r in plan.routes if r.fresh}
        blocks, slots = {}, {}
        for b in live.values():
            if b.id in derived | fresh and not (b := _measured(b, outcome, old.slots)).rows:
                continue
            blocks[b.id] = b
            slots |= {(b.id, h): self._slot(b, h, outcome) for h in b.hosts}
        last = [
            sum(blocks[id].rows for id in fresh if id in blocks and blocks[id].stream == s)
            for s in range(self.streams)
        ]
        size = [
            sum(blocks[id].bytes for id in fresh if id in blocks and blocks[id].stream == s)
            for s in range(self.streams)
        ]
        known = zip(old.latest, seen or old.latest, strict=True)
        latest = [max((t for t in times if t is not None), default=None) for times in known]
        for b in (blocks[id] for id in fresh if id in blocks):
            latest[b.stream] = (
                b.span[1] if latest[b.stream] is None else max(b.span[1], latest[b.stream])
            )
        owed = [
            [a, b]
            for a, b in (self.ledger.owed if self.ledger else ())
            if a in blocks and b in blocks
        ]
        if self.ledger:
            self.ledger.owed = {(a, b) for a, b in owed}
        ids = [
            old.next_id - 1,
            *live,
            *(d.block.id for d in (*kept.derivations, *plan.derivations)),
        ]
        return State(
            number,
            epoch,
            blocks,
            slots,
            max(ids) + 1,
            plan.state,
            [a + b for a, b in zip(old.received, last, strict=True)],
            [a + b for a, b in zip(old.received_bytes, size, strict=True)],
            last,
            latest,
            sorted(plan.pinned),
            owed,
        )

    def _slot(self, block: Block, host: int, outcome: Outcome) -> Slot:
        if (line := outcome.slots.get((block.id, host))) is not None:
            return Slot(line[2], line[3], None if line[4] is None else tuple(line[4]))
        if (slot := self.state.slots.get((block.id, host))) is not None:
            return slot
        raise RuntimeError(
            f"block {block.id} of stream {block.stream} was to be stored on host {host}, which has "
            "no replica"
        )

    def _committed(self, state: State, kept: Plan, plan: Plan, outcome: Outcome) -> BatchCommitted:
        old, plain = self.state, state.blocks
        touched = [1 + h for b in (*old.blocks.values(), *plain.values()) for h in b.hosts]
        width = max([self.placement.hosts, *touched, *(1 + h for h in outcome.hosts)])
        stored, size, given_up = [0] * width, [0] * width, [0] * width
        for b in plain.values():
            for h in b.hosts:
                stored[h] += b.rows
                size[h] += b.bytes
        for h, rows in discarded(after(old.blocks.values(), kept), plan, plain).items():
            given_up[h] = rows
        changed = [b for b in plain.values() if old.blocks.get(b.id) != b]

        return BatchCommitted(
            batch=state.batch,
            received=tuple(state.last_received),
            total=tuple(state.received),
            live=tuple(
                sum(b.rows for b in plain.values() if b.stream == s) for s in range(self.streams)
            ),
            results=sum(int(counts.get("results", 0)) for counts in outcome.hosts.values()),
            seconds={},
            blocks=tuple(changed),
            dropped=tuple(sorted(old.blocks.keys() - plain.keys())),
            hosts=tuple(
                HostDid(
                    stored=stored[h],
                    stored_bytes=size[h],
                    discarded=given_up[h],
                    **outcome.hosts.get(h, {}),  # type: ignore[arg-type]
                )
                for h in range(width)
            ),
            late=sum(
                _first_line(outcome, b)[5]
                for b in plain.values()
                if b.batch == state.batch and b.id not in old.blocks
            ),
        )


def _check_tiles(plan: Plan, streams: int, keys: int) -> None:
    """Raise CoverError unless the fresh blocks of every stream share out the routing keys, so that
    each tuple is in one.
    """
    for s in range(streams):
        ranges = sorted(r.block.keys for r in plan.routes if r.fresh and r.block.stream == s)
        ends = [0, *(end for _, end in ranges)]
        if [start for start, _ in ranges] != ends[:-1] or ends[-1] != keys:
            raise CoverError(
                f"the fresh blocks of stream {s} hold routing keys {ranges}; together they must "
                f"hold [0, {keys}) once"
            )


def _merge(reports: list[dict[str, Any]], streams: int) -> Outcome:
    outcome = Outcome({}, {}, [], {}, tuple({} for _ in range(streams)))
    for report in reports:
        outcome.results += report["results"]
        outcome.slots |= {(line[0], line[1]): line for line in report["slots"]}
        for host, counts in report["hosts"].items():
            mine = outcome.hosts.setdefault(int(host), {})
            for name, value in counts.items():
                mine[name] = mine.get(name, 0) + value
        for visited, stream, pairs, found in report["matches"]:
            earlier = outcome.matches.get((tuple(visited), stream), (0, 0))
            outcome.matches[tuple(visited), stream] = (earlier[0] + pairs, earlier[1] + found)
        for stream, key, n in report["key_counts"]:
            outcome.key_counts[stream][key] = outcome.key_counts[stream].get(key, 0) + n
    return outcome


def _first_line(outcome: Outcome, block: Block) -> list[Any]:
    return next(line for h in block.hosts if (line := outcome.slots.get((block.id, h))) is not None)


def _measured(block: Block, outcome: Outcome, old: dict[tuple[int, int], Slot]) -> Block:
    """The block with its reported rows, bytes and time span; all replicas must agree on the
    rows.
    """
    lines = [line for h in block.hosts if (line := outcome.slots.get((block.id, h))) is not None]
    if not lines:
        return block if any((block.id, h) in old for h in block.hosts) else replace(block, rows=0)
    if len({line[6] for line in lines}) > 1:
        raise RuntimeError(
            f"replicas of block {block.id} differ: {[(line[1], line[6]) for line in lines]} (host, "
            "rows)"
        )
    return replace(block, rows=lines[0][6], bytes=lines[0][7], span=(lines[0][8], lines[0][9]))
