"""Settings of the claims about the modelled cluster of Elseidy 2014, by figure."""

from __future__ import annotations

PLANS = "the placements plan 10 GB of TPC-H in 16 batches, tuples as counts"
MAPPINGS = (
    f"AdaptiveGrid and StaticGrid: {PLANS}; 64 machines on which all fits in memory, EQ5 at Z0, R "
    "grows from a 64th of S to S; one seed"
)
SCALING = (
    "AdaptiveGrid plans 10 GB of TPC-H on 16 machines, 20 GB on 32, 40 GB on 64 and 80 GB on 128; "
    "Z0, 16 batches, tuples as counts, one seed"
)
SWINGS = (
    "AdaptiveGrid on 64 machines, 60 million tuples (8 GB) as counts; streams swing by k = 2, 4, 6 "
    "and 8, R begins with 0.5 % less than S"
)
SETTINGS = {
    "Section 5.1": f"HashPartition: {PLANS}; EQ5 of 100,000 suppliers, 16 machines, Z0 to Z4, "
    "three seeds",
    "Table 2": f"HashPartition, AdaptiveGrid and StaticGrid: {PLANS}; 16 machines of 2 GB, Z0 to "
    "Z4; three seeds of SHJ, one of the others",
    "Fig. 5": f"AdaptiveGrid, StaticGrid, StaticOpt and HashPartition: {PLANS}; 64 machines of "
    "2 GB, EQ5 and EQ7 at Z4, band joins at Z0; three seeds of SHJ, one of the others",
    "Fig. 5g": MAPPINGS,
    "Fig. 5h": MAPPINGS,
    "Fig. 5i": SCALING,
    "Fig. 5k": f"{SWINGS}; a batch is 0.5 % of the smaller one, 1,900 to 3,800 batches, one seed",
    "Fig. 5l": f"{SWINGS}; a batch is 4 % of the smaller one, 247 to 469 batches, one seed",
}
OVERFLOWS = (
    "HashPartition: 10 GB of TPC-H, EQ5, tuples as counts; 16 machines of 2 GB, Z0 to Z4; 10 to "
    "100 values of the key in one batch, 20 seeds; all 100,000 suppliers in 16 batches, three seeds"
)
VALUE_RANGES = (
    f"HashPartition, AdaptiveGrid and StaticGrid: {PLANS}; EQ5 at Z4, 64 machines of 2 GB; 10 to "
    "1,000 values of the key and all 100,000 suppliers, three seeds of SHJ; once 2 GB are full a "
    "tuple takes 10 and 30 times as long"
)
RESULT_RANGES = (
    f"AdaptiveGrid and StaticGrid: {PLANS}; BCI at Z0, 64 machines of 2 GB, one seed; a tuple "
    "takes 21 µs and a result 0.1, 0.3, 1 and 3"
)
OUT_OF_CORE = f"{SCALING}; on disk a tuple takes 10 and 30 times as long"
