"""Studies of adaptive theta joins (Elseidy 2014)."""
