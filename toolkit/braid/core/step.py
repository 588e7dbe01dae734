"""The step of a batch, without its tuples: from a state to the work, and from what the hosts report
of it to the next state and the events.

The engine, the simulation and the tests' models all take this step; they differ in who does the
work in between. Pure: the same arguments, the same plan, state and events.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import Any, NamedTuple

import msgspec

from braid.core import codec, history
from braid.core.clocks import Advance, find_watermarks
from braid.core.compaction import compact
from braid.core.cover import CoverError, CoverLedger, LeftOut, check_tiles
from braid.core.event_time import advance_clocks, count_irregular, find_jumps, with_jumps
from braid.core.events import BatchCommitted, BatchHarvested, BatchPlanned, BatchServed, Event
from braid.core.facts import Facts, ages
from braid.core.harvest import Harvested, squared
from braid.core.placement import Placement
from braid.core.plan import Block, Plan, after, joined
from braid.core.report import HostDid, Outcome, Size
from braid.core.shedder import Shedder
from braid.core.state import Address, Place, Seal, State
from braid.core.words import story

_TOLD = 8
"""Of the blocks that an error concerns, how many have their story told."""


@dataclass(frozen=True, slots=True)
class Rules:
    """What stays the same from batch to batch: the policy, the streams' names, by stream the
    windows (microseconds; None: full history) and how late tuples may be (microseconds; empty:
    not at all), how far ahead of its clock a tuple moves it by itself (microseconds; None: any
    distance), whether plans are held against the cover rule, and what sheds load, if anything does.
    """

    placement: Placement
    streams: tuple[str, ...]
    windows: tuple[int | None, ...]
    lateness: tuple[int, ...] = ()
    ahead: int | None = None
    check: bool = True
    shedder: Shedder | None = None


@dataclass(frozen=True)
class Work:
    """What is to be done in a batch: compaction, then the placement's plan. ``live`` are the blocks
    that may be met, those that are left once all but the routes is done, ``ages`` theirs; ``owed``
    and ``left_out`` are the ledger's account; ``shedding`` is the shedder's next state.
    """

    facts: Facts
    compaction: Plan
    plan: Plan
    live: tuple[Block, ...]
    ages: Mapping[int, int]
    owed: frozenset[Place] = frozenset()
    left_out: tuple[LeftOut, ...] = ()
    shedding: Any = None

    @cached_property
    def whole(self) -> Plan:
        """Compaction and the placement's plan as one."""
        return joined(self.compaction, self.plan)


class Step(NamedTuple):
    """What a batch leaves: the next state and the events, the last of which is the commit."""

    state: State
    events: tuple[Event, ...]


def plan(rules: Rules, state: State) -> Work:
    """The work of the next batch. Raises CoverError when the plan breaks the cover rule, with the
    story of the blocks that it concerns.
    """
    placement = rules.placement
    watermarks = find_watermarks(state.clocks, rules.lateness or (0,) * len(rules.streams))
    policy = codec.again(state.policy, placement.State)  # a restart plans the same
    slices = _slices(rules, placement.slices(policy))
    blocks = tuple(state.blocks.values())
    kept = compact(blocks, state.next_id, state.pinned, rules.windows, watermarks, slices)
    facts = _facts(rules, state, kept, watermarks)
    own, shedding = placement.plan(facts, policy), None
    if (shedder := rules.shedder) is not None:
        before = codec.again(state.shedding, shedder.State)
        own, shedding = shedder.plan(facts, own, before, state.harvested)
    live = after(facts.blocks, own)
    by_id = ages(live, facts.batch, rules.windows, state.clocks)
    work = Work(facts, kept, own, live, by_id, shedding=shedding)
    return _checked(rules, state, work) if rules.check else work


def _facts(rules: Rules, state: State, kept: Plan, watermarks: tuple[int | None, ...]) -> Facts:
    """What the placement may know, once compaction is done."""
    return Facts(
        batch=state.batch + 1,
        streams=rules.streams,
        blocks=after(state.blocks.values(), kept),
        next_id=state.next_id + len(kept.derivations),
        received=state.received,
        received_bytes=state.received_bytes,
        last_received=state.last_received,
        windows=rules.windows,
        clocks=state.clocks,
        usage=state.usage,
        matches=history.by_step(state.matches),
        watermarks=watermarks,
        queries=state.queries,
        key_counts=state.key_counts,
        matches_by_age=state.matches,
        merged=frozenset(d.block.id for d in kept.derivations),
    )


def _slices(rules: Rules, own: Sequence[Sequence[int]]) -> Sequence[Sequence[int]]:
    """By stream the ages across which nothing is merged: the placement's and the shedder's."""
    if rules.shedder is None:
        return own
    own = own or tuple(() if w is None else (w,) for w in rules.windows)
    more = rules.shedder.slices(rules.windows)
    return tuple(tuple(sorted({*a, *b})) for a, b in zip(own, more, strict=True))


