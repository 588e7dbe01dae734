"""Studies of chains of state slices (Wang 2008)."""
