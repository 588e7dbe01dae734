"""Studies of the ring of slices (PSP)."""
