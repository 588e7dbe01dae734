"""Helpers that the placements of several papers share."""
