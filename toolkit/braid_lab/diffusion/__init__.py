"""Studies of load diffusion over hosts (Gu 2007)."""
