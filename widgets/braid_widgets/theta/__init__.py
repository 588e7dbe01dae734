"""Views of grids. Source: Elseidy 2014."""
