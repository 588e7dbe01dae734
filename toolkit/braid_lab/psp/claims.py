"""The claims of Wang 2008, Part II, chapters 13 and 16, against ``braid_lab.psp.experiments``.

Those of ``braid_lab.psp.scheme_comparison`` are in ``rival_claims``. All is modelled, except
the run on Spark. Claims that hold are required.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd
from braid.core.run_events import BatchCommitted

from braid_lab.common.claims import Case, ClaimRegistry, Finding, judge, judge_reading
from braid_lab.psp import rival_claims
from braid_lab.psp.adaptation import BOOK_NODES, CHANGES
from braid_lab.psp.contest_claims import RUN, STREAMS, add_hops
from braid_lab.psp.experiments import (
    BOOK_LENGTH,
    HOPS,
    JOINS,
    hop_seconds_for,
    price_hops,
)

_COSTS, _HOPS = "{join:count} costs of a pair", "T_n of {hop_ms:range} ms"
_RING = f"PSP-D on {{nodes:range}} nodes, counted and priced; {STREAMS}, σ = {{sigma}}, "
_GROWING = (
    "PSP-D of {nodes} nodes, fixed and adapting up to {most}; {streams} streams of {rate}, then "
    "{later_rate} tuples/s, W = {window} s, σ = {sigma}, the {join} join at {price_percent} % of "
    "our costs of a pair and a send; {seconds} s, seeds {seed}"
)
SETTINGS = {
    "Fig. 16.1": f"PSP-D on {{nodes}} nodes, counted and priced; {STREAMS}, σ = {{sigma}}, "
    f"{_COSTS}; {RUN}",
    "Fig. 16.2": f"{_RING}{_COSTS}, {_HOPS}; {RUN}",
    "Fig. 16.2, Theorem 9": f"{_RING}the {{join}} join, {_HOPS}; {RUN}",
    "Theorem 9": f"computed by Eq. 13.5 for {{nodes:range}} nodes; {STREAMS}, σ = {{sigma}}, "
    f"{_COSTS}, {_HOPS}",
    "16.2": f"{_RING}{_COSTS}, {_HOPS}; {RUN}",
    "Fig. 16.6": _GROWING,
    "Fig. 16.7": _GROWING,
}
CLAIMS = ClaimRegistry("Wang 2008, II", SETTINGS)
"""All claims of Part II."""

# Fig. 16.1: ``cost_breakdown`` with a column for the streams


@CLAIMS.claim(
    "Fig. 16.1, Eq. 13.1",
    "Counted pairs and sends of a tuple are those of Eq. 13.1",
    is_required=True,
)
def equation_claim(parts: pd.DataFrame) -> Finding:
    """Fig. 16.1 and Eq. 13.1: counted pairs and sends agree with the equation."""
    keys = [parts["streams"], parts["part"]]
    ratio = parts["mean_modelled"] / parts["equation_modelled"]
    by = ratio.groupby(keys).mean().unstack("part")
    printed = (parts["mean_modelled"] / parts["printed_modelled"]).groupby(keys).mean().unstack()
    each = "; ".join(
        f"{m} streams: pairs {by.loc[m, 'join']:.2f}, sends {by.loc[m, 'network']:.2f} "
        f"({printed.loc[m, 'network']:.2f} of the printed)"
        for m in by.index
    )
    reading = (
        f"within {OFF:.0%}, with T_j for a pair, S = σ^k in the k-th probing step (a match fits "
        "all k tuples before it), and N - 1 sends of an intermediate result, where the equation "
        "has N: it is not sent to the node where it was found. Streams that have the fewest "
        "matches are probed first, so there are fewer than by the mean rate"
    )
    return judge_reading(each, by.stack().between(1 - OFF, 1 + OFF).all(), reading)


# Fig. 16.2: ``count_ring_work``; Theorem 9: ``response_times``

OFF = 0.12
"""By how much counts may be off Eq. 13.1."""
T_NS = tuple(tenth / 1e4 for tenth in range(1, 121))
"""T_n in seconds, at which best lengths are looked for."""


def best_ring_lengths(times: pd.DataFrame) -> pd.Series:
    """Return the ring's length with the least response time, by T_n, join cost and selectivity."""
    keys = ["hop", "join", "sigma"]
    least = times.loc[times.groupby(keys)["response_modelled"].idxmin()]
    return least.set_index(keys)["nodes"]


