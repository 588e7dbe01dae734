"""The claims of Seshadri 2008 about the reuse lattice; seconds are measured."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
from braid.papers.reuse.query_definition import Definition
from braid.papers.reuse.reuse_lattice import ALL, LatticeEntry, ReuseLattice

from braid_lab.common.claims import (
    ClaimRegistry,
    Finding,
    format_values,
    judge,
    judge_reading,
    leave_untested,
)

CLAIMS = ClaimRegistry("Seshadri 2008")

FIGURE_2 = ((5, 1), (5, 3), (5, 2), (6, 2), (6, 4), (5, 6), (4, 2))
"""The keys of figure 2: RANGE and SLIDE."""
NID = 0b1011
"""The regions of key (5, 1): the first, the second and the fourth."""
LEAF = "ReuseLattice with an operator for each of the {keys:count} keys of Fig. 2; {searches}"


def _make_leaf() -> ReuseLattice:
    """Return a lattice with an operator for each key of figure 2; (5, 1) has its regions."""
    defined = [_define_window(*key) for key in FIGURE_2]
    return ReuseLattice(
        LatticeEntry(k, d, (d,), NID if k == 0 else 1) for k, d in enumerate(defined)
    )


def _define_window(length: int, slide: int) -> Definition:
    return Definition.make({"s": length}, columns={"s": ["k"]}, slides=[slide])


def _list_answers(length: int, slide: int) -> set[tuple[int, int]]:
    """Return (time of an answer, time of a tuple in it): one tuple a minute, for an hour."""
    return {(now, t) for now in range(0, 61, slide) for t in range(now - length, now)}


def _find_keys(wanted: tuple[int, int], regions: int = ALL) -> set[tuple[int, int]]:
    """Return the keys whose operators serve a key unchanged, by a search in the lattice."""
    served = _make_leaf().find_reusable_operators(_define_window(*wanted), regions, relax=False)
    return {FIGURE_2[offer.id] for offer, _ in served}


@CLAIMS.claim(
    "4.2, Fig. 2",
    "Keys (RANGE, SLIDE) of a node are organized by containment",
    is_required=True,
    setting=LEAF,
)
def figure_2_claim() -> Finding:
    """Figure 2: a search for a key finds those whose answers hold all answers of that key."""
    serving = {key: _find_keys(key) for key in FIGURE_2}
    want = {
        key: {other for other in FIGURE_2 if _list_answers(*key) <= _list_answers(*other)}
        for key in FIGURE_2
    }
    serves = [key for key in FIGURE_2 if FIGURE_2[0] in serving[key]]
    right = sum(serving[key] == want[key] for key in FIGURE_2)
    reason = (
        f"{right} of {len(FIGURE_2)} searches find just the keys whose answers hold all answers of "
        f"the key, by tuples of an hour, one a minute; {FIGURE_2[0]} serves "
        f"{', '.join(map(str, serves))}"
    )
    ran = {"keys": FIGURE_2, "searches": "a search for each"}
    return replace(judge(f"{FIGURE_2[0]} serves {serves}", serving == want, reason), ran=ran)


@CLAIMS.claim(
    "4.2, Fig. 2",
    "The NID of key (5, 1) says that such an operator is in regions 1, 2 and 4",
    is_required=True,
    setting=LEAF,
)
def location_claim() -> Finding:
    """Figure 2: a search that is restricted to a region finds (5, 1) in three of four."""
    regions = [k for k in range(1, 5) if (5, 1) in _find_keys((5, 1), 1 << k - 1)]
    ran = {"keys": FIGURE_2, "searches": "one in each of four regions"}
    places = f"found in regions {', '.join(map(str, regions))}"
    reason = f"of four searches, each restricted to a region, it is {places}"
    return replace(judge(places, regions == [1, 2, 4], reason), ran=ran)


@CLAIMS.claim(
    "1, 4",
    "The lattice finds reuse fast in a large space of operators",
    setting="ReuseLattice beside a linear scan; {operators} operators of ours, {searches} searches "
    "for those with the base conditions of a query, seed {seed} (measured on {machine})",
)
def search_claim(search: pd.DataFrame) -> Finding:
    """Section 4: the lattice is quicker than a scan at each size, and the more so the larger."""
    table = search.pivot(index="operators", columns="search", values="seconds_measured")
    times = table["linear"] / table["lattice"]
    text = f"times quicker than a linear scan, by operators: {format_values(times)} (measured)"
    if len(times) < 2:
        return leave_untested(text, "it takes two sizes")
    each = ", ".join(f"{ratio:.1f} times with {count:,}" for count, ratio in times.items())
    reading = (
        f"fast is read as quicker than a linear scan, the more so the larger: {each} operators"
    )
    return judge_reading(text, (times > 1).all() and times.is_monotonic_increasing, reading)
