"""Settings of the claims about figures of Gedik 2007, by figure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from braid_lab.common.claims import Claim

LEARNING = (
    "the policy (γ = 0.1; r fed forward each second, for T_r = 5 s; weights that fade by a tenth a "
    "second, for T_c = 5 s)"
)
POLICY = f"{LEARNING}; basic windows of 1 s"
"""The policy, and in what its runs differ from the paper's."""
BURST = "100, 500 and 300 tuples/s as in Fig. 8"
STEADY = "500 tuples/s, r = 0.02, two windows of 20 s"
ONE = "one window of 20 s, τ = 0"
PAIRS = "gains for as many pairs"
INDEXED = (
    "computed by true densities, κ = 0.8, γ and learning left out; 500 tuples/s, one window of "
    "200 s, basic windows of 0.2 to 200 s"
)
INDEXED_DROPS = (
    "computed: 200,000 comparisons a second, a pair with an index costs a 35th of one; 50 to 200 "
    "tuples/s, two windows of 25 to 625 s"
)
FORWARD = (
    f"{POLICY}; {ONE}, κ = 0.6, beside a model of Algorithm 1 (T_r = 1 s); {BURST}; 130 s, seed 0"
)
FINER_9 = (
    f"{POLICY}; {ONE}; {PAIRS} and in output, κ = 0.4 to 0.8 by 0.1, 0.52 and 0.54, {BURST}; "
    "130 s, one seed"
)
FINER_12 = (
    f"{POLICY}; two windows of 20 s, κ = 0.4 to 0.8 by 0.1, 0.42 to 0.48 by 0.02, {BURST}; 130 s, "
    "one seed"
)
SETTINGS = {
    "Fig. 1": "computed: bells of deviation 0.15 w with their peak at 0.1 w and at 0.8 w; the "
    "newest and the best 10, 20, 30 and 50% of a window",
    "Fig. 5": "computed by section 5.1.1: bells of deviation 0.2 w and 0.05 w in the middle, basic "
    "windows of 0.02, 0.05, 0.1, 0.2 and 0.5 w, r' = 0.05, 0.1, 0.2, 0.4, 0.7 and 1",
    "Fig. 6": "computed by section 6.1, from 800 x 800 random sets: θ = 3, κ = 0.6 and 0.8, a "
    "cycle of two windows, τ = 5/8 of it",
    "Fig. 7": "the policy's drop, with 100,000, 200,000 and 400,000 comparisons a second; 50 "
    "tuples/s, two windows of 125 s; 250 s, seed 0",
    "Fig. 8": f"{POLICY}; {ONE}, κ = 0.6, {BURST}; 130 s, seed 0",
    "section 4": f"{POLICY}; two windows of 20 s with τ = 5/8 of a cycle, and {ONE}; {PAIRS}, κ = "
    f"0.4 to 0.8, {BURST}; 130 s, one seed",
    "Fig. 9": f"{POLICY}; {ONE}; {PAIRS} and in output, κ = 0.4 to 0.8 by 0.1, {BURST}; 130 s, one "
    "seed",
    "Fig. 10": f"{POLICY}; one window of 10, 20 and 40 s, τ = 0; {PAIRS}, κ = 0.4, 0.6 and 0.8, at "
    f"20 s also 0.5 and 0.7; {BURST}; 130 s, one seed",
    "Fig. 11": f"{POLICY}; two windows of 20 s, κ = 0.6, 100 tuples/s, r given from 0.9 to 0.1; "
    "the last 20 of 60 s for each, one seed",
    "Fig. 12": f"{POLICY}; two windows of 20 s, κ = 0.4 to 0.8 by 0.1, {BURST}; 130 s, one seed",
    "Fig. 13": f"{POLICY}; two windows of 20 s, θ = 4, κ = 0.4, 0.6 and 0.8, {BURST}; 130 s, one "
    "seed",
    "Fig. 14": f"{LEARNING}; {STEADY}, κ = 0.4, 0.6 and 0.8, basic windows of 1, 2, 4, 10 and 20 "
    "s; 60 s, one seed",
    "Fig. 15": f"{POLICY}; 100 to 500 tuples/s by 100, two windows of 20 s, κ = 0.6, at 500/s also "
    "0.7 and 0.8; 60 s, one seed",
    "Fig. 16": f"{POLICY}; {STEADY}, κ = 0.4, 0.6 and 0.8, three types worth 1, 2^-k and 3^-k, k "
    "from 0 to 3; 60 s, one seed",
    "Fig. 17": f"{POLICY}; {STEADY}, κ = 0.6, 2 to 40 types, the best worth 5 and 10 times the "
    "least; 60 s, one seed",
}


def name_seeds(claims: Iterable[Claim], seeds: int) -> list[Claim]:
    """Return the claims with settings that say of how many seeds their figures are the mean."""
    text = "one seed" if seeds == 1 else f"the mean of {seeds} seeds"
    return [replace(c, setting=c.setting.replace("one seed", text)) for c in claims]
