"""Share claims, recordings, launches and printed figures among studies."""
