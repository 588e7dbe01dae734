"""Two blocks meet on one host: NumPy and Arrow."""