def _checked(rules: Rules, state: State, work: Work) -> Work:
    placement, streams = rules.placement, len(rules.streams)
    space = placement.keyspace(work.plan.state)
    check_tiles(work.plan, streams, space.end, space.first)
    ledger = CoverLedger(
        streams, space.keying, set(state.owed), placement.coverage, first=space.first
    )
    try:
        ledger.check(state.blocks.values(), work.whole)
    except CoverError as error:
        error.add_note(f"The plan of batch {work.facts.batch}, block by block:")
        for id in dict.fromkeys(error.blocks[:_TOLD]):
            error.add_note(story(id, state.blocks.values(), work.whole, rules.streams, state.owed))
        raise
    return replace(work, owed=frozenset(ledger.owed), left_out=ledger.left_out)


def commit(
    rules: Rules,
    state: State,
    work: Work,
    outcome: Outcome,
    epoch: int | None = None,
    seen: Sequence[int | None] = (),
) -> Step:
    """What the batch leaves when its work has come out so. ``seen`` has, by stream, the clock,
    where the tuples that were stored do not say it: more came, or they are results of other joins,
    which may run ahead of one of their streams.

    Raises RuntimeError when a host that is to have a replica has none.
    """
    fresh = {r.block.id for r in work.plan.routes if r.fresh}
    blocks = _blocks(state, work, outcome, fresh)
    new = [b for id, b in blocks.items() if id in fresh]
    advances = advance_clocks(state, outcome, new, rules.ahead, seen)
    following = _following(rules, state, work, outcome, blocks, fresh, advances)
    jumps = tuple(find_jumps(rules.streams, state, following, advances, rules.ahead))
    following = with_jumps(following, rules.streams, jumps)
    following = replace(following, epoch=state.epoch if epoch is None else epoch)
    rows = {id: size.rows for id, size in outcome.sizes.items()} | {
        b.id: b.rows for b in work.facts.blocks
    }
    committed = replace(
        committed_event(rules, state, following, work, outcome),
        missed=sum(left.tuples(rows) for left in work.left_out),
    )
    whole = work.whole
    planned = BatchPlanned(following.batch, whole.routes, whole.derivations, whole.drops)
    return Step(
        replace(following, usage=history.usage(committed)),
        (
            planned,
            *work.plan.events,
            *jumps,
            *_harvested(following),
            *_served(state, following, outcome),
            committed,
        ),
    )


def _following(
    rules: Rules,
    state: State,
    work: Work,
    outcome: Outcome,
    blocks: Mapping[int, Block],
    fresh: set[int],
    advances: Sequence[Advance],
) -> State:
    """The next state, but for the epoch and for what hosts did."""
    new = [b for id, b in blocks.items() if id in fresh]
    last, size = _by_stream(rules, new, "rows"), _by_stream(rules, new, "bytes")
    places = placed(blocks.values(), state.places, outcome.places)
    made = {*fresh, *(d.block.id for d in work.whole.derivations)}
    gone = (state.blocks.keys() | made) - blocks.keys()
    return replace(
        state,
        batch=work.facts.batch,
        blocks=blocks,
        places=places,
        files=named(places, state.files, outcome.files),
        next_id=1 + max([state.next_id - 1, *blocks, *made]),
        policy=work.plan.state,
        received=_added(state.received, last),
        received_bytes=_added(state.received_bytes, size),
        last_received=last,
        clocks=tuple(a.clock.at for a in advances),
        pending=tuple(a.clock.pending for a in advances),
        irregular=state.irregular.plus(count_irregular(outcome, new, advances)),
        pinned=frozenset(work.plan.pinned),
        owed=_still(work.owed, gone),
        matches=history.matches(state.matches, outcome.matches),
        key_counts=history.key_counts(state.key_counts, outcome.key_counts),
        shedding=work.shedding,
        harvested=_known(rules, work, outcome),
    )


def _known(rules: Rules, work: Work, outcome: Outcome) -> Harvested | None:
    """What came of the harvest, with the variance that sketches tell. Sketches of a batch are kept
    where its draws go on: where tuples were left out as they came.
    """
    if (found := outcome.harvested) is None or (harvest := work.plan.harvest) is None:
        return None
    variance = None if found.variance is None else found.variance + squared(found.sketches)
    return replace(found, variance=variance, sketches=found.sketches if harvest.keep else ())


def _harvested(state: State) -> tuple[BatchHarvested, ...]:
    if (h := state.harvested) is None:
        return ()
    sums = (h.estimated, h.variance, h.utility, h.estimated_utility)
    return (BatchHarvested(state.batch, h.considered, h.left_out, *sums, h.yields, h.sketches),)


def _served(state: State, following: State, outcome: Outcome) -> tuple[BatchServed, ...]:
    if not state.queries or outcome.served is None:
        return ()
    results = {q.name: outcome.served.get(q.bit, 0) for q in state.queries}
    return (BatchServed(following.batch, results),)


def _still(owed: frozenset[Place], gone: set[int]) -> frozenset[Place]:
    """What is owed between blocks that are left, once some are gone."""
    return owed.difference([(a, b) for a, b in owed if a in gone or b in gone]) if gone else owed


