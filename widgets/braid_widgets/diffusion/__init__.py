"""Views of load diffusion. Source: Gu 2007."""
