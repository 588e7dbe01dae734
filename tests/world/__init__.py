"""The simulated world: Braid's engine on a disk, a bucket, a source and a sink that fail.

One integer, the seed, decides everything: the scenario, the faults, and the order of drivers. The
same seed gives the same trace, byte by byte.
"""
