"""Claims, cached results, traces and printed figures, shared by the studies."""
