"""The algorithms of Elseidy et al. 2014 in our own words, with the lines of the paper."""

from braid_lab.common.tuple_models import Listing

LISTINGS = (
    Listing(
        "Algorithm 1",
        "what the controller does with a tuple",
        (
            (2, 2, "a tuple of R: |ΔR| grows, scaled by the number of reshufflers"),
            (3, 3, "a tuple of S: |ΔS| grows, scaled by the number of reshufflers"),
            (4, 4, "look whether to migrate (Algorithm 2)"),
            (5, 5, "route the tuple by the current mapping"),
        ),
    ),
    Listing(
        "Algorithm 2",
        "when the controller migrates",
        (
            (2, 2, "go on if |ΔR| has reached |R|, or |ΔS| has reached |S|"),
            (3, 4, "choose the mapping (n, m) with the least |R|/n + |S|/m, and migrate to it"),
            (5, 6, "add ΔR to R and ΔS to S; count both from 0 again"),
        ),
    ),
    Listing(
        "Algorithm 3",
        "what a joiner does",
        (
            (2, 3, "a first signal of a new mapping: send on what moves of τ"),
            (4, 5, "all reshufflers have signalled: no tuple of the old epoch comes any more"),
            (10, 10, "a tuple of μ (sent by the partner): meet Δ′, then store it"),
            (11, 12, "a tuple of Δ′ (new epoch): meet μ, Δ′ and what stays of τ ∪ Δ"),
            (13, 15, "a tuple of the old epoch: meet τ ∪ Δ; if it stays, Δ′; if not, send it on"),
            (17, 17, "after the signals, a tuple of μ: meet Δ′"),
            (18, 19, "after the signals, a tuple of Δ′: meet μ, Δ′ and what stays of τ ∪ Δ"),
            (20, 23, "nothing is on its way: discard what is elsewhere now; the rest becomes τ"),
        ),
    ),
)
