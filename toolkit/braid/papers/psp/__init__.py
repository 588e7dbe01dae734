"""Wang 2008, Part II: Pipelined State Partitioning, a ring of state slices for one join."""
