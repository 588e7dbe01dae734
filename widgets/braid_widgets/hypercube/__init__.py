"""Views of a hypercube. Source: Afrati and Ullman 2010."""
