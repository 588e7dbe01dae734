"""Settings of the claims about figures of Gedik 2007: templates for the values of their runs."""

from __future__ import annotations

FADING = "weights that fade to {faded} in {step} s, in place of T_c = {printed} s"
FORWARDED = "r fed forward each {step} s, in place of Algorithm 1 with T_r = {printed} s"
LEARNING = f"the policy (γ = {{gamma}}; {FORWARDED}; {FADING})"
POLICY = f"{LEARNING}; basic windows of {{basic}} s"
"""The policy, and in what its runs differ from the paper's."""
NEWEST = (
    "the policy's rate adaptation alone, which processes the newest tuples (γ = {gamma}; "
    f"{FORWARDED}); basic windows of {{basic}} s"
)
"""The policy where it does not learn."""
BY_AGE = "time correlation by Algorithm 3, direction by Algorithm 4"
SELECTIVE = "selective by Algorithm 5"
TYPED = f"{POLICY}; {SELECTIVE}, beside the same without types"
EITHER = "tuples/s of either stream (Poisson)"
BURST = f"{{rates}} {EITHER} as in Fig. 8, {{capacity}} comparisons a second"
SETS = "sets of section 6.1"
SHIFTED = "τ = {shift} of a cycle of {cycle} windows"
ONE = f"one window of {{window}} s, {SETS}, θ = {{theta}}, τ = {{shift}}"
TWO = f"two windows of {{window}} s, {SETS}, θ = {{theta}}, {SHIFTED}"
STEADY = f"{{rates}} {EITHER}, {{capacity}} comparisons a second, so r = {{fraction}}, {TWO}"
PAIRS = "gains over random dropping, for equally many pairs and in output"
LAST = "{seconds} s, seed {seeds}"
COUNTED = f"counted in the last {{counted}} of {LAST}"
INDEXED = (
    "computed by true densities, from {drawn} random sets of either stream, seed {seed}, κ = "
    "{kappas}, γ and learning left out; {rate} tuples/s of either stream, {capacity} comparisons a "
    "second, "
    f"{TWO}, basic windows of {{basic:range}} s; a pair {{cheaper}} times as cheap with an index, "
    "looking up a basic window as dear as {lookup} of these pairs"
)
INDEXED_DROPS = (
    "computed: {capacity} comparisons a second, pairs with an index {cheaper} times as cheap; "
    "{rates:range} tuples/s of either stream, two windows of {windows:range} s"
)
INDEXED_GAIN = (
    f"{POLICY}; {SELECTIVE}, beside random dropping; run without an index, with pairs {{cheap}} "
    f"times as cheap and r for windows of {{indexed}} s; {{capacity}} comparisons a second, an "
    f"overlap, {{rate}} {EITHER}, {TWO}, κ = {{kappa}}; {COUNTED}"
)
FORWARD = (
    f"{NEWEST}; {ONE}, κ = {{kappa}}, beside a model of Algorithm 1 (T_r = {{step}} s, δ_r = "
    f"{{boost}}); {BURST}; {LAST}"
)
SETTINGS = {
    "Fig. 1": "computed: bells of deviation {deviation} w with their peak at {middles} w; the "
    "newest and the best {shares} of a window",
    "Fig. 5": "computed by section 5.1.1: bells of deviation {deviations} w in the middle, basic "
    "windows of {basics} w, r' = {shares}",
    "Fig. 6": "computed by section 6.1, from {drawn} random sets of either stream: θ = {theta}, κ "
    "= {kappas}, a cycle of {cycle} windows, τ = {shift} of it; seed {seeds}",
    "Fig. 7": f"the policy's drop, with {{capacity}} comparisons a second; {{rates}} {EITHER}, two "
    f"windows of {{window}} s, batches of {{step}} s; {COUNTED}",
    "Fig. 8": f"{NEWEST}; {ONE}, κ = {{kappa}}, {BURST}; {LAST}",
    "section 4": f"{NEWEST}; two windows of {{window}} s with τ = {{shift:most}} of a cycle of "
    f"{{cycle}} windows, and one, where it is not shifted; {SETS}, θ = {{theta}}; {PAIRS}, κ = "
    f"{{kappas}}, {BURST}; {LAST}",
    "Fig. 9": f"{NEWEST}; {ONE}; {PAIRS}, κ = {{kappas}}, {BURST}; {LAST}",
    "Fig. 10": f"{NEWEST}; {ONE}; {PAIRS}, κ = {{varied}} by window and {{kappas}} by skew, on "
    f"{{middle}} s; {BURST}; {LAST}",
    "Fig. 11": f"the policy with direction, by Algorithm 4 (γ = {{gamma}}; {FADING}); basic "
    f"windows of {{basic}} s; {TWO}, κ = {{kappa}}, {{rates}} {EITHER}, r given as {{shares}}; "
    f"{COUNTED}",
    "Fig. 12": f"{POLICY}; {BY_AGE}; {TWO}, κ = {{kappas}}, {BURST}; {LAST}",
    "Fig. 13": f"{POLICY}; {BY_AGE}; {TWO}, κ = {{kappas}}, {BURST}; {LAST}",
    "Fig. 14": f"{LEARNING}; {SELECTIVE}; {STEADY}, κ = {{kappas}}, basic windows of "
    f"{{basic}} s; {COUNTED}",
    "Fig. 15": f"{POLICY}; {SELECTIVE}, beside random dropping; an overlap of {SETS}, and an "
    f"equality of single values of {{values}}, whose pairs are {{equal}} times as cheap; {{rate}} "
    f"{EITHER}, {{capacity}} comparisons a second, so r = {{fraction}} for the overlap, "
    "{equal_fraction} for the equality; two windows of {window} s, θ = {theta} for the overlap, "
    f"{{same}} for the equality, {SHIFTED}, κ = {{kappa}}, the overlap also {{skewer}}; {COUNTED}",
    "Fig. 16": f"{TYPED}; {STEADY}, κ = {{kappas}}, types worth {{bases}} to the power of -k, "
    "k = {skews}, with equal frequencies, inverse and proportional to their worth; "
    f"{COUNTED}",
    "Fig. 17": f"{TYPED}; {STEADY}, κ = {{kappas}}, {{types}} types, the best worth {{factors}} "
    f"times the least, with frequencies inverse to their worth; {COUNTED}",
}
