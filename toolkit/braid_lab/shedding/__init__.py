"""Studies of load shedding (Gedik 2007)."""
