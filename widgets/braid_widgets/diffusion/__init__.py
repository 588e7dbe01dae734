"""Views of load diffusion: Gu 2007."""
