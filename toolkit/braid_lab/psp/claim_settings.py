"""Settings of the claims of Wang 2008, Part II: templates for the values of their runs."""

from __future__ import annotations

STREAMS = "{streams} Poisson streams of {rate} tuples/s, W = {window} s"
"""The streams of a run, and their window."""
SIGMA = ", σ = {sigma} for each pair of streams"
FINE = ", batches of at most W / ({slice_batches} N)"
"""How long batches are, where slices are compared."""
RUN = "{seconds} s of the {printed_seconds} printed, the first {window} s not counted, seeds {seed}"
"""How long and how often it is."""
COSTS = (
    ", a pair at {pair_us} µs, the receipt of a tuple, the send and the receipt of an intermediate "
    "result at {send_us} µs each, a node's other work free"
)
HOP_TIMES = ", T_n of {hop_ms} ms"
RESPONSE = (
    "; response time: that of a batch's busiest node for one tuple, in the mean of batches, and "
    "hops without queueing, "
)
RING_HOPS = "{ring_hops} in a ring"
CTR_HOPS, ATR_HOPS = "{ctr_hops} under CTR", "{atr_hops} under ATR"
PRICES = COSTS + HOP_TIMES + RESPONSE
"""The prices that turn counts into time; which hops there are follows."""
AS = "counted and priced"
ONE_SEGMENT = "segments of {ctr_segment} batch"
ATR = "ATR (T = W and {long_segment} W)"
CTR = f"CTR ({{copies}} copies, and half of N, {ONE_SEGMENT})"
RINGS = "PSP, PSP-D and PSP-I, the last all tuples of a batch at once"
BEST = "the best of PSP, PSP-D and PSP-I (all tuples of a batch at once)"


def describe_schemes(schemes: str, costs: str = "") -> str:
    """Return the template of the setting of schemes on several lengths."""
    return f"{schemes}; {{nodes}} nodes, {STREAMS}{SIGMA}{FINE}{costs}; {RUN}"
