"""Wang 2008, Parts I and III: chains and shared rings of state slices for many queries."""
