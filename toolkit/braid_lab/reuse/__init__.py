"""Studies of the reuse of running operators (StreamReuse)."""
