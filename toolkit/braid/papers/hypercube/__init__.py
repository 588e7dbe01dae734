"""F. N. Afrati and J. D. Ullman, "Optimizing Joins in a Map-Reduce Environment", EDBT 2010.

A join of several streams with equalities on different columns in one hop: hosts are the cells of a
hypercube with a dimension for each chain of equal columns. Besides the placement, the folder has
the shares of the dimensions, the routes, the moves of stored blocks, and events.
"""
