"""Plan how lost hosts get their replicas again: from other hosts, or from committed files.

A lost host keeps its number and its place in the placement; a replacement makes its replicas anew.
The placement therefore plans as before. The functions are pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping

from braid.core.plan import Block, Derivation
from braid.core.run_state import Place, ReplicaAddress, RunState
from braid.core.touch_events import HostLost

STORAGE = -1
"""The source of a replica that no other host holds: its committed file."""


def plan_recovery(blocks: Iterable[Block], lost: Collection[int]) -> tuple[Derivation, ...]:
    """Return a copy of each block that lost hosts held, under the same id.

    Of the other hosts that hold a block, the one that has sent the fewest rows so far sends it.
    """
    sent = Counter[int]()
    copies = []
    for block in blocks:
        others = [h for h in block.hosts if h not in lost]
        targets = [h for h in block.hosts if h in lost]
        for target in targets:
            source = min(others, key=lambda h: (sent[h], h), default=STORAGE)
            sent[source] += block.rows
            copies.append(Derivation(block, (block.id,), {target: source}))
    return tuple(copies)


def list_remaining_replicas(
    state: RunState, lost: Collection[int], copies: Iterable[Derivation]
) -> dict[Place, ReplicaAddress]:
    """Return the replicas that can still be read: those of other hosts, and committed files."""
    addresses = state.replica_addresses
    remaining = {place: at for place, at in addresses.items() if place[1] not in lost}
    for copy in copies:
        for target, source in copy.source_hosts.items():
            if source == STORAGE:
                remaining[copy.block.id, STORAGE] = addresses[copy.block.id, target]
    return remaining


def make_loss_events(
    batch: int, lost: Iterable[int], copies: Iterable[Derivation]
) -> tuple[HostLost, ...]:
    """Return an event for each lost host, with the sources of its replicas."""
    sources: Mapping[int, list[tuple[Block, int]]] = {host: [] for host in sorted(lost)}
    for copy in copies:
        for target, source in copy.source_hosts.items():
            sources[target].append((copy.block, source))
    return tuple(_make_loss_event(batch, host, held) for host, held in sources.items())


def _make_loss_event(batch: int, host: int, held: list[tuple[Block, int]]) -> HostLost:
    rows = Counter[int]()
    for block, source in held:
        rows[source] += block.rows
    total, size = rows.total(), sum(block.size_bytes for block, _ in held)
    stored = rows.pop(STORAGE, 0)
    return HostLost(batch, host, len(held), total, size, dict(sorted(rows.items())), stored)
