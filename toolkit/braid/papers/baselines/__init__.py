"""Baseline placements for comparison with those of the papers."""
