"""Claims, recordings, launches and printed figures, shared by the studies."""
