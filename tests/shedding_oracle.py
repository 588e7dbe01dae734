"""Expected results of a shedding run, recomputed from its events and the tuples alone.

Blocks' contents are followed through merges and cuts. Each due pair is drawn by the hash of its
fresh tuple and of the partner's block at that time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from braid.core.reserved_columns import DRAW, ROUTING, WORTH
from braid.core.run_events import BatchPlanned
from braid.core.shedding_plan import LOWEST
from braid.kernels.hashing import draw_numbers
from braid.papers.shedding.run_events import SheddingPlanned
from braid.storage.static_input_copy import InputSnapshot
from oracle import Ids

Weights = dict[tuple[int, int], float]
"""The weight of each result of two streams, by its ids."""


def arrived_tuples(run: Any, batches: int) -> dict[int, list[dict[str, np.ndarray]]]:
    """Return, by stream and batch, the ids, draws, routing keys and values of the run's tuples."""
    copied: InputSnapshot = run.store.input
    names = list(run.config.streams)
    schemas = {a: copied.stream_schema(a) for a in names}
    feed, _ = run._join.source.union_streams(run._join, schemas)
    found: dict[int, list[dict[str, np.ndarray]]] = {s: [] for s in range(len(names))}
    for number in range(batches):
        parts = feed.read_batch(copied, number)
        for s in found:
            columns = (ROUTING, DRAW, "id", WORTH)
            found[s].append(
                {
                    c: np.concatenate([np.asarray(p.column(c)) for p in parts.get(s, [])] or [[]])
                    for c in columns
                    if all(c in p.schema.names for p in parts.get(s, []))
                }
            )
    return found


def expected_weights(happened: list[Any], tuples: Mapping[int, list[Any]], full: Ids) -> Weights:
    """Return the results of the full join that the harvests select, with their weights."""
    harvests = {e.batch: e for e in happened if isinstance(e, SheddingPlanned)}
    holds: dict[int, dict[str, np.ndarray]] = {}
    found: Weights = {}
    for e in (e for e in happened if isinstance(e, BatchPlanned)):
        _derive_blocks(holds, e)
        for route in (r for r in e.routes if r.is_fresh):
            lo, hi = route.block.key_range
            mine = tuples[route.block.stream]
            rows = mine[e.batch] if e.batch < len(mine) else {}
            if len(rows.get(ROUTING, ())):
                inside = (rows[ROUTING] >= lo) & (rows[ROUTING] < hi)
                holds[route.block.id] = {c: v[inside] for c, v in rows.items()}
        for a, b, weight in _list_pairs(e, harvests[e.batch], holds):
            if full[a, b]:
                assert (a, b) not in found, f"pair {(a, b)} is due twice"
                found[a, b] = weight
    return found


def _derive_blocks(holds: dict[int, dict[str, np.ndarray]], e: BatchPlanned) -> None:
    for d in e.derivations:
        parts = [holds[s] for s in d.source_blocks if s in holds]
        if not parts:
            continue
        whole = {c: np.concatenate([p[c] for p in parts]) for c in parts[0]}
        inside = (whole[ROUTING] >= d.block.key_range[0]) & (whole[ROUTING] < d.block.key_range[1])
        holds[d.block.id] = {c: v[inside] for c, v in whole.items()}


def _list_pairs(
    e: BatchPlanned, harvest: SheddingPlanned, holds: Mapping[int, Any]
) -> Iterator[tuple[int, int, float]]:
    """Return (id of the first stream, of the second, weight) of all selected pairs."""
    shares = {item[:3]: item.shares for item in harvest.items}
    for route in e.routes:
        k, mine = route.block.stream, holds.get(route.block.id)
        met = [b for path in route.paths for b in path[0].probed_blocks() if b in holds]
        for b in met if mine is not None else []:
            assert mine is not None
            pi = np.ones(len(mine["id"]))
            if route.is_fresh:
                by_type = np.array(shares[k, 1 - k, harvest.basic_window_by_block[b]])
                pi = by_type[_read_types(mine, harvest.types, k)]
                if expected := harvest.expected_tuples.get(route.block.id, 0.0):
                    pi = pi * min(1.0, expected / len(pi))
            drawn = draw_numbers(mine[DRAW].astype(np.uint64), b) < pi
            for t, share in zip(mine["id"][drawn].tolist(), pi[drawn].tolist(), strict=True):
                for u in holds[b]["id"].tolist():
                    yield (t, u, 1 / share) if k == 0 else (u, t, 1 / share)


def _read_types(rows: Mapping[str, np.ndarray], types: Any, stream: int) -> np.ndarray:
    known = types[stream] if types else ()
    if len(known) < 2:
        return np.zeros(len(rows["id"]), int)
    codes = [round(10 * np.log(v)) if 0 < v < np.inf else LOWEST for v in rows[WORTH]]
    return np.minimum(np.searchsorted(known, codes), len(known) - 1)
