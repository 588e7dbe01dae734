"""Study the reuse of running operators (StreamReuse)."""
