"""A differential fuzzer of conditions and hub statements.

``python -m fuzz --help`` (from ``tests``) or ``make fuzz SEED=1 MINUTES=5`` runs it. A case is a
JSON file (``cases.Case``). ``grammar`` draws conditions, ``statements`` draws queries of a hub,
``routes`` are the ways in which Braid answers a case, and ``oracles`` determine the right answer.
"""
