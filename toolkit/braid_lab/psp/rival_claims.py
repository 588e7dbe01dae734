"""The claims of Wang 2008, section 15.1, Fig. 14.1, 15.1 and 16.3, against ``scheme_comparison``.

Those of Fig. 16.2 to 16.5 are in ``contest_claims``. All is counted on the policies and priced, so
modelled. Claims that hold are required; ``tests/mutations`` has the faults that break them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import pandas as pd

from braid_lab.common.claims import (
    Case,
    ClaimRegistry,
    Finding,
    judge,
    judge_reading,
    leave_untested,
)
from braid_lab.common.recorded_settings import format_recorded, format_setting
from braid_lab.psp import contest_claims
from braid_lab.psp.claim_settings import COSTS, FINE, HOP_TIMES, RING_HOPS, RUN, SIGMA, STREAMS
from braid_lab.psp.scheme_comparison import COPIES, CTR_SEGMENT
from braid_lab.psp.scheme_properties import BEFORE_END

_MANY = "PSP-I with {tuples} tuples at once, the mean of a batch, counted"
_AT_ONCE = (
    f"{_MANY} and priced; {{nodes}} nodes, {STREAMS}{SIGMA}{COSTS}{HOP_TIMES}; response time: that "
    "of a batch's busiest node for one tuple, in the mean of batches, times the tuples at once, "
    f"and hops without queueing, {RING_HOPS}; {RUN}"
)
SETTINGS = {
    "15.1": "ATR with T = {segment} s and one master, its tuples at the end of a run; {nodes} "
    f"nodes, {STREAMS}, batches of {{step}} s; runs of (N + {{spare}}) T, {{seconds:range}} s, a "
    "segment on every node, where the book has {printed_seconds}, seeds {seed}",
    "Fig. 15.1": f"{{schemes}} on {{nodes}} nodes; {STREAMS}{SIGMA}{FINE}; {{seconds}} s, "
    "{counted}, seeds {seed}",
    "Fig. 14.1": "PSP-D of N + M nodes ({rings}), the M taken in at once; two streams with full "
    "windows of N (N + M) batches of equal size",
    "Fig. 16.3": _AT_ONCE,
    "16.3": _AT_ONCE,
    "12.4": f"{_MANY}; {{nodes}} nodes, {STREAMS}{SIGMA}; {{seconds}} s, the first {{window}} s "
    "not counted, seeds {seed}",
}
CLAIMS = ClaimRegistry("Wang 2008, II", SETTINGS)

# Chapter 14 and section 15.1: ``scheme_properties``, ``scheme_comparison.replica_table``


PROPORTIONAL = 0.2
"""By how much growth may be off that of N, and still count as proportional."""
EXACT = 0.1
"""By how much a state may be off a formula."""
WHOLE = 0.01
"""Tolerance of a move against Eq. 14.1, as a fraction of a new slice."""


@CLAIMS.claim(
    "15.1, Fig. 16.4", "State of ATR grows in proportion to N, as MEM_ATR does", is_required=True
)
def atr_state_growth_claim(cached: pd.DataFrame) -> Finding:
    """Section 15.1, Fig. 16.4: the state of ATR grows with N, for every segment and seed."""
    keys = ["segment", "seed"]
    left, live = (
        cached.pivot(index=keys, columns="nodes", values=f"{way}_modelled")
        for way in ("left", "live")
    )
    few, many = left.columns[0], left.columns[-1]
    more, clocked = (x[many] / x[few] for x in (left, live))
    result = f"{many} nodes hold {more.min():.2f} to {more.max():.2f} times the tuples of {few}"
    steps = left.diff(axis=1).iloc[:, 1:] > 0
    grows = steps.all(axis=None)
    reading = (
        f"purged when a tuple comes, as in sections 5.2 and 12.3: {result} (our bound: "
        f"{many / few:g} times, {PROPORTIONAL:.0%} off); with more nodes the state is greater in "
        f"{steps.to_numpy().sum()} of {steps.size} steps of a T and a seed; purged by the clock, "
        f"{clocked.min():.2f} to {clocked.max():.2f} times"
    )
    is_proportional = (abs(more * few / many - 1) <= PROPORTIONAL).all()
    return judge_reading(result, grows and is_proportional, reading)


@CLAIMS.claim("15.1", "State of ATR is λTN + λ(T + 2W)(M - 1)N")
def atr_memory_formula_claim(cached: pd.DataFrame) -> Finding:
    """Section 15.1: MEM_ATR itself, a whole segment of T + 2 W on every node."""
    share = cached["left_modelled"] / cached["formula_modelled"]
    by = share.groupby(cached["segment"]).agg(["min", "max"]).itertuples()
    result = ", ".join(f"{low:.2f} to {high:.2f} of it at T = {t:g} s" for t, low, high in by)
    reason = (
        '"MEM_ATR = λTN + λ(T + 2W)(M - 1)N" (15.1): purged when a tuple comes, as in '
        f"sections 5.2 and 12.3, the state at the end is {result} (our bound: {EXACT:.0%} off)"
    )
    return judge(result, (abs(share - 1) <= EXACT).all(), failure=reason)


ORDERS: dict[str, tuple[Callable[[pd.DataFrame], pd.Series], str]] = {
    "Routing Cost": (lambda n: n["CTR"] > n[["ATR", "PSP"]].max(axis=1), ""),
    "Per Segment Metadata": (
        lambda n: (n["CTR"] > 1) & (n[["ATR", "PSP"]].max(axis=1) <= 1),
        "a path that is the same for all segments needs no metadata",
    ),
    "Duplication Removal": (
        lambda n: (n["CTR"] > 0) & (n["ATR"] == 0) & (n["PSP"] == 0),
        "CTR stores a segment on all hosts of its first cover, as in Gu 2007; with {copies} "
        "copies, as the book has it (15.1), it leaves out {bounded_left_out:range}",
    ),
    "Load Balancing Granularity": (
        lambda n: n["ATR"] > n[["CTR", "PSP"]].max(axis=1),
        "granularity is read as the share of a batch that one host joins",
    ),
    "State Management Cost": (
        lambda n: n["PSP"] < n[["ATR", "CTR"]].min(axis=1),
        "PSP is PSP-D; the basic PSP inserts a tuple once for each of the n slices (12.5)",
    ),
    "Adaptation Cost": (
        lambda n: n["PSP"] == 0,
        "passive adjustment, which induces no extra migration (14.2); aggressive relocation moves "
        "the state of Eq. 14.1",
    ),
    "Network Transmission": (lambda n: (n["ATR"] < n["CTR"]) & (n["CTR"] < n["PSP"]), ""),
}
"""By row of Fig. 15.1: whether the numbers are as its words say, and the reading of it."""
_SEGMENTS = f"segments of {CTR_SEGMENT} batch"
_RUN_SCHEMES = f"ATR (T = W), CTR ({COPIES} copies, {_SEGMENTS}) and PSP-D"
_OTHER_SCHEMES = {
    "Duplication Removal": f"ATR (T = W), CTR (no bound on copies, and {COPIES}, {_SEGMENTS}) and "
    "PSP-D",
    "Adaptation Cost": f"PSP-D, which takes a node in passively {BEFORE_END} s before the end,",
}
"""By row of Fig. 15.1, what is run for it, if it is not what is run for the others."""
_OTHER_SECONDS = {"Adaptation Cost": f"the last {BEFORE_END} s counted"}
"""By row, which part of a run is counted, if it is not that for the others."""


def _list_comparison_rows(rows: pd.DataFrame) -> Iterator[Case]:
    for item, schemes in rows.groupby("item", sort=False):
        words = schemes.drop_duplicates("scheme").set_index("scheme")["printed"]
        printed_words = ", ".join(f"{scheme} {word}" for scheme, word in words.items())
        yield {"item": str(item), "words": printed_words, "schemes": schemes}


@CLAIMS.claim("Fig. 15.1", "{item}: {words}", cases=_list_comparison_rows, is_required=True)
def comparison_row_claim(item: str, words: str, schemes: pd.DataFrame) -> Finding:
    """Fig. 15.1, row by row, counted on the policies with every seed."""
    numbers = schemes.pivot(index="seed", columns="scheme", values="number_modelled")
    is_as_printed, reading = ORDERS[item]
    each = ", ".join(f"{scheme} {format_spread(n.min(), n.max())}" for scheme, n in numbers.items())
    text, holds = f"{schemes['counts'].iloc[0]}: {each}", is_as_printed(numbers).all()
    finding = (
        judge_reading(text, holds, f"{format_setting(reading, [schemes], {})}; {text}")
        if reading
        else judge(text, holds, text)
    )
    ran = _OTHER_SCHEMES.get(item, _RUN_SCHEMES)
    full = f"the first {format_recorded(schemes, 'window')} s not counted"
    return replace(finding, ran={"schemes": ran, "counted": _OTHER_SECONDS.get(item, full)})


def format_spread(low: float, high: float) -> str:
    """Return the least and the largest value of several seeds as text."""
    return f"{low:.3g}" if low == high else f"{low:.3g} to {high:.3g}"


@CLAIMS.claim(
    "Fig. 14.1, Eq. 14.1",
    "Aggressive relocation moves what Eq. 14.1 says, between neighbours",
    is_required=True,
)
def relocated_state_claim(moves: pd.DataFrame) -> Finding:
    """Fig. 14.1, Eq. 14.1: the state that each node hands on when a ring takes nodes in."""
    off = (moves["moved_modelled"] - moves["equation_modelled"]).abs().max()
    beyond = moves["beyond_modelled"].sum()
    rings = moves[["nodes", "added"]].drop_duplicates()
    grown = tuple(f"{n} + {m}" for n, m in rings.itertuples(index=False))
    result = f"off by {off:.2f} of a new slice at most, and {beyond:.2f} go beyond a neighbour"
    reading = (
        f"{result}; less than {WHOLE:g} and none count. Neighbours are the nodes up to the next "
        "old one: ΔS goes to that, past new ones between, which get whole slices. The j-th "
        "new node is put after the least k with M k / N ≥ j; for j = M no k has >, which is printed"
    )
    finding = judge_reading(result, off < WHOLE and not beyond, reading)
    return replace(finding, ran={"rings": grown})


# Fig. 16.3: ``scheme_comparison.concurrency_table``


def _price_tuples(many: pd.DataFrame) -> pd.DataFrame:
    """Return response times, by tuples at once, setting and seed, and by nodes."""
    keys = ["tuples", "sigma", "join", "hop", "seed"]
    return many.pivot(index=keys, columns="nodes", values="response_modelled").sort_index(axis=1)


STABLE = 0.25
"""By how much a response time may change with N and count as stable."""


@CLAIMS.claim("Fig. 16.3, 16.3", "Response time of PSP-I is pretty stable in N")
def psp_i_stability_claim(many: pd.DataFrame) -> Finding:
    """Fig. 16.3 (a), (c), (e): the response time of PSP-I is stable in N."""
    by = _price_tuples(many)
    change = by.iloc[:, -1] / by.iloc[:, 0] - 1
    groups = change.groupby("tuples", sort=False).agg(["min", "max"])
    result = f"from {by.columns[0]} to {by.columns[-1]} nodes it changes by " + ", ".join(
        f"{low:+.0%} to {high:+.0%} with {k} tuples at once" for k, low, high in groups.itertuples()
    )
    reason = (
        '"pretty stable since the PSP-Int allows more input tuples to be processed" (16.3): '
        f"{result} (our bound: {STABLE:.0%} for every length, σ, cost, T_n and seed, with one of "
        "these numbers at once)"
    )
    spread = by.max(axis=1) / by.min(axis=1) - 1
    return judge(result, (spread < STABLE).groupby("tuples").all().any(), failure=reason)


@CLAIMS.claim(
    "16.3",
    "More nodes process more tuples at once instead of answering sooner",
    is_required=True,
)
def concurrency_claim(many: pd.DataFrame) -> Finding:
    """Section 16.3: more nodes process more tuples at once, rather than answer sooner."""
    every = _price_tuples(many)
    by = every.xs("N", level="tuples")
    if len(by.columns) < 2:
        return leave_untested("one length only")
    served = by.rdiv(pd.Series(by.columns, by.columns), axis=1)
    more, later = (x.iloc[:, -1] / x.iloc[:, 0] for x in (served, by))
    result = (
        f"from {by.columns[0]} to {by.columns[-1]} nodes {more.min():.2f} to {more.max():.2f} "
        f"times the tuples/s (N over that time), each in {later.min():.2f} to "
        f"{later.max():.2f} times the time"
    )
    grows = all((x.diff(axis=1).iloc[:, 1:] > 0).all(axis=None) for x in (served, by))
    every_length = ", both more at every length than at the one before" if grows else ""
    reading = f"with N tuples at once: {result}{every_length}"
    if len(fixed := every.drop("N", level="tuples")):
        sooner = fixed.iloc[:, -1] / fixed.iloc[:, 0]
        reading += (
            f". With a fixed number at once, each takes {sooner.min():.2f} to {sooner.max():.2f} "
            "times the time"
        )
    return judge_reading(result, grows, reading)


@CLAIMS.claim("12.4", "Interleaved processing induces duplicated states", is_required=True)
def more_at_once_claim(many: pd.DataFrame) -> Finding:
    """Section 12.4: interleaved processing induces duplicated states."""
    copied = (
        many["copied_modelled"] / (many["stored_modelled"] - many["copied_modelled"])
    ).groupby(many["tuples"], sort=False)
    each = ", ".join(
        f"{low:.1%} to {high:.1%} with {k} at once"
        for k, low, high in copied.agg(["min", "max"]).itertuples()
    )
    result = f"live tuples that are stored twice, in the mean of batches: {each}"
    return judge(result, (many["copied_modelled"] > 0).all(), result)


CLAIMS.include_claims(contest_claims.CLAIMS)
