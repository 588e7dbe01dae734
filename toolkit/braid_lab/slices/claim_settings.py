"""Settings of the claims of Wang 2008, Part I: templates for the values of their runs."""

from __future__ import annotations

_GRID = "{grid:count} x {grid:count} values, {grid:range}, of"
_QUERIES = "the queries of section 8.2"
_STREAMS = "two Poisson streams of {rates} tuples/s in batches of {step} s"
_TABLE = (
    f"{_QUERIES} in the {{windows:count}} x {{sigmas:count}} x {{joins:count}} settings of "
    "Table 8.1"
)
_RUNS = f"{_STREAMS}; {{seconds}} s from empty states, seeds {{seeds}}"
_HELD = "state in the mean of batches from the longest window on"
_RIVALS = "Chain (Mem-Opt), pull-up (a chain of one slice) and partition (two such chains), counted"
_RATE = (
    "service rate: results of all queries per thousand comparisons, to probe, purge, route, "
    "filter, select, split and unite"
)
_SERVED = f"{_RIVALS}; {_RATE}"
_CHAINS = (
    f"Chain in the slices of Mem-Opt and of CPU-Opt; {_RATE}, counted, and C_sys for each tuple "
    "and slice; a router that {router} "
    "each result, a C_sys of {part} of what merges {even} uniform windows, S⋈ = {join}"
)
SETTINGS = {
    "Fig. 5.8": f"computed by Eq. 5.2 for {_GRID} ρ and Sσ",
    "Fig. 5.9": f"computed by Eq. 5.2 for {_GRID} ρ and Sσ, S⋈ = {{joins}}",
    "Fig. 6.4": f"computed by Eq. 6.4, which has the states AB alone, for {_GRID} m and n",
    "Fig. 6.6": f"computed by Eq. 6.5 to Eq. 6.8 for {_GRID} m and n, Table 6.2",
    "6.4.4": "computed by Eq. 6.5 to Eq. 6.7 at Table 6.2, windows of {ab} and of {bc} minutes",
    "Theorem 5": "Chain (Mem-Opt) and Chain with one slice, counted; windows of {windows} s, "
    f"{_RUNS}; {_HELD}",
    "Fig. 8.1": f"{_RIVALS}; {_TABLE}, {_RUNS}; {_HELD}",
    "Fig. 8.2": f"{_SERVED}; {_TABLE}, {_RUNS}",
    "Fig. 8.2(f)": f"{_SERVED}; {_QUERIES} in the {{windows:count}} x {{sigmas:count}} settings of "
    f"Table 8.1 with S⋈ = {{join}}, {_RUNS}",
    "Fig. 8.3": f"{_CHAINS}; {{queries}} skewed windows as of Table 8.2, {_RUNS}",
}
EXTREME = "computed by Eq. 5.2 at ρ = {rho} and Sσ = {sigma}"
SAVINGS = (
    f"{_RIVALS}; two queries, the second with a selection; (ρ, Sσ) = {{points}}, "
    f"windows up to {{windows:most}} s, S⋈ = {{join}}, {_RUNS}; {_HELD}"
)
LEARNED = (
    "Chain (Mem-Opt), whose slices depend on no S⋈, counted; the queries of section 8.2 with the "
    f"windows {{spreads}} of Table 8.1, Sσ = {{sigma}}, S⋈ = {{joins}}, {_RUNS}; {_HELD}"
)
BY_RATE = (
    f"{_SERVED}; {_QUERIES} in {{settings:count}} settings of Table 8.1 with S⋈ = {{join}}, "
    f"{_STREAMS}; {{seconds}} s from empty states, seeds {{seeds:range}}"
)
MERGED = (
    "the shortest path that Chain (CPU-Opt) takes, over C_sys, in comparisons for each tuple and "
    "slice, without a run; a router that compares (section 7.2), and one of ours, which Chain does "
    "not have, that looks each result up once; {queries} queries with the {spreads} windows of "
    "Table 8.2, S⋈ = {join}, two streams of {rates} tuples/s"
)
