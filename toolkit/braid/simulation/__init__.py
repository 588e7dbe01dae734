"""Simulate placements without tuples. All results are modelled."""
