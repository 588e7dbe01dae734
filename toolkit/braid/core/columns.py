"""The names of the columns that Braid adds to the user's own; a user's column never begins with two
underscores.
"""

from __future__ import annotations

TIME = "__time"
"""Event time, in microseconds."""
ROUTING = "__key"
"""The routing key."""
MARK = "__mark"
"""The column of a shared run's blocks that says, bit by bit, which queries' selections a tuple
passed.
"""
QUERIES = "__queries"
"""The column of a shared run's results with the queries that each serves."""
