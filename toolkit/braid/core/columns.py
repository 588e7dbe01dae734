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
DRAW = "__draw"
"""The hash of a tuple by which it is drawn, in a run that sheds load."""
WORTH = "__worth"
"""What a tuple is worth, in a run that sheds load by utility."""
KEPT = "__kept"
"""The share of tuples that came in when this one did."""
COIN = "__coin"
"""What partial results were drawn by, on their way to another task."""
WEIGHT = "weight"
"""The column of results with one over the chance that each had, in a run that sheds load."""
