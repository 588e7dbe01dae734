"""Describe a run in words, from its events: plans of batches, histories of blocks, and meetings."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import fields
from itertools import chain
from typing import Any

from braid.core import plan_sentences
from braid.core.block_history_index import BlockMeeting, EventIndex
from braid.core.condition_cost_tree import build_condition_tree, format_condition_tree
from braid.core.plan import Block, value_range
from braid.core.run_events import BatchCommitted, BatchPlanned, RunEnded, RunStarted
from braid.util.batch_numbers import display_batch, display_batch_range


def describe_run(run: EventIndex) -> str:
    """Return a summary of the run in a few lines."""
    start = run.start
    settings = ", ".join(f"{k}={v!r}" for k, v in start.placement_settings.items())
    windows = ", ".join(f"{a} {w}" for a, w in start.windows.items()) or "full history"
    hosts = plan_sentences.format_count(start.hosts, "host")
    lines = [
        f"{', '.join(start.streams)} joined on {start.condition or 'nothing'}; windows: {windows}",
        f"placement: {start.placement}({settings}) on {hosts}, {start.time_source}",
    ]
    if run.commits_by_batch:
        lines += _describe_progress(run)
        lines += _describe_condition(run, run.commits_by_batch.values())
    else:
        lines.append("no batch has been committed")
    ends = [e for e in run.events if isinstance(e, RunEnded)]
    lines += [run.describe_retention] if run.describe_retention else []
    lines.append(f"{ends[-1].outcome} {ends[-1].error}".rstrip() if ends else "not ended")
    return "\n".join(lines)


def _describe_condition(run: EventIndex, commits: Iterable[BatchCommitted]) -> list[str]:
    """Return the tree of the condition with the pairs of some batches, indented."""
    steps = chain.from_iterable(commit.step_counts for commit in commits)
    lines = build_condition_tree(run.stream_names, run.start.condition_parts, steps)
    return [f"  {line}" for line in format_condition_tree(lines)] if lines else []


def _describe_progress(run: EventIndex) -> list[str]:
    last, live = run.commits_by_batch[run.last_batch], run.live_blocks()
    arrivals = " and ".join(
        f"{n:,} of {a}" for a, n in zip(run.stream_names, last.total_received_tuples, strict=True)
    )
    earlier = 0 if run.dropped is None else run.dropped.results
    stored = [h.stored_tuples for h in last.host_metrics]
    lines = [
        f"{display_batch_range(0, run.last_batch)} committed: {arrivals} in, "
        f"{earlier + sum(b.results for b in run.commits_by_batch.values()):,} results",
        f"held: {len(live):,} blocks, {sum(last.live_tuples):,} tuples; {sum(stored):,} with "
        f"replicas, {max(stored, default=0):,} on the fullest of {len(stored)} hosts",
    ]
    if pending := run.pending_pairs():
        lines.append(
            f"pending: {len(pending):,} pairs of blocks, such as {pending[0][0]} and "
            f"{pending[0][1]}"
        )
    return lines


def describe_batch_plan(run: EventIndex, batch: int) -> str:
    """Return the plan and outcome of a batch, numbered from 0.

    Raises ValueError if there is no such batch or its events are trimmed.
    """
    shown_batch = display_batch(batch)
    if 0 <= batch < run.first_retained_batch:
        raise ValueError(f"of batch {shown_batch} no events are kept: {run.describe_retention}")
    if batch not in run.plans_by_batch:
        raise ValueError(
            f"there is no batch {shown_batch}; this run has "
            f"{display_batch_range(0, run.last_batch)}"
        )
    planned = run.plans_by_batch[batch]
    lines = [f"batch {shown_batch}"]
    if batch in run.commits_by_batch:
        commit = run.commits_by_batch[batch]
        arrivals = ", ".join(
            f"{n:,} of {a}" for a, n in zip(run.stream_names, commit.received_tuples, strict=True)
        )
        lines[0] += f": {arrivals} in, {commit.results:,} results"
        lines += _describe_condition(run, [commit])
    lines += [f"  {plan_sentences.describe_release(r, run.stream_names)}" for r in planned.releases]
    lines += [
        f"  {plan_sentences.describe_derivation(d, run.stream_names)}" for d in planned.derivations
    ]
    replaced = {s for d in planned.derivations for s in d.source_blocks if s != d.block.id}
    lines += [
        f"  block {id} is given up by {plan_sentences.format_hosts(hosts)}"
        for id, hosts in planned.drops.items()
        if id not in replaced
    ]
    for route in planned.routes:
        lines += [f"  {line}" for line in plan_sentences.describe_route(route, run.stream_names)]
    lines += [f"  {_format_event(e)}" for e in run.events if _is_paper_event(e, batch)]
    return "\n".join(lines)


def _is_paper_event(event: Any, batch: int) -> bool:
    general = (RunStarted, BatchPlanned, BatchCommitted, RunEnded)
    return not isinstance(event, general) and getattr(event, "batch", None) == batch


def _format_event(event: Any) -> str:
    values = ", ".join(
        f"{f.name} {_shorten_value(getattr(event, f.name))}"
        for f in fields(event)
        if f.name != "batch"
    )
    return f"{type(event).__name__}: {values}"


def _shorten_value(value: Any, width: int = 60) -> str:
    text = str(value)
    return text if len(text) <= width else f"{text[: width - 1]}…"


def describe_block_history(run: EventIndex, id: int) -> str:
    """Return the history of a block, batch by batch. Raises ValueError for an unknown id."""
    block = run.find_block(id)
    size = f", {block.rows:,} tuples" if block.rows else ""
    lines = [f"block {id} of {plan_sentences.describe_block(block, run.stream_names)}{size}"]
    lines += (
        [f"  {run.describe_retention}; it was there then"]
        if run.created_in[id] < run.first_retained_batch
        else []
    )
    for batch, planned in sorted(run.plans_by_batch.items()):
        gone = run.dropped_in.get(id) == batch
        in_batch = [*plan_sentences.describe_block_in_plan(id, planned, run.stream_names, gone)]
        in_batch += [f"gone from {plan_sentences.format_hosts(block.hosts)}"] if gone else []
        lines += [f"  batch {display_batch(batch)}: {line}" for line in in_batch]
    if id not in run.dropped_in:
        held = (
            f"held on {plan_sentences.format_hosts(block.hosts)}"
            if block.rows
            else "it got no tuple"
        )
        lines.append(f"  after batch {display_batch(run.last_batch)}: {held}")
    return "\n".join(lines)


def describe_block_place(run: EventIndex, label: str, ids: Sequence[int]) -> str:
    """Return which blocks have had a tuple, and on which hosts the last is or was.

    ``label``: the tuple. ``ids``: the blocks, one after another.
    """
    block = run.find_block(ids[-1])
    text = plan_sentences.describe_block(block, run.stream_names)
    gone = run.dropped_in.get(block.id)
    until = "" if gone is None else f" until batch {display_batch(gone)}"
    first = f"block {ids[0]}, then " if ids[0] != block.id else ""
    hosts = ", ".join(map(str, block.hosts))
    return f"{label}: {first}block {block.id} of {text}, on hosts {hosts}{until}"


def explain_tuple_meeting(run: EventIndex, left: Sequence[int], right: Sequence[int]) -> list[str]:
    """Return where two tuples met, or why they did not, as indented lines.

    ``left``, ``right``: the blocks that each of them was in, one after another.
    """
    met = [
        _describe_meeting(run, m, (left[-1], right[-1]))
        for m in run.meetings
        if (m.block in left and m.other in right) or (m.block in right and m.other in left)
    ]
    met += _describe_shared_visits(run, {*left}, {*right})
    return [f"  {line}" for line in met] or explain_meeting(run, left[0], right[0]).splitlines()[1:]


def explain_meeting(run: EventIndex, a: int, b: int) -> str:
    """Return why the tuples of two blocks met, or why not. Raises ValueError for an unknown id."""
    one, two = run.find_block(a), run.find_block(b)
    head = ", ".join(
        f"block {x.id} of {plan_sentences.describe_block(x, run.stream_names)}" for x in (one, two)
    )
    if one.stream == two.stream:
        return f"{head}\n  never met: they are of one stream, {run.stream_names[one.stream]}"
    meetings = list(_describe_meetings(run, a, b))
    return "\n".join(
        [head, *(f"  {line}" for line in meetings or [_explain_no_meeting(run, one, two)])]
    )


def _describe_meetings(run: EventIndex, a: int, b: int) -> Iterator[str]:
    """Yield the batches in which two blocks, or blocks that they were made from, met."""
    family = [{id, *run.find_ancestors(id)} for id in (a, b)]
    for left, right in (family, family[::-1]):
        for m in run.meetings:
            if m.block in left and m.other in right:
                yield _describe_meeting(run, m, (a, b))
    yield from _describe_shared_visits(run, *family)


def _describe_meeting(run: EventIndex, m: BlockMeeting, selected: Collection[int]) -> str:
    older = [
        f"; block {id} is now part of block {heir}"
        for id in (m.block, m.other)
        if id not in selected
        for heir in selected
        if id in run.find_ancestors(heir)
    ]
    how = (
        f"met in batch {display_batch(m.batch)}: block {m.block} probed block {m.other} "
        f"on host {m.host}"
    )
    if m.hop > 1:
        how += f", in hop {m.hop}, with what the hops before had found"
    if not m.is_fresh:
        put_off = run.deferred.get((m.other, m.block), run.deferred.get((m.block, m.other)))
        when = "before" if put_off is None else f"in batch {display_batch(put_off)}"
        how += f"; the pair had been deferred {when} and was settled then"
    return how + "".join(older)


def _describe_shared_visits(run: EventIndex, left: set[int], right: set[int]) -> Iterator[str]:
    """Yield the routes on which a fresh block of a third stream probed both blocks on one path."""
    for batch, planned in run.plans_by_batch.items():
        for route in planned.routes:
            for path in route.paths:
                ids = {b: n for n, hop in enumerate(path, 1) for b in hop.probed_blocks()}
                ones, others = left & ids.keys(), right & ids.keys()
                if ones and others and route.block.id not in {*left, *right}:
                    pair = sorted((min(ones), min(others)), key=ids.__getitem__)
                    yield (
                        f"visited together in batch {display_batch(batch)}: block "
                        f"{route.block.id} of {run.stream_names[route.block.stream]} went to block "
                        f"{pair[0]}, then to block {pair[1]}"
                    )


def _explain_different_keys(run: EventIndex, a: Block, b: Block) -> str:
    """Return which values two blocks have that cannot join."""
    if (boxes := run.find_boxes(a, b)) is not None:
        d, one, other = boxes.find_differences((a.stream, a.key_range), (b.stream, b.key_range))[0]
        alias, another = (run.stream_names[x.stream] for x in (a, b))
        return (
            f"in dimension {d + 1} of the hypercube, tuples of {alias} have the hashes "
            f"[{one[0]}, {one[1]}), those of {another} [{other[0]}, {other[1]}) of {boxes.finest}"
        )
    if run.keys_per_value > 1:
        ranges = (value_range(x.key_range, run.keys_per_value) for x in (a, b))
        (low, high), (start, end) = ranges
        return (
            f"the hashes [{low}, {high}) and [{start}, {end}) of their join values have none in "
            "common"
        )
    return (
        f"the routing keys {plan_sentences.format_key_range(a)} and "
        f"{plan_sentences.format_key_range(b)} have none in common"
    )


def _explain_no_meeting(run: EventIndex, a: Block, b: Block) -> str:
    """Return why two blocks of different streams have not met."""
    if not run.may_join(a, b):
        return f"never met: {_explain_different_keys(run, a, b)}, so no tuples of theirs join"
    early, late = sorted((a, b), key=lambda x: run.created_in[x.id])
    born = run.created_in[late.id]
    if (left := run.dropped_in.get(early.id)) is not None and left <= born:
        if heirs := run.descendants(early.id):
            return (
                f"not met as such: block {early.id} became {plan_sentences.format_blocks(heirs)} "
                f"in batch {display_batch(left)}; ask about those"
            )
        verb = "was made" if late.id in run.sources else "came"
        return (
            f"never met: block {early.id} left in batch {display_batch(left)}, block "
            f"{late.id} {verb} in batch {display_batch(born)}"
        )
    for pair in ((a.id, b.id), (b.id, a.id)):
        if pair in run.deferred:
            return (
                f"not met yet: block {pair[0]} deferred block {pair[1]} in batch "
                f"{display_batch(run.deferred[pair])}; the pair is pending"
            )
    if not (a.rows and b.rows):
        empty = a if not a.rows else b
        return f"never met: block {empty.id} got no tuple"
    if derived := [x.id for x in (a, b) if x.id in run.sources]:
        return (
            f"not met as such: block {derived[0]} was made from "
            f"{plan_sentences.format_blocks(run.sources[derived[0]])}; ask about those"
        )
    return "never met: no route of any batch probes one for the other; they were not due"
