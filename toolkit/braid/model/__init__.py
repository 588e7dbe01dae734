"""A policy run without tuples; everything here is modelled."""
