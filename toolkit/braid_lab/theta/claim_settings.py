"""Settings of the claims about the modelled cluster of Elseidy 2014.

Each names the placements that its claim compares, on what, and for how long. Numbers are those of
the runs (``common.recorded_settings``).
"""

from __future__ import annotations

from braid_lab.theta.compared_operators import GRID

IN_BATCHES = "{batches} batches, the first in fifths, tuples as counts"
PLANS = f"the placements plan {{gb}} GB of TPC-H, counted at scale {{scale}}, in {IN_BATCHES}"
MACHINES = "{hosts} machines of {memory_gb} GB ({tuple_bytes} bytes a tuple)"
EQ7 = "EQ7 (lines of two years, as in Q7)"
FOUR = f"EQ5 and {EQ7} at {{skew}}, BNCI and BCI without skew"
SEEDS = "seeds: {seeds}"
HASH_SEEDS = "seeds of SHJ: {hash_seeds}"
BOTH_SEEDS = f"{HASH_SEEDS}, of the others: {{seeds}}"
SLOWEST = "a batch lasts as long as its busiest machine"
PRICES = f"a tuple takes {{tuple_us}} µs{{once_full}}, and a result {{result_us}} µs; {SLOWEST}"
"""The prices of modelled seconds, by ``claim_frames.name_full_memories``."""
ALL_VALUES = "{suppliers} suppliers"

UNEVEN = f"HashPartition: {PLANS}; EQ5 of {ALL_VALUES}, {{hosts}} machines, {{skew:range}}; " + (
    HASH_SEEDS
)
COMPARED = (
    f"HashPartition and {GRID}: {PLANS}; EQ5 and {EQ7} at {{skew}}, {MACHINES}; {ALL_VALUES}; "
    f"{BOTH_SEEDS}; {PRICES}"
)
OVERFLOWS = (
    "HashPartition: {gb} GB of TPC-H, counted at scale {scale}, EQ5, tuples as counts; "
    f"{MACHINES}, {{skew:range}}; "
    "{overflow_values} values of the key in one batch, itself in fifths, seeds: "
    f"{{overflow_seeds}}; all {ALL_VALUES} in {{batches}} batches, {HASH_SEEDS}"
)
FILTERED = (
    f"HashPartition: {PLANS}; {EQ7} of {{values}} values of the key and of all {ALL_VALUES}, "
    f"{MACHINES}, {{skew:range}}; {HASH_SEEDS}"
)
SQUARE = (
    f"{GRID} and StaticGrid: {PLANS}; EQ5 and {EQ7}, {MACHINES}, {{skew:range}}; {SEEDS}; {PRICES}"
)
FULL_MEMORY = f"{GRID} and StaticGrid: {PLANS}; EQ5, {MACHINES}, {{skew:range}}; {SEEDS}"
GROWTHS = f"{GRID} and StaticGrid: {PLANS}; EQ5 at {{skew}}, {MACHINES}; {SEEDS}"
LINES = (
    f"HashPartition, {GRID}, StaticGrid and StaticOpt: {PLANS}; EQ5 of {ALL_VALUES} at "
    f"{{skew}}, {MACHINES}; {BOTH_SEEDS}; {PRICES}"
)
OTHER_LINES = f"{GRID}, StaticGrid and StaticOpt: {PLANS}; {FOUR}, {MACHINES}; {SEEDS}; {PRICES}"
PAIRED = f"{GRID} and StaticGrid: {PLANS}; {FOUR}, {MACHINES}; {SEEDS}"
TIMED_PAIR = f"{PAIRED}; {PRICES}"
LATENCIES = f"{TIMED_PAIR}; a hop takes {{hop_ms}} ms"
ORACLE = f"{GRID} and StaticOpt: {PLANS}; {FOUR}, {MACHINES}; {SEEDS}; {PRICES}"
_VALUES = (
    f"{PLANS}; EQ5 at {{skew}}, {MACHINES}; {{key_values}} values of the key and all {ALL_VALUES}"
)
VALUE_GROWTHS = f"HashPartition and StaticGrid: {_VALUES}; {BOTH_SEEDS}"
VALUE_LOADS = f"HashPartition and {GRID}: {_VALUES}; {BOTH_SEEDS}"
DISK_RANGES = (
    f"HashPartition and {GRID}: {_VALUES}; {BOTH_SEEDS}; a tuple takes {{tuple_us}} µs, once a "
    f"memory is full {{disk:readings}} times as long, and a result {{result_us}} µs; {SLOWEST}"
)
RESULT_RANGES = (
    f"{GRID} and StaticGrid: {PLANS}; BCI without skew, {MACHINES}; {SEEDS}; a tuple takes "
    f"{{tuple_us}} µs{{once_full}}, and a result {{result_us:readings}} µs; {SLOWEST}"
)
MAPPINGS = (
    f"{GRID} and StaticGrid: the placements plan {{of}} without skew in {IN_BATCHES}; "
    "{hosts} machines on which all fits in memory, S of {s_tuples} tuples, R such that the best "
    "mapping is {optimum}; one seed"
)
TIMED_MAPPINGS = (
    f"{MAPPINGS}; as many results as {{of}} has; a tuple takes {{tuple_us}} µs and a result "
    f"{{result_us}} µs; {SLOWEST}"
)
SCALING = (
    f"{GRID} plans {{gb}} GB of TPC-H, counted at scale {{scale}}, on {MACHINES}, EQ5, {EQ7} and "
    f"BNCI without skew, in {IN_BATCHES}; {SEEDS}"
)
TIMED_SCALING = f"{SCALING}; {PRICES}"
OUT_OF_CORE = (
    f"{SCALING}; every tuple is on disk and takes {{disk:readings}} times {{tuple_us}} µs, and a "
    f"result {{result_us}} µs; {SLOWEST}"
)
SWINGS = (
    f"{GRID} on {{hosts}} machines, the tuples of {{gb}} GB of TPC-H, as counts; streams "
    "swing by k = {k}, whole swings until one has grown {growth} times at least, R begins with "
    "{start} times the tuples of S, {begun:range} of both; a batch is {fine} of the smaller one, "
    "{batches:range} batches, one seed"
)
TIMED_SWINGS = (
    f"{SWINGS}; all fits in memory, a tuple takes {{tuple_us}} µs and a result {{result_us}} µs; "
    f"{SLOWEST}"
)
