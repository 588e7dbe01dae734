"""Studies of a ring of slices that serves many queries."""
