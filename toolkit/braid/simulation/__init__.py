"""Run a policy without tuples; everything here is modelled."""
