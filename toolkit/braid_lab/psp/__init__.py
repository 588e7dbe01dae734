"""Study the ring of slices (PSP)."""
