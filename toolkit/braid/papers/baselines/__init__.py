"""The placements that the papers' own are compared with."""
