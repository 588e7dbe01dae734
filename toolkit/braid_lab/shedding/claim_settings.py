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
INDEXED = (
    "computed by true densities; 500 tuples/s, two windows of 20 s, basic windows of 0.2 to 20 s"
)
SETTINGS = {
    "Fig. 1": "computed: the newest and the best part of an early and of a late peak",
    "Fig. 5": "computed by section 5.1.1: two deviations, five sizes of basic windows, seven r'",
    "Fig. 6": "computed by section 6.1: κ = 0.6 and 0.8, a cycle of 40 s, τ = 5/8 of it",
    "Fig. 7": "computed: 200,000 comparisons a second, 50 to 200 tuples/s, windows of 25 to 625 s",
    "Fig. 8": f"{POLICY}; one window of 20 s, τ = 0, κ = 0.6, {BURST}; 130 s, seed 0",
    "section 4": f"{POLICY}; windows of 20 s, κ = 0.4 to 0.8, {BURST}; 130 s, one seed",
    "section 4.1": f"{POLICY}; one window of 20 s, τ = 0, κ = 0.6, beside a model of Algorithm 1 "
    f"(T_r = 1 s); {BURST}; 130 s, seed 0",
    "Fig. 9": f"{POLICY}; one window of 20 s, τ = 0, κ = 0.4 to 0.8, {BURST}; 130 s, one seed",
    "Fig. 10": f"{POLICY}; one window, τ = 0: 20 s with κ = 0.4 to 0.8, 10 to 40 s with κ = 0.6; "
    f"{BURST}; 130 s, one seed",
    "Fig. 11": f"{POLICY}; two windows of 20 s, κ = 0.6, 100 tuples/s, r given from 0.9 to 0.1; "
    "60 s for each, one seed",
    "Fig. 12": f"{POLICY}; two windows of 20 s, κ = 0.4 to 0.8 by 0.1, {BURST}; 130 s, one seed",
    "Fig. 13": f"{POLICY}; two windows of 20 s, θ = 4, κ = 0.4 to 0.8, {BURST}; 130 s, one seed",
    "Fig. 14": f"{LEARNING}; {STEADY}, κ = 0.8, basic windows of 1 to 20 s; 60 s, one seed",
    "Fig. 15": f"{POLICY}; 100 to 500 tuples/s, two windows of 20 s, κ = 0.6; 60 s, one seed",
    "Fig. 16": f"{POLICY}; {STEADY}, κ = 0.6, three types worth 1, 2^-k and 3^-k, k from 0 to 3; "
    "60 s, one seed",
    "Fig. 17": f"{POLICY}; {STEADY}, κ = 0.6, 2 to 40 types, the best worth 5 and 10 times the "
    "least; 60 s, one seed",
}


def name_seeds(claims: Iterable[Claim], seeds: int) -> list[Claim]:
    """Return the claims with settings that say of how many seeds their figures are the mean."""
    text = "one seed" if seeds == 1 else f"the mean of {seeds} seeds"
    return [replace(c, setting=c.setting.replace("one seed", text)) for c in claims]