@CLAIMS.claim(
    "Fig. 16.2",
    "More nodes help up to a point: the best ring has an interior length",
    is_required=True,
)
def interior_claim(work: pd.DataFrame) -> Finding:
    """Fig. 16.2: the best ring has an interior length, if hops are not too cheap."""
    low, high = work["nodes"].min(), work["nodes"].max()
    best = best_ring_lengths(price_hops(work, T_NS))
    inner = (best > low) & (best < high)
    every = inner.groupby(["join", "hop"]).all()
    fits = {join: every[join][every[join]].index for join in JOINS}
    ranges = ", ".join(
        f"{1e3 * t.min():.1f} to {1e3 * t.max():.1f} ms ({join} join)" for join, t in fits.items()
    )
    reading = (
        f"for every σ at T_n of {ranges}; at {1e3 * T_NS[0]:g} ms, a hop of a gigabit network, in "
        f"{inner[T_NS[0]].sum()} of {len(inner[T_NS[0]])} settings, for the longest ring is best. "
        "The book prints no T_n"
    )
    most = inner.groupby("hop").sum()
    result = f"at most {most.max()} of {len(inner[T_NS[0]])} settings at one T_n"
    finding = judge_reading(result, all(len(t) for t in fits.values()), reading)
    return add_hops(finding, T_NS)


@CLAIMS.claim(
    "Fig. 16.2, Theorem 9", f"{BOOK_LENGTH} nodes are best at σ = 0.5, small join", is_required=True
)
def fourteen_nodes_claim(work: pd.DataFrame) -> Finding:
    """Section 16.2, its one number: at selectivity 0.5 and the small join, 14 nodes are best."""
    join, sigma = "small", 0.5
    best = best_ring_lengths(price_hops(work, T_NS)).xs((join, sigma), level=("join", "sigma"))
    fits = [f"{1e3 * t:.1f}" for t, n in best.items() if n == BOOK_LENGTH]
    each = ", ".join(f"{n} from T_n {1e3 * best.eq(n).idxmax():.1f} ms" for n in best.unique())
    reading = (
        f"at T_n = {' to '.join(fits[:: len(fits) - 1 or 1])} ms, chosen so: {len(best.unique())} "
        f"lengths are best at some T_n of {1e3 * T_NS[0]:g} to {1e3 * T_NS[-1]:g} ms. By Theorem 9 "
        f"with our cost of a pair it takes {1e3 * hop_seconds_for(BOOK_LENGTH):.2f} ms. The book "
        "prints no T_n"
    )
    ran = {"join": join, "sigma": sigma}
    return add_hops(replace(judge_reading(each, bool(fits), reading), ran=ran), T_NS)


@CLAIMS.claim(
    "Fig. 16.2",
    "Response time grows with the selectivity",
    is_required=True,
    setting=f"{_RING}{_COSTS}; {RUN}",
)
def response_growth_claim(work: pd.DataFrame) -> Finding:
    """Fig. 16.2: the response time grows with the selectivity, whatever a hop takes."""
    by = work.pivot(index=["join", "nodes"], columns="sigma", values="busy_counted")
    grown = by.to_numpy()[:, 1:] / by.to_numpy()[:, :-1]
    result = (
        f"without hops, which are the same, {grown.min():.2f} times and more from one σ to the "
        "next, at every length and join cost"
    )
    return judge(result, (grown > 1).all())


@CLAIMS.claim(
    "Theorem 9", "The latency of Eq. 13.5 is least at N = min{{N_1, N_2}}", is_required=True
)
def theorem_9_claim(times: pd.DataFrame) -> Finding:
    """Theorem 9: the best ring is near the least of Eq. 13.5."""
    best = best_ring_lengths(times)
    theorem = times.groupby(["hop", "join", "sigma"])["best_modelled"].first()
    off = best - theorem
    is_inside = (best > times["nodes"].min()) & (best < times["nodes"].max())
    reading = (
        "to the nearest length: N_2 is where the two parts are equal, half a node above that where "
        "their sum is least"
    )
    result = f"the best length is {off.min():+.1f} to {off.max():+.1f} nodes off"
    return judge_reading(result, is_inside.all() and (abs(off) <= 1).all(), reading)


