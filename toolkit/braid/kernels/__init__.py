"""Join two blocks on one host, with NumPy and Arrow."""
