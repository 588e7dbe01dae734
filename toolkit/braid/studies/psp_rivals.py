"""PSP, PSP-I, PSP-D, ATR and CTR side by side: Wang 2008, section 15.1 and Fig. 16.2 to 16.5.
Everything here is modelled, nothing is measured.

Each placement plans the same Poisson arrivals without tuples (``simulate``); what every node does
is counted, and priced as in ``studies.psp``. A slice of a ring is a whole number of micro-batches,
so these last W / (5 N) at most: five and more to a slice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from braid.core.events import BatchCommitted
from braid.core.placement import Placement
from braid.papers.diffusion.aligned import Aligned
from braid.papers.diffusion.coordinated import Coordinated
from braid.papers.psp import cost
from braid.papers.psp.ring import Ring
from braid.studies.kept import Ran
from braid.studies.psp import HOPS, JOINS, Setting, settled, work

RINGS = ("PSP", "PSP-I", "PSP-D")
SHORT, LONG = "ATR, T = W", "ATR, T = 3 W"
PAIR, HALF = "CTR, 2 copies", "CTR, N/2 copies"

SEGMENTS = (10.0, 30.0, 50.0)
"""Section 16.4: segment lengths of ATR in seconds, from the window's to five times that."""


SIDE, TOGETHER = Setting(seconds=30.0), Setting(sigma=0.05, seconds=13.0)
LONG_ENOUGH = Setting(seconds=0.0, step=1.0)
"""What is set where nothing else is given: side by side, many at once, and the state of ATR."""


def fine(setting: Setting, nodes: int) -> Setting:
    """The setting with batches short enough for a ring of so many nodes: W / (5 N) at most."""
    return replace(setting, step=min(setting.step, setting.window / (5 * nodes)))


