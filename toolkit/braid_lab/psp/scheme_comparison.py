"""PSP, PSP-I, PSP-D, ATR and CTR compared: Wang 2008, section 15.1 and Fig. 16.2 to 16.5.

Everything is modelled. Each placement plans the same Poisson arrivals without tuples
(``simulate``). The work of every node is counted, and priced as in ``braid_lab.psp.experiments``. A
slice of a ring is a whole number of micro-batches, SLICE_BATCHES and more: these last at most W /
(5 N).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from braid.core.placement import Placement
from braid.core.run_events import BatchCommitted
from braid.papers.diffusion.aligned import Aligned
from braid.papers.diffusion.coordinated import Coordinated
from braid.papers.psp.ring import Ring

from braid_lab.common.result_cache import CachedOutcome
from braid_lab.psp import cost
from braid_lab.psp.experiments import (
    HOPS,
    JOINS,
    RingSetting,
    busiest_seconds,
    busy_seconds,
    steady_batches,
    to_milliseconds,
    with_fine_batches,
)

RINGS = ("PSP", "PSP-I", "PSP-D")
COPIES, LONG_SEGMENT = 2, 3
"""Copies of CTR as in Gu 2007, and a long segment of ATR in windows."""
CTR_SEGMENT = 1
"""Batches of a segment of CTR."""
SHORT, LONG = "ATR, T = W", f"ATR, T = {LONG_SEGMENT} W"
PAIR, HALF = f"CTR, {COPIES} copies", "CTR, N/2 copies"

SEGMENTS = (10.0, 30.0, 50.0)
"""Section 16.4: segment lengths of ATR in seconds, from the window's to five times that."""


SPARE_SEGMENTS = 3
"""Segments of a run of ATR beyond one for each node."""
SIDE, TOGETHER = RingSetting(seconds=30.0), RingSetting(seconds=20.0)
LONG_ENOUGH = RingSetting(seconds=0.0, step=1.0)
"""Default settings: comparison, many tuples at once, and the state of ATR."""


