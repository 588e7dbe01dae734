"""Settings of the claims about the modelled cluster of Elseidy 2014, by figure."""

from __future__ import annotations

PLANS = "the placements plan 10 GB of TPC-H in 16 batches, tuples as counts"
SETTINGS = {
    "Table 2": f"HashPartition, AdaptiveGrid and StaticGrid: {PLANS}; 16 machines of 2 GB, Z0 to "
    "Z4, three seeds of SHJ",
    "Fig. 5": f"AdaptiveGrid, StaticGrid, StaticOpt and HashPartition: {PLANS}; 64 machines of "
    "2 GB, EQ5 and EQ7 at Z4, band joins at Z0, three seeds of SHJ",
    "Fig. 5g": f"AdaptiveGrid and StaticGrid: {PLANS}; 64 machines, EQ5 at Z0, R grows up to S",
    "Fig. 5h": f"AdaptiveGrid and StaticGrid: {PLANS}; 64 machines, EQ5 at Z0, R grows up to S",
    "Fig. 5i": "AdaptiveGrid plans 10 GB of TPC-H on 16 machines, 20 GB on 32, 40 GB on 64; Z0, 16 "
    "batches, tuples as counts",
    "Fig. 5l": "AdaptiveGrid on 64 machines, 60 million tuples (8 GB) as counts; streams swing by "
    "k = 2, 4, 6 and 8, a batch is 4 % of the smaller one, 245 to 404 batches",
}
