"""One folder a paper: policies, cost models, reference models. On core alone."""