@CLAIMS.claim("16.2", "The smaller the selectivity, the longer the best ring (text of 16.2)")
def length_by_selectivity_claim(work: pd.DataFrame) -> Finding:
    """Section 16.2, text: the smaller the selectivity, the longer the best ring."""
    best = best_ring_lengths(price_hops(work)).unstack("sigma")
    longer, shorter = (best[0.05] > best[0.5]).sum(), (best[0.05] < best[0.5]).sum()
    few, some, more = best.loc[HOPS[-1], "small"]
    why = (
        '"For smaller join selectivities, we expect large optimal number of nodes in the ring" '
        "(16.2): the other way round, as Theorem 9 has it, since more selectivity means more "
        "probing to share"
    )
    result = (
        f"longer at σ = 0.05 than at 0.5 in {longer} of {len(best)} settings, shorter in "
        f"{shorter}; small join, T_n {1e3 * HOPS[-1]:g} ms: {few}, {some}, {more} nodes for σ = "
        "0.05, 0.1, 0.5"
    )
    return add_hops(judge(result, longer > shorter, failure=why))


# Fig. 16.6, 16.7: ``adaptation_curves``


def _list_adaptation_curves(grown: Mapping[str, pd.DataFrame]) -> Iterator[Case]:
    for panel, curves in grown.items():
        yield {"curves": curves, "panel": panel, "figure": panel.rstrip("abcd")}


@CLAIMS.claim(
    "Fig. {figure}",
    "Adaptation flattens the response time when the rates grow ({panel})",
    is_required=True,
    cases=_list_adaptation_curves,
)
def adaptation_claim(curves: pd.DataFrame, panel: str, figure: str) -> Finding:
    """Fig. 16.6, 16.7: adaptation flattens the response time when the rates grow, with every seed.

    The data are those of ``adaptation_curves``. At the end no batch waits for the one before it.
    """
    step = CHANGES[panel].setting.step
    end = curves[curves["second"] >= 0.9 * (curves["second"].max() + step)]
    last = end.groupby(["adapts", "price", "seed"])["response_modelled"].mean().unstack("adapts")
    by = last.groupby("price").mean()
    nodes = curves[curves["adapts"]].groupby("price")["nodes"].max()
    result = "; ".join(
        f"costs at {p:.1%}: at the end {by.loc[p, True]:.2f} s, with up to {nodes[p]} nodes, "
        f"against {by.loc[p, False]:.1f} s"
        for p in by.index
    )
    reading = (
        f"at costs at which three nodes keep up before the change alone, and the book's "
        f"{BOOK_NODES} with both; it prints none. At ours, sending alone fills every node after "
        "the change"
    )
    is_flat = (last[True] < step) & (last[True] < last[False] / 2)
    return judge_reading(result, is_flat.all(), reading)


# A run on Spark


@CLAIMS.claim(
    "15.1",
    "PSP has no duplicated state at any time (measured)",
    is_required=True,
    setting="PSP-D on Spark; {streams} streams of {rates} tuples/s, W = {windows} s, σ = {sigma}; "
    "{nodes} nodes, then {resize}; {batches} batches of a second",
)
def one_copy_on_spark_claim(measured: Sequence[Any], launched: Mapping[str, object]) -> Finding:
    """Section 15.1: no tuple is stored twice, also when the ring grows.

    ``measured`` are the events of a run ``launched`` with settings of ``run_from_controls``.
    """
    commits = [e for e in measured if isinstance(e, BatchCommitted)]
    stored = [e.total_host_metrics.stored_tuples for e in commits]
    twice = [n - sum(e.live_tuples) for n, e in zip(stored, commits, strict=True)]
    result = f"{max(twice)} of up to {max(stored):,} tuples on two nodes"
    finding = judge(result, max(stored) > 0 and not any(twice))
    return replace(finding, ran={**launched, "batches": len(commits)})


@dataclass(frozen=True)
class RingFigures:
    """The tidy frames behind the claims.

    They are from ``cost_breakdown``, ``count_ring_work``, ``response_times`` and, by figure,
    ``adaptation_curves``; and from ``relocation_table``, ``scheme_properties``, ``replica_table``
    and ``concurrency_table``.
    """

    parts: pd.DataFrame
    work: pd.DataFrame
    times: pd.DataFrame
    grown: dict[str, pd.DataFrame]
    moves: pd.DataFrame
    rows: pd.DataFrame
    cached: pd.DataFrame
    many: pd.DataFrame


CLAIMS.include_claims(rival_claims.CLAIMS)
