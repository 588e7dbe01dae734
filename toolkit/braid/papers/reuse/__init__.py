"""Seshadri et al. 2008: queries on a network share operators that are alike, or are made alike."""
