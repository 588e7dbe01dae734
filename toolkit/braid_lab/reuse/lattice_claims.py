"""The claims of Seshadri 2008 about the reuse lattice; seconds are measured."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
from braid.papers.reuse.query_definition import Definition
from braid.papers.reuse.reuse_lattice import ALL, LatticeEntry, ReuseLattice, Windows

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
    """Figure 2: each key is below those that contain it and have none between; so do searches."""
    serving, above = {key: _find_keys(key) for key in FIGURE_2}, _list_containers()
    answers = {key: _list_answers(*key) for key in FIGURE_2}
    want = {k: {other for other in FIGURE_2 if answers[k] <= answers[other]} for k in FIGURE_2}
    over = {k: {other for other in FIGURE_2 if answers[k] < answers[other]} for k in FIGURE_2}
    next_above = {k: over[k].difference(*(over[other] for other in over[k])) for k in FIGURE_2}
    serves = [key for key in FIGURE_2 if FIGURE_2[0] in serving[key]]
    placed, right = (
        sum(got[key] == expected[key] for key in FIGURE_2)
        for got, expected in ((above, next_above), (serving, want))
    )
    reason = (
        f"{placed} of {len(FIGURE_2)} keys are just below the least whose answers hold all of "
        f"theirs and more, and {right} searches find just the keys whose answers hold all of the "
        f"key's, by tuples of an hour, one a minute; {FIGURE_2[0]} serves "
        f"{', '.join(map(str, serves))}"
    )
    ran = {"keys": FIGURE_2, "searches": "a search for each, without relaxation"}
    holds = above == next_above and serving == want
    return replace(judge(f"{FIGURE_2[0]} serves {serves}", holds, reason), ran=ran)


def _list_containers() -> dict[tuple[int, int], set[tuple[int, int]]]:
    """Return, by key of Fig. 2, the keys that the lattice has directly above it."""
    by_joins = next(iter(_make_leaf().groups.values()))
    group = next(iter(next(iter(by_joins.values())).values()))
    columns = next(iter(group.selections.entries.values())).value
    windows = next(iter(columns.entries.values())).value
    return {
        _read_key(entry.key): {_read_key(upper.key) for upper in entry.containers}
        for entry in windows.entries.values()
    }


def _read_key(windows: Windows) -> tuple[int, int]:
    (length,), slides = windows
    (slide,) = slides
    return length, slide


@CLAIMS.claim(
    "4.2, Fig. 2",
    "The NID of key (5, 1) says that such an operator is in regions 1, 2 and 4",
    is_required=True,
    setting=LEAF,
)
def location_claim() -> Finding:
    """Figure 2: a search that is restricted to a region finds (5, 1) in three of four."""
    regions = [k for k in range(1, 5) if (5, 1) in _find_keys((5, 1), 1 << k - 1)]
    ran = {"keys": FIGURE_2, "searches": "one in each of four regions, without relaxation"}
    places = f"found in regions {', '.join(map(str, regions))}"
    reason = f"of four searches, each restricted to a region, it is {places}"
    return replace(judge(places, regions == [1, 2, 4], reason), ran=ran)


@CLAIMS.claim(
    "1, 4",
    "The lattice finds reuse fast in a large space of operators",
    setting="ReuseLattice beside a linear scan; {operators} operators of ours over chains of some "
    "of ten streams, for those with the base conditions of a query, seed {seed}; CPU time of "
    "{searches} searches, the least of {times} (measured on {machine}, on which the ratios depend)",
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
