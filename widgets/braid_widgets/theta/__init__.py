"""Views of grids: Elseidy 2014."""
