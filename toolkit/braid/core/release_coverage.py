"""Check releases: each left tuple is released once, and meets each block of partners once.

It is the cover rule of as-of joins. The intervals of a block's releases are disjoint, rising and
without gap; a block that disappears has been released to its end. A release meets every live block
in which its tuples may have partners, on a host that has it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain

from braid.core.asof_releases import LEFT, RIGHT, ReleaseFacts
from braid.core.plan import Block, Plan, Release
from braid.errors import CoverageError


def check_releases(facts: ReleaseFacts, releases: Sequence[Release], plan: Plan) -> None:
    """Raise CoverageError unless the releases of a batch obey the rule.

    ``plan``: the batch's plan, with its compaction.
    """
    blocks = {block.id: block for block in facts.blocks}
    by_block: dict[int, Release] = {}
    for release in releases:
        if release.block.id in by_block:
            raise CoverageError(f"block {release.block.id} is released twice", release.block.id)
        by_block[release.block.id] = release
    if unknown := sorted(by_block.keys() - blocks.keys()):
        raise CoverageError(f"blocks {unknown} are released, but are not live", *unknown)
    for block in blocks.values():
        if block.stream == LEFT:
            _check_block_release(facts, block, by_block.get(block.id), blocks.values())
    _check_removed_blocks(facts, blocks.values(), plan)
    probing = [r.block.id for r in plan.routes if r.paths or r.deferred_blocks or not r.is_fresh]
    if probing and facts.query is None:  # those of other queries probe
        raise CoverageError(f"blocks {probing} probe in an as-of join", *probing)


def _check_block_release(
    facts: ReleaseFacts, block: Block, release: Release | None, blocks: Iterable[Block]
) -> None:
    interval = facts.find_due_interval(block)
    if release is None:
        if interval is not None:
            raise CoverageError(
                f"block {block.id} has tuples from {interval[0]} to {interval[1]} that are due, "
                "but it is not released",
                block.id,
            )
        return
    limits = facts.find_released_limit(block), facts.until
    if (release.since, release.until) != limits:
        raise CoverageError(
            f"block {block.id} is released from {release.since} to {release.until}, but it is due "
            f"from {limits[0]} to {limits[1]}",
            block.id,
        )
    if release.host not in block.hosts:
        raise CoverageError(
            f"block {block.id} is released on host {release.host}: not there", block.id
        )
    _check_partner_blocks(facts, release, interval, {b.id: b for b in blocks})


def _check_partner_blocks(
    facts: ReleaseFacts,
    release: Release,
    interval: tuple[float, float] | None,
    blocks: dict[int, Block],
) -> None:
    id, by_host = release.block.id, release.partners.blocks_by_host
    met = [*chain.from_iterable(by_host.values())]
    if len({*met}) < len(met):
        raise CoverageError(f"block {id} meets a block of partners twice", id)
    for host, others in by_host.items():
        for other in others:
            if other not in blocks or host not in blocks[other].hosts:
                raise CoverageError(
                    f"block {id} meets block {other} on host {host}: not there", id, other
                )
    due = (
        []
        if interval is None
        else facts.find_partner_blocks(interval, facts.list_joinable(release.block))
    )
    if missing := sorted({b.id for b in due}.difference(met)):
        raise CoverageError(f"block {id} is released without blocks {missing}", id, *missing)
    if extra := sorted(b for b in met if blocks[b].stream != RIGHT):
        raise CoverageError(f"block {id} meets blocks {extra} of its own stream", id, *extra)


def _check_removed_blocks(facts: ReleaseFacts, blocks: Iterable[Block], plan: Plan) -> None:
    """Check that left blocks that disappear are released to their end, or live on in others."""
    lasting = {source for derivation in plan.derivations for source in derivation.source_blocks}
    for block in blocks:
        if block.stream != LEFT or block.id in lasting or block.id not in plan.drops:
            continue
        span, until = block.event_time_range, facts.until
        is_released = span is not None and until is not None and span[1] < until
        if not is_released and {*plan.drops[block.id]} >= {*block.hosts}:
            raise CoverageError(
                f"block {block.id} is dropped before all of its tuples are released", block.id
            )
