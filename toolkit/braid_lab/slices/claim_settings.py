"""Settings of the claims of Wang 2008, Part I: templates for the values of their runs."""

from __future__ import annotations

_GRID = "{grid:count} x {grid:count} values of"
_TABLE = "{windows:count} x {sigmas:count} x {joins:count} settings of Table 8.1"
_RUNS = "{rates} tuples/s; {seconds} s, seed {seeds}"
_RIVALS = "Chain, counted, and its rivals"
_SERVED = f"{_RIVALS}; service rate: results per thousand comparisons"
_CHAINS = (
    "Chain under Mem-Opt and CPU-Opt, counted, with a router that {router} and a C_sys of {part} "
    "of what merges {even} uniform windows, S⋈ = {join}"
)
SETTINGS = {
    "Fig. 5.8": f"computed by Eq. 5.2 for {_GRID} ρ and σ",
    "Fig. 5.9": f"computed by Eq. 5.2 for {_GRID} ρ and σ, S⋈ = {{joins}}",
    "Fig. 6.4": f"computed by Eq. 6.4 for {_GRID} m and n",
    "Fig. 6.6": f"computed by Eq. 6.5 to Eq. 6.8 for {_GRID} m and n, Table 6.2",
    "6.4.4": "computed by Eq. 6.5 to Eq. 6.7 at Table 6.2, windows of {ab} and of {bc} minutes",
    "beyond the paper": f"computed by Eq. 6.5 to Eq. 6.7 for {_GRID} m and n, Table 6.2",
    "Theorem 5": "Chain, counted, with a slice for each query and with one, beside Eq. 5.1; "
    "windows of {windows} s, {rates} tuples/s; {seconds} s, seed {seeds}",
    "Fig. 8.1": f"{_RIVALS}; the {_TABLE}, {_RUNS}",
    "Fig. 8.2": f"{_SERVED}; the {_TABLE}, {_RUNS}",
    "Fig. 8.2(f)": f"{_SERVED}; the {{windows:count}} x {{sigmas:count}} settings of Table 8.1 "
    f"with S⋈ = {{join}}, {_RUNS}",
    "Fig. 8.3": f"{_CHAINS}; {{queries}} skewed windows as of Table 8.2, {_RUNS}",
    "Fig. 8.3(a)": f"{_CHAINS}; {{queries}} queries with the uniform windows of Table 8.2, {_RUNS}",
}
EXTREME = "computed by Eq. 5.2 at ρ = {rho} and σ = {sigma}"
SAVINGS = (
    f"{_RIVALS}; ρ and σ of {{parts}}, windows up to {{windows:most}} s, S⋈ = {{join}}, {{rates}} "
    "tuples/s; {seconds} s, seed {seeds}"
)
LEARNED = (
    "Chain, which measures what it finds; {settings} settings of Table 8.1 with S⋈ = {joins}, "
    "{rates} tuples/s; {seconds} s, seed {seeds}"
)
BY_RATE = (
    f"{_SERVED}; {{settings:count}} settings of Table 8.1 with S⋈ = {{join}}, {{rates}} tuples/s; "
    "{seconds} s, {seeds:count} seeds"
)
MERGED = (
    "the planner of Chain (CPU-Opt), over C_sys, without a run; {queries} queries with the windows "
    "of Table 8.2, S⋈ = {join}, {rates} tuples/s"
)
