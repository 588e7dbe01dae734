"""Study load shedding (Gedik 2007)."""
