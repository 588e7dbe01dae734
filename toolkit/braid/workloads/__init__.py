"""Streams to join: generated data sets and arrivals, as Spark DataFrames."""
