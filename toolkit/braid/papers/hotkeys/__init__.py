"""Frequent join values shared out over hosts.

Afrati, Stasinopoulos, Ullman and Vassilakopoulos, "SharesSkew: An Algorithm to Handle Skew for
Joins in MapReduce", arXiv 1512.03921, with ideas of Flow-Join (Rödiger et al., ICDE 2016: frequent
values are found while tuples flow) and of BiStream (Lin et al., SIGMOD 2015: a tuple is stored once
and probes all hosts). The placement, the work of values that it is decided from, the spread of
values over hosts, and the events.
"""
