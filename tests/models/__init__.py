"""Tuple-level models of joins: lists of tuples, no NumPy and no import of what they test."""
