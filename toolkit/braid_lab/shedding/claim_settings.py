"""Settings of the claims about figures of Gedik 2007: templates for the values of their runs."""

from __future__ import annotations

LEARNING = (
    "the policy (γ = {gamma}; r fed forward each {step} s, for T_r = {printed} s; weights that "
    "fade to {faded} in {step} s, for T_c = {printed} s)"
)
POLICY = f"{LEARNING}; basic windows of {{basic}} s"
"""The policy, and in what its runs differ from the paper's."""
BURST = "{rates} tuples/s as in Fig. 8"
STEADY = "{rates} tuples/s, r = {fraction}, two windows of {window} s"
ONE = "one window of {window} s, τ = {shift}"
TWO = "two windows of {window} s, θ = {theta}"
PAIRS = "gains for as many pairs"
LAST = "{seconds} s, seed {seeds}"
INDEXED = (
    "computed by true densities, κ = {kappa}, γ and learning left out; {rate} tuples/s, one window "
    "of {window} s, basic windows of {basic:range} s"
)
INDEXED_DROPS = (
    "computed: {capacity} comparisons a second, pairs with an index {cheaper} times as cheap; "
    "{rates:range} tuples/s, two windows of {windows:range} s"
)
FORWARD = (
    f"{POLICY}; {ONE}, κ = {{kappa}}, beside a model of Algorithm 1 (T_r = {{step}} s); {BURST}; "
    f"{LAST}"
)
SETTINGS = {
    "Fig. 1": "computed: bells of deviation {deviation} w with their peak at {middles} w; the "
    "newest and the best {shares} of a window",
    "Fig. 5": "computed by section 5.1.1: bells of deviation {deviations} w in the middle, basic "
    "windows of {basics} w, r' = {shares}",
    "Fig. 6": "computed by section 6.1, from {drawn} random sets of either stream: θ = {theta}, κ "
    "= {kappas}, a cycle of {cycle} windows, τ = {shift} of it",
    "Fig. 7": "the policy's drop, with {capacity} comparisons a second; {rates} tuples/s, two "
    "windows of {window} s; {seconds} s, seed {seeds}",
    "Fig. 8": f"{POLICY}; {ONE}, κ = {{kappa}}, {BURST}; {LAST}",
    "section 4": f"{POLICY}; two windows of {{window}} s with τ = {{shift:most}} of a cycle, and "
    f"one, where it is not shifted; {PAIRS}, κ = {{kappas}}, {BURST}; {LAST}",
    "Fig. 9": f"{POLICY}; {ONE}; {PAIRS} and in output, κ = {{kappas}}, {BURST}; {LAST}",
    "Fig. 10": f"{POLICY}; {ONE}; {PAIRS}, κ = {{varied}} by window and {{kappas}} by skew; "
    f"{BURST}; {LAST}",
    "Fig. 11": f"{POLICY}; {TWO}, κ = {{kappa}}, {{rates}} tuples/s, r given as {{shares}}; the "
    f"last {{counted}} of {LAST}",
    "Fig. 12": f"{POLICY}; {TWO}, κ = {{kappas}}, {BURST}; {LAST}",
    "Fig. 13": f"{POLICY}; {TWO}, κ = {{kappas}}, {BURST}; {LAST}",
    "Fig. 14": f"{LEARNING}; {STEADY}, κ = {{kappas}}, basic windows of {{basic}} s; {LAST}",
    "Fig. 15": f"{POLICY}; {{rate}} tuples/s, two windows of {{window}} s, κ = {{kappa}}, at "
    f"{{rate:most}}/s also {{skewer}}; {LAST}",
    "Fig. 16": f"{POLICY}; {STEADY}, κ = {{kappas}}, types worth {{bases}} to the power of -k, "
    f"k = {{skews}}; {LAST}",
    "Fig. 17": f"{POLICY}; {STEADY}, κ = {{kappa}}, {{types}} types, the best worth {{factors}} "
    f"times the least; {LAST}",
}