def competitors(nodes: int, setting: RingSetting) -> dict[str, Placement]:
    """Return the schemes of sections 16.2 to 16.4 by name.

    Segments last W and LONG_SEGMENT times that. Copies are COPIES, and half of the nodes, the most
    that the book allows.
    """
    short = round(setting.window / setting.step)
    return {
        "PSP": Ring(nodes, form="basic"),
        "PSP-D": Ring(nodes),
        "PSP-I": Ring(nodes, form="interleaved"),
        SHORT: Aligned(nodes, segment_batches=short, adaptive=False),
        LONG: Aligned(nodes, segment_batches=LONG_SEGMENT * short, adaptive=False),
        PAIR: Coordinated(nodes, CTR_SEGMENT, max_copies=COPIES),
        HALF: Coordinated(nodes, CTR_SEGMENT, max_copies=max(COPIES, nodes // 2)),
    }


def count_scheme(scheme: str, nodes: int, setting: RingSetting) -> dict[str, float]:
    """Return the counts of one scheme of ``competitors``.

    These are stored, sent and hops as in ``compare_schemes``, and "busy" and "uneven" for each of
    JOINS, as "busy small".
    """
    placement = competitors(nodes, setting)[scheme]
    batches = steady_batches(setting.simulate_placement(placement), setting)
    counts = {
        "stored": float(np.mean([b.total_host_metrics.stored_tuples for b in batches])),
        "sent": sent_copies(batches),
        "hops": _count_hops(placement, setting.streams),
    }
    for join in JOINS:
        works = [busy_seconds(b, replace(setting, join=join)) for b in batches]
        each = [
            (w.max() / received, w.sum() / received)
            for w, received in zip(works, (sum(b.received_tuples) for b in batches), strict=True)
        ]
        busy, mean = (float(np.mean(x)) for x in zip(*each, strict=True))
        counts |= {f"busy {join}": busy, f"uneven {join}": nodes * busy / mean}
    return counts


def run_scheme(scheme: str, nodes: int, setting: RingSetting) -> CachedOutcome:
    """Return the outcome of ``count_scheme``, made now."""
    return CachedOutcome(count_scheme(scheme, nodes, setting))


OutcomeSource = Callable[[str, int, RingSetting], CachedOutcome]
"""A source of counts: ``run_scheme``, or cached runs."""


def compare_schemes(
    nodes: Sequence[int] = (4, 8, 12, 16),
    streams: Iterable[int] = (3,),
    sigmas: Iterable[float] = (0.05,),
    seeds: Sequence[int] = (0,),
    setting: RingSetting = SIDE,
    source: OutcomeSource = run_scheme,
) -> pd.DataFrame:
    """Return Fig. 16.2 to 16.5.

    Columns: streams, sigma, nodes, scheme, join, seed, stored_modelled (tuples), sent_modelled (for
    one tuple), busy_modelled (seconds), uneven_modelled, hops_modelled, and kept, the day on which
    a cached run was made.

    ``stored``: live tuples with their copies, the mean over batches. ``sent``: copies of a tuple
    and of its intermediate results that travel. ``busy``: the work of the busiest node for one
    tuple; ``uneven``: the ratio of that to the mean of all nodes. ``hops``: M - 1 rounds of N / 2
    on a ring (section 12.2.2), M - 1 under CTR, one under ATR. ``add_response_times`` computes
    response times.
    """
    rows = []
    for m, sigma, n, seed in product(streams, sigmas, nodes, seeds):
        given = with_fine_batches(replace(setting, streams=m, sigma=sigma, seed=seed), n)
        for name in competitors(n, given):
            got = source(name, n, given)
            for join in JOINS:
                of = ("stored", "sent", f"busy {join}", f"uneven {join}", "hops")
                labels = (m, sigma, n, name, join, seed)
                rows.append((*labels, *(got.outcome[k] for k in of), got.date))
    names = ["streams", "sigma", "nodes", "scheme", "join", "seed"]
    counted = ("stored", "sent", "busy", "uneven", "hops")
    columns = [*names, *(f"{c}_modelled" for c in counted), "kept"]
    return record_schemes(pd.DataFrame(rows, columns=columns), setting)


def record_schemes(runs: pd.DataFrame, setting: RingSetting, **more: object) -> pd.DataFrame:
    """Add to runs of ``competitors`` the values of their setting, copies and segments, and more."""
    ran = {"copies": COPIES, "long_segment": LONG_SEGMENT, "ctr_segment": CTR_SEGMENT}
    return setting.record_run(runs, **ran, ctr_hops="M - 1", atr_hops=1, **more)


def add_response_times(runs: pd.DataFrame, hops: Sequence[float] = HOPS) -> pd.DataFrame:
    """Return the comparison with response_modelled (seconds) for each T_n, in the column ``hop``.

    It is the work of the busiest node for one tuple, plus the hops.
    """
    frames = [
        runs.assign(hop=t, response_modelled=runs["busy_modelled"] + t * runs["hops_modelled"])
        for t in hops
    ]
    return pd.concat(frames, ignore_index=True)


def best_node_counts(runs: pd.DataFrame, hops: Sequence[float] = HOPS) -> pd.DataFrame:
    """Return each scheme with its best number of nodes.

    Columns: streams, sigma, join, hop, seed, scheme, nodes, response_modelled. "PSP, best" is the
    best of its three forms.
    """
    keys = ["streams", "sigma", "join", "hop", "seed"]
    every = add_response_times(runs, hops)
    rings = every[every["scheme"].isin(RINGS)].assign(scheme="PSP, best")
    every = pd.concat([every, rings], ignore_index=True)
    least = every.loc[every.groupby([*keys, "scheme"])["response_modelled"].idxmin()]
    return least[[*keys, "scheme", "nodes", "response_modelled"]].reset_index(drop=True)


def lead_over_rivals(runs: pd.DataFrame, hops: Sequence[float] = HOPS) -> pd.DataFrame:
    """Return the lead of PSP: a competitor's best response time over that of PSP.

    Columns: streams, sigma, join, hop, rival, seed, ratio_modelled.
    """
    keys = ["streams", "sigma", "join", "hop", "seed"]
    by = best_node_counts(runs, hops).pivot(
        index=keys, columns="scheme", values="response_modelled"
    )
    rivals = by[[SHORT, LONG, PAIR, HALF]].div(by["PSP, best"], axis=0)
    return rivals.melt(
        var_name="rival", value_name="ratio_modelled", ignore_index=False
    ).reset_index()


def concurrency_table(
    nodes: Sequence[int] = (4, 8, 12, 16),
    tuples: Sequence[int] = (15, 30, 0),
    seeds: Sequence[int] = (0,),
    setting: RingSetting = TOGETHER,
    sigmas: Sequence[float] = (0.05,),
) -> pd.DataFrame:
    """Return Fig. 16.3, the number of concurrent tuples.

    Columns: nodes, tuples ("15", .., or "N": one for each node), sigma, join, hop (T_n, seconds),
    seed, stored_modelled, copied_modelled (tuples on two nodes), response_modelled. All tuples of a
    batch go round a ring (PSP-I) together, so a batch has that many. A tuple's results are complete
    when the busiest node has processed all of them, and after the hops.
    """
    rows = []
    for n, few, sigma, seed in product(nodes, tuples, sigmas, seeds):
        step = (few or n) / (setting.rate * setting.streams)
        given = replace(setting, step=step, sigma=sigma, seed=seed)
        batches = steady_batches(given.simulate_placement(Ring(n, form="interleaved")), given)
        stored, once = (
            float(np.mean(x))
            for x in zip(
                *((b.total_host_metrics.stored_tuples, sum(b.live_tuples)) for b in batches),
                strict=True,
            )
        )
        for join in JOINS:
            takes = (few or n) * busiest_seconds(batches, replace(given, join=join))
            for hop in HOPS:
                response = takes + (given.streams - 1) * n / 2 * hop
                varied = n, str(few or "N"), sigma, join, hop, seed
                rows.append((*varied, stored, stored - once, response))
    names = ["nodes", "tuples", "sigma", "join", "hop", "seed"]
    columns = [*names, *(f"{c}_modelled" for c in ("stored", "copied", "response"))]
    frame = pd.DataFrame(rows, columns=columns)
    return setting.record_run(frame, hop_ms=to_milliseconds(HOPS))


def replica_table(
    nodes: Sequence[int] = (4, 8, 12, 16),
    segments: Sequence[float] = SEGMENTS[:1],
    seeds: Sequence[int] = (0,),
    setting: RingSetting = LONG_ENOUGH,
) -> pd.DataFrame:
    """Return section 15.1, the state of ATR at the end of a run.

    Columns: nodes, segment (seconds), seed, live_modelled, left_modelled and formula_modelled
    (tuples). The book purges when a tuple arrives (cross-purge, 5.2 and 12.3), so a node that
    receives no more tuples keeps its last segment: that is ``left``. ``live`` is the state after a
    purge by the clock. A run lasts at least (N + 3) T, so that every node has had a segment, or the
    setting's seconds. ``formula`` is the book's MEM_ATR, a whole segment on every node.
    """
    rows, lengths = [], set()
    for n, segment, seed in product(nodes, segments, seeds):
        seconds = max(setting.seconds, (n + SPARE_SEGMENTS) * segment)
        lengths.add(seconds)
        given = replace(setting, seconds=seconds, seed=seed)
        placement = Aligned(n, segment_batches=round(segment / given.step), adaptive=False)
        events = given.simulate_placement(placement)
        live = steady_batches(events, given)[-1].total_host_metrics.stored_tuples
        formula = cost.memory_atr(given.cost_workload(), n, segment)
        rows.append((n, segment, seed, live, unpurged_tuples(events, n), formula))
    names = ["nodes", "segment", "seed", "live_modelled", "left_modelled", "formula_modelled"]
    frame = pd.DataFrame(rows, columns=names)
    return setting.record_run(frame, seconds=lengths, spare=SPARE_SEGMENTS)


def unpurged_tuples(events: Iterable[Any], nodes: int) -> int:
    """Return the tuples stored at the end of a run if a host purges only when a tuple arrives."""
    held = [0] * nodes
    for b in (e for e in events if isinstance(e, BatchCommitted)):
        held = [
            h.stored_tuples if h.received_tuples else n
            for h, n in zip(b.host_metrics, held, strict=True)
        ]
    return sum(held)


def sent_copies(batches: Iterable[BatchCommitted]) -> float:
    """Return the copies of a tuple and of its intermediate results that travel."""
    done = list(batches)
    travelled = sum(
        b.total_host_metrics.received_tuples + b.total_host_metrics.received_partials for b in done
    )
    return travelled / sum(sum(b.received_tuples) for b in done)


def _count_hops(placement: Placement, streams: int) -> float:
    rounds = streams - 1
    if isinstance(placement, Ring):
        return rounds * placement.hosts / 2
    return rounds if isinstance(placement, Coordinated) else 1
