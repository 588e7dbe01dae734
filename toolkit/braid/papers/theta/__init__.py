"""Elseidy et al., Scalable and Adaptive Online Joins, PVLDB 7(6), 2014."""
