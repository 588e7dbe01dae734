"""Placements, cost models and load shedding, one folder for each paper; they import core only."""
