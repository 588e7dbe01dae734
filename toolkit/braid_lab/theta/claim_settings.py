"""Settings of the claims about the modelled cluster of Elseidy 2014.

Each names the placements that its claim compares, on what, and for how long. Numbers are those of
the runs (``common.recorded_settings``).
"""

from __future__ import annotations

IN_BATCHES = "{batches} batches, the first in fifths, tuples as counts"
PLANS = f"the placements plan {{gb}} GB of TPC-H in {IN_BATCHES}"
MACHINES = "{hosts} machines of {memory_gb} GB ({tuple_bytes} bytes a tuple)"
FOUR = "EQ5 and EQ7 at {skew}, BNCI and BCI without skew"
SEEDS = "seeds: {seeds}"
HASH_SEEDS = "seeds of SHJ: {hash_seeds}"
BOTH_SEEDS = f"{HASH_SEEDS}, of the others: {{seeds}}"
PRICES = (
    "a tuple takes {tuple_us} µs, {disk} times as long once a memory is full, and a result "
    "{result_us} µs"
)
"""The prices of modelled seconds."""
ALL_VALUES = "{suppliers} suppliers"

UNEVEN = f"HashPartition: {PLANS}; EQ5 of {ALL_VALUES}, {{hosts}} machines, {{skew:range}}; " + (
    HASH_SEEDS
)
COMPARED = (
    f"HashPartition and AdaptiveGrid: {PLANS}; EQ5 and EQ7 at {{skew}}, {MACHINES}; {ALL_VALUES}; "
    f"{BOTH_SEEDS}; {PRICES}"
)
OVERFLOWS = (
    f"HashPartition: {{gb}} GB of TPC-H, EQ5, tuples as counts; {MACHINES}, {{skew:range}}; "
    "{overflow_values} values of the key in one batch, itself in fifths, seeds: "
    f"{{overflow_seeds}}; all {ALL_VALUES} in {{batches}} batches, {HASH_SEEDS}"
)
FILTERED = (
    f"HashPartition: {PLANS}; EQ7 of {{values}} values and of {ALL_VALUES}, {MACHINES}, "
    f"{{skew:range}}; {HASH_SEEDS}"
)
SQUARE = (
    f"AdaptiveGrid and StaticGrid: {PLANS}; EQ5 and EQ7, {MACHINES}, {{skew:range}}; {SEEDS}; "
    f"{PRICES}"
)
FULL_MEMORY = f"AdaptiveGrid and StaticGrid: {PLANS}; EQ5, {MACHINES}, {{skew:range}}; {SEEDS}"
GROWTHS = f"AdaptiveGrid and StaticGrid: {PLANS}; EQ5 at {{skew}}, {MACHINES}; {SEEDS}"
LINES = (
    f"HashPartition, AdaptiveGrid, StaticGrid and StaticOpt: {PLANS}; EQ5 of {ALL_VALUES} at "
    f"{{skew}}, {MACHINES}; {BOTH_SEEDS}; {PRICES}"
)
OTHER_LINES = (
    f"AdaptiveGrid, StaticGrid and StaticOpt: {PLANS}; {FOUR}, {MACHINES}; {SEEDS}; {PRICES}"
)
PAIRED = f"AdaptiveGrid and StaticGrid: {PLANS}; {FOUR}, {MACHINES}; {SEEDS}"
TIMED_PAIR = f"{PAIRED}; {PRICES}"
LATENCIES = f"{TIMED_PAIR}; a hop takes {{hop_ms}} ms"
ORACLE = f"AdaptiveGrid and StaticOpt: {PLANS}; {FOUR}, {MACHINES}; {SEEDS}; {PRICES}"
_VALUES = (
    f"{PLANS}; EQ5 at {{skew}}, {MACHINES}; {{key_values}} values of the key and all {ALL_VALUES}"
)
VALUE_GROWTHS = f"HashPartition and StaticGrid: {_VALUES}; {BOTH_SEEDS}"
VALUE_LOADS = f"HashPartition and AdaptiveGrid: {_VALUES}; {BOTH_SEEDS}"
DISK_RANGES = f"HashPartition and AdaptiveGrid: {_VALUES}; {BOTH_SEEDS}; {PRICES}"
RESULT_RANGES = (
    f"AdaptiveGrid and StaticGrid: {PLANS}; BCI without skew, {MACHINES}; {SEEDS}; {PRICES}"
)
MAPPINGS = (
    f"AdaptiveGrid and StaticGrid: the placements plan {{of}} without skew in {IN_BATCHES}; "
    "{hosts} machines on which all fits in memory, S of {s_tuples} tuples, R such that the best "
    "mapping is {optimum}; one seed"
)
TIMED_MAPPINGS = (
    f"{MAPPINGS}; as many results as {{of}} has; a tuple takes {{tuple_us}} µs and a result "
    "{result_us}"
)
SCALING = (
    "AdaptiveGrid plans {gb} GB of TPC-H on {hosts} machines, EQ5, EQ7 and BNCI without skew, in "
    f"{IN_BATCHES}; {SEEDS}"
)
TIMED_SCALING = f"{SCALING}; a tuple takes {{tuple_us}} µs and a result {{result_us}}"
OUT_OF_CORE = f"{TIMED_SCALING}; on disk {{disk}} times as long"
SWINGS = (
    "AdaptiveGrid on {hosts} machines, as many tuples as {gb} GB of TPC-H have, as counts; streams "
    "swing by k = {k}, whole swings until one has grown {growth} times at least, R begins with "
    "{start} times the tuples of S; a batch is {fine} of the smaller one, {batches:range} batches, "
    "one seed"
)
TIMED_SWINGS = f"{SWINGS}; a tuple takes {{tuple_us}} µs and a result {{result_us}}"