def contenders(nodes: int, setting: Setting) -> dict[str, Placement]:
    """The schemes of sections 16.2 to 16.4 by name; segments of W and 3 W, copies 2 (as in Gu 2007)
    and half of the nodes, the most that the book allows.
    """
    short = round(setting.window / setting.step)
    return {
        "PSP": Ring(nodes, form="basic"),
        "PSP-D": Ring(nodes),
        "PSP-I": Ring(nodes, form="interleaved"),
        SHORT: Aligned(nodes, length=short, adaptive=False),
        LONG: Aligned(nodes, length=3 * short, adaptive=False),
        PAIR: Coordinated(nodes, copies=2),
        HALF: Coordinated(nodes, copies=max(2, nodes // 2)),
    }


def counts(scheme: str, nodes: int, setting: Setting) -> dict[str, float]:
    """What one scheme of ``contenders`` comes to: stored, sent and hops as ``contest`` has them,
    and "busy" and "uneven" of each of JOINS, as "busy small".
    """
    placement = contenders(nodes, setting)[scheme]
    batches = settled(setting.run(placement), setting)
    found = {
        "stored": float(np.mean([b.all_hosts.stored for b in batches])),
        "sent": sent(batches),
        "hops": _hops(placement, setting.streams),
    }
    for join in JOINS:
        works = [work(b, replace(setting, join=join)) for b in batches]
        each = [
            (w.max() / came, w.sum() / came)
            for w, came in zip(works, (sum(b.received) for b in batches), strict=True)
        ]
        busy, mean = (float(np.mean(x)) for x in zip(*each, strict=True))
        found |= {f"busy {join}": busy, f"uneven {join}": nodes * busy / mean}
    return found


def ran(scheme: str, nodes: int, setting: Setting) -> Ran:
    """``counts``, made now."""
    return Ran(counts(scheme, nodes, setting))


Made = Callable[[str, int, Setting], Ran]
"""Where counts come from: ``ran``, or runs that were kept."""


def contest(
    nodes: Sequence[int] = (4, 8, 12, 16),
    streams: Iterable[int] = (3,),
    sigmas: Iterable[float] = (0.05,),
    seeds: Sequence[int] = (0,),
    setting: Setting = SIDE,
    made: Made = ran,
) -> pd.DataFrame:
    """Fig. 16.2 to 16.5: streams, sigma, nodes, scheme, join, seed, stored_modelled (tuples),
    sent_modelled (for one tuple), busy_modelled (seconds), uneven_modelled, hops_modelled, and
    kept, the day on which the run was made, if it was kept.

    ``stored``: tuples that are live, with their copies, the mean over batches. ``sent``: copies of
    it and of its intermediate results that travel. ``busy``: what the busiest node does for one
    tuple, ``uneven`` how many times the mean of all nodes that is. ``hops``: M - 1 rounds of N / 2
    on a ring (section 12.2.2), M - 1 under CTR, one under ATR.
    ``responses`` makes response times of them.
    """
    rows = []
    for m, sigma, n, seed in product(streams, sigmas, nodes, seeds):
        given = fine(replace(setting, streams=m, sigma=sigma, seed=seed), n)
        for name in contenders(n, given):
            got = made(name, n, given)
            for join in JOINS:
                of = ("stored", "sent", f"busy {join}", f"uneven {join}", "hops")
                told = (m, sigma, n, name, join, seed)
                rows.append((*told, *(got.outcome[k] for k in of), got.date))
    names = ["streams", "sigma", "nodes", "scheme", "join", "seed"]
    counted = ("stored", "sent", "busy", "uneven", "hops")
    return pd.DataFrame(rows, columns=[*names, *(f"{c}_modelled" for c in counted), "kept"])


def responses(runs: pd.DataFrame, hops: Sequence[float] = HOPS) -> pd.DataFrame:
    """A contest with response_modelled (seconds) for each T_n, which the column ``hop`` holds: what
    the busiest node does for one tuple, and the hops.
    """
    frames = [
        runs.assign(hop=t, response_modelled=runs["busy_modelled"] + t * runs["hops_modelled"])
        for t in hops
    ]
    return pd.concat(frames, ignore_index=True)


def best(runs: pd.DataFrame, hops: Sequence[float] = HOPS) -> pd.DataFrame:
    """Each scheme with its best number of nodes: streams, sigma, join, hop, seed, scheme, nodes,
    response_modelled. "PSP, best" is the best of its three forms.
    """
    keys = ["streams", "sigma", "join", "hop", "seed"]
    every = responses(runs, hops)
    rings = every[every["scheme"].isin(RINGS)].assign(scheme="PSP, best")
    every = pd.concat([every, rings], ignore_index=True)
    least = every.loc[every.groupby([*keys, "scheme"])["response_modelled"].idxmin()]
    return least[[*keys, "scheme", "nodes", "response_modelled"]].reset_index(drop=True)


def ahead(runs: pd.DataFrame, hops: Sequence[float] = HOPS) -> pd.DataFrame:
    """By how much PSP is ahead: streams, sigma, join, hop, rival, seed, ratio_modelled, the rival's
    best response time over that of PSP.
    """
    keys = ["streams", "sigma", "join", "hop", "seed"]
    by = best(runs, hops).pivot(index=keys, columns="scheme", values="response_modelled")
    rivals = by[[SHORT, LONG, PAIR, HALF]].div(by["PSP, best"], axis=0)
    return rivals.melt(
        var_name="rival", value_name="ratio_modelled", ignore_index=False
    ).reset_index()


def concurrent(
    nodes: Sequence[int] = (4, 8, 12, 16),
    tuples: Sequence[int] = (15, 30, 0),
    seeds: Sequence[int] = (0,),
    setting: Setting = TOGETHER,
) -> pd.DataFrame:
    """Fig. 16.3, the number of concurrent tuples: nodes, tuples ("15", .., or "N": as many as
    nodes), seed, stored_modelled, copied_modelled (tuples on two nodes), response_modelled.

    All tuples of a batch go round a ring (PSP-I) together, so that a batch has that many: a tuple's
    results are there when the busiest node has worked off all of them, and after the hops.
    """
    rows = []
    for n, few, seed in product(nodes, tuples, seeds):
        step = (few or n) / (setting.rate * setting.streams)
        given = replace(setting, step=step, seed=seed)
        batches = settled(given.run(Ring(n, form="interleaved")), given)
        stored, once = (
            float(np.mean(x))
            for x in zip(*((b.all_hosts.stored, sum(b.live)) for b in batches), strict=True)
        )
        takes = (few or n) * busiest(batches, given) + (given.streams - 1) * n / 2 * given.hop
        rows.append((n, str(few or "N"), seed, stored, stored - once, takes))
    names = ["nodes", "tuples", "seed", "stored_modelled", "copied_modelled", "response_modelled"]
    return pd.DataFrame(rows, columns=names)


def replicas(
    nodes: Sequence[int] = (4, 8, 12, 16),
    segments: Sequence[float] = SEGMENTS[:1],
    seeds: Sequence[int] = (0,),
    setting: Setting = LONG_ENOUGH,
) -> pd.DataFrame:
    """Section 15.1, the state of ATR: nodes, segment (seconds), seed, live_modelled, left_modelled
    and formula_modelled (tuples), at the end of a run.

    The book purges when a tuple comes (cross-purge, 5.2 and 12.3), so that a node to which none
    comes any more keeps its last segment: that is ``left``. ``live`` is what a purge by the clock
    leaves. A run lasts (N + 3) T at least, so that every node has had a segment, or the setting's
    seconds. ``formula`` is the book's MEM_ATR, a whole segment on every node.
    """
    rows = []
    for n, segment, seed in product(nodes, segments, seeds):
        seconds = max(setting.seconds, (n + 3) * segment)
        given = replace(setting, seconds=seconds, seed=seed)
        placement = Aligned(n, length=round(segment / given.step), adaptive=False)
        events = given.run(placement)
        live = settled(events, given)[-1].all_hosts.stored
        formula = cost.memory_atr(given.load(), n, segment)
        rows.append((n, segment, seed, live, left(events, n), formula))
    names = ["nodes", "segment", "seed", "live_modelled", "left_modelled", "formula_modelled"]
    return pd.DataFrame(rows, columns=names)


def left(events: Iterable[Any], nodes: int) -> int:
    """Tuples that are stored at the end of a run, if a host purges only when a tuple comes."""
    kept = [0] * nodes
    for b in (e for e in events if isinstance(e, BatchCommitted)):
        kept = [h.stored if h.received else n for h, n in zip(b.hosts, kept, strict=True)]
    return sum(kept)


def busiest(batches: Sequence[BatchCommitted], setting: Setting) -> float:
    """Seconds of the busiest node for one tuple, the mean over batches with tuples."""
    return float(np.mean([work(b, setting).max() / sum(b.received) for b in batches]))


def sent(batches: Iterable[BatchCommitted]) -> float:
    """Copies of a tuple and of its intermediate results that travel."""
    done = list(batches)
    travelled = sum(b.all_hosts.received + b.all_hosts.arrived for b in done)
    return travelled / sum(sum(b.received) for b in done)


def _hops(placement: Placement, streams: int) -> float:
    rounds = streams - 1
    if isinstance(placement, Ring):
        return rounds * placement.hosts / 2
    return rounds if isinstance(placement, Coordinated) else 1
