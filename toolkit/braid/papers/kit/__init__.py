"""Empty: the helpers are in ``braid.papers.common``."""