def amended(rules: Rules, state: State, following: State, outcome: Outcome) -> Step:
    """A batch of no tuples that leaves another state: other queries, say, and blocks made anew."""
    nothing = Work(Facts(following.batch, (), (), 0, (), (), ()), Plan(), Plan(), (), {})
    committed = committed_event(rules, state, following, nothing, outcome)
    return Step(following, (committed,))


def _blocks(state: State, work: Work, outcome: Outcome, fresh: set[int]) -> dict[int, Block]:
    """The live blocks with the sizes that were reported; those that turned out empty are gone."""
    live = {b.id: b for b in work.live}
    live |= {r.block.id: r.block for r in work.plan.routes if r.fresh}
    made = {d.block.id for d in work.whole.derivations} | fresh
    found = {id: sized(b, outcome.sizes) if id in made else b for id, b in live.items()}
    return {
        id: b
        for id, b in found.items()
        if id not in made or (b.rows and (id in outcome.sizes or id in state.blocks))
    }


def sized(b: Block, sizes: Mapping[int, Size]) -> Block:
    """A block with what it turned out to hold, where that was reported."""
    if (size := sizes.get(b.id)) is None:
        return b
    return b.holding(size.rows, size.bytes, size.span)


def placed(
    blocks: Iterable[Block], old: Mapping[Place, Address], new: Mapping[Place, Address]
) -> dict[Place, Address]:
    """Where the replicas of blocks lie; nothing where nobody has stored any (in a simulation).

    Raises RuntimeError when a host that is to have a replica has none.
    """
    if not old and not new:
        return {}
    found = {}
    for b in blocks:
        for h in b.hosts:
            address = new.get((b.id, h)) or old.get((b.id, h))
            if address is None:
                raise RuntimeError(
                    f"block {b.id} of stream {b.stream} was to be stored on host {h}, which has no "
                    "replica"
                )
            found[b.id, h] = address
    return found


def named(
    places: Mapping[Place, Address], old: Mapping[str, Seal], new: Mapping[str, Seal]
) -> dict[str, Seal]:
    """The files that places name."""
    return {f: new[f] if f in new else old[f] for f in {a.file for a in places.values()}}


def _by_stream(rules: Rules, blocks: Iterable[Block], what: str) -> tuple[int, ...]:
    sums = [0] * len(rules.streams)
    for b in blocks:
        sums[b.stream] += getattr(b, what)
    return tuple(sums)


def _added(a: Sequence[int], b: Sequence[int]) -> tuple[int, ...]:
    return tuple(x + y for x, y in zip(a, b, strict=True))


def _less(a: Sequence[int], b: Sequence[int]) -> tuple[int, ...]:
    return tuple(x - y for x, y in zip(a, b, strict=True))


def committed_event(
    rules: Rules, old: State, new: State, work: Work, outcome: Outcome
) -> BatchCommitted:
    """What a batch did, but for its seconds."""
    before, now = old.blocks, new.blocks
    irregular = new.irregular.less(old.irregular)
    return BatchCommitted(
        batch=new.batch,
        received=new.last_received,
        total=new.received,
        live=_by_stream(rules, now.values(), "rows"),
        results=sum(counts.results for counts in outcome.hosts.values()),
        seconds={},
        blocks=tuple(b for b in now.values() if (was := before.get(b.id)) is not b and was != b),
        dropped=tuple(sorted(before.keys() - now.keys())),
        hosts=_hosts(rules, before, now, work, outcome),
        received_bytes=_less(new.received_bytes, old.received_bytes),
        late=irregular.late,
        untimed=irregular.untimed,
        ahead=irregular.ahead,
        irregular=new.irregular,
        clocks=new.clocks,
    )


def hosts_of(blocks: Iterable[Block]) -> int:
    """How many hosts there are at least, by those that blocks are on; one when they are on none."""
    return 1 + max((max(hosts) for hosts in {b.hosts for b in blocks} if hosts), default=0)


def _hosts(
    rules: Rules,
    before: Mapping[int, Block],
    now: Mapping[int, Block],
    work: Work,
    outcome: Outcome,
) -> tuple[HostDid, ...]:
    """What each host did and holds; hosts that have left are there as long as they had a block."""
    touched = hosts_of(chain(before.values(), now.values()))
    width = max([rules.placement.hosts, touched, *(1 + h for h in outcome.hosts)])
    stored, size = [0] * width, [0] * width
    alike: dict[tuple[int, ...], list[Block]] = {}
    for b in now.values():
        alike.setdefault(b.hosts, []).append(b)
    for hosts, blocks in alike.items():
        rows, held = sum(b.rows for b in blocks), sum(b.bytes for b in blocks)
        for h in hosts:
            stored[h] += rows
            size[h] += held
    gone = history.discarded(work.facts.blocks, work.plan, now)
    return tuple(
        msgspec.structs.replace(
            outcome.hosts.get(h, HostDid()),
            stored=stored[h],
            stored_bytes=size[h],
            discarded=gone.get(h, 0),
        )
        for h in range(width)
    )
