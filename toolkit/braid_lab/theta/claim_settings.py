"""Settings of the claims about the modelled cluster of Elseidy 2014.

Each names the placements that its claim compares, on what, and for how long.
"""

from __future__ import annotations

PLANS = "the placements plan 10 GB of TPC-H in 16 batches, tuples as counts"
ON_16 = "16 machines of 2 GB"
ON_64 = "64 machines of 2 GB"
FOUR = "EQ5 and EQ7 at Z4, BNCI and BCI at Z0"
HASH_SEEDS = "three seeds of SHJ, one of Dynamic"

UNEVEN = f"HashPartition: {PLANS}; EQ5 of 100,000 suppliers, 16 machines, Z0 to Z4, three seeds"
SKEWED = f"HashPartition and AdaptiveGrid: {PLANS}; EQ5 and EQ7 at Z4, {ON_16}; {HASH_SEEDS}"
UNSKEWED = f"HashPartition and AdaptiveGrid: {PLANS}; EQ5 and EQ7 at Z0, {ON_16}; {HASH_SEEDS}"
OVERFLOWS = (
    f"HashPartition: 10 GB of TPC-H, EQ5, tuples as counts; {ON_16}, Z0 to Z4; 10 to 100 values of "
    "the key in one batch, 20 seeds; all 100,000 suppliers in 16 batches, three seeds"
)
FILTERED = (
    f"HashPartition: {PLANS}; EQ7 of 25 values and of 100,000 suppliers, {ON_16}, Z0 to Z4, three "
    "seeds"
)
SQUARE = f"AdaptiveGrid and StaticGrid: {PLANS}; EQ5 and EQ7, {ON_16}, Z0 to Z4, one seed"
FULL_MEMORY = f"AdaptiveGrid and StaticGrid: {PLANS}; EQ5, {ON_16}, Z0 to Z4, one seed"
GROWTHS = f"AdaptiveGrid and StaticGrid: {PLANS}; EQ5 at Z4, {ON_64}, one seed"
LINES = (
    f"HashPartition, AdaptiveGrid, StaticGrid and StaticOpt: {PLANS}; EQ5 of 100,000 suppliers at "
    f"Z4, {ON_64}; three seeds of SHJ, one of the others"
)
OTHER_LINES = (
    f"AdaptiveGrid, StaticGrid and StaticOpt: {PLANS}; {FOUR}, {ON_64}, one seed; a tuple takes 21 "
    "µs and a result 1"
)
PAIRED = f"AdaptiveGrid and StaticGrid: {PLANS}; {FOUR}, {ON_64}, one seed"
ORACLE = f"AdaptiveGrid and StaticOpt: {PLANS}; {FOUR}, {ON_64}, one seed"
VALUE_RANGES = (
    f"HashPartition, AdaptiveGrid and StaticGrid: {PLANS}; EQ5 at Z4, {ON_64}; 10 to 1,000 values "
    "of the key and all 100,000 suppliers, three seeds of SHJ, one of the others"
)
DISK_RANGES = (
    f"HashPartition and AdaptiveGrid: {PLANS}; EQ5 at Z4, {ON_64}; 10 to 50 values of the key and "
    f"all 100,000 suppliers; once 2 GB are full a tuple takes 10 and 30 times as long; {HASH_SEEDS}"
)
RESULT_RANGES = (
    f"AdaptiveGrid and StaticGrid: {PLANS}; BCI at Z0, {ON_64}, one seed; a tuple takes 21 µs and "
    "a result 0.1, 0.3, 1 and 3"
)
MAPPINGS = (
    f"AdaptiveGrid and StaticGrid: {PLANS}; 64 machines on which all fits in memory, EQ5 at Z0, R "
    "grows from a 64th of S to S; one seed"
)
SCALING = (
    "AdaptiveGrid plans 10 GB of TPC-H on 16 machines, 20 GB on 32, 40 GB on 64 and 80 GB on 128; "
    "Z0, 16 batches, tuples as counts, one seed"
)
OUT_OF_CORE = f"{SCALING}; on disk a tuple takes 10 and 30 times as long"
_SWINGS = (
    "AdaptiveGrid on 64 machines, 60 million tuples (8 GB) as counts; streams swing by k = 2, 4, 6 "
    "and 8, R begins with 0.5 % less than S"
)
FINE_SWINGS = f"{_SWINGS}; a batch is 1 % of the smaller one, 952 to 1,864 batches, one seed"
SWINGS = f"{_SWINGS}; a batch is 4 % of the smaller one, 247 to 469 batches, one seed"
