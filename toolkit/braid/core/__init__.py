"""Plans, facts, events and the rules for them, as plain data and pure functions.

This package imports no Spark and no SQL parser, and its functions never read a tuple.
"""
