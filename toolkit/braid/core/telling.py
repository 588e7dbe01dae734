"""A run in words: what a batch's plan was, what became of a block, and why two blocks met or not.
All of it comes from the run's events alone. Batches are told by the run's numbers for them, from
``first`` on.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import fields
from typing import Any

from braid.core import words
from braid.core.cover import meets
from braid.core.events import BatchCommitted, BatchPlanned, RunEnded, RunStarted
from braid.core.plan import Block
from braid.core.recorded import Meeting, Recorded


def summary(run: Recorded) -> str:
    """The run in a few lines."""
    start = run.start
    settings = ", ".join(f"{k}={v!r}" for k, v in start.settings.items())
    windows = ", ".join(f"{a} {w}" for a, w in start.windows.items()) or "full history"
    hosts = words.counted(start.hosts, "host")
    lines = [
        f"{', '.join(start.streams)} joined on {start.on or 'nothing'}; windows: {windows}",
        f"placement: {start.placement}({settings}) on {hosts}, {start.clock}",
    ]
    if run.committed:
        lines += _progress(run)
    else:
        lines.append("no batch has been committed")
    ends = [e for e in run.happened if isinstance(e, RunEnded)]
    lines += [run.kept] if run.kept else []
    lines.append(f"{ends[-1].reason} {ends[-1].error}".rstrip() if ends else "not ended")
    return "\n".join(lines)


def _progress(run: Recorded) -> list[str]:
    last, live = run.committed[run.last], run.live()
    came = " and ".join(f"{n:,} of {a}" for a, n in zip(run.streams, last.total, strict=True))
    earlier = 0 if run.dropped is None else run.dropped.results
    stored = [h.stored for h in last.hosts]
    lines = [
        f"batches {run.first} to {run.told(run.last)} committed: {came} in, "
        f"{earlier + sum(b.results for b in run.committed.values()):,} results",
        f"held: {len(live):,} blocks, {sum(last.live):,} tuples; {sum(stored):,} with replicas, "
        f"{max(stored, default=0):,} on the fullest of {len(stored)} hosts",
    ]
    if owed := run.owed():
        lines.append(f"owed: {len(owed):,} pairs of blocks, such as {owed[0][0]} and {owed[0][1]}")
    return lines


def plan(run: Recorded, batch: int) -> str:
    """The plan of a batch (from 0), and what came of it. Raises ValueError for a batch that was
    not.
    """
    told = run.told(batch)
    if 0 <= batch < run.since:
        raise ValueError(f"of batch {told} no events are kept: {run.kept}")
    if batch not in run.planned:
        raise ValueError(
            f"there is no batch {told}; this run has batches {run.first} to {run.told(run.last)}"
        )
    planned = run.planned[batch]
    lines = [f"batch {told}"]
    if batch in run.committed:
        did = run.committed[batch]
        came = ", ".join(f"{n:,} of {a}" for a, n in zip(run.streams, did.received, strict=True))
        lines[0] += f": {came} in, {did.results:,} results"
    lines += [f"  {words.derived(d, run.streams, run.first)}" for d in planned.derivations]
    replaced = {s for d in planned.derivations for s in d.sources if s != d.block.id}
    lines += [
        f"  block {id} is given up by {words.hosts(hosts)}"
        for id, hosts in planned.drops.items()
        if id not in replaced
    ]
    for route in planned.routes:
        lines += [f"  {line}" for line in words.routed(route, run.streams, run.first)]
    lines += [f"  {_said(e)}" for e in run.happened if _of_paper(e, batch)]
    return "\n".join(lines)


def _of_paper(event: Any, batch: int) -> bool:
    known = (RunStarted, BatchPlanned, BatchCommitted, RunEnded)
    return not isinstance(event, known) and getattr(event, "batch", None) == batch


def _said(event: Any) -> str:
    values = ", ".join(
        f"{f.name} {_short(getattr(event, f.name))}" for f in fields(event) if f.name != "batch"
    )
    return f"{type(event).__name__}: {values}"


def _short(value: Any, width: int = 60) -> str:
    text = str(value)
    return text if len(text) <= width else f"{text[: width - 1]}…"


def story(run: Recorded, id: int) -> str:
    """What became of a block, batch by batch. Raises ValueError for an id that no batch had."""
    block = run.block(id)
    size = f", {block.rows:,} tuples" if block.rows else ""
    lines = [f"block {id} of {words.of(block, run.streams, run.first)}{size}"]
    lines += [f"  {run.kept}; it was there then"] if run.born[id] < run.since else []
    for batch, planned in sorted(run.planned.items()):
        gone = run.gone.get(id) == batch
        said = [*words.chapter(id, planned, run.streams, gone, run.first)]
        said += [f"gone from {words.hosts(block.hosts)}"] if gone else []
        lines += [f"  batch {run.told(batch)}: {line}" for line in said]
    if id not in run.gone:
        held = f"held on {words.hosts(block.hosts)}" if block.rows else "it got no tuple"
        lines.append(f"  after batch {run.told(run.last)}: {held}")
    return "\n".join(lines)


def why(run: Recorded, a: int, b: int) -> str:
    """Why the tuples of two blocks met, or why not. Raises ValueError for an unknown id."""
    one, two = run.block(a), run.block(b)
    head = ", ".join(f"block {x.id} of {words.of(x, run.streams, run.first)}" for x in (one, two))
    if one.stream == two.stream:
        return f"{head}\n  never met: they are of one stream, {run.streams[one.stream]}"
    found = list(_met(run, a, b))
    return "\n".join([head, *(f"  {line}" for line in found or [_apart(run, one, two)])])


def _met(run: Recorded, a: int, b: int) -> Iterator[str]:
    """The batches in which two blocks met, as themselves or as what they were made from."""
    family = [{id, *run.ancestors(id)} for id in (a, b)]
    for left, right in (family, family[::-1]):
        for m in run.meetings:
            if m.block in left and m.other in right:
                yield _meeting(run, m, (a, b))
    yield from _visited(run, *family)


def _meeting(run: Recorded, m: Meeting, asked: Collection[int]) -> str:
    older = [
        f"; block {id} is now part of block {heir}"
        for id in (m.block, m.other)
        if id not in asked
        for heir in asked
        if id in run.ancestors(heir)
    ]
    how = (
        f"met in batch {run.told(m.batch)}: block {m.block} probed block {m.other} on host {m.host}"
    )
    if m.hop > 1:
        how += f", in hop {m.hop}, with what the hops before had found"
    if not m.fresh:
        put_off = run.deferred.get((m.other, m.block), run.deferred.get((m.block, m.other)))
        when = "before" if put_off is None else f"in batch {run.told(put_off)}"
        how += f"; the pair had been put off {when} and was settled then"
    return how + "".join(older)


def _visited(run: Recorded, left: Collection[int], right: Collection[int]) -> Iterator[str]:
    """Where a fresh block of a third stream visited two blocks on one path."""
    for batch, planned in run.planned.items():
        for route in planned.routes:
            for path in route.paths:
                ids = {b: n for n, hop in enumerate(path, 1) for b in hop.blocks()}
                ones, others = left & ids.keys(), right & ids.keys()
                if ones and others and route.block.id not in {*left, *right}:
                    pair = sorted((min(ones), min(others)), key=ids.__getitem__)
                    yield (
                        f"visited together in batch {run.told(batch)}: block {route.block.id} of "
                        f"{run.streams[route.block.stream]} went to block {pair[0]}, then "
                        f"to block {pair[1]}"
                    )


def _apart(run: Recorded, a: Block, b: Block) -> str:
    """Why two blocks of different streams have not met."""
    if not meets(a, b, run.keying(a, b)):
        return (
            f"never met: the routing keys {words.keys(a)} and {words.keys(b)} have none in common, "
            "so no tuples of theirs join"
        )
    early, late = sorted((a, b), key=lambda x: run.born[x.id])
    born = run.born[late.id]
    if (left := run.gone.get(early.id)) is not None and left <= born:
        if heirs := run.heirs(early.id):
            return (
                f"not met as such: block {early.id} became {words.blocks(heirs)} in batch "
                f"{run.told(left)}; ask about those"
            )
        came = "was made" if late.id in run.sources else "came"
        return (
            f"never met: block {early.id} left in batch {run.told(left)}, block {late.id} {came} "
            f"in batch {run.told(born)}"
        )
    for pair in ((a.id, b.id), (b.id, a.id)):
        if pair in run.deferred:
            return (
                f"not met yet: block {pair[0]} put block {pair[1]} off in batch "
                f"{run.told(run.deferred[pair])}; the pair is owed"
            )
    if not (a.rows and b.rows):
        empty = a if not a.rows else b
        return f"never met: block {empty.id} got no tuple"
    if made := [x.id for x in (a, b) if x.id in run.sources]:
        return (
            f"not met as such: block {made[0]} was made from {words.blocks(run.sources[made[0]])}; "
            "ask about those"
        )
    return "never met: no route of any batch probes one for the other; they were not due"
