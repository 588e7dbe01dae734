"""Streams to join, as Spark DataFrames and Arrow tables."""
